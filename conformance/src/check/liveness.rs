//! Checks whether nodes end as requested and groups stay live.
//!
//! The delivery of messages is judged in `who_delivers`.

use super::groups::{Groups, KnownGroup};
use super::roster::{Fate, NodeIncarnation, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use crate::history::EndReason;

/// Judges the ends of all incarnations, if no fault lasts.
pub(super) fn judge(roster: &Roster, groups: &Groups) -> Tally {
    let mut tally = Tally::default();
    for (start, NodeIncarnation { end, leave, .. }) in (0..).map(StartId).zip(&roster.starts) {
        let Some(end) = end else {
            if let (Some(leave), Fate::Unfinished) = (leave, roster.starts[start.index()].fate()) {
                let name = roster.called(start);
                tally.doubt(leave.line, || format!("{name} was asked to leave but has not ended"));
            }
            continue;
        };
        tally.cases(1);
        let (hung, halted) = (end.reason == EndReason::Hung, end.reason == EndReason::Halted);
        if let Some(leave) = leave.filter(|_| end.reason == EndReason::Done) {
            tally.breach(1, end.line, || {
                let what = format!("{} was asked to leave but did not", roster.called(start));
                finding(
                    what,
                    [
                        shows(leave.line, "asked to leave"),
                        blames(end.line, "the member had stayed"),
                    ],
                )
            });
        }
        if hung {
            tally.breach(1, end.line, || {
                let what = format!("{} was asked to stop but did not", roster.called(start));
                finding(what, [blames(end.line, "the member hung")])
            });
        } else if halted && roster.last_fault_ns.is_none() {
            tally.breach(1, end.line, || {
                let what =
                    format!("{} gave up although there were no faults", roster.called(start));
                finding(what, [blames(end.line, "the member gave up")])
            });
        }
    }
    groups.groups.iter().for_each(|group| judge_group(&mut tally, roster, group));
    tally
}

/// Judges that a group did not give up while a majority of its members survived.
fn judge_group(tally: &mut Tally, roster: &Roster, group: &KnownGroup) {
    let last = group.members.iter().filter_map(|node| roster.last_start(*node));
    let standing: Vec<&NodeIncarnation> = last
        .map(|start| &roster.starts[start.index()])
        .filter(|start| !matches!(start.fate(), Fate::Killed | Fate::Ended(EndReason::Left)))
        .collect();
    let is_majority = standing.len() * 2 > group.members.len();
    let halted = |start: &&NodeIncarnation| start.fate() == Fate::Ended(EndReason::Halted);
    if !is_majority || !standing.iter().all(halted) {
        return;
    }
    let mut lines: Vec<u64> = standing.iter().map(|start| start.last_line()).collect();
    lines.sort_unstable();
    tally.breach(1, lines.last().copied().unwrap_or(0), || {
        let what = format!(
            "{} of {} members of {} were not killed and did not leave, but they all gave up",
            standing.len(),
            group.members.len(),
            group.name
        );
        finding(what, lines.iter().map(|line| blames(*line, "one of the majority gives up")))
    });
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::Outcome;
    use crate::check::testing::{Play, broken, held, outcome};

    #[test]
    fn halt_without_faults_is_a_violation() {
        let mut play = Play::new(&["a", "b", "c"]);
        let line = play.ended("a", "halted");
        let found = broken(&play.verdict());
        assert_eq!(found, [(CheckId::Liveness, vec![line])]);
    }

    #[test]
    fn minority_may_halt_after_a_fault() {
        let mut play = Play::new(&["a", "b", "c"]);
        play.fault("partition", "a");
        play.fault("heal", "a");
        play.ended("a", "halted");
        assert!(held(&play.verdict(), CheckId::Liveness));
        play.ended("b", "halted");
        assert!(held(&play.verdict(), CheckId::Liveness));
        play.ended("c", "halted");
        assert_eq!(broken(&play.verdict())[0].0, CheckId::Liveness);
    }

    #[test]
    fn member_must_leave_when_asked() {
        for (reason, fails) in [("left", false), ("done", true), ("halted", true)] {
            let mut play = Play::new(&["a", "b"]);
            let leave = play.line(r#"{"ev":"leave","t_ns":1,"node":"a","inc":1}"#);
            let end = play.ended("a", reason);
            let found = broken(&play.verdict());
            assert_eq!(!found.is_empty(), fails, "{reason}");
            if reason == "done" {
                assert_eq!(found, [(CheckId::Liveness, vec![leave, end])]);
            }
        }
    }

    #[test]
    fn liveness_is_not_judged_during_a_fault() {
        let mut play = Play::new(&["a"]);
        play.fault("stop", "a");
        play.ended("a", "hung");
        assert!(matches!(outcome(&play.verdict(), CheckId::Liveness), Outcome::NotJudged(_)));
    }

    #[test]
    fn message_sent_after_faults_must_be_delivered() {
        let mut play = Play::new(&["a", "b"]);
        play.fault("stop", "a");
        play.fault("continue", "a");
        let sent = play.sends("a", 1);
        let end = play.end("a");
        play.end("b");
        assert_eq!(broken(&play.verdict()), [(CheckId::Liveness, vec![sent[0], end])]);
    }
}
