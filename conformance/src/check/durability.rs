//! Durable deliveries: a prefix of an incarnation's deliveries, which must be present again after a
//! restart.
//!
//! An incarnation's debts (see `debt`) are due when the node's next incarnation delivers something
//! new in the group or ends.
//!
//! Invariants: an incarnation's debts (deliveries that must be replayed) are created when the next
//! incarnation begins, and each is judged once; `open` and `owed` name the groups of a node that
//! have entries in `seats` and `debts`.

use std::collections::BTreeSet;

use super::debt::{Debt, Debts, Paid};
use super::groups::{GroupId, Groups};
use super::mixing::MixedTable;
use super::roster::{NodeId, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use super::trail::{PLACES_MAX, Trail};
use super::verdict::Finding;

/// A node's current incarnation in one group.
#[derive(Debug, Default)]
struct GroupIncarnation {
    trail: Trail,
    /// The highest `upto` and its line.
    upto: Option<(u64, u64)>,
    /// The record with the highest durable count.
    durable_line: u64,
    /// Whether the incarnation delivered something other than a replay.
    went_on: bool,
}

/// The durable records, and what they promise.
#[derive(Debug, Default)]
pub(super) struct Durability {
    seats: MixedTable<(NodeId, GroupId), GroupIncarnation>,
    open: MixedTable<NodeId, BTreeSet<GroupId>>,
    debts: MixedTable<(NodeId, GroupId), Debts>,
    owed: MixedTable<NodeId, BTreeSet<GroupId>>,
    /// `durable-prefix`.
    pub(super) prefix: Tally,
    /// `durable-kept`.
    pub(super) kept: Tally,
}

impl Durability {
    /// Records a delivery by an incarnation, of a named or an unnamed message.
    pub(super) fn delivered(
        &mut self,
        base: (&Roster, &Groups),
        (start, group): (StartId, GroupId),
        message: u64,
        replayed: bool,
        line: u64,
    ) {
        let node = base.0.node_of(start);
        let seat = self.seat(node, group);
        seat.trail.deliver(message, line);
        if seat.went_on {
            return;
        }
        seat.went_on = !replayed;
        if replayed {
            let debts =
                self.debts.get_mut(&(node, group)).into_iter().flat_map(|debts| &mut debts.debts);
            debts.for_each(|debt| debt.replay(message, line));
        } else if self.owed.get_mut(&node).is_some_and(|owed| owed.remove(&group)) {
            self.settle(base, start, group, line);
        }
    }

    fn seat(&mut self, node: NodeId, group: GroupId) -> &mut GroupIncarnation {
        self.seats.entry((node, group)).or_insert_with(|| {
            self.open.entry(node).or_default().insert(group);
            GroupIncarnation::default()
        })
    }

    /// Records that an incarnation made its deliveries durable.
    pub(super) fn secured(
        &mut self,
        (roster, groups): (&Roster, &Groups),
        (start, group): (StartId, GroupId),
        upto: u64,
        line: u64,
    ) {
        let mut tally = std::mem::take(&mut self.prefix);
        let seat = self.seat(roster.node_of(start), group);
        let says = || {
            format!(
                "{} reported positions up to {upto} of {} durable",
                roster.called(start),
                groups.name(group)
            )
        };
        tally.cases(1);
        if let Some((before, before_line)) = seat.upto.filter(|(before, _)| upto < *before) {
            tally.breach(1, line, || {
                let what = format!("{}, after it had reported positions up to {before}", says());
                finding(
                    what,
                    [shows(before_line, "the durable deliveries"), blames(line, "less is durable")],
                )
            });
        }
        let delivered = seat.trail.delivered;
        if upto >= delivered {
            tally.breach(1, line, || {
                let what = format!("{}, but had delivered only {delivered} messages", says());
                finding(what, [blames(line, "reports more as durable than was delivered")])
            });
        }
        if seat.upto.is_none_or(|(before, _)| before < upto) {
            seat.upto = Some((upto, line));
        }
        let before = seat.trail.durable;
        seat.trail.secure(upto.saturating_add(1));
        if seat.trail.durable > before {
            seat.durable_line = line;
        }
        self.prefix = tally;
    }

    /// Records a node's start, after which the durable deliveries of its previous incarnation are
    /// due.
    pub(super) fn started(&mut self, base: (&Roster, &Groups), start: StartId) {
        let node = base.0.node_of(start);
        let starts = &base.0.nodes[node.index()].starts;
        let Some(before) = starts.iter().rev().nth(1).copied() else { return };
        self.close(base, before);
        for group in self.owed.get(&node).into_iter().flatten() {
            let debts =
                self.debts.get_mut(&(node, *group)).into_iter().flat_map(|debts| &mut debts.debts);
            debts.for_each(Debt::renew);
        }
        for group in self.open.remove(&node).into_iter().flatten() {
            let Some(seat) =
                self.seats.remove(&(node, group)).filter(|seat| seat.trail.durable > 0)
            else {
                continue;
            };
            self.debts.entry((node, group)).or_default().add(Debt::new(
                before,
                seat.durable_line,
                seat.trail,
            ));
            self.owed.entry(node).or_default().insert(group);
        }
    }

    /// Closes an incarnation's account. If the incarnation has ended, it must have paid its debts.
    fn close(&mut self, base: (&Roster, &Groups), start: StartId) {
        let Some(end) = base.0.starts[start.index()].end else { return };
        for group in self.owed.remove(&base.0.node_of(start)).into_iter().flatten() {
            self.settle(base, start, group, end.line);
        }
    }

    /// Judges an incarnation's debts in a group, which are due on this line.
    fn settle(&mut self, base: (&Roster, &Groups), start: StartId, group: GroupId, line: u64) {
        let debts = self.debts.remove(&(base.0.node_of(start), group)).unwrap_or_default().debts;
        for debt in debts {
            self.kept.cases(1);
            match debt.paid() {
                Paid::All => {}
                Paid::Unknown => self.kept.doubt(line, || {
                    format!(
                        "{} made more deliveries durable at once than the judge can hold",
                        base.0.called(debt.by)
                    )
                }),
                Paid::Wrong | Paid::Short => {
                    self.kept.breach(1, line, || unpaid(base, &debt, start, group, line));
                }
            }
        }
    }

    /// Judges the remaining debts at the end of the history.
    pub(super) fn finish(&mut self, base: (&Roster, &Groups)) {
        let (roster, groups) = base;
        for node in (0..roster.nodes.len()).map(|place| NodeId(place as u32)) {
            let Some(last) = roster.last_start(node) else { continue };
            self.close(base, last);
            let start = &roster.starts[last.index()];
            if start.is_killed() {
                continue;
            }
            // Decides whether an unfinished incarnation would have paid if it were done now.
            for group in self.owed.get(&node).into_iter().flatten() {
                let debts =
                    self.debts.get(&(node, *group)).into_iter().flat_map(|debts| &debts.debts);
                for debt in debts.filter(|debt| debt.paid() != Paid::All) {
                    self.kept.doubt(start.line, || {
                        format!(
                            "{} neither ended nor was killed, but has not yet replayed {} durable \
                             deliveries of {}",
                            roster.called(last),
                            debt.trail.durable,
                            groups.name(*group)
                        )
                    });
                }
            }
        }
    }
}

/// Returns the finding about an incarnation that reached this line without having paid.
fn unpaid(
    (roster, groups): (&Roster, &Groups),
    debt: &Debt,
    start: StartId,
    group: GroupId,
    line: u64,
) -> Finding {
    let (by, to, group) = (roster.called(debt.by), roster.called(start), groups.name(group));
    let durable = debt.trail.durable;
    let said = shows(debt.line, "the durable deliveries");
    let line_of = |place| debt.place(place).map_or(0, |place| place.line);
    if let Some((place, replay)) = debt.wrong {
        let what = format!(
            "{to} replayed a different message at position {place} of {group} from the one that {by} had made durable"
        );
        let was = shows(line_of(place), "the delivery at this position");
        return finding(
            what,
            [was, said, blames(replay, "a different message at the same position")],
        );
    }
    if debt.replayed < durable {
        let what = format!(
            "{by} had made {durable} deliveries of {group} durable, but {to} replayed only {} of them before it delivered something new or ended",
            debt.replayed
        );
        let next = shows(line_of(debt.replayed), "the first delivery that is not replayed");
        return finding(what, [next, said, blames(line, "without the durable deliveries")]);
    }
    let what = format!(
        "{to} replayed different messages of {group} after position {PLACES_MAX} from those that {by} had made durable"
    );
    finding(what, [said, blames(line, "with messages that differ from the durable ones")])
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{broken, held, inconclusive, judged_by};

    /// In its first incarnation, a node delivers two of its own messages and makes both durable.
    const FIRST: &str = r#"{"ev":"group","group":"g","members":["a"],"senders":["a"]}
{"ev":"start","t_ns":0,"node":"a","inc":1}
{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"a/1/0","groups":["g"]}
{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"a/1/1","groups":["g"]}
{"ev":"deliver","t_ns":2,"node":"a","inc":1,"group":"g","msg":"a/1/0"}
{"ev":"deliver","t_ns":2,"node":"a","inc":1,"group":"g","msg":"a/1/1"}
{"ev":"durable","t_ns":3,"node":"a","inc":1,"group":"g","upto":1}
{"ev":"fault","t_ns":4,"kind":"kill","nodes":["a"]}
{"ev":"start","t_ns":5,"node":"a","inc":2}
"#;
    const END: &str = r#"{"ev":"end","t_ns":9,"node":"a","inc":2,"reason":"done"}
"#;

    fn replay(msg: &str) -> String {
        format!(
            r#"{{"ev":"deliver","t_ns":6,"node":"a","inc":2,"group":"g","msg":"{msg}","replayed":true}}
"#
        )
    }

    #[test]
    fn complete_replay_of_durable_deliveries_passes() {
        let verdict = judged_by(&[FIRST, &replay("a/1/0"), &replay("a/1/1"), END].concat());
        assert_eq!(broken(&verdict), []);
        assert!(held(&verdict, CheckId::DurableKept) && held(&verdict, CheckId::DurablePrefix));
    }

    #[test]
    fn incomplete_replay_is_a_violation_once_due() {
        let text = [FIRST, &replay("a/1/0")].concat();
        assert!(inconclusive(&judged_by(&text), CheckId::DurableKept));
        let killed = [&text, r#"{"ev":"fault","t_ns":9,"kind":"kill","nodes":["a"]}"#].concat();
        assert_eq!(broken(&judged_by(&killed)), []);
        assert_eq!(
            broken(&judged_by(&[&text, END].concat())),
            [(CheckId::DurableKept, vec![6, 7, 11])]
        );
    }

    #[test]
    fn durable_deliveries_of_killed_incarnation_remain_due() {
        let again = r#"{"ev":"fault","t_ns":9,"kind":"kill","nodes":["a"]}
{"ev":"start","t_ns":9,"node":"a","inc":3}
{"ev":"end","t_ns":9,"node":"a","inc":3,"reason":"halted"}"#;
        let found = broken(&judged_by(&[FIRST, &replay("a/1/0"), again].concat()));
        assert!(found.contains(&(CheckId::DurableKept, vec![5, 7, 13])), "{found:?}");
    }

    #[test]
    fn differing_replay_is_reported_with_its_position() {
        let found = broken(&judged_by(&[FIRST, &replay("a/1/0"), &replay("a/1/2"), END].concat()));
        assert!(found.contains(&(CheckId::DurableKept, vec![6, 7, 11])), "{found:?}");
    }

    #[test]
    fn durable_position_never_falls_or_exceeds_deliveries() {
        let durable = |upto: u64| {
            format!(
                r#"{{"ev":"durable","t_ns":3,"node":"a","inc":1,"group":"g","upto":{upto}}}
"#
            )
        };
        let (head, _) = FIRST.split_once(r#"{"ev":"fault""#).expect("there is a fault");
        assert_eq!(
            broken(&judged_by(&[head, &durable(0)].concat())),
            [(CheckId::DurablePrefix, vec![7, 8])]
        );
        assert_eq!(
            broken(&judged_by(&[head, &durable(2)].concat())),
            [(CheckId::DurablePrefix, vec![8])]
        );
    }
}
