//! Checks which nodes deliver which messages: validity, agreement, uniform agreement, the same set
//! in the same view, and the silence of removed nodes. This module also contains the part of
//! liveness that requires every multicast message to be delivered.
//!
//! Each promise is judged for a whole class of messages, twice: for the history as it is, and as if
//! all unfinished incarnations were done. If it is broken only in the second case, it is in doubt.

use super::class::Class;
use super::due::{Due, DuePart, Goer};
use super::groups::{GroupSetId, Groups, NodeSet};
use super::message::{HeldMessage, SenderAnswer, SentMessage};
use super::mixing::MixedTable;
use super::name::Names;
use super::roster::{AssumedEnds, Fate, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use super::verdict::Finding;
use crate::history::EndReason;

/// The findings of these checks.
#[derive(Debug, Default)]
pub(super) struct WhoDelivers {
    /// `validity`.
    pub(super) validity: Tally,
    /// `agreement`.
    pub(super) agreement: Tally,
    /// `uniform-agreement`.
    pub(super) uniform: Tally,
    /// `view-same-set`.
    pub(super) same_set: Tally,
    /// `removed-silent`.
    pub(super) silent: Tally,
    /// The part of `liveness` that concerns messages.
    pub(super) liveness: Tally,
}

/// A class's violation of a promise: the incarnation that lacks its messages, and one that proves
/// that it should have them.
#[derive(Clone, Copy, Debug)]
struct Lack {
    lacks: Goer,
    shows: StartId,
}

/// The promises about delivered messages, in the order of [`PROMISES`].
const AGREEMENT: usize = 0;
const UNIFORM: usize = 1;
const SAME_SET: usize = 2;
const SILENT: usize = 3;

/// For each promise, the class's violation, if there is one.
type PromiseViolations = [Option<Lack>; 4];

impl WhoDelivers {
    /// Returns the tallies of the promises about delivered messages.
    fn of_delivered(&mut self) -> [&mut Tally; 4] {
        [&mut self.agreement, &mut self.uniform, &mut self.same_set, &mut self.silent]
    }
}

/// Judges classes of delivered messages, and undelivered messages.
pub(super) struct Judging<'a> {
    pub(super) roster: &'a Roster,
    pub(super) groups: &'a Groups,
    pub(super) names: &'a Names,
    pub(super) due: &'a Due<'a>,
    /// Whether the history records senders' answers.
    pub(super) tells_answers: bool,
}

impl Judging<'_> {
    /// Judges a class of delivered messages.
    pub(super) fn class(&self, found: &mut WhoDelivers, class: &Class) {
        let parts = self.due.parts(class.key.groups, &class.key.views, AssumedEnds::AsIs);
        let delivered = ClassDeliverers::of(self.roster, class);
        if delivered.starts.is_empty() {
            return;
        }
        self.count(found, class, &parts, &delivered);
        self.unanswered(&mut found.liveness, class);
        let line = class.first.as_ref().map_or(u64::MAX, |example| example.line);
        let standing = self.standing(class, &parts, &delivered);
        for ((tally, lack), promise) in found.of_delivered().into_iter().zip(standing).zip(PROMISES)
        {
            if let Some(lack) = lack {
                tally.breach(class.count, line, || self.shown(promise, class, lack));
            }
        }
        let parts = self.due.parts(class.key.groups, &class.key.views, AssumedEnds::AsIfDone);
        let standing = self.standing(class, &parts, &delivered);
        for (tally, lack) in found.of_delivered().into_iter().zip(standing) {
            if let Some(lack) = lack {
                tally.doubt(line, || self.doubted(class, lack));
            }
        }
    }

    /// Counts the cases to judge.
    fn count(
        &self,
        found: &mut WhoDelivers,
        class: &Class,
        parts: &[DuePart],
        delivered: &ClassDeliverers,
    ) {
        let (due, count) =
            (parts.iter().filter(|part| !part.due.is_empty()).count() as u64, class.count);
        let starts =
            || delivered.starts.iter().map(|start| (*start, &self.roster.starts[start.index()]));
        if due > 0
            && parts.iter().any(|part| part.due.iter().any(|goer| delivered.has(self.roster, goer)))
        {
            found.agreement.cases(due * count);
        }
        if due > 0 && delivered.killed.is_some() {
            found.uniform.cases(due * count);
        }
        if due > 0 && starts().any(|(start, _)| self.is_outside(class, start)) {
            found.silent.cases(due * count);
        }
        let went_on = |part: &&DuePart| {
            part.due.iter().any(|goer| goer.next.is_some() && delivered.has(self.roster, goer))
        };
        found.same_set.cases(parts.iter().filter(went_on).count() as u64 * count);
    }

    /// Returns whether an incarnation left, halted, was removed, or was followed by another one.
    fn is_outside(&self, class: &Class, start: StartId) -> bool {
        let gone = [Fate::Ended(EndReason::Left), Fate::Ended(EndReason::Halted)];
        gone.contains(&self.roster.starts[start.index()].fate())
            || !self.roster.is_last(start)
            || self.due.is_removed_from_any(start, class.key.groups)
    }

    fn standing(
        &self,
        class: &Class,
        parts: &[DuePart],
        delivered: &ClassDeliverers,
    ) -> PromiseViolations {
        let mut standing: PromiseViolations = [None; 4];
        let has = |goer: &&Goer| delivered.has(self.roster, goer);
        let due_has = parts.iter().find_map(|part| part.due.iter().find(has));
        let silent = delivered.killed.is_none()
            && delivered.starts.iter().all(|start| self.is_outside(class, *start));
        for part in parts {
            // For each next view, one incarnation that installed it and has the messages.
            let mut goers: MixedTable<u64, StartId> = MixedTable::default();
            for goer in part.due.iter().filter(has) {
                goer.next.into_iter().for_each(|(view, _)| {
                    goers.entry(view).or_insert(goer.start);
                });
            }
            for lacks in part.due.iter().filter(|goer| !has(goer)).copied() {
                let together = part.group.and(lacks.next).and_then(|(view, _)| goers.get(&view));
                let (promise, shows) = match (together, due_has, delivered.killed) {
                    (Some(other), ..) => (SAME_SET, *other),
                    (None, Some(other), _) => (AGREEMENT, other.start),
                    (None, None, Some(killed)) => (UNIFORM, killed),
                    (None, None, None) if silent => (SILENT, delivered.starts[0]),
                    (None, None, None) => continue,
                };
                standing[promise].get_or_insert(Lack { lacks, shows });
            }
        }
        standing
    }

    /// Judges delivered messages that their sender neither accepted nor refused.
    fn unanswered(&self, liveness: &mut Tally, class: &Class) {
        let sender = class.key.sender;
        let is_silent = self.tells_answers
            && class.key.answer == SenderAnswer::None
            && !self.due.is_removed_from_any(sender, class.key.groups);
        let line = class.first.as_ref().map_or(u64::MAX, |example| example.line);
        let start = &self.roster.starts[sender.index()];
        if is_silent && start.is_correct(AssumedEnds::AsIs) {
            liveness.breach(class.count, line, || {
                let what = format!(
                    "{} never answered the request to send {}, which was delivered",
                    self.roster.called(sender),
                    self.called(class)
                );
                let end = blames(start.last_line(), "the sender's end, without an answer");
                finding(what, [shows(class.first.as_ref().map_or(0, |one| one.line), "sent"), end])
            });
        } else if is_silent && start.is_correct(AssumedEnds::AsIfDone) {
            liveness.doubt(line, || {
                format!("{} has not answered {}", self.roster.called(sender), self.called(class))
            });
        }
    }

    fn doubted(&self, class: &Class, lack: Lack) -> String {
        let name = self.called(class);
        let lacks = self.roster.called(lack.lacks.start);
        if self.roster.starts[lack.lacks.start.index()].fate() == Fate::Unfinished {
            format!("{lacks} has not delivered {name}, and neither ended nor was killed")
        } else {
            let shows = self.roster.called(lack.shows);
            format!(
                "{lacks} has not delivered {name}; {shows} delivered it, and neither ended nor was killed"
            )
        }
    }

    fn shown(&self, promise: &Promise, class: &Class, lack: Lack) -> Finding {
        let (lacks, shows_start) =
            (self.roster.called(lack.lacks.start), self.roster.called(lack.shows));
        let name = self.called(class);
        let what = format!("{shows_start} delivered {name}, but {lacks} {}", promise.lacks);
        let (sent, delivered) = class.first.as_ref().map_or((0, 0), |example| {
            // The node may have delivered in an incarnation other than the one that must deliver.
            let node = self.roster.node_of(lack.shows);
            let same_node = |start: &StartId| self.roster.node_of(*start) == node;
            let by = class.key.delivered.iter().position(|(start, _)| *start == lack.shows);
            let by =
                by.or_else(|| class.key.delivered.iter().position(|(start, _)| same_node(start)));
            (example.line, by.and_then(|place| example.deliveries.get(place)).copied().unwrap_or(0))
        });
        let deliverer = &self.roster.starts[lack.shows.index()];
        let last = match lack.lacks.next {
            Some((_, line)) if promise.went_on => line,
            _ => self.roster.starts[lack.lacks.start.index()].last_line(),
        };
        let mut witness = vec![shows(sent, "sent")];
        if promise.blames_deliverer {
            witness.extend([
                blames(delivered, "delivered by a node that should be silent"),
                shows(last, "the last record of a node that did not deliver it"),
            ]);
        } else {
            witness.push(shows(delivered, "delivered"));
            if deliverer.is_killed() && !promise.went_on {
                witness.push(shows(deliverer.last_line(), "the deliverer is killed"));
            }
            witness.push(blames(last, promise.culprit));
        }
        finding(what, witness)
    }

    fn called(&self, class: &Class) -> String {
        match &class.first {
            Some(example) => example.shown(self.names),
            None => format!("a message of {}", self.roster.called(class.key.sender)),
        }
    }

    /// Returns a node that must deliver a message of these groups if no node delivered it, provided
    /// that the sending incarnation is accountable for the message.
    pub(super) fn promised(
        &self,
        sender: StartId,
        set: GroupSetId,
        answer: SenderAnswer,
        world: AssumedEnds,
    ) -> Option<StartId> {
        let stays = self.roster.starts[sender.index()].is_correct(world)
            && !self.due.is_removed_from_any(sender, set);
        let left = answer == SenderAnswer::Taken && self.due.left_as_a_member(sender, set);
        let answers = !answer.is_refusal() && (stays || left);
        let nowhere = vec![None; self.groups.of(set).groups.len()];
        let due = answers.then(|| self.due.parts(set, &nowhere, world))?;
        due.iter().find_map(|part| part.due.first()).map(|goer| goer.start)
    }

    /// Returns whether `liveness` judges a message that was not delivered.
    fn is_after_faults(&self, t_ns: u64) -> bool {
        self.roster.last_fault_ns.is_some_and(|last| t_ns >= last)
    }

    /// Counts a class of messages for validity.
    pub(super) fn count_validity(&self, found: &mut WhoDelivers, class: &Class) {
        let key = &class.key;
        if !self.is_after_faults(class.t_ns_min)
            && self.promised(key.sender, key.groups, key.answer, AssumedEnds::AsIs).is_some()
        {
            found.validity.cases(class.count);
        }
    }

    /// Judges an undelivered message; returns whether it breaks validity or liveness.
    pub(super) fn undelivered(
        &self,
        found: &mut WhoDelivers,
        message: &HeldMessage,
        sent: &SentMessage,
    ) -> bool {
        let live = self.is_after_faults(sent.t_ns);
        if live && !self.roster.faults_ended() {
            return false;
        }
        let tally = if live { &mut found.liveness } else { &mut found.validity };
        let promised = |world| self.promised(sent.start, sent.groups, sent.answer, world);
        if let Some(due) = promised(AssumedEnds::AsIs) {
            tally.cases(1);
            tally.breach(1, sent.line, || self.never_delivered(message, sent, due));
            return true;
        }
        if let Some(due) = promised(AssumedEnds::AsIfDone) {
            tally.doubt(sent.line, || {
                let (sender, due) = (self.roster.called(sent.start), self.roster.called(due));
                let name = self.names.text(message.name);
                format!("no node has delivered {name} of {sender}, but {due} has not ended and may still deliver it")
            });
        }
        false
    }

    fn never_delivered(&self, message: &HeldMessage, sent: &SentMessage, due: StartId) -> Finding {
        let name = self.names.text(message.name);
        let (sender, due_name) = (self.roster.called(sent.start), self.roster.called(due));
        let what =
            format!("{sender} sent {name}, but no node delivered it; {due_name} should have");
        let end = self.roster.starts[due.index()].last_line();
        finding(
            what,
            [
                shows(sent.line, "sent"),
                blames(end, "the end of a node that should have delivered it"),
            ],
        )
    }
}

/// The report of a broken promise.
struct Promise {
    lacks: &'static str,
    culprit: &'static str,
    went_on: bool,
    blames_deliverer: bool,
}

const PROMISES: [&Promise; 4] = [
    &Promise {
        lacks: "did not",
        culprit: "the end of a node that did not deliver it",
        went_on: false,
        blames_deliverer: false,
    },
    &Promise {
        lacks: "did not, nor did any other node that should have",
        culprit: "the end of a node that did not deliver it",
        went_on: false,
        blames_deliverer: false,
    },
    &Promise {
        lacks: "did not before it installed the same next view",
        culprit: "next view without the message",
        went_on: true,
        blames_deliverer: false,
    },
    &Promise {
        lacks: "did not, nor did any other node that should have",
        culprit: "",
        went_on: false,
        blames_deliverer: true,
    },
];

/// The nodes that delivered a class of messages.
struct ClassDeliverers {
    starts: Vec<StartId>,
    nodes: NodeSet,
    killed: Option<StartId>,
}

impl ClassDeliverers {
    fn of(roster: &Roster, class: &Class) -> Self {
        let starts: Vec<StartId> = class.key.deliverers().collect();
        let mut nodes = NodeSet::default();
        for start in &starts {
            nodes.insert(roster.node_of(*start));
        }
        let killed = starts.iter().copied().find(|start| roster.starts[start.index()].is_killed());
        Self { starts, nodes, killed }
    }

    fn has(&self, roster: &Roster, goer: &Goer) -> bool {
        self.nodes.has(roster.node_of(goer.start))
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held, inconclusive};

    /// Three nodes; "a" sent one message, on line 5.
    fn sent() -> Play {
        let mut play = Play::new(&["a", "b", "c"]);
        assert_eq!(play.sends("a", 1), [5]);
        play
    }

    #[test]
    fn delivery_by_all_correct_nodes_passes() {
        let mut play = sent();
        for node in ["a", "b", "c"] {
            play.deliver(node, &["a/1/0"]);
            play.end(node);
        }
        let verdict = play.verdict();
        assert_eq!(broken(&verdict), []);
        assert!(held(&verdict, CheckId::Validity) && held(&verdict, CheckId::Agreement));
    }

    #[test]
    fn undelivered_message_of_correct_node_is_a_violation() {
        let mut play = sent();
        play.end("b");
        assert!(inconclusive(&play.verdict(), CheckId::Validity), "its sender may be correct");
        play.end("a");
        let end = 7;
        assert_eq!(broken(&play.verdict()), [(CheckId::Validity, vec![5, end])]);
    }

    #[test]
    fn refused_message_need_not_be_delivered() {
        for definite in [true, false] {
            let mut play = sent();
            play.line(&format!(
                r#"{{"ev":"refused","t_ns":1,"node":"a","inc":1,"msg":"a/1/0","definite":{definite}}}"#
            ));
            ["a", "b", "c"].into_iter().for_each(|node| {
                play.end(node);
            });
            assert_eq!(broken(&play.verdict()), []);
        }
    }

    /// "a" is asked to leave, accepts its message or not, and leaves; `removed_first` removes it
    /// before that.
    fn left(accepted: bool, removed_first: bool) -> Play {
        let mut play = Play::new(&["a", "b", "c"]);
        let view = |id: u64, node: &str, members: &str| {
            format!(
                r#"{{"ev":"view","t_ns":1,"node":"{node}","inc":1,"group":"g","view":{id},"members":[{members}]}}"#
            )
        };
        for node in ["a", "b", "c"] {
            play.line(&view(1, node, r#""a","b","c""#));
        }
        play.sends("a", 1);
        if removed_first {
            play.line(&view(2, "b", r#""b","c""#));
        }
        play.line(r#"{"ev":"leave","t_ns":1,"node":"a","inc":1}"#);
        if accepted {
            play.line(r#"{"ev":"accepted","t_ns":1,"node":"a","inc":1,"msg":"a/1/0"}"#);
        }
        play.line(&view(3, "b", r#""b","c""#));
        play.line(&view(3, "c", r#""b","c""#));
        play.ended("a", "left");
        play.end("b");
        play.end("c");
        play
    }

    #[test]
    fn accepted_messages_of_leaver_must_be_delivered() {
        assert_eq!(broken(&left(true, false).verdict())[0].0, CheckId::Validity);
        assert_eq!(broken(&left(false, false).verdict()), []);
        assert_eq!(broken(&left(true, true).verdict()), [], "it had been removed before");
    }

    #[test]
    fn delivered_multicast_must_be_answered() {
        for (version, answered, fails) in [(2, false, true), (2, true, false), (1, false, false)] {
            let mut play = Play::empty();
            play.line(&format!(r#"{{"ev":"run","version":{version}}}"#));
            play.line(r#"{"ev":"group","group":"g","members":["a","b"],"senders":["a"]}"#);
            for node in ["a", "b"] {
                play.line(&format!(r#"{{"ev":"start","t_ns":0,"node":"{node}","inc":1}}"#));
            }
            let sent = play.sends("a", 1);
            if answered {
                play.line(r#"{"ev":"accepted","t_ns":1,"node":"a","inc":1,"msg":"a/1/0"}"#);
            }
            play.deliver("a", &["a/1/0"]);
            play.deliver("b", &["a/1/0"]);
            assert_eq!(inconclusive(&play.verdict(), CheckId::Liveness), fails);
            let end = play.end("a");
            play.end("b");
            let expected =
                if fails { vec![(CheckId::Liveness, vec![sent[0], end])] } else { vec![] };
            assert_eq!(broken(&play.verdict()), expected);
        }
    }

    #[test]
    fn delivery_by_one_correct_node_obliges_all() {
        let mut play = sent();
        let delivered = play.deliver("b", &["a/1/0"]);
        play.fault("kill", "a");
        play.end("b");
        assert!(inconclusive(&play.verdict(), CheckId::Agreement));
        let end = play.end("c");
        assert_eq!(broken(&play.verdict()), [(CheckId::Agreement, vec![5, delivered[0], end])]);
    }

    #[test]
    fn delivery_by_killed_node_obliges_correct_nodes() {
        let mut play = sent();
        let delivered = play.deliver("a", &["a/1/0"]);
        let kill = play.fault("kill", "a");
        let end = play.end("b");
        play.end("c");
        assert_eq!(
            broken(&play.verdict()),
            [(CheckId::UniformAgreement, vec![5, delivered[0], kill, end])]
        );
    }

    #[test]
    fn delivery_only_by_halted_member_is_a_violation() {
        let mut play = sent();
        play.fault("stop", "a");
        let delivered = play.deliver("a", &["a/1/0"]);
        play.fault("continue", "a");
        play.ended("a", "halted");
        let end = play.end("b");
        play.end("c");
        assert_eq!(broken(&play.verdict()), [(CheckId::RemovedSilent, vec![5, delivered[0], end])]);
    }
}
