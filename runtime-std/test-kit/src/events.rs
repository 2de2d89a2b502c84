//! The events of a run, as lines for its reader.

use tramontane_fixtures::world::{DiskChange, History, ProcessName, Record, Recorded};

/// Number of events that a report shows.
const SHOWN_MAX: usize = 40;

/// The last events of a run.
#[derive(Debug, Default)]
pub(crate) struct Events {
    lines: Vec<String>,
}

impl Events {
    /// Adds an event of the simulation.
    pub(crate) fn note(&mut self, history: &History, Recorded { at, record }: &Recorded) {
        let name = |process: &usize| name(history.processes[*process]);
        let line = match record {
            Record::View { process, view, members } => {
                let members: Vec<u32> = members.iter().map(|node| node.get()).collect();
                format!("{} enters view {} of {members:?}", name(process), view.0)
            }
            Record::Formed { .. } => "a new group is formed".into(),
            Record::Multicast { process, .. } => format!("{} proposes", name(process)),
            Record::Deliver { process, .. } => format!("{} applies", name(process)),
            Record::Crash { process } => format!("{} crashes", name(process)),
            Record::Stop { process } => format!("{} is stopped", name(process)),
            Record::Continue { process } => format!("{} continues", name(process)),
            Record::Partition { side } => {
                let side: Vec<u32> = side.iter().map(|node| node.get()).collect();
                format!("nodes {side:?} are cut off from the others")
            }
            Record::Heal { .. } => "the nodes are connected again".into(),
            Record::AskedToLeave { process } => format!("{} is asked to leave", name(process)),
            Record::Left { process } => format!("{} has left", name(process)),
            Record::Halted { process } => format!("{} is no longer a member", name(process)),
            Record::Restarted { .. } => "the group restarts from its logs".into(),
            Record::DiskChanged { node, change } => {
                let change = match change {
                    DiskChange::Lost => "is lost",
                    DiskChange::Emptied => "has an empty log",
                    DiskChange::Shortened => "has lost the end of its log",
                    DiskChange::Older => "is in an older state",
                };
                format!("the disk of node {node} {change}")
            }
            Record::Durable { process, count } => {
                format!("{} knows that {count} commands are durable", name(process))
            }
            Record::Start { .. } | Record::State { .. } | Record::Done { .. } => return,
        };
        let (us, tenths) = (at / 1000, at / 100 % 10);
        self.lines.push(format!("{us:>6}.{tenths} us  {line}"));
    }

    /// Adds the command to the last event, a proposal.
    pub(crate) fn proposed(&mut self, command: &str) {
        self.add(&format!(" {command}"));
    }

    /// Adds the command and its answer to the last event, a delivery.
    pub(crate) fn applied(&mut self, command: &str, answer: &str) {
        self.add(&format!(" {command}: {answer}"));
    }

    fn add(&mut self, text: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.push_str(text);
        }
    }

    /// Returns the last lines.
    pub(crate) fn last(&self) -> &[String] {
        &self.lines[self.lines.len().saturating_sub(SHOWN_MAX)..]
    }
}

fn name(ProcessName { node, life }: ProcessName) -> String {
    match life {
        0 | 1 => format!("node {node}"),
        life => format!("node {node} (start {life})"),
    }
}
