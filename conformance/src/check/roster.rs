//! Nodes, their incarnations, and the fate of each incarnation.
//!
//! The roster refuses records that no driver could have observed: time that runs backwards, or a
//! start of a node that is still running.
//!
//! Invariants: ids count from 0 in order of appearance and are never reused; a node's `starts` are
//! in order; only the last of them can be unfinished.

use super::mixing::MixedTable;
use crate::history::{EndReason, FaultKind, Trouble};

/// The id of a node, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NodeId(pub(super) u32);

/// The id of an incarnation of a node, in order of appearance among all incarnations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct StartId(pub(super) u32);

impl NodeId {
    /// Returns the node's index in tables by node.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl StartId {
    /// Returns the incarnation's index in tables by incarnation.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The fate of an incarnation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The incarnation ended by itself.
    Ended(EndReason),
    /// The driver killed the incarnation.
    Killed,
    /// The history does not record how the incarnation ended.
    Unfinished,
}

/// Whether unfinished incarnations are judged as they are, or as if they were done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum AssumedEnds {
    /// Every fate counts as the history records it.
    AsIs,
    /// Every unfinished incarnation counts as if it were done.
    AsIfDone,
}

/// The time and line of a record; earlier moments compare as less. Lines of different nodes may
/// interleave in any way, so lines are compared only if the times are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// The time.
    pub(super) t_ns: u64,
    /// The line.
    pub(super) line: u64,
}

/// A start's `end`.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndRecord {
    /// The reason.
    pub(super) reason: EndReason,
    /// Its line.
    pub(super) line: u64,
    /// The time.
    pub(super) t_ns: u64,
}

/// One incarnation of a node.
#[derive(Clone, Debug)]
pub(super) struct NodeIncarnation {
    /// The node.
    pub(super) node: NodeId,
    /// The node's own count of its incarnations.
    pub(super) inc: u32,
    /// Its line.
    pub(super) line: u64,
    /// Its end.
    pub(super) end: Option<EndRecord>,
    /// The time of its start.
    pub(super) begun_ns: u64,
    /// The moment of the first `kill` after the start.
    pub(super) kill: Option<Moment>,
    /// The moment of the first request to leave.
    pub(super) leave: Option<Moment>,
    /// The moment of the first request to stop.
    pub(super) stop: Option<Moment>,
}

impl NodeIncarnation {
    /// Returns the incarnation's fate.
    pub(super) fn fate(&self) -> Fate {
        match (self.end, self.kill) {
            (Some(end), _) => Fate::Ended(end.reason),
            (None, Some(_)) => Fate::Killed,
            (None, None) => Fate::Unfinished,
        }
    }

    /// Returns the time at which the incarnation was asked to stop. If there is no such record, an
    /// end that only a request can cause is used instead.
    pub(super) fn stopped(&self) -> Option<Moment> {
        let asked = |end: &EndRecord| matches!(end.reason, EndReason::Done | EndReason::Hung);
        let end = self.end.filter(asked).map(|EndRecord { t_ns, line, .. }| Moment { t_ns, line });
        self.stop.or(end)
    }

    /// Returns whether the incarnation was killed.
    pub(super) fn is_killed(&self) -> bool {
        self.fate() == Fate::Killed
    }

    /// Returns whether the incarnation has the obligations of a correct incarnation.
    pub(super) fn is_correct(&self, world: AssumedEnds) -> bool {
        match self.fate() {
            Fate::Ended(reason) => matches!(reason, EndReason::Done | EndReason::Hung),
            Fate::Unfinished => world == AssumedEnds::AsIfDone,
            Fate::Killed => false,
        }
    }

    /// Returns the line of the last known event: the end, the kill or the start.
    pub(super) fn last_line(&self) -> u64 {
        self.end.map(|end| end.line).or(self.kill.map(|kill| kill.line)).unwrap_or(self.line)
    }

    fn is_over(&self) -> bool {
        self.end.is_some() || self.kill.is_some()
    }
}

/// A node.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNode {
    /// Its name.
    pub(super) name: Box<str>,
    /// The node's incarnations.
    pub(super) starts: Vec<StartId>,
    t_ns: u64,
    stopped: bool,
    parted: bool,
    full: bool,
}

/// All nodes, incarnations and faults.
#[derive(Debug, Default)]
pub(super) struct Roster {
    ids: MixedTable<Box<str>, NodeId>,
    /// The nodes, by id.
    pub(super) nodes: Vec<KnownNode>,
    /// The incarnations, by id.
    pub(super) starts: Vec<NodeIncarnation>,
    /// The highest time of a fault, if there was one.
    pub(super) last_fault_ns: Option<u64>,
    /// Whether there was a fault other than a kill.
    pub(super) had_other_faults: bool,
    /// The line of the first view, multicast or delivery.
    first_event: Option<u64>,
}

impl Roster {
    /// Returns the node of this name, even if it never starts.
    pub(super) fn node(&mut self, name: &str) -> NodeId {
        if let Some(known) = self.ids.get(name) {
            return *known;
        }
        let new = NodeId(u32::try_from(self.nodes.len()).unwrap_or(u32::MAX));
        self.ids.insert(name.into(), new);
        self.nodes.push(KnownNode { name: name.into(), ..KnownNode::default() });
        new
    }

    /// Takes a `start`.
    pub(super) fn start(
        &mut self,
        line: u64,
        name: &str,
        inc: u32,
        t_ns: u64,
    ) -> Result<StartId, Trouble> {
        let node = self.node(name);
        if let Some(last) = self.last_start(node) {
            let last = &self.starts[last.index()];
            if !last.is_over() {
                return Err(contradiction(format!(
                    "{name} restarts, but its incarnation {} neither ended nor was killed",
                    last.inc
                )));
            }
            if inc <= last.inc {
                return Err(contradiction(format!(
                    "{name} starts with inc {inc}, which is not higher than its last one, {}",
                    last.inc
                )));
            }
        }
        self.pass_time(node, t_ns)?;
        let new = StartId(u32::try_from(self.starts.len()).unwrap_or(u32::MAX));
        self.starts.push(NodeIncarnation {
            node,
            inc,
            line,
            end: None,
            begun_ns: t_ns,
            kill: None,
            leave: None,
            stop: None,
        });
        self.nodes[node.index()].starts.push(new);
        Ok(new)
    }

    /// Returns the incarnation that a node's record is about.
    pub(super) fn record(&mut self, name: &str, inc: u32, t_ns: u64) -> Result<StartId, Trouble> {
        let known = self.ids.get(name).copied();
        let Some((node, start)) = known.and_then(|node| Some((node, self.last_start(node)?)))
        else {
            return Err(contradiction(format!("{name} has not started")));
        };
        let last = self.starts[start.index()].inc;
        if last != inc {
            return Err(contradiction(format!(
                "the record has inc {inc}, but the last incarnation of {name} is {last}"
            )));
        }
        self.pass_time(node, t_ns)?;
        Ok(start)
    }

    /// Takes an `end` record.
    pub(super) fn end(&mut self, start: StartId, end: EndRecord) -> Result<(), Trouble> {
        let ended = &mut self.starts[start.index()];
        if ended.end.is_some() {
            let name = &self.nodes[ended.node.index()].name;
            return Err(contradiction(format!(
                "incarnation {} of {name} ends a second time",
                ended.inc
            )));
        }
        ended.end = Some(end);
        Ok(())
    }

    /// Takes a `leave`.
    pub(super) fn asked_to_leave(&mut self, start: StartId, at: Moment) {
        self.starts[start.index()].leave.get_or_insert(at);
    }

    /// Takes a `stop`.
    pub(super) fn asked_to_stop(&mut self, start: StartId, at: Moment) {
        self.starts[start.index()].stop.get_or_insert(at);
    }

    /// Handles a `fault` record for one of the nodes that it names.
    pub(super) fn fault(
        &mut self,
        line: u64,
        name: &str,
        kind: FaultKind,
        t_ns: u64,
    ) -> Result<(), Trouble> {
        let node = self.node(name);
        self.pass_time(node, t_ns)?;
        let last = self.last_start(node);
        let state = &mut self.nodes[node.index()];
        match kind {
            FaultKind::Stop => state.stopped = true,
            FaultKind::Continue => state.stopped = false,
            FaultKind::Partition | FaultKind::Slow => state.parted = true,
            FaultKind::Heal => state.parted = false,
            FaultKind::Full => state.full = true,
            FaultKind::Room => state.full = false,
            FaultKind::Kill => {
                (state.stopped, state.parted) = (false, false);
                if let Some(last) = last {
                    self.starts[last.index()].kill.get_or_insert(Moment { t_ns, line });
                }
            }
        }
        Ok(())
    }

    /// Notes the kind and time of a fault at any node.
    pub(super) fn note_fault(&mut self, kind: FaultKind, t_ns: u64) {
        self.had_other_faults |= kind != FaultKind::Kill;
        self.last_fault_ns = Some(self.last_fault_ns.map_or(t_ns, |last| last.max(t_ns)));
    }

    /// Returns whether there were no faults, or all of them have ended.
    pub(super) fn faults_ended(&self) -> bool {
        self.nodes.iter().all(|node| !node.stopped && !node.parted && !node.full)
    }

    /// Notes a view, a multicast or a delivery.
    pub(super) fn note_event(&mut self, line: u64) {
        self.first_event.get_or_insert(line);
    }

    /// Returns whether an incarnation is a founder: it started before any view, multicast or
    /// delivery, so it cannot have anything to replay.
    pub(super) fn is_founder(&self, start: StartId) -> bool {
        self.first_event.is_none_or(|line| self.starts[start.index()].line < line)
    }

    /// Returns the first request to stop, at any node.
    pub(super) fn first_stop(&self) -> Option<Moment> {
        self.starts.iter().filter_map(|start| start.stop).min()
    }

    /// Returns whether a node was ever killed.
    pub(super) fn was_killed(&self, node: NodeId) -> bool {
        self.nodes[node.index()]
            .starts
            .iter()
            .any(|start| self.starts[start.index()].kill.is_some())
    }

    /// Returns a node's last incarnation so far.
    pub(super) fn last_start(&self, node: NodeId) -> Option<StartId> {
        self.nodes[node.index()].starts.last().copied()
    }

    /// Returns the node of an incarnation.
    pub(super) fn node_of(&self, start: StartId) -> NodeId {
        self.starts[start.index()].node
    }

    /// Returns whether an incarnation is the last one of its node.
    pub(super) fn is_last(&self, start: StartId) -> bool {
        self.last_start(self.node_of(start)) == Some(start)
    }

    /// Returns whether a node has started and, as far as is known, is no longer running.
    pub(super) fn is_down(&self, node: NodeId) -> bool {
        self.last_start(node).is_some_and(|start| self.starts[start.index()].is_over())
    }

    /// Returns an incarnation's display name: the node's name, with the count if the node has more
    /// than one.
    pub(super) fn called(&self, start: StartId) -> String {
        let NodeIncarnation { node, inc, .. } = self.starts[start.index()];
        let KnownNode { name, starts, .. } = &self.nodes[node.index()];
        if starts.len() > 1 { format!("{name} (incarnation {inc})") } else { name.to_string() }
    }

    /// Lists several nodes for a sentence.
    pub(super) fn listed(&self, nodes: &[NodeId]) -> String {
        let names: Vec<&str> = nodes.iter().map(|node| &*self.nodes[node.index()].name).collect();
        format!("[{}]", names.join(", "))
    }

    fn pass_time(&mut self, node: NodeId, t_ns: u64) -> Result<(), Trouble> {
        let node = &mut self.nodes[node.index()];
        if t_ns < node.t_ns {
            return Err(contradiction(format!(
                "the time of {} decreases from {} to {t_ns} ns",
                node.name, node.t_ns
            )));
        }
        node.t_ns = t_ns;
        Ok(())
    }
}

/// Returns the error for a record that contradicts the history.
pub(super) fn contradiction(what: String) -> Trouble {
    Trouble::Contradiction(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(reason: EndReason) -> EndRecord {
        EndRecord { reason, line: 9, t_ns: 9 }
    }

    #[test]
    fn recorded_end_overrides_a_later_kill() {
        let mut roster = Roster::default();
        let first = roster.start(1, "n0", 1, 0).expect("it may start");
        assert_eq!(roster.starts[0].fate(), Fate::Unfinished);
        roster.fault(2, "n0", FaultKind::Kill, 1).expect("anybody may be killed");
        assert!(roster.starts[0].is_killed() && roster.is_down(NodeId(0)));
        roster.end(first, end(EndReason::Left)).expect("it may have ended before");
        assert_eq!(roster.starts[0].fate(), Fate::Ended(EndReason::Left));
        assert!(roster.end(first, end(EndReason::Done)).is_err());
    }

    #[test]
    fn kill_before_the_start_is_ignored() {
        let mut roster = Roster::default();
        roster.fault(1, "n0", FaultKind::Kill, 0).expect("anybody may be killed");
        roster.start(2, "n0", 1, 5).expect("it may start");
        assert_eq!(roster.starts[0].fate(), Fate::Unfinished);
    }

    #[test]
    fn invalid_node_records_are_refused() {
        let mut roster = Roster::default();
        assert!(roster.record("n0", 1, 0).is_err(), "it has not started");
        roster.start(1, "n0", 2, 5).expect("it may start");
        assert!(roster.start(2, "n0", 3, 5).is_err(), "it still runs");
        assert!(roster.record("n0", 1, 6).is_err(), "that is another start");
        assert!(roster.record("n0", 2, 4).is_err(), "time falls");
        assert_eq!(roster.record("n0", 2, 5), Ok(StartId(0)));
        roster.end(StartId(0), end(EndReason::Done)).expect("it may end");
        assert!(roster.start(9, "n0", 2, 9).is_err(), "inc does not rise");
        assert!(roster.start(9, "n0", 3, 9).is_ok());
        assert_eq!(roster.called(StartId(1)), "n0 (incarnation 3)");
    }

    #[test]
    fn counter_fault_or_kill_ends_a_fault() {
        let mut roster = Roster::default();
        roster.fault(1, "n0", FaultKind::Stop, 0).expect("a fault");
        roster.fault(1, "n1", FaultKind::Partition, 0).expect("a fault");
        roster.fault(2, "n0", FaultKind::Continue, 1).expect("a fault");
        assert!(!roster.faults_ended());
        roster.fault(3, "n1", FaultKind::Kill, 1).expect("a fault");
        assert!(roster.faults_ended());
    }
}
