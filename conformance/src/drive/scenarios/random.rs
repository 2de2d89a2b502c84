//! Random faults: their kinds, nodes, durations and the pauses between them are chosen at random.
//!
//! Invariants:
//! - the terms determine which faults are drawn; omitting some of them (`Terms::faults`) does not
//!   change the others, so a failing plan can be shrunk;
//! - faults that may remove a member from its group (a kill, a leave, a cut, a long suspension)
//!   affect fewer than half of the nodes in total.

use crate::drive::feature::Feature;
use crate::drive::plan::{Condition, Draft, PlannedSend, Step};
use crate::drive::reach::Reach;

/// Limit of faults in a plan.
const FAULTS_MAX: u64 = 8;

/// Time limit for members to complete a leave, a join or the end of a fault.
const GRACE_MS: u64 = 4000;

/// The longest suspension that is safely below failure timeouts.
const SHORT_MS: u64 = 100;

/// The longest suspension, cut or delay.
const LONG_MS: u64 = 3000;

/// The highest packet loss, in percent.
const LOST_MAX: u64 = 30;

/// Number of rounds in which every node sends a message while packets are lost. If all messages
/// were sent earlier, none would be lost.
const LOSSY_ROUNDS: u64 = 10;

/// Length of these messages in bytes.
const LOSSY_BYTES: u64 = 200;

/// The longest time between two faults that are meant to coincide.
const MEET_MS: u64 = 5;

/// A fault, as drawn.
#[derive(Clone, Debug)]
enum DrawnFault {
    Kill { node: usize },
    Stop { node: usize, ms: u64 },
    Part { side: Vec<usize>, ms: u64 },
    Cut { links: Vec<(usize, usize)>, ms: u64 },
    Slow { node: usize, delay_ms: u64, ms: u64 },
    Lose { node: usize, percent: u64, senders: Vec<usize>, ms: u64 },
    Fill { node: usize, ms: u64 },
    Leave { node: usize },
    Join { node: usize },
}

/// The faults that may still be drawn.
struct Budget {
    /// Nodes without a fault that may end their membership.
    whole: Vec<usize>,
    /// Number of nodes that may still lose their membership.
    losses: usize,
    /// A node that has not joined yet.
    joiner: Option<usize>,
    /// A node that has just joined: faults are aimed at it.
    joined: Option<usize>,
}

pub(super) fn faults(draft: &mut Draft) {
    let everyone = draft.everyone();
    draft.group(everyone.clone(), everyone);
    let joins = draft.claims(Feature::Join) && draft.nodes > 3 && draft.chance.chance(60);
    let joiner = joins.then(|| draft.someone());
    let first = draft.others(joiner.as_slice());
    draft.start(first.clone());
    let losses = (first.len() - 1) / 2;
    let mut budget = Budget { whole: first.clone(), losses, joiner, joined: None };
    let few = draft.few().div_ceil(2);
    draft.send(&first, few);
    let count = draft.chance.between(2, FAULTS_MAX);
    for place in 0..count {
        let gap_ms = if draft.chance.chance(40) {
            draft.chance.between(0, MEET_MS)
        } else {
            draft.chance.between(MEET_MS, 300)
        };
        // The fault is drawn in any case, so that the following faults do not change.
        let fault = draw(draft, &mut budget);
        let sending = budget.whole.clone();
        draft.send(&sending, few.div_ceil(4));
        draft.then(Step::Wait { ms: gap_ms });
        let Some(fault) = fault else { continue };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        draft.tell_fault(place, format!("{gap_ms} ms later {fault}"));
        if draft.keeps_fault(place) {
            begin(draft, &fault);
        }
    }
    draft.then(Step::EndFaults);
    if let Some(node) = budget.joined {
        draft.then(Step::AwaitAtMost { condition: Condition::Ready(vec![node]), ms: GRACE_MS });
    }
    let condition = Condition::Resolved(draft.everyone());
    draft.then(Step::AwaitAtMost { condition, ms: GRACE_MS });
    let rest = budget.whole.clone();
    draft.send(&rest, few);
    draft.must_reach(Reach::Delivered { count: few });
}

/// Draws the next fault, if the budget allows it.
fn draw(draft: &mut Draft, budget: &mut Budget) -> Option<DrawnFault> {
    let ms = lasts(draft);
    let (delay_ms, percent) = (draft.chance.between(1, 60), draft.chance.between(1, LOST_MAX));
    let aims = draft.chance.chance(40);
    let choice = draft.chance.between(0, 99);
    let picked = draft.chance.index(draft.nodes.max(1));
    // The first node is the coordinator in most systems, and a node that has just joined is in the
    // least tested state.
    let node = match budget.joined.filter(|node| budget.whole.contains(node)) {
        Some(joined) if aims => joined,
        _ if aims => *budget.whole.first()?,
        _ => budget.whole.get(picked % budget.whole.len().max(1)).copied()?,
    };
    let claims = |feature| draft.claims(feature);
    let can_lose = budget.losses > 0;
    match choice {
        0..25 if claims(Feature::Crash) && can_lose => {
            budget.lose(&[node]);
            Some(DrawnFault::Kill { node })
        }
        25..35 if claims(Feature::Leave) && can_lose => {
            budget.lose(&[node]);
            Some(DrawnFault::Leave { node })
        }
        35..55 if claims(Feature::Join) && budget.joiner.is_some() => {
            budget.joined = budget.joiner.take();
            budget.whole.extend(budget.joined);
            budget.joined.map(|node| DrawnFault::Join { node })
        }
        55..70 if claims(Feature::Network) && can_lose => {
            budget.lose(&[node]);
            Some(DrawnFault::Part { side: vec![node], ms })
        }
        70..80 if claims(Feature::Network) && can_lose => {
            budget.lose(&[node]);
            let other = *budget.whole.get(picked % budget.whole.len().max(1))?;
            let one_way = vec![(node, other)];
            let link = vec![(node, other), (other, node)];
            // A bridge: the node reaches only one other node.
            let away = budget.whole.iter().filter(|peer| **peer != other);
            let bridge = away.flat_map(|peer| [(node, *peer), (*peer, node)]).collect();
            let links = match picked % 3 {
                0 => one_way,
                1 => link,
                _ => bridge,
            };
            Some(DrawnFault::Cut { links, ms })
        }
        80..84 if claims(Feature::Network) => Some(DrawnFault::Slow { node, delay_ms, ms }),
        84..89 if claims(Feature::Network) && can_lose => {
            let senders = budget.whole.clone();
            budget.lose(&[node]);
            Some(DrawnFault::Lose { node, percent, senders, ms })
        }
        89..92 if claims(Feature::FullDisk) && can_lose => {
            budget.lose(&[node]);
            Some(DrawnFault::Fill { node, ms })
        }
        _ if claims(Feature::Suspension) => {
            let ms = if can_lose { ms } else { ms.min(SHORT_MS) };
            if ms > SHORT_MS {
                budget.lose(&[node]);
            }
            Some(DrawnFault::Stop { node, ms })
        }
        _ => None,
    }
}

impl Budget {
    fn lose(&mut self, nodes: &[usize]) {
        self.losses = self.losses.saturating_sub(nodes.len());
        self.whole.retain(|node| !nodes.contains(node));
    }
}

/// Returns a duration, short or long with the same probability.
fn lasts(draft: &mut Draft) -> u64 {
    let (least, most) = [(1, SHORT_MS), (SHORT_MS, 1000), (1000, LONG_MS)][draft.chance.index(3)];
    draft.chance.between(least, most)
}

/// Begins a fault, and schedules its end.
fn begin(draft: &mut Draft, fault: &DrawnFault) {
    match fault {
        DrawnFault::Kill { node } => draft.kill(*node),
        DrawnFault::Leave { node } => draft.then(Step::Leave(*node)),
        DrawnFault::Join { node } => draft.then(Step::Start(vec![*node])),
        DrawnFault::Stop { node, ms } => {
            draft.then(Step::Stop(*node));
            draft.then(Step::Wait { ms: *ms });
            draft.then(Step::Continue(*node));
        }
        DrawnFault::Fill { node, ms } => {
            draft.then(Step::Fill(*node));
            draft.then(Step::Wait { ms: *ms });
            draft.then(Step::MakeRoom(*node));
        }
        DrawnFault::Part { side, ms } => {
            draft.then(Step::Part(side.clone()));
            draft.then(Step::Wait { ms: *ms });
            draft.then(Step::Heal);
        }
        DrawnFault::Cut { links, ms } => {
            draft.then(Step::Cut(links.clone()));
            draft.then(Step::Wait { ms: *ms });
            draft.then(Step::Heal);
        }
        DrawnFault::Slow { node, delay_ms, ms } => {
            draft.then(Step::Slow { node: *node, delay_ms: *delay_ms });
            draft.then(Step::Wait { ms: *ms });
            draft.then(Step::Heal);
        }
        DrawnFault::Lose { node, percent, senders, ms } => {
            draft.then(Step::Lose { node: *node, percent: *percent });
            for _ in 0..LOSSY_ROUNDS {
                // The sizes are fixed, because later choices must not depend on whether this fault
                // is injected.
                let one =
                    |&sender: &usize| PlannedSend { sender, groups: vec![0], bytes: LOSSY_BYTES };
                draft.then(Step::Send(senders.iter().map(one).collect()));
                draft.then(Step::Wait { ms: ms.div_ceil(LOSSY_ROUNDS) });
            }
            draft.then(Step::Heal);
        }
    }
}

impl std::fmt::Display for DrawnFault {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kill { node } => write!(out, "n{node} is killed"),
            Self::Fill { node, ms } => write!(out, "n{node}'s disk is full for {ms} ms"),
            Self::Leave { node } => write!(out, "n{node} is asked to leave"),
            Self::Join { node } => write!(out, "n{node} joins"),
            Self::Stop { node, ms } => write!(out, "n{node} is suspended for {ms} ms"),
            Self::Part { side, ms } => {
                let names: Vec<String> = side.iter().map(|node| format!("n{node}")).collect();
                write!(out, "{} is partitioned for {ms} ms", names.join(", "))
            }
            Self::Cut { links, ms } => {
                let links: Vec<String> =
                    links.iter().map(|(from, to)| format!("n{from} to n{to}")).collect();
                write!(out, "packets from {} are lost for {ms} ms", links.join(", "))
            }
            Self::Slow { node, delay_ms, ms } => {
                write!(out, "packets from n{node} are delayed by about {delay_ms} ms, for {ms} ms")
            }
            Self::Lose { node, percent, ms, .. } => {
                write!(out, "{percent} % of the packets from n{node} are lost for {ms} ms")
            }
        }
    }
}
