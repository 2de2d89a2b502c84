//! A batch passes the same messages whether the application iterates over it or calls
//! [`Batch::for_each`], which walks over the slots.

use crate::common::{OneMemory, send, settle_by, with_group, with_layout};
use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Place, Rank, Time};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_core::multicast::Batch;
use tramontane_core::node::{Node, Progress};

/// A delivered message: its place, its sender and its payload.
type Passed = (Place, u16, Vec<u8>);

/// Steps a node, whose application iterates or calls `for_each`, perhaps after it has taken some of
/// the messages one by one.
fn step(node: &mut Node<'_>, first_taken: Option<usize>, passed: &mut Vec<Passed>) -> Progress {
    let mut application = |batch: &mut Batch<'_>| {
        let as_passed = |message: tramontane_core::multicast::Message<'_>| {
            (message.place, message.sender.0, message.payload.to_vec())
        };
        let Some(taken) = first_taken else { return passed.extend(batch.map(as_passed)) };
        passed.extend(batch.by_ref().take(taken).map(as_passed));
        batch.for_each(|message| passed.push(as_passed(message)));
        assert!(batch.next().is_none(), "a message was left");
    };
    node.step(Time(0), &mut OneMemory, &mut application).expect("it steps")
}

/// The first member's batch ends within a round: the second sender's turn is not stable yet.
#[test]
fn for_each_stops_at_the_stable_frontier() {
    with_group(2, &[0, 1], (8, 8), Delivery::Ordered, |nodes, outboxes| {
        let mut passed = [Vec::new(), Vec::new()];
        for (sender, messages) in [(0, 5), (1, 4), (1, 1)] {
            for _ in 0..messages {
                send(outboxes[sender].as_ref().expect("a sender"), &[1]).expect("a slot is free");
            }
            step(&mut nodes[sender], Some(0), &mut passed[sender]);
            step(&mut nodes[0], Some(0), &mut passed[0]);
        }
        step(&mut nodes[1], Some(0), &mut passed[1]);
        let expected = (0..10).map(|place| (Place(place), (place % 2) as u16, vec![1]));
        let expected: Vec<Passed> = expected.collect();
        assert_eq!(passed, [expected.clone(), expected]);
    });
}

/// Slots with checks are read one by one.
#[test]
fn for_each_passes_messages_of_slots_with_checks() {
    let (ids, ranks) = ([NodeId(0), NodeId(1)], [Rank(0), Rank(1)]);
    let subgroup = Subgroup {
        members: &ranks,
        senders: &ranks[..1],
        window: 16,
        message_max: 8,
        delivery: Delivery::Ordered,
    };
    let subgroups = [subgroup];
    let layout = Layout::new(Group { members: &ids, subgroups: &subgroups }).expect("good");
    with_layout(&layout.with_checks().expect("it fits"), |nodes, outboxes| {
        for message in 0..12 {
            send(outboxes[0].as_ref().expect("a sender"), &[message; 3]).expect("a slot is free");
        }
        let mut passed = [Vec::new(), Vec::new()];
        for (node, passed) in nodes.iter_mut().zip(&mut passed) {
            step(node, Some(2), passed);
        }
        let expected = (0..12_u8).map(|message| (Place(message.into()), 0, vec![message; 3]));
        assert_eq!(passed[1], expected.collect::<Vec<Passed>>());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 200000 }))]

    /// The first member iterates, the others do not. Some senders send more than others, so there
    /// are nulls, and dropped reservations among the messages.
    #[test]
    fn for_each_passes_messages_of_the_iterator(
        members in 1_u16..7,
        window in 1_u32..40,
        is_ordered in any::<bool>(),
        taken in 0_usize..4,
        bursts in prop::collection::vec(prop::collection::vec(0_u32..40, 6), 1..8),
    ) {
        let senders: Vec<u16> = (0..members).collect();
        let delivery = if is_ordered { Delivery::Ordered } else { Delivery::Unordered };
        let mut passed = vec![Vec::new(); usize::from(members)];
        let mut sent = 0_usize;
        with_group(members, &senders, (window, 8), delivery, |nodes, outboxes| {
            let mut step_member = |index: usize, node: &mut Node<'_>| {
                step(node, (index > 0).then_some(taken * index % 5), &mut passed[index])
            };
            for (number, burst) in bursts.iter().enumerate() {
                for (outbox, messages) in outboxes.iter().flatten().zip(burst) {
                    for message in 0..*messages {
                        let payload = [number, message as usize].map(|part| part as u8);
                        if message % 11 == 10 {
                            drop(outbox.reserve(1));
                        } else if send(outbox, &payload[..message as usize % 3]).is_ok() {
                            sent += 1;
                        }
                    }
                }
                for (index, node) in nodes.iter_mut().enumerate() {
                    step_member(index, node);
                }
            }
            settle_by(nodes, step_member);
        });
        for of_member in &mut passed {
            prop_assert_eq!(of_member.len(), sent);
            if !is_ordered {
                of_member.sort();
            }
        }
        for of_member in &passed[1..] {
            prop_assert_eq!(of_member, &passed[0]);
        }
    }
}
