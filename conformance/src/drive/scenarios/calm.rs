//! Scenarios with one group and without faults.

use crate::drive::feature::Feature;
use crate::drive::plan::{Condition, Draft, PlannedSend, Step};
use crate::drive::protocol::{HUGE_BYTES_MAX, MESSAGE_BYTES_MAX, ORDINARY_BYTES_MAX, WINDOW};
use crate::drive::reach::Reach;

/// The duration of a slow delivery.
const PAUSE_MS: u64 = 250;

/// Number of slow deliveries.
const PAUSES: u64 = 3;

/// Number of messages that count as a backlog.
const BACKLOG_MIN: usize = 8;

/// Number of bursts.
const BURSTS: usize = 5;

/// Duration of a silence: the time that the check requires, plus a margin.
const QUIET_MS: u64 = 600;

/// Number of messages per sender in a long stream, in which counters of twelve bits wrap, and a
/// loss that occurs once in a thousand messages occurs several times.
const LONG: u64 = 5_200;

/// Number of messages per sender after which everything sent so far must be delivered. So a slow
/// system has a deadline for each of these parts instead of a single one for all.
const LONG_PART: u64 = 260;

/// Length of the longest message in a long stream.
const LONG_BYTES_MAX: u64 = 64;

/// The smallest size at a boundary: shorter messages may have no room for their name.
const BOUNDARY_MIN: u64 = 32;

/// Number of rounds in which multi-megabyte messages alternate with small ones.
const HUGE_ROUNDS: usize = 5;

pub(super) fn one_sender(draft: &mut Draft) {
    draft.one_group();
    let sender = draft.someone();
    let count = draft.scale;
    draft.send(&[sender], count);
    draft.must_reach(Reach::DeliveredByAll { count: count.div_ceil(2) });
}

pub(super) fn all_senders(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let (count, nodes) = (draft.scale, draft.nodes as u64);
    // The messages are sent in two parts. Otherwise a fast member could finish before a slow one
    // begins.
    draft.send(&everyone, count.div_ceil(2));
    draft.await_delivered(0, count / 4 * nodes);
    draft.send(&everyone, count / 2);
    draft.must_reach(Reach::DeliveredByAll { count: (count * nodes).div_ceil(2) });
    draft.must_reach(Reach::SendersInterleave);
}

pub(super) fn bursts(draft: &mut Draft) {
    draft.one_group();
    for _ in 0..BURSTS {
        let mut senders = draft.shuffled();
        senders.truncate(1 + draft.chance.index(draft.nodes));
        draft.send(&senders, WINDOW as u64);
        draft.then(Step::Await(Condition::AllDelivered));
        let ms = draft.chance.between(0, 30);
        draft.then(Step::Wait { ms });
    }
    draft.must_reach(Reach::UnderWay { count: WINDOW / 4 });
}

pub(super) fn long_stream(draft: &mut Draft) {
    draft.one_group();
    let mut senders = draft.shuffled();
    senders.truncate(3);
    for _ in 0..LONG / LONG_PART {
        draft.send_sized(&senders, LONG_PART, BOUNDARY_MIN, LONG_BYTES_MAX);
        draft.then(Step::Await(Condition::AllDelivered));
    }
    for node in senders {
        draft.must_reach(Reach::From { node, count: LONG });
    }
}

pub(super) fn silent_senders(draft: &mut Draft) {
    draft.one_group();
    let shuffled = draft.shuffled();
    let (late, rest) = (shuffled[0], &shuffled[1..]);
    let (busy, silent) = rest.split_at(rest.len() - rest.len() / 2);
    let count = draft.scale;
    draft.send(busy, count);
    draft.then(Step::Await(Condition::AllDelivered));
    draft.send(&[late], count.div_ceil(4));
    draft.send(busy, count.div_ceil(2));
    draft.must_reach(Reach::Silent { nodes: silent.to_vec() });
    draft.must_reach(Reach::Late { node: late, after: count as usize });
}

pub(super) fn slow_consumer(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let slow = draft.someone();
    for round in 1..=PAUSES {
        draft.then(Step::Pause { node: slow, ms: PAUSE_MS });
        // Enough messages per sender that the slow member lags behind with any number of nodes.
        let each = draft.scale.div_ceil(PAUSES).max(BACKLOG_MIN as u64 * 4);
        draft.send(&everyone, each);
        let count = each * round * draft.nodes as u64;
        draft.await_delivered(slow, count - each / 2);
    }
    draft.must_reach(Reach::Backlog { node: slow, ms: PAUSE_MS * 3 / 4, count: BACKLOG_MIN });
}

pub(super) fn large_messages(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    draft.send_sized(&everyone, 2, MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX);
    let each = draft.scale.div_ceil(4);
    draft.send_sized(&everyone, each, ORDINARY_BYTES_MAX + 1, MESSAGE_BYTES_MAX);
    draft.send(&everyone, each);
    draft.must_reach(Reach::Size { bytes: MESSAGE_BYTES_MAX });
}

pub(super) fn huge_messages(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    draft.send_sized(&everyone, 1, HUGE_BYTES_MAX, HUGE_BYTES_MAX);
    for _ in 0..HUGE_ROUNDS {
        draft.send(&everyone, 4);
        draft.send_sized(&everyone, 1, MESSAGE_BYTES_MAX + 1, HUGE_BYTES_MAX);
    }
    draft.must_reach(Reach::Size { bytes: HUGE_BYTES_MAX });
}

pub(super) fn empty_messages(draft: &mut Draft) {
    draft.one_group();
    let mut list = Vec::new();
    for _ in 0..draft.scale {
        for sender in 0..draft.nodes {
            let bytes = if draft.chance.chance(40) { 0 } else { draft.bytes() };
            list.push(PlannedSend { sender, groups: vec![0], bytes });
        }
    }
    // The list always has at least one empty message.
    list.push(PlannedSend { sender: 0, groups: vec![0], bytes: 0 });
    draft.then(Step::Send(list));
    draft.must_reach(Reach::Size { bytes: 0 });
}

pub(super) fn boundary_sizes(draft: &mut Draft) {
    draft.one_group();
    let largest = if draft.claims(Feature::HugeMessages) {
        HUGE_BYTES_MAX
    } else if draft.claims(Feature::LargeMessages) {
        MESSAGE_BYTES_MAX
    } else {
        ORDINARY_BYTES_MAX
    };
    let everyone = draft.everyone();
    let mut sizes = boundaries(largest);
    draft.chance.shuffle(&mut sizes);
    for bytes in sizes {
        // Slow messages need not come from every node.
        let senders =
            if bytes > MESSAGE_BYTES_MAX { vec![draft.someone()] } else { everyone.clone() };
        draft.send_sized(&senders, 1, bytes, bytes);
    }
    draft.must_reach(Reach::Size { bytes: largest });
}

/// Returns the powers of two, the limits of the protocol and the sizes just below and above each,
/// up to the largest size allowed.
fn boundaries(largest: u64) -> Vec<u64> {
    let powers = (BOUNDARY_MIN.ilog2()..=largest.ilog2()).map(|power| 1 << power);
    let limits = [ORDINARY_BYTES_MAX, MESSAGE_BYTES_MAX, HUGE_BYTES_MAX];
    let around = |bytes: u64| [bytes - 1, bytes, bytes + 1];
    let mut sizes: Vec<u64> = powers.chain(limits).flat_map(around).collect();
    sizes.retain(|bytes| (BOUNDARY_MIN..=largest).contains(bytes));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

pub(super) fn quiet(draft: &mut Draft) {
    draft.one_group();
    let everyone = draft.everyone();
    let each = draft.scale.div_ceil(4);
    draft.send(&everyone, each);
    draft.then(Step::Settle);
    draft.then(Step::Wait { ms: QUIET_MS });
    draft.then(Step::Stats(everyone.clone()));
    draft.then(Step::Wait { ms: QUIET_MS });
    draft.then(Step::Stats(everyone));
    draft.must_reach(Reach::Quiet);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boundary_sizes_end_at_the_maximum_size() {
        let sizes = boundaries(ORDINARY_BYTES_MAX);
        assert_eq!(sizes[..4], [32, 33, 63, 64]);
        assert_eq!(sizes[sizes.len() - 3..], [513, 1023, 1024]);
        let sizes = boundaries(MESSAGE_BYTES_MAX);
        for bytes in [1024, 1025, 8191, 8192, 8193, 10_239, 10_240] {
            assert!(sizes.contains(&bytes), "{bytes}");
        }
        assert!(boundaries(HUGE_BYTES_MAX).contains(&(64 << 10)));
    }
}
