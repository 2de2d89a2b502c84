//! The course of a history over time: deliveries and their latency, the faults, and the views of
//! each node.
//!
//! | file | contents |
//! |---|---|
//! | `mod`, `rate` | counts, in memory independent of the history's length |
//! | `stays` | the views that each node was a member of |
//! | `draw` | the chart |

mod draw;
mod rate;
mod stays;

use std::collections::HashMap;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use super::words;
use crate::history::{Event, FaultKind, Reader};
use rate::Rates;
use stays::Stays;

pub(super) use draw::{draw, lasted};
pub(super) use stays::Stay;

/// Maximum number of messages whose multicast times are stored. The latency of later messages is
/// not shown.
const SENT_MAX: usize = 1 << 20;

/// Limit of faults marked in the chart.
const FAULTS_MAX: usize = 60;

/// Size in bytes of each read.
const READ_BYTES: usize = 1 << 18;

/// The course of a history.
pub(super) struct Course {
    /// The time of the history's first record; all other times here are relative to it.
    begin_ns: Option<u64>,
    end_ns: u64,
    rates: Rates,
    faults: Vec<InjectedFault>,
    stays: Stays,
}

/// A fault injected at nodes.
struct InjectedFault {
    t_ns: u64,
    what: String,
    /// Whether the fault record ends something.
    is_end: bool,
}

impl Course {
    /// Reads a history again. Returns `None` if this is not possible or if the history has no
    /// deliveries.
    pub(super) fn of(history: &Path) -> Option<Self> {
        // Opening a pipe a second time would wait for a writer that never comes.
        let regular = std::fs::metadata(history).is_ok_and(|metadata| metadata.is_file());
        let file = regular.then(|| File::open(history).ok()).flatten()?;
        let mut reader = Reader::new(BufReader::with_capacity(READ_BYTES, file));
        let mut course = Self {
            begin_ns: None,
            end_ns: 0,
            rates: Rates::default(),
            faults: Vec::new(),
            stays: Stays::default(),
        };
        let mut sent = HashMap::new();
        // Records after an invalid line were not judged either.
        while let Ok(Some((_, event))) = reader.next_event() {
            course.take(&event, &mut sent);
        }
        course.stays.end(course.end_ns);
        (!course.rates.is_empty()).then_some(course)
    }

    /// Returns the views to which each node belonged over time.
    pub(super) fn stays(&self) -> &[Stay] {
        self.stays.all()
    }

    /// Returns the number of stays beyond the limit.
    pub(super) fn stays_left_out(&self) -> u64 {
        self.stays.left_out()
    }

    fn take(&mut self, event: &Event<'_>, sent: &mut HashMap<Box<str>, u64>) {
        match event {
            Event::Multicast { t_ns, msg, .. } => {
                let t_ns = self.since(*t_ns);
                if sent.len() < SENT_MAX {
                    sent.insert((&**msg).into(), t_ns);
                }
            }
            Event::Deliver { t_ns, msg, replayed: false, .. } => {
                let t_ns = self.since(*t_ns);
                let sent_ns = msg.as_ref().and_then(|msg| sent.get(&**msg));
                self.rates.deliver(t_ns, sent_ns.map(|sent_ns| t_ns.saturating_sub(*sent_ns)));
            }
            Event::View { t_ns, node, inc, group, view, members } => {
                let t_ns = self.since(*t_ns);
                self.stays.install(t_ns, (node, *inc), group, *view, members);
            }
            Event::End { t_ns, node, .. } => {
                let t_ns = self.since(*t_ns);
                self.stays.gone(t_ns, node);
            }
            Event::Fault { t_ns, kind, nodes, .. } => {
                let t_ns = self.since(*t_ns);
                if *kind == FaultKind::Kill {
                    nodes.iter().for_each(|node| self.stays.gone(t_ns, node));
                }
                if self.faults.len() < FAULTS_MAX {
                    self.faults.push(InjectedFault {
                        t_ns,
                        what: format!("{} {}", word(*kind), nodes.join(" ")),
                        is_end: matches!(
                            kind,
                            FaultKind::Continue | FaultKind::Heal | FaultKind::Room
                        ),
                    });
                }
            }
            _ => {}
        }
    }

    /// Returns a time relative to the first one.
    fn since(&mut self, t_ns: u64) -> u64 {
        let begin_ns = *self.begin_ns.get_or_insert(t_ns);
        let t_ns = t_ns.saturating_sub(begin_ns);
        self.end_ns = self.end_ns.max(t_ns);
        t_ns
    }
}

const fn word(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Kill => "kill",
        FaultKind::Stop => "stop",
        FaultKind::Continue => "continue",
        FaultKind::Partition => "partition",
        FaultKind::Slow => "slow",
        FaultKind::Heal => "heal",
        FaultKind::Full => "full",
        FaultKind::Room => "room",
    }
}

/// Returns a time of the course, for people.
pub(super) fn moment(t_ns: u64) -> String {
    if t_ns == 0 { "0".to_owned() } else { words::nanoseconds(t_ns) }
}

#[cfg(test)]
mod tests {
    use super::super::samples::fixture;
    use super::*;

    fn course(lines: &[&str]) -> Option<Course> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        std::fs::write(&path, lines.join("\n") + "\n").expect("written");
        Course::of(&path)
    }

    const GROUP: &str =
        r#"{"ev":"group","group":"g0","members":["n0","n1"],"senders":["n0","n1"]}"#;

    #[test]
    fn membership_period_ends_at_next_view_or_kill() {
        let lines = [
            GROUP,
            r#"{"ev":"start","t_ns":1000,"node":"n0","inc":1}"#,
            r#"{"ev":"view","t_ns":2000,"node":"n0","inc":1,"group":"g0","view":1,"members":["n0","n1"]}"#,
            r#"{"ev":"view","t_ns":2500,"node":"n1","inc":1,"group":"g0","view":1,"members":["n0","n1"]}"#,
            r#"{"ev":"multicast","t_ns":3000,"node":"n0","inc":1,"msg":"m","groups":["g0"]}"#,
            r#"{"ev":"deliver","t_ns":4000,"node":"n0","inc":1,"group":"g0","msg":"m"}"#,
            r#"{"ev":"fault","t_ns":5000,"kind":"kill","nodes":["n1"]}"#,
            r#"{"ev":"view","t_ns":6000,"node":"n0","inc":1,"group":"g0","view":2,"members":["n0"]}"#,
            r#"{"ev":"end","t_ns":9000,"node":"n0","inc":1,"reason":"done"}"#,
        ];
        let course = course(&lines).expect("something was delivered");
        let told: Vec<(String, u64, u64, u64)> = course
            .stays()
            .iter()
            .map(|stay| (stay.node.clone(), stay.view, stay.from_ns, stay.until_ns))
            .collect();
        let expected = [
            ("n0".to_owned(), 1, 0, 4000),
            ("n1".to_owned(), 1, 500, 3000),
            ("n0".to_owned(), 2, 4000, 7000),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn unreadable_or_empty_history_has_no_course() {
        assert!(Course::of(Path::new("/dev/null")).is_none());
        assert!(course(&[GROUP, r#"{"ev":"start","t_ns":1,"node":"n0","inc":1}"#]).is_none());
    }

    #[test]
    fn chart_shows_faults_and_views() {
        let course = Course::of(&fixture("good/suspended")).expect("a history");
        let svg = draw(&course).expect("it can be drawn");
        assert!(svg.starts_with("<svg") && svg.contains("stop n"), "{svg}");
        assert!(svg.contains("deliveries per second") && svg.contains("latency"), "{svg}");
        assert!(!svg.contains("http://"), "{svg}");
    }
}
