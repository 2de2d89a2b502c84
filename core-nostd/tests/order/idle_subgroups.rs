//! BAT-5: groups with many subgroups, of which few have messages. The choice of subgroups in a step
//! must not show in what is delivered.

use crate::common::{OneMemory, send, with_layout};
use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Rank, SubgroupId, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;

/// Opens two members of equal subgroups, and runs `body` on the nodes.
fn with_subgroups(count: usize, body: impl FnOnce(&mut [Node<'_>])) {
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
    with_layout(&layout, |nodes, _| body(nodes));
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
