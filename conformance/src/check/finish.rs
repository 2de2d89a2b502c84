//! The end of a history: judges the messages that are still held, and turns all findings into a
//! verdict.

use super::acyclic_order;
use super::due::Due;
use super::groups::Groups;
use super::judge::Judge;
use super::ledger::Ledger;
use super::liveness;
use super::membership;
use super::memory;
use super::order_cases::OrderCases;
use super::prefix_order::PrefixOrder;
use super::registry::CheckId;
use super::roster::Roster;
use super::sweep::Scene;
use super::tally::Tally;
use super::tangle::Tangle;
use super::total_order;
use super::verdict::{Judgement, Outcome, Verdict};
use super::who_delivers::{Judging, WhoDelivers};

/// The findings of the order checks that span nodes.
#[derive(Debug, Default)]
struct FinishOrder {
    total: Tally,
    acyclic: Tally,
    prefix: Tally,
    /// Whether every check that prefix order depends on holds.
    prefix_is_judged: bool,
    /// Whether the positions of messages agree with every incarnation's deliveries.
    places_known: bool,
}

impl Judge {
    /// Ends the history and returns the verdict.
    #[must_use]
    pub fn finish(mut self) -> Verdict {
        self.durability.finish((&self.roster, &self.groups));
        let bounds_known = self.ledger.mend();
        let mut order = self.untangle();
        let Self { roster, groups, views, ledger, tells_answers, .. } = &mut self;
        let due = Due::new(roster, groups, views);
        let mut who = judge_who((roster, groups, &due), ledger, *tells_answers);
        who.silent.absorb(std::mem::take(&mut ledger.integrity.silent));
        order.places_known = bounds_known && ledger.doubts.are_none();
        judge_prefix(&mut order, &who, (roster, groups), &due, ledger);
        OrderCases::of(roster, groups, &ledger.classes).count([
            &mut order.total,
            &mut order.acyclic,
            &mut order.prefix,
        ]);
        doubt(ledger, &mut order, bounds_known);
        let in_view = delivered_in_views(ledger, &due);
        views.judge_lists(roster, groups);
        let majority = views.judge_majority(roster, groups);
        let mut live = liveness::judge(roster, groups);
        membership::judge(&mut live, (roster, groups), views, &due);
        live.absorb(std::mem::take(&mut who.liveness));
        let outcomes = self.outcomes(who, order, [in_view, majority, live]);
        let judgements = CheckId::ALL.iter().copied().zip(outcomes);
        Verdict {
            judgements: judgements.map(|(check, outcome)| Judgement { check, outcome }).collect(),
            events: self.events,
            unknown: std::mem::take(&mut self.unknown),
            cut: self.cut.take(),
            took: self.began.elapsed(),
            memory_bytes_max: memory::bytes_max(),
        }
    }

    /// Pops all messages that can be popped, and judges the order of the others.
    fn untangle(&mut self) -> FinishOrder {
        let Self { roster, groups, views, view_ids, ledger, .. } = self;
        let (roster, groups) = (&*roster, &*groups);
        let scene = Scene { roster, groups, views, view_ids, closing: true };
        ledger.drop_unsent(roster, groups);
        ledger.sweep(scene);
        let mut order = FinishOrder::default();
        let tangle = Tangle::new(ledger, roster, groups);
        if tangle.len() > 0 {
            order.total = total_order::judge(&tangle);
            if !order.total.is_broken() {
                order.acyclic = acyclic_order::judge(&tangle);
            }
        }
        ledger.drain();
        ledger.forget_settled(scene);
        ledger.judge_strays(scene);
        order
    }

    /// Returns one outcome per check, in the order of [`CheckId::ALL`].
    fn outcomes(
        &mut self,
        who: WhoDelivers,
        order: FinishOrder,
        [in_view, majority, live]: [Tally; 3],
    ) -> [Outcome; CheckId::ALL.len()] {
        let rest = self.quiescence.judge(&self.roster);
        let faults_ended = self.roster.faults_ended();
        let Self { ledger: Ledger { integrity, sender_order, .. }, views, durability, .. } = self;
        let take = std::mem::take::<Tally>;
        let total_is_broken = order.total.is_broken();
        [
            take(&mut integrity.once).outcome("nothing was delivered to an addressee"),
            take(&mut integrity.sent).outcome("nothing was delivered"),
            take(&mut integrity.addressee).outcome("no sent message was delivered"),
            take(&mut integrity.bytes).outcome(
                "no message has its size or digest both in its multicast and in a delivery",
            ),
            take(&mut integrity.nulls).outcome("nothing was delivered"),
            who.validity.outcome("no correct node sent a message that a correct node must deliver"),
            who.agreement.outcome("no node delivered a message that it must deliver"),
            who.uniform.outcome("no killed node delivered a message that others must deliver"),
            take(&mut sender_order.tally).outcome("no node delivered two messages of one sender"),
            order.total.outcome("no group has two messages that two members delivered"),
            judged_if(!total_is_broken, "total-order is broken", || {
                order.acyclic.outcome("no node delivered two messages")
            }),
            judged_if(order.prefix_is_judged, "another order or delivery check is broken", || {
                order.prefix.outcome("no message was delivered by two nodes")
            }),
            take(&mut views.unique).outcome(NO_VIEWS),
            take(&mut views.rising).outcome(NO_VIEWS),
            take(&mut views.own).outcome(NO_VIEWS),
            majority.outcome("no node went from one view to another"),
            in_view.outcome("nothing was delivered in a group with views"),
            who.same_set.outcome("no node delivered a message and then installed another view"),
            who.silent
                .outcome("no node left, halted, was removed or started again after a delivery"),
            rest.outcome("no incarnation counted its posts twice with silence around the counts"),
            take(&mut durability.prefix).outcome("nothing was durable"),
            take(&mut durability.kept)
                .outcome("no incarnation followed one that had made deliveries durable"),
            judged_if(faults_ended, "faults did not end", || live.outcome("no incarnation ended")),
        ]
    }
}

const NO_VIEWS: &str = "no views were installed";

fn judged_if(condition: bool, otherwise: &str, outcome: impl FnOnce() -> Outcome) -> Outcome {
    if condition { outcome() } else { Outcome::NotJudged(otherwise.to_owned()) }
}

/// Judges which nodes deliver which messages, and which messages were skipped.
fn judge_who(
    (roster, groups, due): (&Roster, &Groups, &Due<'_>),
    ledger: &mut Ledger,
    tells_answers: bool,
) -> WhoDelivers {
    let Ledger { names, classes, slots, live, sender_order, .. } = ledger;
    let judging = Judging { roster, groups, names, due, tells_answers };
    let mut found = WhoDelivers::default();
    for class in classes.living() {
        judging.class(&mut found, class);
        judging.count_validity(&mut found, class);
    }
    // No node delivered the messages that are still held. Sorting by line finds the earliest first.
    let mut undelivered: Vec<u32> = live.values().copied().collect();
    undelivered.sort_unstable_by_key(|slot| slots[*slot as usize].sent.map_or(0, |sent| sent.line));
    for message in undelivered.into_iter().map(|slot| &slots[slot as usize]) {
        let Some(sent) = message.sent else { continue };
        let is_told = judging.undelivered(&mut found, message, &sent);
        if !is_told && !sent.answer.is_refusal() {
            sender_order.left_out((roster, groups, names), message.name, &sent);
        }
    }
    found
}

/// Judges prefix order, if no check that it depends on is broken.
fn judge_prefix(
    order: &mut FinishOrder,
    who: &WhoDelivers,
    (roster, groups): (&Roster, &Groups),
    due: &Due<'_>,
    ledger: &Ledger,
) {
    let below = [&who.validity, &who.agreement, &who.uniform, &who.same_set, &who.silent];
    let order_below = [&ledger.sender_order.tally, &order.total, &order.acyclic];
    order.prefix_is_judged = !below.into_iter().chain(order_below).any(Tally::is_broken);
    if order.prefix_is_judged && order.places_known {
        let judging = PrefixOrder { roster, groups, names: &ledger.names, due };
        order.prefix = judging.judge(ledger.classes.living());
    }
}

/// Returns the tally of `view-delivery` for the groups that turned out to have views.
fn delivered_in_views(ledger: &mut Ledger, due: &Due<'_>) -> Tally {
    let mut in_view = Tally::default();
    for (_, tally) in ledger.integrity.in_view.drain().filter(|(group, _)| due.has_views(*group)) {
        in_view.absorb(tally);
    }
    in_view
}

/// Makes held checks inconclusive if they needed information that the judge had forgotten.
fn doubt(ledger: &mut Ledger, order: &mut FinishOrder, bounds_known: bool) {
    let forgotten = ledger.doubts.forgotten.or((!bounds_known).then_some(u64::MAX));
    if let Some(line) = forgotten {
        let integrity = &mut ledger.integrity;
        let all = [&mut integrity.sent, &mut integrity.bytes, &mut ledger.sender_order.tally];
        for tally in
            all.into_iter().chain([&mut order.total, &mut order.acyclic, &mut order.prefix])
        {
            tally.doubt(line, || {
                "a message was redelivered after the judge had forgotten it".to_owned()
            });
        }
    }
    if let Some(line) = ledger.doubts.order {
        for tally in [&mut order.total, &mut order.acyclic, &mut order.prefix] {
            tally.doubt(line, || {
                "messages were redelivered in a different order, after the judge had forgotten them"
                    .to_owned()
            });
        }
    }
}
