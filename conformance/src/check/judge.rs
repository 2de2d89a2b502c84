//! The judge takes records one by one and returns a verdict.

use std::io::BufRead;
use std::time::Instant;

use super::durability::Durability;
use super::groups::Groups;
use super::ledger::{HELD_MIN, Ledger, NamedDelivery};
use super::message::{Claim, Delivery, Marks, NO_VIEW, SenderAnswer, SentMessage};
use super::mixing::{Mix, MixedTable};
use super::quiescence::Quiescence;
use super::roster::{EndRecord, Moment, Roster, contradiction};
use super::sweep::Scene;
use super::tally::{blames, finding};
use super::verdict::Verdict;
use super::views::Views;
use crate::history::{Event, HistoryError, Reader, Trouble, VERSION, VERSION_MIN};

/// Limit of distinct unknown events.
const UNKNOWN_MAX: usize = 64;

/// The first history version that records each sender's answers.
const TELLS_ANSWERS: u32 = 2;

/// The name under which further unknown events are counted.
const UNKNOWN_REST: &str = "(others)";

/// Judges a history, record by record, in one pass.
///
/// The judge holds the messages that a node may still deliver, and keeps only a few numbers of all
/// other messages: see [`check`](super).
#[derive(Debug)]
pub struct Judge {
    pub(super) began: Instant,
    pub(super) events: u64,
    pub(super) unknown: Vec<(String, u64, u64)>,
    pub(super) cut: Option<HistoryError>,
    /// Whether the history records senders' answers.
    pub(super) tells_answers: bool,
    pub(super) roster: Roster,
    pub(super) groups: Groups,
    pub(super) views: Views,
    pub(super) view_ids: Vec<u64>,
    pub(super) ledger: Ledger,
    pub(super) durability: Durability,
    pub(super) quiescence: Quiescence,
    view_places: MixedTable<u64, u32>,
    mix: Mix,
}

impl Default for Judge {
    fn default() -> Self {
        Self::holding(HELD_MIN)
    }
}

impl Judge {
    /// Creates a judge that has seen no records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a judge that holds at least `messages` messages before it forgets any. A lower
    /// number saves memory. No verdict depends on it, except that a check may become inconclusive
    /// if it needs a forgotten message.
    #[must_use]
    pub fn holding(messages: usize) -> Self {
        Self {
            began: Instant::now(),
            events: 0,
            unknown: Vec::new(),
            cut: None,
            tells_answers: false,
            roster: Roster::default(),
            groups: Groups::default(),
            views: Views::default(),
            view_ids: Vec::new(),
            ledger: Ledger::new(messages),
            durability: Durability::default(),
            quiescence: Quiescence::default(),
            view_places: MixedTable::default(),
            mix: Mix::default(),
        }
    }

    /// Takes the next record.
    ///
    /// # Errors
    /// Fails with [`Trouble::Contradiction`] if the record contradicts the records before it: any
    /// verdict would then be meaningless.
    pub fn take(&mut self, line: u64, event: &Event<'_>) -> Result<(), HistoryError> {
        self.take_event(line, event).map_err(|trouble| HistoryError { line, trouble })?;
        self.events += 1;
        Ok(())
    }

    /// Records that the history is cut short and that no more records follow.
    pub fn cut(&mut self, error: HistoryError) {
        self.cut.get_or_insert(error);
    }

    fn take_event(&mut self, line: u64, event: &Event<'_>) -> Result<(), Trouble> {
        match event {
            Event::Run { version, .. } => self.run(*version),
            Event::Group { group, members, senders, order } => {
                self.groups.declare(&mut self.roster, group, members, senders, *order)
            }
            Event::Start { t_ns, node, inc } => self.start(line, *t_ns, node, *inc),
            Event::View { t_ns, node, inc, group, view, members } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                let group = self.groups.declared(group)?;
                self.roster.note_event(line);
                self.quiescence.active(*t_ns);
                self.views.install(
                    (&mut self.roster, &self.groups),
                    (start, group),
                    (Moment { t_ns: *t_ns, line }, *view),
                    members,
                );
                Ok(())
            }
            Event::Multicast { t_ns, node, inc, msg, groups, bytes, digest } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                if msg.is_empty() {
                    return Err(contradiction("a message without a name is multicast".to_owned()));
                }
                let groups = self.groups.set(&self.roster, self.roster.node_of(start), groups)?;
                self.roster.note_event(line);
                self.quiescence.active(*t_ns);
                let sent = SentMessage {
                    line,
                    t_ns: *t_ns,
                    start,
                    groups,
                    bytes: *bytes,
                    digest: digest.as_ref().map(|digest| self.mix.text(digest)),
                    answer: SenderAnswer::None,
                    answer_line: 0,
                };
                self.ledger.multicast((&self.roster, &self.groups), msg, sent)?;
                self.sweep_if_full();
                Ok(())
            }
            Event::Accepted { t_ns, node, inc, msg } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                let base = (&self.roster, &self.groups);
                self.ledger.answered(base, (msg, start, line), SenderAnswer::Taken)
            }
            Event::Leave { t_ns, node, inc } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                self.roster.asked_to_leave(start, Moment { t_ns: *t_ns, line });
                Ok(())
            }
            Event::Stop { t_ns, node, inc } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                self.roster.asked_to_stop(start, Moment { t_ns: *t_ns, line });
                Ok(())
            }
            Event::Refused { t_ns, node, inc, msg, definite, .. } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                let answer = if *definite { SenderAnswer::Refused } else { SenderAnswer::Unsure };
                self.ledger.answered((&self.roster, &self.groups), (msg, start, line), answer)
            }
            Event::Deliver { .. } => self.deliver(line, event),
            Event::Durable { t_ns, node, inc, group, upto } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                let group = self.groups.declared(group)?;
                self.durability.secured((&self.roster, &self.groups), (start, group), *upto, line);
                Ok(())
            }
            Event::Leader { t_ns, node, inc, group, .. } => {
                self.roster.record(node, *inc, *t_ns)?;
                self.groups.declared(group)?;
                self.quiescence.active(*t_ns);
                Ok(())
            }
            Event::Stats { t_ns, node, inc, posts } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                self.quiescence.counted(start, line, *t_ns, *posts);
                Ok(())
            }
            Event::Fault { t_ns, kind, nodes, .. } => {
                for node in nodes {
                    self.roster.fault(line, node, *kind, *t_ns)?;
                }
                self.roster.note_fault(*kind, *t_ns);
                self.quiescence.active(*t_ns);
                Ok(())
            }
            Event::End { t_ns, node, inc, reason } => {
                let start = self.roster.record(node, *inc, *t_ns)?;
                self.quiescence.active(*t_ns);
                self.roster.end(start, EndRecord { reason: *reason, line, t_ns: *t_ns })
            }
            Event::Unknown { ev } => {
                self.note_unknown(line, ev);
                Ok(())
            }
        }
    }

    fn run(&mut self, version: u32) -> Result<(), Trouble> {
        if self.events > 0 {
            return Err(contradiction("a run record is not the first record".to_owned()));
        }
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(contradiction(format!(
                "the history has version {version}, but only versions {VERSION_MIN} to {VERSION} are supported"
            )));
        }
        self.tells_answers = version >= TELLS_ANSWERS;
        Ok(())
    }

    fn start(&mut self, line: u64, t_ns: u64, node: &str, inc: u32) -> Result<(), Trouble> {
        let start = self.roster.start(line, node, inc, t_ns)?;
        self.quiescence.active(t_ns);
        self.ledger.started();
        self.durability.started((&self.roster, &self.groups), start);
        Ok(())
    }

    /// Takes a `deliver`.
    fn deliver(&mut self, line: u64, event: &Event<'_>) -> Result<(), Trouble> {
        let Event::Deliver { t_ns, node, inc, group, view, msg, sender, bytes, digest, replayed } =
            event
        else {
            return Ok(());
        };
        let t_ns = *t_ns;
        let start = self.roster.record(node, *inc, t_ns)?;
        self.roster.note_event(line);
        let replayed = *replayed && !self.roster.is_founder(start);
        let group = self.groups.named(group);
        self.quiescence.active(t_ns);
        let name = msg.as_deref().map(|msg| self.ledger.names.name(msg));
        let footprint = self.ledger.names.footprint(name);
        let base = (&self.roster, &self.groups);
        self.durability.delivered(base, (start, group), footprint, replayed, line);
        self.ledger.integrity.nulls.cases(1);
        let Some(name) = name.filter(|_| msg.as_deref().is_some_and(|msg| !msg.is_empty())) else {
            self.ledger.integrity.nulls.breach(1, line, || {
                let what =
                    format!("{} delivered data that is not a message", self.roster.called(start));
                finding(what, [blames(line, "delivered nothing")])
            });
            return Ok(());
        };
        let current = self.views.current(start, group);
        let end = self.roster.starts[start.index()].end;
        let mut marks = Marks::default();
        marks.set_if(replayed, Marks::REPLAYED);
        marks.set_if(current.is_none(), Marks::VIEWLESS);
        marks.set_if(view.is_some() && *view != current, Marks::VIEW_WRONG);
        marks.set_if(end.is_some_and(|end| t_ns > end.t_ns), Marks::AFTER_END);
        let view = view.or(current).map_or(NO_VIEW, |view| self.view_place(view));
        let claim = Claim {
            t_ns,
            bytes: *bytes,
            digest: digest.as_ref().map(|digest| self.mix.text(digest)),
            sender: sender.as_ref().map(|sender| self.roster.node(sender)),
        };
        let delivery = Delivery { line, start, group, view, marks };
        self.ledger.deliver((&self.roster, &self.groups), name, NamedDelivery { delivery, claim });
        self.sweep_if_full();
        Ok(())
    }

    fn view_place(&mut self, view: u64) -> u32 {
        let next = u32::try_from(self.view_ids.len()).unwrap_or(NO_VIEW);
        let place = *self.view_places.entry(view).or_insert(next);
        if place == next {
            self.view_ids.push(view);
        }
        place
    }

    fn sweep_if_full(&mut self) {
        let Self { roster, groups, views, view_ids, ledger, .. } = self;
        ledger.sweep_if_full(Scene { roster, groups, views, view_ids, closing: false });
    }

    fn note_unknown(&mut self, line: u64, ev: &str) {
        let known = self.unknown.iter_mut().find(|(name, ..)| name == ev);
        if let Some((_, _, count)) = known {
            *count += 1;
        } else if self.unknown.len() < UNKNOWN_MAX {
            self.unknown.push((ev.to_owned(), line, 1));
        } else if let Some((_, _, count)) =
            self.unknown.iter_mut().find(|(name, ..)| name == UNKNOWN_REST)
        {
            *count += 1;
        } else {
            self.unknown.push((UNKNOWN_REST.to_owned(), line, 1));
        }
    }
}

/// Judges a whole history. If the last line is cut off, the history is judged up to that line.
///
/// # Errors
/// Fails at the first line that is not a record, or that contradicts the lines before it.
pub fn judge(reader: impl BufRead) -> Result<Verdict, HistoryError> {
    let mut judge = Judge::new();
    let mut reader = Reader::new(reader);
    loop {
        match reader.next_event() {
            Ok(Some((line, event))) => judge.take(line, &event)?,
            Ok(None) => return Ok(judge.finish()),
            Err(error) if error.trouble == Trouble::Cut => {
                judge.cut(error);
                return Ok(judge.finish());
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::judged_by;
    use crate::check::{CheckId, Outcome};

    const START: &str = r#"{"ev":"start","t_ns":1,"node":"a","inc":1}
"#;
    const GROUP: &str = r#"{"ev":"group","group":"g","members":["a"],"senders":["a"]}
"#;

    fn refused(text: &str) -> HistoryError {
        judge(text.as_bytes()).expect_err("it contradicts itself")
    }

    #[test]
    fn empty_history_has_nothing_to_judge() {
        for text in ["", "\n\n", r#"{"ev":"run","version":1}"#] {
            let verdict = judged_by(text);
            assert!(
                verdict.judgements.iter().all(|of| matches!(of.outcome, Outcome::NotJudged(_))),
                "{text:?}"
            );
            assert_eq!(verdict.judgements.len(), CheckId::ALL.len());
        }
    }

    #[test]
    fn truncated_history_is_judged_up_to_its_end() {
        let text = [GROUP, START, r#"{"ev":"deliv"#].concat();
        let verdict = judged_by(&text);
        assert_eq!((verdict.events, verdict.cut.map(|cut| cut.line)), (2, Some(3)));
    }

    #[test]
    fn malformed_line_error_names_the_line() {
        let text = [GROUP, "nonsense\n", START].concat();
        assert_eq!(refused(&text).line, 2);
    }

    #[test]
    fn contradictory_record_error_names_the_line() {
        let send = r#"{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"m","groups":["g"]}
"#;
        let refuse = r#"{"ev":"refused","t_ns":1,"node":"a","inc":1,"msg":"m"}
"#;
        let run = r#"{"ev":"run","version":1}
"#;
        let cases: [&[&str]; 9] = [
            &[run, run],
            &[r#"{"ev":"run","version":3}"#],
            &[START, run],
            &[START, START],
            &[GROUP, GROUP],
            &[GROUP, START, send, send],
            &[GROUP, START, refuse],
            &[GROUP, START, send, refuse, refuse],
            &[START, send],
        ];
        for case in cases {
            let error = refused(&case.concat());
            assert_eq!(error.line, case.len() as u64, "{error}");
            assert!(matches!(error.trouble, Trouble::Contradiction(_)), "{error}");
        }
    }

    #[test]
    fn unknown_events_are_counted_up_to_a_limit() {
        let text: String =
            (0..200).map(|number| format!("{{\"ev\":\"x{}\"}}\n", number % 100)).collect();
        let verdict = judged_by(&text);
        assert_eq!(verdict.unknown[0], ("x0".to_owned(), 1, 2));
        assert_eq!(verdict.unknown.len(), UNKNOWN_MAX + 1);
        assert_eq!(verdict.unknown.iter().map(|(.., count)| count).sum::<u64>(), 200);
    }
}
