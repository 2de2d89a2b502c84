//! Order, written exactly as it is defined.

use super::Findings;
use super::delivery::promised;
use super::progress::faults_ended;
use super::terms::{MessageRecord, NaiveHistory, StartRecord};

/// Returns the groups that both messages are addressed to.
fn shared<'m>(one: &MessageRecord<'m>, other: &MessageRecord<'_>) -> Vec<&'m str> {
    one.groups.iter().copied().filter(|group| other.groups.contains(group)).collect()
}

/// Returns the message's position among the incarnation's deliveries.
fn place(
    world: &NaiveHistory<'_>,
    start: &StartRecord<'_>,
    message: &MessageRecord<'_>,
) -> Option<usize> {
    world.log(start).iter().position(|delivery| delivery.message == Some(message.name))
}

/// Returns whether the node is a member of one of the message's groups that promise their members
/// one order.
fn is_ordered_at(world: &NaiveHistory<'_>, node: &str, message: &MessageRecord<'_>) -> bool {
    message.groups.iter().any(|group| world.is_ordered(group) && world.is_member(node, group))
}

/// `sender-order`
pub fn sender_order(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for first in &world.messages {
        for second in &world.messages {
            let of_one_start = (first.node, first.inc) == (second.node, second.inc);
            if !of_one_start || first.line >= second.line {
                continue;
            }
            for group in shared(first, second) {
                judge_senders_pair(world, &mut found, [first, second], group);
            }
        }
    }
    found
}

fn judge_senders_pair(
    world: &NaiveHistory<'_>,
    found: &mut Findings,
    [first, second]: [&MessageRecord<'_>; 2],
    group: &str,
) {
    for start in world.starts.iter().filter(|start| world.is_member(start.node, group)) {
        if let (Some(one), Some(other)) = (place(world, start, first), place(world, start, second))
        {
            found.case();
            found.broken_if(one > other);
        }
    }
    let left_out = first.refused.is_none() && world.deliverers(first).is_empty();
    let later_came =
        world.deliverers(second).iter().any(|start| world.is_member(start.node, group));
    found.broken_if(left_out && later_came && !is_told_elsewhere(world, first));
}

/// Returns whether the message breaks `validity` or `liveness`.
fn is_told_elsewhere(world: &NaiveHistory<'_>, message: &MessageRecord<'_>) -> bool {
    let lost = (message.name.to_owned(), true);
    promised(world, false).contains(&lost)
        || (faults_ended(world) && promised(world, true).contains(&lost))
}

/// `total-order`
pub fn total_order(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for group in world.groups.iter().filter(|group| world.is_ordered(group.name)) {
        let members: Vec<&StartRecord<'_>> =
            world.starts.iter().filter(|start| world.is_member(start.node, group.name)).collect();
        let messages: Vec<&MessageRecord<'_>> =
            world.messages.iter().filter(|message| message.groups.contains(&group.name)).collect();
        let twice = messages.iter().filter(|message| {
            members.iter().filter(|start| place(world, start, message).is_some()).count() >= 2
        });
        if twice.count() >= 2 {
            found.case();
        }
        for p in &members {
            for q in &members {
                found.broken_if(orders_differ(world, p, q, &messages));
            }
        }
    }
    found
}

fn orders_differ(
    world: &NaiveHistory<'_>,
    p: &StartRecord<'_>,
    q: &StartRecord<'_>,
    messages: &[&MessageRecord<'_>],
) -> bool {
    let both: Vec<(usize, usize)> = messages
        .iter()
        .filter_map(|message| place(world, p, message).zip(place(world, q, message)))
        .collect();
    both.iter().any(|one| both.iter().any(|other| one.0 < other.0 && one.1 > other.1))
}

/// `acyclic-order`
pub fn acyclic_order(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    let count = world.messages.len();
    let mut before = vec![vec![false; count]; count];
    for start in &world.starts {
        let placed: Vec<(usize, usize)> = (0..count)
            .filter(|one| is_ordered_at(world, start.node, &world.messages[*one]))
            .filter_map(|one| Some((place(world, start, &world.messages[one])?, one)))
            .collect();
        for (place, one) in &placed {
            for (other_place, other) in &placed {
                if place < other_place {
                    found.case();
                    before[*one][*other] |=
                        world.share_an_order(&world.messages[*one], &world.messages[*other]);
                }
            }
        }
    }
    // Precedence is transitive.
    for through in 0..count {
        for one in 0..count {
            for other in 0..count {
                before[one][other] |= before[one][through] && before[through][other];
            }
        }
    }
    found.broken_if((0..count).any(|one| before[one][one]));
    found
}

/// `prefix-order`
pub fn prefix_order(world: &NaiveHistory<'_>) -> Findings {
    let mut found = Findings::default();
    for message in &world.messages {
        let nodes = nodes(world);
        let delivered = nodes.iter().filter(|node| {
            world.node_delivered(node, message) && is_ordered_at(world, node, message)
        });
        if delivered.count() >= 2 {
            found.case();
        }
    }
    for p in nodes(world) {
        for q in nodes(world) {
            for m in &world.messages {
                for other in &world.messages {
                    found.broken_if(p != q && has_gap(world, [p, q], [m, other]));
                }
            }
        }
    }
    found
}

/// Returns the nodes that started.
fn nodes<'h>(world: &NaiveHistory<'h>) -> Vec<&'h str> {
    let mut nodes: Vec<&str> = world.starts.iter().map(|start| start.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// Returns whether p delivered m but not the other message, while q delivered the other message
/// without m before it.
fn has_gap(
    world: &NaiveHistory<'_>,
    [p, q]: [&str; 2],
    [m, other]: [&MessageRecord<'_>; 2],
) -> bool {
    let wrong_way_round = world.starts.iter().filter(|start| start.node == q).any(|start| {
        place(world, start, other).zip(place(world, start, m)).is_some_and(|(other, m)| other < m)
    });
    world.node_delivered(p, m)
        && !world.node_delivered(p, other)
        && world.node_delivered(q, other)
        && (!world.node_delivered(q, m) || wrong_way_round)
        && world.share_an_order(m, other)
        && should_both_have(world, [p, q], [m, other])
}

fn should_both_have(
    world: &NaiveHistory<'_>,
    nodes: [&str; 2],
    messages: [&MessageRecord<'_>; 2],
) -> bool {
    let plainly_addressed = |node: &str, message: &MessageRecord<'_>| {
        message.groups.iter().any(|group| {
            world.is_ordered(group) && !world.has_views(group) && world.is_member(node, group)
        })
    };
    let in_one_view = |group: &str| {
        let view = world.view_of_message(messages[0], group);
        view.is_some()
            && view == world.view_of_message(messages[1], group)
            && nodes.iter().all(|node| {
                world.is_member(node, group)
                    && world.views.iter().any(|installed| {
                        installed.node == *node
                            && installed.group == group
                            && Some(installed.id) == view
                    })
            })
    };
    nodes.iter().all(|node| messages.iter().all(|message| plainly_addressed(node, message)))
        || shared(messages[0], messages[1])
            .into_iter()
            .any(|group| world.is_ordered(group) && world.has_views(group) && in_one_view(group))
}
