//! Members are killed, and come back.

use crate::drive::feature::Feature;
use crate::drive::plan::{Condition, Draft, Step};
use crate::drive::protocol::{HUGE_BYTES_MAX, MESSAGE_BYTES_MAX, WINDOW};
use crate::drive::reach::Reach;

/// How long after a kill the next comes at most, where it is to hit what the first set off: members
/// that see at once that a connection ended need less than a millisecond to get over it.
const GAP_US: u64 = 400;

/// How long after a kill the next round begins at most.
const PAUSE_MS: u64 = 40;

/// How long a member runs alone: shorter than failure timeouts.
const ALONE_MS: u64 = 150;

/// Messages of megabytes that a victim is asked to send.
const HUGE_UNDER_WAY: u64 = 6;

pub(super) fn kill_sender(draft: &mut Draft) {
    draft.one_group();
    let victim = draft.someone();
    let others = draft.others(&[victim]);
    let (count, few) = (draft.scale, draft.few());
    draft.send(&[victim], few);
    draft.then(Step::Await(Condition::Answered { node: victim, count: few }));
    // Now all commands of the victim are given at once, and it is killed when it has answered a few
    // of them: how many it is told is decided here and not by timing, and most of them are under
    // way then.
    let answered = few + draft.chance.between(1, WINDOW as u64 / 4);
    // The others send less: what they say must not keep the driver from hearing the victim's
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
    // As many as may be unanswered would take long; these are under way when the first of them is
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
    // All of them: what the victim delivers after this, nobody else can have.
    draft.await_delivered(victim, few * draft.nodes as u64);
    for &other in &others {
        draft.then(Step::Stop(other));
    }
    draft.send(&[victim], few);
    // One that delivers what nobody else can have is killed at once; a right one does not.
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
    // All of these are given at once, and only the first of them are delivered when all are killed.
    draft.send(&everyone, WINDOW as u64);
    let ms = draft.chance.between(0, 2);
    draft.then(Step::Wait { ms });
    draft.then(Step::Kill { nodes: everyone.clone(), gap_us: 0 });
    draft.start(everyone.clone());
    draft.send(&everyone, count);
    draft.must_reach(Reach::Restarted { nodes: everyone.clone() });
    draft.must_reach(Reach::KilledMidway { node: everyone[0] });
}

/// How long a system that syncs after it has delivered has for that before the power goes.
const SYNC_MS: u64 = 100;

/// In the first round all lose power, in the second one alone, if the others can go on without it.
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
    draft.then(Step::Wait { ms: SYNC_MS });
    draft.send(&everyone, WINDOW as u64);
    // Most of what it was asked to send is under way then.
    let answered = count + draft.chance.between(1, WINDOW as u64 / 4);
    draft.then(Step::Await(Condition::Answered { node: victims[0], count: answered }));
    draft.then(Step::CutPower(victims.clone()));
    draft.start(victims.clone());
    draft.send(&everyone, count);
    draft.must_reach(Reach::KilledMidway { node: victims[0] });
    draft.must_reach(Reach::Restarted { nodes: victims });
}

/// How often all are killed.
const RESTARTS: usize = 2;

/// The second time one after the other: whoever is killed last may have what nobody else has.
pub(super) fn restart_all_again(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let count = draft.few();
    for time in 0..RESTARTS {
        draft.send(&everyone, count);
        for &node in &everyone {
            // Counted from a start on, replays left out.
            draft.await_delivered(node, count / 2 * draft.nodes as u64);
        }
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
