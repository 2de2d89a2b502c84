//! The conditions of scenarios with groups of replicas and with clients.

use std::collections::HashSet;

use super::comes_back;
use crate::drive::names::group_name;
use crate::drive::recorded::{Lead, Recorded, RecordedFault};
use crate::history::FaultKind;

/// Returns whether some member of each group alternately delivered messages for that group only and
/// messages for several groups.
pub(super) fn alone_and_across(recorded: &Recorded) -> bool {
    let in_turns = |node: &usize| {
        let of_node = recorded.deliveries.iter().filter(|delivery| delivery.node == *node);
        comes_back(of_node.map(|delivery| recorded.messages[delivery.message].groups.len() > 1))
    };
    recorded.members.values().all(|members| members.iter().any(in_turns))
}

/// Returns whether a leader of the group was killed under load, another leader took over, and the
/// group delivered a message sent after the kill.
pub(super) fn leader_killed(recorded: &Recorded, group: usize) -> bool {
    let name = group_name(group);
    kills(recorded, &name).any(|(node, kill_ns)| {
        leads_at(recorded, &name, node, kill_ns)
            && is_under_load(recorded, &name, kill_ns)
            && is_replaced(recorded, &name, node, (kill_ns, u64::MAX))
            && goes_on(recorded, &name, kill_ns)
    })
}

/// Returns whether a member of the group that was not the leader was killed under load.
pub(super) fn follower_killed(recorded: &Recorded, group: usize) -> bool {
    let name = group_name(group);
    kills(recorded, &name).any(|(node, kill_ns)| {
        !leads_at(recorded, &name, node, kill_ns)
            && is_under_load(recorded, &name, kill_ns)
            && goes_on(recorded, &name, kill_ns)
    })
}

/// Returns whether a leader of the group was suspended, and another led before it was resumed,
/// while messages for the group were sent.
pub(super) fn leader_paused(recorded: &Recorded, group: usize) -> bool {
    let name = group_name(group);
    let of_kind =
        |kind| recorded.faults.iter().filter(move |fault: &&RecordedFault| fault.kind == kind);
    of_kind(FaultKind::Stop).any(|stop| {
        let [node] = stop.nodes[..] else { return false };
        let resumed = of_kind(FaultKind::Continue)
            .find(|fault| fault.nodes.contains(&node) && fault.t_ns >= stop.t_ns);
        let Some(until_ns) = resumed.map(|fault| fault.t_ns) else { return false };
        leads_at(recorded, &name, node, stop.t_ns)
            && is_replaced(recorded, &name, node, (stop.t_ns, until_ns))
            && recorded.messages.iter().any(|message| {
                message.groups.contains(&name)
                    && message.t_ns > stop.t_ns
                    && message.t_ns < until_ns
            })
    })
}

/// Returns whether messages of the node for several groups were in flight when it was killed.
pub(super) fn killed_across(recorded: &Recorded, node: usize) -> bool {
    recorded.kill_ns(node).is_some_and(|kill_ns| {
        recorded.messages.iter().any(|message| {
            message.sender == node
                && message.groups.len() > 1
                && recorded.under_way(message, kill_ns)
        })
    })
}

/// Returns whether each group with a partitioned member delivered, before the partition healed, a
/// message that was sent after the partition began and that the partitioned member delivered only
/// later.
pub(super) fn went_on_while_parted(recorded: &Recorded, side: &[usize]) -> bool {
    let time =
        |kind| side.first().and_then(|node| recorded.fault_ns(kind, *node)).unwrap_or_default();
    let (from_ns, to_ns) = (time(FaultKind::Partition), time(FaultKind::Heal));
    let went_on = |group: &String, members: &[usize]| {
        recorded.messages.iter().any(|message| {
            let in_time = |node: &usize| {
                message.delivered.get(node).is_some_and(|delivered_ns| *delivered_ns < to_ns)
            };
            message.groups.contains(group)
                && message.t_ns > from_ns
                && members.iter().any(|node| !side.contains(node) && in_time(node))
                && !members.iter().any(|node| side.contains(node) && in_time(node))
        })
    };
    let cut = |members: &[usize]| members.iter().any(|node| side.contains(node));
    recorded.members.iter().all(|(group, members)| !cut(members) || went_on(group, members))
}

/// Returns the number of killed nodes that came back and delivered a new message.
pub(super) fn came_back(recorded: &Recorded) -> usize {
    let again = recorded.deliveries.iter().filter(|one| one.inc > 1 && !one.replayed);
    let killed = again.map(|one| one.node).filter(|node| recorded.kill_ns(*node).is_some());
    killed.collect::<HashSet<usize>>().len()
}

/// Iterates over the kills of a group's members.
fn kills<'r>(recorded: &'r Recorded, group: &'r str) -> impl Iterator<Item = (usize, u64)> + 'r {
    let kills = recorded.faults.iter().filter(|fault| fault.kind == FaultKind::Kill);
    let each = kills.flat_map(|fault| fault.nodes.iter().map(|node| (*node, fault.t_ns)));
    each.filter(move |(node, _)| {
        recorded.members.get(group).is_some_and(|members| members.contains(node))
    })
}

/// Returns whether the node led the group at the given time: its report was the latest, or had the
/// highest term.
fn leads_at(recorded: &Recorded, group: &str, node: usize, t_ns: u64) -> bool {
    let mut leader: Option<&Lead> = None;
    for lead in recorded.leads.iter().filter(|lead| lead.group == group && lead.t_ns <= t_ns) {
        if leader.is_none_or(|leader| lead.term.is_none() || lead.term >= leader.term) {
            leader = Some(lead);
        }
    }
    leader.is_some_and(|leader| leader.node == node)
}

/// Returns whether another node reported in this interval that it leads the group.
fn is_replaced(recorded: &Recorded, group: &str, node: usize, (from, to): (u64, u64)) -> bool {
    recorded
        .leads
        .iter()
        .any(|lead| lead.group == group && lead.node != node && lead.t_ns > from && lead.t_ns < to)
}

fn is_under_load(recorded: &Recorded, group: &str, t_ns: u64) -> bool {
    let is_for = |groups: &[String]| groups.iter().any(|name| name == group);
    recorded
        .messages
        .iter()
        .any(|message| is_for(&message.groups) && recorded.under_way(message, t_ns))
}

/// Returns whether a member of the group delivered a message for it that was sent after this time.
fn goes_on(recorded: &Recorded, group: &str, t_ns: u64) -> bool {
    let members = recorded.members.get(group).map_or(&[][..], Vec::as_slice);
    recorded.messages.iter().any(|message| {
        message.t_ns > t_ns
            && message.groups.iter().any(|name| name == group)
            && members.iter().any(|member| message.delivered.contains_key(member))
    })
}
