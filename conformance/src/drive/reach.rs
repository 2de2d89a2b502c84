//! The conditions that a scenario must reach, checked in the history that it produced.
//!
//! A system that does nothing keeps every promise of order. If the history does not contain the
//! situation that the scenario is meant to test, the scenario has proved nothing, and its verdict
//! is inconclusive.

mod shards;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use super::recorded::{Recorded, RecordedDelivery};
use crate::history::FaultKind;

/// The silence that the quiescence check requires.
const QUIET_NS: u64 = 500_000_000;

const NS_PER_MS: u64 = 1_000_000;

/// A condition that must be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// All addressees have delivered their messages, at least `count` of them.
    DeliveredByAll { count: u64 },
    /// Some node delivered at least `count` messages.
    Delivered { count: u64 },
    /// A member delivered messages of different senders alternately.
    SendersInterleave,
    /// At least `count` messages were in flight at once.
    UnderWay { count: usize },
    /// These nodes were never asked to send.
    Silent { nodes: Vec<usize> },
    /// The node sent its first message after it had delivered `after` messages.
    Late { node: usize, after: usize },
    /// The node delivered nothing for `ms` while at least `count` messages waited for it.
    Backlog { node: usize, ms: u64, count: usize },
    /// All addressees delivered a message of `bytes` bytes.
    Size { bytes: u64 },
    /// A member counted its posts twice, with silence before and between.
    Quiet,
    /// Two nodes delivered messages of several groups alternately.
    GroupsInterleave,
    /// All addressees delivered at least `count` messages that were addressed to several groups.
    AcrossGroups { count: u64 },
    /// All addressees delivered at least `count` messages from the node.
    From { node: usize, count: u64 },
    /// The node left, and messages were in flight when it was asked to leave.
    LeftUnderLoad { node: usize },
    /// Other nodes sent between the node's start and its first view or delivery, and the node
    /// delivered a message.
    JoinedUnderLoad { node: usize },
    /// The node was killed while its own messages were in flight.
    KilledSending { node: usize },
    /// The node was killed while messages were in flight.
    KilledMidway { node: usize },
    /// The node was killed before all other running nodes had a view without `gone`.
    KilledBeforeViewWithout { node: usize, gone: usize },
    /// The node was killed before all other running nodes had a view with `joined`.
    KilledBeforeViewWith { node: usize, joined: usize },
    /// These nodes delivered before their kill and after their restart.
    Restarted { nodes: Vec<usize> },
    /// In each group a member alternately delivered messages for that group only and messages for
    /// several groups.
    AloneAndAcross,
    /// The leader of the group was killed while messages for the group were in flight; another
    /// leader took over, and the group continued.
    LeaderKilled { group: usize },
    /// A member of the group that was not the leader was killed while messages for the group were
    /// in flight.
    FollowerKilled { group: usize },
    /// The leader of the group was suspended, and another led before it was resumed.
    LeaderPaused { group: usize },
    /// The node was killed while its own messages for several groups were in flight.
    KilledAcross { node: usize },
    /// At least `count` killed nodes came back and delivered something new.
    CameBack { count: usize },
    /// All addressees delivered a message from a later incarnation of the node.
    SentAgain { node: usize },
    /// Other nodes sent while the node was suspended.
    SentWhileStopped { node: usize },
    /// Other nodes sent while the node's disk was full, and a later incarnation of it delivered
    /// something new.
    BackFromFull { node: usize },
    /// The node was asked to send while all other nodes were suspended.
    SentWhileAlone { node: usize },
    /// Both sides of a partition sent while it lasted.
    SentWhileParted { side: Vec<usize> },
    /// Each group with a member among these nodes delivered, without that member, messages sent
    /// during its absence.
    WentOnWhileParted { side: Vec<usize> },
}

impl Reach {
    /// Returns whether the condition was reached.
    pub(super) fn is_reached(&self, recorded: &Recorded) -> bool {
        match self {
            Self::DeliveredByAll { count } => delivered(recorded, |_| true) >= *count,
            Self::Delivered { count } => {
                let by = |node: &usize| of_node(recorded, *node).count() as u64;
                nodes(recorded).iter().any(|node| by(node) >= *count)
            }
            Self::SendersInterleave => senders_interleave(recorded),
            Self::UnderWay { count } => under_way_max(recorded) >= *count,
            Self::Silent { nodes } => {
                !recorded.messages.iter().any(|one| nodes.contains(&one.sender))
            }
            Self::Late { node, after } => begins_late(recorded, *node, *after),
            Self::Backlog { node, ms, count } => backlog(recorded, *node, *ms * NS_PER_MS, *count),
            Self::Size { bytes } => {
                delivered(recorded, |place| recorded.messages[place].bytes == *bytes) > 0
            }
            Self::Quiet => quiet(recorded),
            Self::GroupsInterleave => groups_interleave(recorded),
            Self::AcrossGroups { count } => {
                delivered(recorded, |place| recorded.messages[place].groups.len() > 1) >= *count
            }
            Self::From { node, count } => {
                delivered(recorded, |place| recorded.messages[place].sender == *node) >= *count
            }
            Self::LeftUnderLoad { node } => left_under_load(recorded, *node),
            Self::JoinedUnderLoad { node } => joined_under_load(recorded, *node),
            Self::KilledSending { node } => {
                killed_midway(recorded, *node, |sender| sender == *node)
            }
            Self::KilledMidway { node } => killed_midway(recorded, *node, |_| true),
            Self::KilledBeforeViewWithout { node, gone } => {
                killed_before_view(recorded, *node, *gone, |members| !members.contains(gone))
            }
            Self::KilledBeforeViewWith { node, joined } => {
                killed_before_view(recorded, *node, *joined, |members| members.contains(joined))
            }
            Self::Restarted { nodes } => nodes.iter().all(|node| restarted(recorded, *node, nodes)),
            Self::AloneAndAcross => shards::alone_and_across(recorded),
            Self::LeaderKilled { group } => shards::leader_killed(recorded, *group),
            Self::FollowerKilled { group } => shards::follower_killed(recorded, *group),
            Self::LeaderPaused { group } => shards::leader_paused(recorded, *group),
            Self::KilledAcross { node } => shards::killed_across(recorded, *node),
            Self::CameBack { count } => shards::came_back(recorded) >= *count,
            Self::SentAgain { node } => {
                let again = |place: usize| {
                    let message = &recorded.messages[place];
                    message.sender == *node && message.inc > 1
                };
                delivered(recorded, again) > 0
            }
            Self::SentWhileStopped { node } => {
                let time = |kind| recorded.fault_ns(kind, *node);
                sent_between(recorded, time(FaultKind::Stop), time(FaultKind::Continue), |peer| {
                    peer != *node
                })
            }
            Self::BackFromFull { node } => {
                let time = |kind| recorded.fault_ns(kind, *node);
                let again = |one: &RecordedDelivery| one.inc > 1 && !one.replayed;
                sent_between(recorded, time(FaultKind::Full), time(FaultKind::Room), |peer| {
                    peer != *node
                }) && of_node(recorded, *node).any(again)
            }
            Self::SentWhileAlone { node } => sent_while_alone(recorded, *node),
            Self::WentOnWhileParted { side } => shards::went_on_while_parted(recorded, side),
            Self::SentWhileParted { side } => {
                let time = |kind| side.first().and_then(|node| recorded.fault_ns(kind, *node));
                let (from, to) = (time(FaultKind::Partition), time(FaultKind::Heal));
                sent_between(recorded, from, to, |peer| side.contains(&peer))
                    && sent_between(recorded, from, to, |peer| !side.contains(&peer))
            }
        }
    }
}

/// Returns the number of selected messages that all addressees delivered.
fn delivered(recorded: &Recorded, meant: impl Fn(usize) -> bool) -> u64 {
    let messages = recorded.messages.iter().enumerate();
    messages.filter(|(place, message)| meant(*place) && recorded.delivered_by_all(message)).count()
        as u64
}

/// Returns whether an item occurs in a list again after a different item.
fn comes_back<T: PartialEq + std::hash::Hash + Eq + Copy>(list: impl Iterator<Item = T>) -> bool {
    let (mut seen, mut last) = (HashSet::new(), None);
    for item in list {
        if last != Some(item) && !seen.insert(item) {
            return true;
        }
        last = Some(item);
    }
    false
}

fn of_node(recorded: &Recorded, node: usize) -> impl Iterator<Item = &RecordedDelivery> {
    recorded.deliveries.iter().filter(move |delivery| delivery.node == node)
}

fn nodes(recorded: &Recorded) -> HashSet<usize> {
    recorded.starts.iter().map(|(node, _)| *node).collect()
}

fn senders_interleave(recorded: &Recorded) -> bool {
    let sender = |delivery: &RecordedDelivery| recorded.messages[delivery.message].sender;
    nodes(recorded).into_iter().any(|node| comes_back(of_node(recorded, node).map(sender)))
}

fn groups_interleave(recorded: &Recorded) -> bool {
    let group = |delivery: &RecordedDelivery| recorded.messages[delivery.message].groups.first();
    let in_turns = |node: &usize| comes_back(of_node(recorded, *node).map(group));
    nodes(recorded).iter().filter(|node| in_turns(node)).count() >= 2
}

fn under_way_max(recorded: &Recorded) -> usize {
    let mut changes = Vec::new();
    for message in recorded.messages.iter().filter(|message| !message.refused) {
        let last = recorded.addressees(message).map(|node| message.delivered.get(&node).copied());
        changes.push((message.t_ns, 1_i64));
        if let Some(Some(done_ns)) = last.max_by_key(|time| time.unwrap_or(u64::MAX)) {
            changes.push((done_ns, -1));
        }
    }
    changes.sort_unstable();
    let (mut now, mut most) = (0_i64, 0);
    for (_, change) in changes {
        now += change;
        most = most.max(now);
    }
    usize::try_from(most).unwrap_or(0)
}

fn begins_late(recorded: &Recorded, node: usize, after: usize) -> bool {
    let first = recorded.messages.iter().find(|message| message.sender == node);
    first.is_some_and(|first| {
        of_node(recorded, node).filter(|delivery| delivery.t_ns <= first.t_ns).count() >= after
    })
}

fn backlog(recorded: &Recorded, node: usize, gap_ns: u64, count: usize) -> bool {
    let times: Vec<u64> = of_node(recorded, node).map(|delivery| delivery.t_ns).collect();
    let gaps = times.windows(2).filter(|pair| pair[1].saturating_sub(pair[0]) >= gap_ns);
    gaps.map(|pair| pair[1]).any(|end_ns| {
        let waits = recorded.messages.iter().filter(|message| {
            message.t_ns + gap_ns / 2 <= end_ns
                && message.delivered.get(&node).is_some_and(|time| *time >= end_ns)
        });
        waits.count() >= count
    })
}

fn quiet(recorded: &Recorded) -> bool {
    let mut busy: Vec<u64> = recorded.messages.iter().map(|message| message.t_ns).collect();
    busy.extend(recorded.deliveries.iter().map(|delivery| delivery.t_ns));
    busy.extend(recorded.views.iter().map(|view| view.t_ns));
    busy.extend(recorded.faults.iter().map(|fault| fault.t_ns));
    busy.extend(recorded.starts.iter().chain(&recorded.ends).map(|(_, t_ns)| *t_ns));
    nodes(recorded).into_iter().any(|node| {
        let counts = recorded.stats.iter().filter(|(peer, _)| *peer == node).map(|(_, t_ns)| *t_ns);
        let counts: Vec<u64> = counts.collect();
        counts.windows(2).any(|pair| {
            let quiet = pair[0].saturating_sub(QUIET_NS)..=pair[1];
            pair[1] - pair[0] >= QUIET_NS && !busy.iter().any(|time| quiet.contains(time))
        })
    })
}

fn left_under_load(recorded: &Recorded, node: usize) -> bool {
    let asked = recorded.leaves.iter().find(|(peer, _)| *peer == node);
    let left = recorded.ends.iter().any(|(peer, _)| *peer == node);
    left && asked.is_some_and(|(_, t_ns)| any_under_way(recorded, *t_ns, |_| true))
}

fn joined_under_load(recorded: &Recorded, node: usize) -> bool {
    let start = recorded.starts.iter().find(|(peer, _)| *peer == node).map(|(_, t_ns)| *t_ns);
    let delivery = of_node(recorded, node).map(|delivery| delivery.t_ns).next();
    let view = recorded.views.iter().find(|view| view.node == node).map(|view| view.t_ns);
    let joined = [delivery, view].into_iter().flatten().min();
    delivery.is_some() && sent_between(recorded, start, joined, |peer| peer != node)
}

fn any_under_way(recorded: &Recorded, t_ns: u64, meant: impl Fn(usize) -> bool) -> bool {
    recorded.messages.iter().any(|one| meant(one.sender) && recorded.under_way(one, t_ns))
}

fn killed_midway(recorded: &Recorded, node: usize, meant: impl Fn(usize) -> bool) -> bool {
    recorded.kill_ns(node).is_some_and(|t_ns| any_under_way(recorded, t_ns, meant))
}

/// Returns whether the node was killed before all surviving nodes had installed the view caused by
/// the other node's joining or leaving. In a history without views, messages in flight are
/// sufficient.
fn killed_before_view(
    recorded: &Recorded,
    node: usize,
    other: usize,
    awaited: impl Fn(&[usize]) -> bool,
) -> bool {
    let Some(kill_ns) = recorded.kill_ns(node) else { return false };
    if recorded.views.is_empty() {
        return any_under_way(recorded, kill_ns, |_| true);
    }
    let has_view = |peer: usize| {
        let views = recorded.views.iter().filter(|view| view.node == peer && view.t_ns <= kill_ns);
        views.map(|view| view.members.as_slice()).any(&awaited)
    };
    let goes_on =
        |peer: &usize| *peer != node && *peer != other && recorded.runs_before(*peer, kill_ns);
    nodes(recorded).into_iter().filter(goes_on).any(|peer| !has_view(peer))
}

/// Returns whether the node delivered in two incarnations, and a node that was not down delivered
/// in between.
fn restarted(recorded: &Recorded, node: usize, down: &[usize]) -> bool {
    let Some(kill_ns) = recorded.kill_ns(node) else { return false };
    let again = recorded.starts.iter().find(|(peer, t_ns)| *peer == node && *t_ns > kill_ns);
    let Some((_, again_ns)) = again else { return false };
    let others = recorded.deliveries.iter().filter(|delivery| !down.contains(&delivery.node));
    let between =
        others.map(|delivery| delivery.t_ns).any(|t_ns| t_ns > kill_ns && t_ns < *again_ns);
    of_node(recorded, node).any(|delivery| delivery.inc == 1)
        && of_node(recorded, node).any(|delivery| delivery.inc > 1 && !delivery.replayed)
        && (between || nodes(recorded).iter().all(|peer| down.contains(peer)))
}

/// Returns whether the node was asked to send after all other nodes had been suspended, and before
/// any of them was resumed.
fn sent_while_alone(recorded: &Recorded, node: usize) -> bool {
    let others: Vec<usize> = nodes(recorded).into_iter().filter(|peer| *peer != node).collect();
    let times = |kind| others.iter().map(move |peer| recorded.fault_ns(kind, *peer));
    let stopped = times(FaultKind::Stop).collect::<Option<Vec<u64>>>();
    let resumed = times(FaultKind::Continue).collect::<Option<Vec<u64>>>();
    let (from, to) = (stopped.into_iter().flatten().max(), resumed.into_iter().flatten().min());
    sent_between(recorded, from, to, |peer| peer == node)
}

fn sent_between(
    recorded: &Recorded,
    from: Option<u64>,
    to: Option<u64>,
    meant: impl Fn(usize) -> bool,
) -> bool {
    let (Some(from), Some(to)) = (from, to) else { return false };
    recorded.messages.iter().any(|one| meant(one.sender) && one.t_ns > from && one.t_ns < to)
}

/// Lists the names of nodes, for people.
fn names(nodes: &[usize]) -> String {
    nodes.iter().map(|node| format!("n{node}")).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Reach {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeliveredByAll { count } => {
                write!(out, "all members delivered at least {count} messages")
            }
            Self::Delivered { count } => write!(out, "a member delivered {count} messages"),
            Self::SendersInterleave => {
                out.write_str("messages of different senders were delivered alternately")
            }
            Self::UnderWay { count } => {
                write!(out, "at least {count} messages were in flight at once")
            }
            Self::Silent { nodes } => write!(out, "{} sent nothing", names(nodes)),
            Self::Late { node, after } => {
                write!(out, "n{node} first sent after it had delivered at least {after} messages")
            }
            Self::Backlog { node, ms, count } => {
                write!(
                    out,
                    "n{node} delivered nothing for {ms} ms while at least {count} messages waited"
                )
            }
            Self::Size { bytes } => {
                write!(out, "all members delivered a message of {bytes} bytes")
            }
            Self::Quiet => out
                .write_str("a member counted its posts twice, with silence before and in between"),
            Self::GroupsInterleave => {
                out.write_str("two members delivered messages of several groups alternately")
            }
            Self::AcrossGroups { count } => {
                write!(
                    out,
                    "at least {count} messages for several groups were delivered in all of them"
                )
            }
            Self::From { node, count } => {
                write!(out, "all members delivered at least {count} messages from n{node}")
            }
            Self::LeftUnderLoad { node } => {
                write!(out, "n{node} left while messages were in flight")
            }
            Self::JoinedUnderLoad { node } => {
                write!(
                    out,
                    "other members sent while n{node} joined, and n{node} delivered messages"
                )
            }
            Self::KilledSending { node } => {
                write!(
                    out,
                    "messages from n{node} were not yet delivered everywhere when it was killed"
                )
            }
            Self::KilledMidway { node } => {
                write!(out, "messages were not yet delivered everywhere when n{node} was killed")
            }
            Self::KilledBeforeViewWithout { node, gone } => {
                write!(
                    out,
                    "n{node} was killed before all others had recovered from the loss of n{gone}"
                )
            }
            Self::KilledBeforeViewWith { node, joined } => {
                write!(out, "n{node} was killed before all others had a view with n{joined}")
            }
            Self::Restarted { nodes } => {
                write!(out, "{} delivered before the kill and after the restart", names(nodes))
            }
            Self::AloneAndAcross => out.write_str(
                "in each group, messages for that group only and for several groups alternated",
            ),
            Self::LeaderKilled { group } => {
                write!(
                    out,
                    "the leader of g{group} was killed under load, and the group continued with another"
                )
            }
            Self::FollowerKilled { group } => {
                write!(out, "a follower in g{group} was killed under load")
            }
            Self::LeaderPaused { group } => {
                write!(
                    out,
                    "the leader of g{group} was suspended under load, and another led before it was \
                     resumed"
                )
            }
            Self::KilledAcross { node } => {
                write!(
                    out,
                    "messages from n{node} for several groups were not yet delivered everywhere \
                     when it was killed"
                )
            }
            Self::CameBack { count } => {
                write!(out, "at least {count} killed members returned and delivered new messages")
            }
            Self::SentAgain { node } => {
                write!(out, "all members delivered a message that n{node} sent after its restart")
            }
            Self::SentWhileStopped { node } => {
                write!(out, "other members sent while n{node} was suspended")
            }
            Self::BackFromFull { node } => write!(
                out,
                "other members sent while n{node}'s disk was full, and n{node} delivered after a restart"
            ),
            Self::SentWhileAlone { node } => {
                write!(out, "n{node} was asked to send while all others were suspended")
            }
            Self::WentOnWhileParted { side } => {
                write!(out, "each group continued without its members among {}", names(side))
            }
            Self::SentWhileParted { side } => {
                write!(out, "both sides were asked to send while {} was partitioned", names(side))
            }
        }
    }
}
