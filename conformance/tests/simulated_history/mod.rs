//! What a simulated run did, as a history.
//!
//! A run's members are nodes `m0`, `m1`, ..., its subgroups are groups `g0`, `g1`, ... A member that crashed was killed.
//! Where the run did not end calm, no member has an end: what is missing then proves nothing, and order must hold all
//! the same.

use std::borrow::Cow;

use tramontane_conformance::history::{EndReason, Event, FaultKind, GroupOrder};
use tramontane_core::ids::Rank;
use tramontane_core::layout::Delivery;
use tramontane_fixtures::cluster::{Ending, Outcome, Setup};

/// Each member starts once.
const INC: u32 = 1;

/// The whole run: groups first, then each member's records in their order.
pub fn events(setup: &Setup, outcome: &Outcome) -> Vec<Event<'static>> {
    let mut events: Vec<Event<'static>> =
        (0..setup.group.subgroups.len()).map(|index| group(setup, index)).collect();
    for member in 0..setup.group.members.len() {
        events.push(Event::Start { t_ns: 0, node: node(member), inc: INC });
        events.extend(deeds(setup, outcome, member));
        // Whatever it did was before its end.
        let t_ns = u64::MAX;
        if outcome.report.members[member].crashed {
            events.push(Event::Fault { t_ns, kind: FaultKind::Kill, nodes: vec![node(member)] });
        } else if outcome.report.ending == Ending::Calm {
            events.push(Event::End { t_ns, node: node(member), inc: INC, reason: EndReason::Done });
        }
    }
    events
}

fn group(setup: &Setup, index: usize) -> Event<'static> {
    let subgroup = &setup.group.subgroups[index];
    let names = |ranks: &[Rank]| ranks.iter().map(|rank| node(rank.index())).collect();
    Event::Group {
        group: group_name(index),
        members: names(&subgroup.members),
        senders: names(&subgroup.senders),
        order: match subgroup.delivery {
            // Subgroups know nothing of each other.
            Delivery::Ordered => GroupOrder::Group,
            Delivery::Unordered => GroupOrder::Sender,
        },
    }
}

/// What a member sent and delivered, by time; at one time it sends first.
fn deeds(setup: &Setup, outcome: &Outcome, member: usize) -> Vec<Event<'static>> {
    let mut deeds = Vec::new();
    for subgroup in 0..setup.group.subgroups.len() {
        let sent = outcome.history.sent[subgroup][member].iter().enumerate();
        // A reservation fixes a message's place among its sender's; one that was never committed is none.
        let sent = sent.filter(|(_, sent)| sent.committed_at.is_some());
        deeds.extend(sent.map(|(index, sent)| {
            (sent.reserved_at, 0, multicast(subgroup, member, index, sent.reserved_at))
        }));
        deeds.extend(outcome.history.delivered[subgroup][member].iter().map(|one| {
            let (sender, index) = (usize::from(one.message.member), one.message.index as usize);
            (one.at, 1, deliver(subgroup, member, sender, index, one.at))
        }));
    }
    deeds.sort_by_key(|(t_ns, turn, _)| (*t_ns, *turn));
    deeds.into_iter().map(|(_, _, event)| event).collect()
}

fn multicast(subgroup: usize, member: usize, index: usize, t_ns: u64) -> Event<'static> {
    Event::Multicast {
        t_ns,
        node: node(member),
        inc: INC,
        msg: message(subgroup, member, index),
        groups: vec![group_name(subgroup)],
        bytes: None,
        digest: None,
    }
}

fn deliver(
    subgroup: usize,
    member: usize,
    sender: usize,
    index: usize,
    t_ns: u64,
) -> Event<'static> {
    Event::Deliver {
        t_ns,
        node: node(member),
        inc: INC,
        group: group_name(subgroup),
        view: None,
        msg: Some(message(subgroup, sender, index)),
        sender: Some(node(sender)),
        bytes: None,
        digest: None,
        replayed: false,
    }
}

fn node(member: usize) -> Cow<'static, str> {
    Cow::Owned(format!("m{member}"))
}

fn group_name(subgroup: usize) -> Cow<'static, str> {
    Cow::Owned(format!("g{subgroup}"))
}

fn message(subgroup: usize, sender: usize, index: usize) -> Cow<'static, str> {
    Cow::Owned(format!("m{sender}/g{subgroup}/{index}"))
}
