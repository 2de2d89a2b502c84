//! Damage to the interleaving of nodes' records, to records, and to bytes.

use std::borrow::Cow;

use tramontane_conformance::history::{EndReason, Event, FaultKind};

use super::{Chance, Records};

/// Swaps records of different nodes, which no check may notice.
pub fn interleave(chance: &mut impl Chance, records: &mut Records) {
    let by_node = chance.percent(30);
    for _ in 0..if by_node { records.len() } else { 3 } {
        for place in 1..records.len() {
            let (one, other) = (subjects(&records[place - 1]), subjects(&records[place]));
            let apart = !one.is_empty()
                && !other.is_empty()
                && one.iter().all(|node| !other.contains(node));
            if apart && if by_node { one > other } else { chance.percent(40) } {
                records.swap(place - 1, place);
            }
        }
    }
}

/// Damages one to four records, and usually makes the clock rise again after that.
pub fn records(chance: &mut impl Chance, records: &mut Records) {
    for _ in 0..chance.between(1, 4) {
        if !records.is_empty() {
            damage(chance, records);
        }
    }
    if chance.percent(85) {
        straighten(records);
    }
}

/// Damages the text: cuts it, or changes a byte.
pub fn bytes(chance: &mut impl Chance, bytes: &mut Vec<u8>) {
    let place = chance.index(bytes.len().max(1));
    if chance.percent(60) {
        bytes.truncate(place);
    } else if let Some(byte) = bytes.get_mut(place) {
        *byte = chance.below(256) as u8;
    }
}

fn damage(chance: &mut impl Chance, records: &mut Records) {
    let place = victim(chance, records);
    match chance.below(14) {
        12 => hush(chance, records),
        13 => forget(chance, records),
        0..3 => {
            records.remove(place);
        }
        3 => {
            let copy = records[place].clone();
            let to = chance.index(records.len() - place) + place + 1;
            records.insert(to, copy);
        }
        4 => {
            let moved = records.remove(place);
            let to = chance.index(records.len() + 1);
            records.insert(to, moved);
        }
        5 => swap_within_node(records, place),
        _ => {
            let known = records.clone();
            alter(chance, &mut records[place], &known);
        }
    }
}

/// Returns one of the records, seldom one that the history requires.
fn victim(chance: &mut impl Chance, records: &Records) -> usize {
    let place = chance.index(records.len());
    let bears = matches!(
        records[place],
        Event::Group { .. } | Event::Start { .. } | Event::Multicast { .. }
    );
    if bears && chance.percent(85) { chance.index(records.len()) } else { place }
}

/// Removes one message's deliveries on all nodes except one.
fn hush(chance: &mut impl Chance, records: &mut Records) {
    let victim = message_name(chance, records);
    let keeper = node_name(chance);
    records.retain(|event| match event {
        Event::Deliver { msg, node, .. } => msg.as_ref() != Some(&victim) || *node == keeper,
        _ => true,
    });
}

/// Removes one of a restarted node's replays.
fn forget(chance: &mut impl Chance, records: &mut Records) {
    let replays = |event: &Event<'_>| matches!(event, Event::Deliver { replayed: true, .. });
    let places: Vec<usize> = (0..records.len()).filter(|place| replays(&records[*place])).collect();
    if let Some(place) = chance.pick(&places) {
        records.remove(place);
    }
}

/// Exchanges a record with the next one of its node.
fn swap_within_node(records: &mut Records, place: usize) {
    let nodes = subjects(&records[place]);
    let next = (place + 1..records.len()).find(|next| subjects(&records[*next]) == nodes);
    if let Some(next) = next {
        records.swap(place, next);
    }
}

/// Makes each node's times rise along its lines.
fn straighten(records: &mut Records) {
    for place in 0..records.len() {
        let nodes = subjects(&records[place]);
        let shares =
            |earlier: &&Event<'static>| subjects(earlier).iter().any(|node| nodes.contains(node));
        let least = records[..place].iter().filter(shares).filter_map(time).max();
        if let (Some(least), Some(t_ns)) = (least, time_mut(&mut records[place])) {
            *t_ns = (*t_ns).max(least);
        }
    }
}

fn alter(chance: &mut impl Chance, record: &mut Event<'static>, known: &Records) {
    if chance.percent(6) {
        if let Some(t_ns) = time_mut(record) {
            *t_ns = (*t_ns + chance.below(41)).saturating_sub(20);
        }
        return;
    }
    match record {
        Event::Group { members, senders, order, .. } => match chance.below(3) {
            0 => alter_list(chance, members),
            1 => alter_list(chance, senders),
            _ => *order = super::cast::order(chance),
        },
        Event::Start { inc, .. } => *inc = chance.below(4) as u32,
        Event::View { view, members, group, .. } => match chance.below(5) {
            0 => *group = group_name(chance),
            1 | 2 => *view = (*view + chance.below(3)).saturating_sub(1),
            _ => alter_list(chance, members),
        },
        Event::Multicast { groups, digest, bytes, msg, .. } => match chance.below(4) {
            0 => alter_groups(chance, groups),
            1 => *digest = Some("other".into()),
            2 => *bytes = Some(chance.below(3)),
            _ => *msg = message_name(chance, known),
        },
        Event::Accepted { msg, .. } => *msg = message_name(chance, known),
        Event::Refused { definite, msg, .. } => match chance.below(3) {
            0 => *msg = message_name(chance, known),
            _ => *definite = !*definite,
        },
        Event::Deliver { .. } => alter_delivery(chance, record, known),
        Event::Durable { upto, .. } => *upto = chance.below(4),
        Event::Leader { term, .. } => *term = Some(chance.below(3)),
        Event::Stats { posts, .. } => *posts = (*posts + chance.below(3)).saturating_sub(1),
        Event::Fault { kind, nodes, .. } => match chance.below(2) {
            0 => alter_list(chance, nodes),
            _ => *kind = fault_kind(chance),
        },
        Event::End { reason, .. } => *reason = end_reason(chance),
        Event::Run { version, .. } => *version = chance.below(4) as u32,
        Event::Leave { .. } | Event::Stop { .. } | Event::Unknown { .. } => {}
    }
}

fn alter_delivery(chance: &mut impl Chance, record: &mut Event<'static>, known: &Records) {
    let Event::Deliver { node, group, view, msg, sender, bytes, digest, replayed, .. } = record
    else {
        return;
    };
    match chance.below(9) {
        0 => *node = node_name(chance),
        1 => *group = group_name(chance),
        2 => *view = chance.percent(80).then(|| chance.below(4)),
        3 => *msg = Some(message_name(chance, known)).filter(|_| chance.percent(80)),
        4 => *sender = Some(node_name(chance)),
        5 => *bytes = Some(chance.below(3)),
        6 => *digest = Some("other".into()),
        7 => *msg = Some("".into()).filter(|_| chance.percent(50)),
        _ => *replayed = !*replayed,
    }
}

fn alter_list(chance: &mut impl Chance, list: &mut Vec<Cow<'static, str>>) {
    let place = chance.index(list.len().max(1));
    match chance.below(3) {
        0 if !list.is_empty() => {
            list.remove(place);
        }
        1 if list.len() > 1 => list.swap(0, place),
        _ => list.push(node_name(chance)),
    }
}

fn alter_groups(chance: &mut impl Chance, groups: &mut Vec<Cow<'static, str>>) {
    if groups.len() > 1 && chance.percent(50) {
        groups.remove(0);
    } else {
        groups.push(group_name(chance));
    }
}

fn node_name(chance: &mut impl Chance) -> Cow<'static, str> {
    format!("n{}", chance.below(5)).into()
}

fn group_name(chance: &mut impl Chance) -> Cow<'static, str> {
    format!("g{}", chance.below(4)).into()
}

/// Returns the name of a message that was sent, or rarely of one that was not.
fn message_name(chance: &mut impl Chance, known: &Records) -> Cow<'static, str> {
    let names = known.iter().filter_map(|event| match event {
        Event::Multicast { msg, .. } => Some(msg.clone()),
        _ => None,
    });
    let names: Vec<Cow<'static, str>> = names.collect();
    let sent = chance.percent(85);
    chance.pick(&names).filter(|_| sent).unwrap_or("nobody's".into())
}

fn fault_kind(chance: &mut impl Chance) -> FaultKind {
    use FaultKind::{Continue, Full, Heal, Kill, Partition, Room, Slow, Stop};
    chance.pick(&[Kill, Stop, Continue, Partition, Slow, Heal, Full, Room]).unwrap_or(Kill)
}

fn end_reason(chance: &mut impl Chance) -> EndReason {
    use EndReason::{Done, Halted, Hung, Left};
    chance.pick(&[Done, Left, Halted, Hung]).unwrap_or(Done)
}

/// Returns the nodes that a record belongs to.
fn subjects(event: &Event<'static>) -> Vec<Cow<'static, str>> {
    match event {
        Event::Start { node, .. }
        | Event::View { node, .. }
        | Event::Multicast { node, .. }
        | Event::Accepted { node, .. }
        | Event::Refused { node, .. }
        | Event::Leave { node, .. }
        | Event::Stop { node, .. }
        | Event::Deliver { node, .. }
        | Event::Durable { node, .. }
        | Event::Leader { node, .. }
        | Event::Stats { node, .. }
        | Event::End { node, .. } => vec![node.clone()],
        Event::Fault { nodes, .. } => nodes.clone(),
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => Vec::new(),
    }
}

fn time(event: &Event<'static>) -> Option<u64> {
    time_mut(&mut event.clone()).copied()
}

fn time_mut<'e>(event: &'e mut Event<'static>) -> Option<&'e mut u64> {
    match event {
        Event::Start { t_ns, .. }
        | Event::View { t_ns, .. }
        | Event::Multicast { t_ns, .. }
        | Event::Accepted { t_ns, .. }
        | Event::Refused { t_ns, .. }
        | Event::Leave { t_ns, .. }
        | Event::Stop { t_ns, .. }
        | Event::Deliver { t_ns, .. }
        | Event::Durable { t_ns, .. }
        | Event::Leader { t_ns, .. }
        | Event::Stats { t_ns, .. }
        | Event::Fault { t_ns, .. }
        | Event::End { t_ns, .. } => Some(t_ns),
        Event::Run { .. } | Event::Group { .. } | Event::Unknown { .. } => None,
    }
}
