//! The judge of a run: it checks TRM-2 on the replicas' deliveries, without using their logs.

use std::collections::{BTreeMap, BTreeSet};

use tramontane_core::ids::GroupId;
use tramontane_core::tram::{MessageId, ReplicaId};

use super::world::World;

/// The deliveries of one replica: log positions and messages.
type ReplicaDeliveries<'h> = &'h [(u64, MessageId)];

/// Returns the errors in the histories so far; later deliveries cannot correct them.
pub fn safety(world: &World) -> Vec<String> {
    let mut wrong = world.complaints.clone();
    let mut longest: BTreeMap<GroupId, (ReplicaId, ReplicaDeliveries<'_>)> = BTreeMap::new();
    for (id, history) in &world.histories {
        let mut seen = BTreeSet::new();
        for (place, message) in &history.messages {
            if !seen.insert(*message) {
                wrong.push(format!("{id} delivers {message} twice, at {place}"));
            }
        }
        let (other, before) = longest.entry(id.group).or_insert((*id, &history.messages));
        let both = before.len().min(history.messages.len());
        if let Some(at) = (0..both).find(|at| before[*at] != history.messages[*at]) {
            wrong.push(format!(
                "{id} delivers {:?} where {other} delivers {:?}",
                history.messages[at], before[at]
            ));
        }
        if history.messages.len() > before.len() {
            (*other, *before) = (*id, &history.messages);
        }
    }
    let orders: Vec<ReplicaDeliveries<'_>> = longest.values().map(|(_, order)| *order).collect();
    if has_cycle(&orders) {
        wrong.push("the groups' orders have a cycle".to_owned());
    }
    wrong
}

/// Returns whether several sequences have no common order.
fn has_cycle(orders: &[ReplicaDeliveries<'_>]) -> bool {
    let mut before: BTreeMap<MessageId, usize> = BTreeMap::new();
    let mut after: BTreeMap<MessageId, Vec<MessageId>> = BTreeMap::new();
    for order in orders {
        for (_, message) in *order {
            before.entry(*message).or_insert(0);
        }
        for pair in order.windows(2) {
            after.entry(pair[0].1).or_default().push(pair[1].1);
            *before.entry(pair[1].1).or_insert(0) += 1;
        }
    }
    let mut free: Vec<MessageId> =
        before.iter().filter(|(_, count)| **count == 0).map(|(message, _)| *message).collect();
    let mut taken = 0;
    while let Some(message) = free.pop() {
        taken += 1;
        for next in after.get(&message).into_iter().flatten() {
            let count = before.get_mut(next).expect("counted");
            *count -= 1;
            if *count == 0 {
                free.push(*next);
            }
        }
    }
    taken < before.len()
}

/// Returns what is missing once everything is idle: messages that the remaining replicas have not
/// delivered although their client still runs or some replica delivered them.
pub fn missing(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    let delivered: BTreeSet<MessageId> = world.ever.values().copied().collect();
    for (message, sent) in &world.sent {
        let client = world.clients.get(&message.client);
        let is_correct = client.is_some_and(|running| running.incarnation == message.incarnation);
        if !is_correct && !delivered.contains(message) {
            continue;
        }
        if is_correct && !sent.answered {
            wrong.push(format!("{message} is not answered"));
        }
        for id in world.replicas.keys().filter(|id| sent.destinations.contains(id.group)) {
            let history = &world.histories[id].messages;
            if !history.iter().any(|(_, other)| other == message) {
                wrong.push(format!("{id} never delivers {message}"));
            }
        }
    }
    wrong
}
