//! Rest and progress, written exactly as they are defined.

use tramontane_conformance::history::{Event, FaultKind};

use super::Findings;
use super::delivery::promised;
use super::format::time;
use super::terms::{DeliverRecord, IncarnationFate, MessageRecord, NaiveHistory, StartRecord};

/// The silence required before the first of two counts, in nanoseconds.
const SETTLED_NS: u64 = 500_000_000;

/// `quiescence`
pub fn quiescence(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for start in &world.starts {
        let counts: Vec<(u64, u64)> = world
            .events
            .iter()
            .filter_map(|(_, event)| match event {
                Event::Stats { t_ns, node, inc, posts }
                    if *node == start.node && *inc == start.inc =>
                {
                    Some((*t_ns, *posts))
                }
                _ => None,
            })
            .collect();
        for pair in counts.windows(2) {
            if is_silent(world, pair[0].0.saturating_sub(SETTLED_NS), pair[1].0) {
                found.case();
                found.broken_if(pair[0].1 != pair[1].1);
            }
        }
    }
    found
}

fn is_silent(world: &NaiveHistory<'_>, from_ns: u64, until_ns: u64) -> bool {
    !world.events.iter().any(|(_, event)| {
        let stirs = matches!(
            event,
            Event::Start { .. }
                | Event::View { .. }
                | Event::Leader { .. }
                | Event::Multicast { .. }
                | Event::Deliver { .. }
                | Event::Fault { .. }
                | Event::End { .. }
        );
        stirs && time(event).is_some_and(|t_ns| (from_ns..=until_ns).contains(&t_ns))
    })
}

/// Returns whether a delivery came after its own incarnation's end, on a later line and at a later
/// time.
pub fn is_after_its_end(world: &NaiveHistory<'_>, delivery: &DeliverRecord<'_>) -> bool {
    world.events.iter().any(|(line, event)| match event {
        Event::End { t_ns, node, inc, .. } => {
            *node == delivery.node
                && *inc == delivery.inc
                && *line < delivery.line
                && *t_ns < delivery.t_ns
        }
        _ => false,
    })
}

/// Returns the faults, in order.
pub fn faults<'h>(world: &NaiveHistory<'h>) -> Vec<(u64, FaultKind, Vec<&'h str>)> {
    let faults = world.events.iter().filter_map(|(_, event)| match event {
        Event::Fault { t_ns, kind, nodes, .. } => {
            Some((*t_ns, *kind, nodes.iter().map(AsRef::as_ref).collect()))
        }
        _ => None,
    });
    faults.collect()
}

/// Returns whether every fault that can end has ended.
pub fn faults_ended(world: &NaiveHistory<'_>) -> bool {
    let faults = faults(world);
    let is_followed = |place: usize, node: &str, by: FaultKind| {
        faults[place + 1..].iter().any(|(_, kind, nodes)| {
            nodes.contains(&node) && (*kind == by || *kind == FaultKind::Kill)
        })
    };
    faults.iter().enumerate().all(|(place, (_, kind, nodes))| match kind {
        FaultKind::Stop => nodes.iter().all(|node| is_followed(place, node, FaultKind::Continue)),
        FaultKind::Partition | FaultKind::Slow => {
            nodes.iter().all(|node| is_followed(place, node, FaultKind::Heal))
        }
        // A disk stays full when its node is killed.
        FaultKind::Full => nodes.iter().all(|node| {
            faults[place + 1..]
                .iter()
                .any(|(_, kind, nodes)| nodes.contains(node) && *kind == FaultKind::Room)
        }),
        FaultKind::Kill | FaultKind::Continue | FaultKind::Heal | FaultKind::Room => true,
    })
}

/// Returns whether `liveness`, rather than `validity`, judges the loss of this message.
pub fn is_of_liveness(world: &NaiveHistory<'_>, message: &MessageRecord<'_>) -> bool {
    let last = faults(world).iter().map(|(t_ns, ..)| *t_ns).max();
    last.is_some_and(|last| message.t_ns >= last)
}

/// Returns whether some node delivered the message, and its sender, which is correct, never
/// answered.
fn is_unanswered(world: &NaiveHistory<'_>, message: &MessageRecord<'_>) -> bool {
    let sender = world.start(message.node, message.inc);
    world.tells_answers()
        && !message.accepted
        && message.refused.is_none()
        && !world.deliverers(message).is_empty()
        && sender
            .is_some_and(|start| start.is_correct() && !world.is_removed_from_any(start, message))
}

/// `liveness`
pub fn liveness(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    if !faults_ended(world) {
        return found;
    }
    for (_, lost) in promised(world, true) {
        found.case();
        found.broken_if(lost);
    }
    for message in &world.messages {
        found.broken_if(is_unanswered(world, message));
    }
    for start in &world.starts {
        if !matches!(start.fate, IncarnationFate::Killed | IncarnationFate::Unfinished) {
            found.case();
        }
        found.broken_if(start.fate == IncarnationFate::Done && world.leave(start).is_some());
        found.broken_if(start.fate == IncarnationFate::Hung);
        found.broken_if(start.fate == IncarnationFate::Halted && faults(world).is_empty());
    }
    super::membership::judge(world, &mut found);
    for group in &world.groups {
        let there: Vec<&StartRecord<'_>> = group
            .members
            .iter()
            .filter_map(|member| world.last_start(member))
            .filter(|start| !matches!(start.fate, IncarnationFate::Killed | IncarnationFate::Left))
            .collect();
        found.broken_if(
            2 * there.len() > group.members.len()
                && there.iter().all(|start| start.fate == IncarnationFate::Halted),
        );
    }
    found
}
