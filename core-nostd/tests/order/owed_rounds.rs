//! When a member uses the rounds that it owes, as nulls, and when it publishes them (NUL-1, NUL-2).

use crate::common::{OneMemory, send, with_group};
use tramontane_core::ids::{SubgroupId, Time};
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Progress};

/// Number of slots per sender.
const WINDOW: u32 = 4;

fn step(node: &mut Node<'_>) -> Progress {
    node.step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {}).expect("it steps")
}

/// NUL-1: a member that waits for a null waits until the null is posted. A null is therefore posted
/// at once, even if the received frontier does not move because another member owes the preceding
/// position.
#[test]
fn owed_null_is_posted_in_the_same_step() {
    with_group(3, &[0, 1, 2], (WINDOW, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        for owed in [0, 1, 1] {
            send(outbox, &[1]).expect("a slot is free");
            step(&mut nodes[0]);
            let progress = step(&mut nodes[2]);
            assert_eq!(progress.nulls, owed);
            assert!(progress.writes > 0, "member 1 has used no round");
        }
    });
}

/// NUL-2: owed rounds wait for a free slot, and nothing is posted in the meantime. Once a slot is
/// free, the rounds are used and published, even if nothing else has changed.
#[test]
fn owed_rounds_wait_for_a_free_slot() {
    with_group(3, &[0, 2], (WINDOW, 16), Delivery::Ordered, |nodes, outboxes| {
        let [first, _, last] = outboxes else { panic!("three members") };
        let fill = |outbox: &Option<_>| {
            while send(outbox.as_ref().expect("a sender"), &[1]).is_ok() {}
        };
        // Member 1 does not step, so no slot becomes free. Member 0 uses the rounds of the other's
        // messages as nulls, and sends in later rounds.
        fill(last);
        step(&mut nodes[2]);
        assert_eq!(step(&mut nodes[0]).nulls, u64::from(WINDOW));
        fill(first);
        step(&mut nodes[0]);
        step(&mut nodes[2]);
        for _ in 0..3 {
            let progress = step(&mut nodes[2]);
            assert_eq!((progress.nulls, progress.writes), (0, 0));
        }
        let here = |node: &Node<'_>| node.frontiers(SubgroupId(0)).expect("a subgroup").received;
        let before = here(&nodes[2]);
        let nulls = (0..9).find_map(|turn| {
            let progress = step(&mut nodes[[1, 0, 2][turn % 3]]);
            (turn % 3 == 2 && progress.nulls > 0).then_some(progress.nulls)
        });
        assert!(nulls.is_some() && here(&nodes[2]) > before);
    });
}

/// NUL-1: a member that also sends may catch up with messages. For three steps it uses no round as
/// a null.
#[test]
fn active_sender_delays_nulls_for_three_steps() {
    with_group(2, &[0, 1], (32, 16), Delivery::Ordered, |nodes, outboxes| {
        let [fast, slow] = outboxes else { panic!("two members") };
        let (fast, slow) = (fast.as_ref().expect("a sender"), slow.as_ref().expect("a sender"));
        send(fast, &[1]).expect("a slot is free");
        let nulls = [(); 4].map(|()| {
            send(fast, &[1]).expect("a slot is free");
            send(fast, &[1]).expect("a slot is free");
            step(&mut nodes[0]);
            send(slow, &[2]).expect("a slot is free");
            step(&mut nodes[1]).nulls
        });
        assert_eq!(nulls[..3], [0; 3]);
        assert!(nulls[3] > 0, "{nulls:?}");
    });
}
