//! BAT-5: groups with many subgroups, of which few have messages. The choice of subgroups in a step
//! must not show in what is delivered.

use crate::common::{OneMemory, send, with_options};
use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::{Batch, Switches};
use tramontane_core::node::{Node, Options};

/// Opens two members of equal subgroups, and runs `body` on the nodes.
fn with_subgroups(count: usize, body: impl FnOnce(&mut [Node<'_>])) {
    with_subgroups_of(count, Options::default(), body);
}

fn with_subgroups_of(count: usize, options: Options, body: impl FnOnce(&mut [Node<'_>])) {
    let ranks = [Rank(0), Rank(1)];
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks,
        window: 4,
        message_max: 8,
        delivery: Delivery::Ordered,
    };
    let subgroups = vec![subgroup; count];
    let group = Group { members: &[NodeId(0), NodeId(1)], subgroups: &subgroups };
    let layout = Layout::new(group).expect("a good group");
    with_options(&layout, options, |nodes, _, _| body(nodes));
}

/// Sends a message in a subgroup if a slot is free there, and returns whether it was.
fn try_send(node: &Node<'_>, subgroup: u16, payload: &[u8]) -> bool {
    send(&node.outbox(SubgroupId(subgroup)).expect("it sends"), payload).is_ok()
}

/// Steps a member, and adds each delivered message to the list of its subgroup.
fn step(node: &mut Node<'_>, delivered: &mut [Vec<Vec<u8>>]) -> bool {
    let mut upcall = |batch: &mut Batch<'_>| {
        let list = &mut delivered[batch.subgroup().0 as usize];
        list.extend(batch.map(|message| message.payload.to_vec()));
    };
    node.step(Time(0), &mut OneMemory, &mut upcall).expect("it steps").is_idle()
}

#[test]
fn message_of_idle_subgroup_arrives_beside_busy_one() {
    with_subgroups(60, |nodes| {
        let mut delivered = vec![vec![Vec::new(); 60]; 2];
        let busy = |nodes: &mut [Node<'_>], delivered: &mut [Vec<Vec<Vec<u8>>>]| {
            for (node, delivered) in nodes.iter_mut().zip(delivered) {
                try_send(node, 0, b"busy");
                assert!(!step(node, delivered), "subgroup 0 is never idle");
            }
        };
        for subgroup in 1..60 {
            for _ in 0..150 {
                busy(nodes, &mut delivered);
            }
            assert!(try_send(&nodes[0], subgroup, b"rare"), "a slot is free");
            let mut steps = 0;
            while delivered.iter().any(|lists| lists[subgroup as usize].is_empty()) {
                busy(nodes, &mut delivered);
                steps += 1;
            }
            // The sender's turn, the receiver's, and the exchange of the counts.
            assert!(steps < 70, "subgroup {subgroup}: {steps} steps");
        }
    });
}

/// BAT-5: subgroups 0 and 64 share a bit of the set of subgroups that lag. A stage that posts its
/// own changes posts those of its subgroup only.
#[test]
fn early_posts_concern_one_subgroup() {
    let switches = Switches::all().difference(Switches::LATE_POSTING);
    let options = Options { switches, ..Options::default() };
    let writes_with = |count| {
        let mut writes = Vec::new();
        with_subgroups_of(count, options, |nodes| {
            for _ in 0..3 {
                assert!(try_send(&nodes[0], 0, b"one"));
                let mut upcall = |_: &mut Batch<'_>| {};
                let step = nodes[0].step(Time(0), &mut OneMemory, &mut upcall);
                writes.push(step.expect("it steps").writes);
            }
        });
        writes
    };
    let alone = writes_with(64);
    assert!(alone.iter().all(|writes| *writes > 0));
    assert_eq!(writes_with(65), alone);
}

#[test]
fn idle_step_means_that_every_subgroup_is_idle() {
    with_subgroups(130, |nodes| {
        let mut delivered = vec![vec![Vec::new(); 130]; 2];
        for subgroup in (0..130).rev() {
            assert!(try_send(&nodes[0], subgroup, b"once"));
            while !nodes
                .iter_mut()
                .zip(&mut delivered)
                .fold(true, |idle, (node, delivered)| step(node, delivered) && idle)
            {}
            for lists in &delivered {
                assert_eq!(lists[subgroup as usize], [b"once"], "subgroup {subgroup}");
            }
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The model: each member delivers in each subgroup what each sender sent there, in its order,
    /// and both members deliver the same.
    #[test]
    fn subgroups_deliver_everything_in_one_order(
        count in 1_usize..140,
        sends in prop::collection::vec((0_usize..2, 0_u16..140, 1_usize..4), 0..300),
    ) {
        with_subgroups(count, |nodes| {
            let mut sent = vec![vec![Vec::new(); count]; 2];
            let mut delivered = vec![vec![Vec::new(); count]; 2];
            for (sequence, (sender, subgroup, steps)) in (0_u32..).zip(sends) {
                let subgroup = subgroup % count as u16;
                let payload = [&[sender as u8], &sequence.to_le_bytes()[..]].concat();
                while !try_send(&nodes[sender], subgroup, &payload) {
                    for (node, delivered) in nodes.iter_mut().zip(&mut delivered) {
                        step(node, delivered);
                    }
                }
                sent[sender][subgroup as usize].push(payload);
                for _ in 0..steps {
                    step(&mut nodes[sender], &mut delivered[sender]);
                }
            }
            for _ in 0..10_000 {
                let all = nodes.iter_mut().zip(&mut delivered);
                if all.fold(true, |idle, (node, delivered)| step(node, delivered) && idle) {
                    break;
                }
            }
            assert_eq!(delivered[0], delivered[1]);
            for (sender, sent) in sent.iter().enumerate() {
                for (sent, delivered) in sent.iter().zip(&delivered[0]) {
                    let of_sender = |payload: &&Vec<u8>| payload[0] == sender as u8;
                    let got: Vec<_> = delivered.iter().filter(of_sender).collect();
                    assert_eq!(got, sent.iter().collect::<Vec<_>>());
                }
            }
        });
    }
}
