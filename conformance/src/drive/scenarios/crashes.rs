//! Scenarios in which members are killed and come back.

use crate::drive::feature::Feature;
use crate::drive::plan::{Condition, Draft, Step};
use crate::drive::protocol::{HUGE_BYTES_MAX, MESSAGE_BYTES_MAX, WINDOW};
use crate::drive::reach::Reach;

/// The longest gap before a second kill that is meant to disturb the reaction to the first. Members
/// that notice a closed connection at once react within less than a millisecond.
const GAP_US: u64 = 400;

/// The longest pause between a kill and the next round.
const PAUSE_MS: u64 = 40;

/// The time for which a member runs alone; it is shorter than failure timeouts.
const ALONE_MS: u64 = 150;

/// Number of multi-megabyte messages that a victim is asked to send.
const HUGE_UNDER_WAY: u64 = 6;

pub(super) fn kill_sender(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.someone();
    let others = draft.others(&[victim]);
    let (count, few) = (draft.scale, draft.few());
    draft.send(&[victim], few);
    draft.then(Step::Await(Condition::Answered { node: victim, count: few }));
    // The victim now receives all remaining commands at once, and is killed when it has answered a
    // few of them. The number of commands is decided here and not by timing, and most of the
    // messages are in flight at the kill.
    let answered = few + draft.chance.between(1, WINDOW as u64 / 4);
    // The other nodes send fewer messages, so that their output does not delay the victim's
    // answers.
    draft.send(&others, few);
    draft.send(&[victim], WINDOW as u64);
    draft.then(Step::Await(Condition::Answered { node: victim, count: answered }));
    draft.kill(victim);
    draft.send_paced(&others, count.div_ceil(2));
    draft.must_reach(Reach::KilledSending { node: victim });
}

pub(super) fn kill_huge(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.someone();
    let others = draft.others(&[victim]);
    draft.send(&[victim], 1);
    draft.then(Step::Await(Condition::Answered { node: victim, count: 1 }));
    draft.send_sized(&others, 2, HUGE_BYTES_MAX / 2, HUGE_BYTES_MAX);
    // A full window would take long; these messages are in flight when the first of them is
    // answered.
    draft.send_sized(&[victim], HUGE_UNDER_WAY, HUGE_BYTES_MAX / 2, HUGE_BYTES_MAX);
    let answered = 1 + draft.chance.between(1, HUGE_UNDER_WAY / 2);
    draft.then(Step::Await(Condition::Answered { node: victim, count: answered }));
    draft.kill(victim);
    draft.send_sized(&others, 2, MESSAGE_BYTES_MAX + 1, HUGE_BYTES_MAX);
    let few = draft.few();
    draft.send_paced(&others, few);
    draft.must_reach(Reach::KilledSending { node: victim });
}

pub(super) fn kill_alone(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.shuffled()[draft.round];
    let (everyone, others) = (draft.everyone(), draft.others(&[victim]));
    let (count, few) = (draft.scale, draft.few());
    draft.send(&everyone, few);
    // After all nodes have delivered these, only the victim can have the messages that it delivers
    // next.
    draft.await_delivered(victim, few * draft.nodes as u64);
    for &other in &others {
        draft.then(Step::Stop(other));
    }
    draft.send(&[victim], few);
    // A victim that delivers a message that no other node has is killed at once; a correct one
    // never does.
    let condition = Condition::DeliveredAlone(victim);
    draft.then(Step::AwaitAtMost { condition, ms: ALONE_MS });
    draft.kill(victim);
    for &other in &others {
        draft.then(Step::Continue(other));
    }
    draft.send_paced(&others, count.div_ceil(2));
    draft.must_reach(Reach::SentWhileAlone { node: victim });
}

pub(super) fn kill_receiver(draft: &mut Draft) {
    let victim = draft.someone();
    let (everyone, others) = (draft.everyone(), draft.others(&[victim]));
    draft.group(everyone.clone(), others.clone());
    draft.start(everyone);
    let count = draft.scale;
    draft.send(&others, count);
    let all = count * others.len() as u64;
    let before = draft.chance.between(all / 4, all / 2);
    draft.await_delivered(others[0], before);
    draft.kill(victim);
    draft.send_paced(&others, count.div_ceil(2));
    draft.must_reach(Reach::KilledMidway { node: victim });
}

pub(super) fn rolling_kills(draft: &mut Draft) {
    draft.one_group();
    let shuffled = draft.shuffled();
    let victims = &shuffled[..(draft.nodes - 1) / 2];
    let count = draft.scale;
    let mut delivered = 0;
    for (done, &victim) in victims.iter().enumerate() {
        let senders = draft.others(&victims[..done]);
        let survivors = draft.others(victims);
        let few = draft.few();
        draft.send(&senders, few);
        draft.send(&survivors, count);
        delivered += count * survivors.len() as u64 / 2;
        draft.await_delivered(survivors[0], delivered);
        draft.kill(victim);
        draft.must_reach(Reach::KilledMidway { node: victim });
        let ms = draft.chance.between(0, PAUSE_MS);
        draft.then(Step::Wait { ms });
    }
    let survivors = draft.others(victims);
    draft.send_paced(&survivors, count.div_ceil(2));
}

pub(super) fn kill_twice(draft: &mut Draft) {
    draft.one_group();
    let shuffled = draft.shuffled();
    let (first, second) = (shuffled[0], shuffled[1]);
    let others = draft.others(&[first, second]);
    let (everyone, count, few) = (draft.everyone(), draft.scale, draft.few());
    draft.send(&everyone, few);
    draft.send(&others, count);
    draft.await_delivered(others[0], count / 2);
    let gap_us = draft.chance.between(0, GAP_US);
    draft.then(Step::Kill { nodes: vec![first, second], gap_us });
    draft.send_paced(&others, count.div_ceil(2));
    draft.must_reach(Reach::KilledBeforeViewWithout { node: second, gone: first });
}

pub(super) fn restart(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.someone();
    let (everyone, others) = (draft.everyone(), draft.others(&[victim]));
    let (count, few) = (draft.scale, draft.few());
    draft.send(&[victim], few);
    draft.send(&others, count);
    draft.await_delivered(victim, count / 2);
    draft.await_durable(&[victim]);
    draft.kill(victim);
    draft.send(&others, count.div_ceil(2));
    draft.then(Step::Await(Condition::AllDelivered));
    draft.then(Step::Start(vec![victim]));
    draft.send_paced(&others, count.div_ceil(2));
    draft.then(Step::Await(Condition::Ready(vec![victim])));
    draft.send(&everyone, count.div_ceil(4));
    draft.must_reach(Reach::Restarted { nodes: vec![victim] });
}

pub(super) fn restart_all(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let count = draft.few();
    draft.send(&everyone, count);
    for &node in &everyone {
        draft.then(Step::Await(Condition::Answered { node, count }));
        draft.await_delivered(node, count / 2 * draft.nodes as u64);
    }
    draft.await_durable(&everyone);
    // These commands are sent at once, and only the first messages have been delivered when all
    // nodes are killed.
    draft.send(&everyone, WINDOW as u64);
    let ms = draft.chance.between(0, 2);
    draft.then(Step::Wait { ms });
    draft.then(Step::Kill { nodes: everyone.clone(), gap_us: 0 });
    draft.start(everyone.clone());
    draft.send(&everyone, count);
    draft.must_reach(Reach::Restarted { nodes: everyone.clone() });
    draft.must_reach(Reach::KilledMidway { node: everyone[0] });
}

/// The time between the last delivery and the power cut, for a system that syncs after it has
/// delivered.
const SYNC_MS: u64 = 100;

/// In the first round all nodes lose power. In the second round only one node does, if the others
/// can continue without it.
pub(super) fn power_losses(nodes: usize) -> usize {
    if nodes < 3 { 1 } else { 2 }
}

pub(super) fn power_loss(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let victims = if draft.round > 0 && draft.claims(Feature::Crash) {
        vec![draft.someone()]
    } else {
        everyone.clone()
    };
    let count = draft.few();
    draft.send(&everyone, count);
    draft.then(Step::Await(Condition::AllDelivered));
    draft.await_durable(&victims);
    draft.then(Step::Wait { ms: SYNC_MS });
    draft.send(&everyone, WINDOW as u64);
    // Most of the messages that the node was asked to send are then in flight.
    let answered = count + draft.chance.between(1, WINDOW as u64 / 4);
    draft.then(Step::Await(Condition::Answered { node: victims[0], count: answered }));
    draft.then(Step::CutPower(victims.clone()));
    draft.start(victims.clone());
    draft.send(&everyone, count);
    draft.must_reach(Reach::KilledMidway { node: victims[0] });
    draft.must_reach(Reach::Restarted { nodes: victims });
}

/// Number of times that all nodes are killed.
const RESTARTS: usize = 2;

/// The second time the nodes are killed in turn, so that the last one may have messages that no
/// other node has.
pub(super) fn restart_all_again(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let count = draft.few();
    for time in 0..RESTARTS {
        draft.send(&everyone, count);
        for &node in &everyone {
            // Messages are counted since the start, without replays.
            draft.await_delivered(node, count / 2 * draft.nodes as u64);
        }
        draft.await_durable(&everyone);
        draft.send(&everyone, WINDOW as u64);
        let ms = draft.chance.between(0, 2);
        draft.then(Step::Wait { ms });
        let gap_us = if time == 0 { 0 } else { draft.chance.between(0, GAP_US * 10) };
        let nodes = draft.shuffled();
        draft.then(Step::Kill { nodes, gap_us });
        draft.start(everyone.clone());
    }
    draft.send(&everyone, count);
    draft.must_reach(Reach::Restarted { nodes: everyone.clone() });
    draft.must_reach(Reach::KilledMidway { node: everyone[0] });
}
