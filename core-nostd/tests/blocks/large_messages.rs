//! Large messages in the total order (RDM-7): a sequence position counts as received when both its
//! slot and its blocks have arrived.
//!
//! The test simulates the blocks: it reports to each node how many of a sender's large messages
//! have arrived.

use crate::common::{OneMemory, send, with_layout, with_rows};
use proptest::prelude::*;
use tramontane_core::fabric::Channel;
use tramontane_core::ids::{NodeId, Position, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::{BLOCK, Delivery, Group, Layout, LayoutError, SLOT_HEADER, Subgroup};
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;
use tramontane_core::smc::Outbox;

const ALL: SubgroupId = SubgroupId(0);
const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];

/// A delivered message: the sender's rank, the first byte in the slot, and the count of a large
/// message.
type DeliveredMessage = (u16, u8, Option<u64>);

fn subgroups(delivery: Delivery) -> [Subgroup<'static>; 1] {
    [Subgroup { members: &RANKS, senders: &RANKS, window: 4, message_max: 8, delivery }]
}

fn with_large(delivery: Delivery, body: impl FnOnce(&mut [Node<'_>], &[Option<Outbox<'_>>])) {
    let subgroups = subgroups(delivery);
    let layout =
        Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("a good group");
    let layout = layout.with_large(&[ALL]).expect("it has that subgroup");
    with_layout(&layout, body);
}

fn send_large(outbox: &Outbox<'_>, says: u8) -> bool {
    let Ok(mut reservation) = outbox.reserve(1) else { return false };
    reservation.payload()[0] = says;
    reservation.commit_large();
    true
}

/// Steps all nodes until all are idle.
fn settle(nodes: &mut [Node<'_>], delivered: &mut [Vec<DeliveredMessage>]) {
    for _ in 0..1000 {
        let mut is_idle = true;
        for (node, delivered) in nodes.iter_mut().zip(delivered.iter_mut()) {
            let mut take = |batch: &mut Batch<'_>| {
                delivered.extend(
                    batch.map(|message| (message.rank.0, message.payload[0], message.large)),
                );
            };
            is_idle &= node.step(Time(0), &mut OneMemory, &mut take).expect("it steps").is_idle();
        }
        if is_idle {
            return;
        }
    }
    panic!("the group does not come to rest");
}

fn outbox<'o, 'm>(outboxes: &'o [Option<Outbox<'m>>], rank: usize) -> &'o Outbox<'m> {
    outboxes[rank].as_ref().expect("all send")
}

#[test]
fn incomplete_large_message_delays_later_messages() {
    with_large(Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        assert!(send_large(outbox(outboxes, 0), 10));
        for (rank, says) in [(0, 11), (1, 20), (2, 30)] {
            send(outbox(outboxes, rank), &[says]).expect("room");
        }
        settle(nodes, &mut delivered);
        assert_eq!(delivered, vec![vec![]; 3], "it is first in the order, and nobody else has it");
        nodes[1].large_arrived(ALL, SenderRank(0), 1);
        settle(nodes, &mut delivered);
        assert_eq!(delivered, vec![vec![]; 3], "one member lacks it");
        assert_eq!(
            nodes[0].own_delivered_everywhere(ALL),
            Some(Position(0)),
            "its bytes may be needed again"
        );
        nodes[2].large_arrived(ALL, SenderRank(0), 1);
        settle(nodes, &mut delivered);
        let all = vec![(0, 10, Some(0)), (1, 20, None), (2, 30, None), (0, 11, None)];
        assert_eq!(delivered, vec![all; 3]);
        for node in nodes.iter() {
            assert_eq!([0, 1].map(|sender| node.large_delivered(ALL, SenderRank(sender))), [1, 0]);
        }
        assert_eq!(nodes[0].own_delivered_everywhere(ALL), Some(Position(2)));
    });
}

#[test]
fn early_blocks_wait_for_slot_and_count_once() {
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        with_large(delivery, |nodes, outboxes| {
            let mut delivered = vec![Vec::new(); 3];
            for rank in [1, 2] {
                nodes[rank].large_arrived(ALL, SenderRank(0), 2);
                // A smaller count that arrives later changes nothing.
                nodes[rank].large_arrived(ALL, SenderRank(0), 1);
            }
            settle(nodes, &mut delivered);
            for says in [1, 2, 3] {
                assert!(send_large(outbox(outboxes, 0), says));
            }
            settle(nodes, &mut delivered);
            let two = vec![(0, 1, Some(0)), (0, 2, Some(1))];
            assert_eq!(delivered[1..], [two.clone(), two], "the third's blocks are not here");
            nodes[1].large_arrived(ALL, SenderRank(0), 3);
            nodes[2].large_arrived(ALL, SenderRank(0), 3);
            settle(nodes, &mut delivered);
            let all = vec![(0, 1, Some(0)), (0, 2, Some(1)), (0, 3, Some(2))];
            assert_eq!(delivered, vec![all; 3]);
        });
    }
}

#[test]
fn large_message_in_small_only_subgroup_is_misbehaviour() {
    let subgroups = subgroups(Delivery::Ordered);
    let layout =
        Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("a good group");
    with_layout(&layout, |nodes, outboxes| {
        assert!(send_large(outbox(outboxes, 0), 1));
        let mut nobody = |_: &mut Batch<'_>| {};
        nodes[0].step(Time(0), &mut OneMemory, &mut nobody).expect("it steps");
        let progress = nodes[1].step(Time(0), &mut OneMemory, &mut nobody).expect("it steps");
        let lost = progress.lost.map(|(rank, _)| rank);
        assert_eq!(lost, Some(Rank(0)));
    });
}

/// The message has no blocks, so it would be delivered either without any or with those of another
/// message.
#[test]
fn marking_received_message_as_large_is_misbehaviour() {
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        let subgroups = subgroups(delivery);
        let layout =
            Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("a good group");
        let layout = layout.with_large(&[ALL]).expect("it has that subgroup");
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        with_rows(&layout, |nodes, outboxes, rows| {
            // The blocks that arrived early belong to another message.
            nodes[1].large_arrived(ALL, SenderRank(0), 1);
            let mut handed = Vec::new();
            send(outbox(outboxes, 0), &[7]).expect("room");
            nodes[0].step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {}).expect("it steps");
            let mut tamper = |batch: &mut Batch<'_>| {
                // In an unordered subgroup, this happens between the step's receive stage and its
                // upcall.
                let length = ring.offset + ring.stride - SLOT_HEADER;
                rows[0].apply(length, &(1_u32 << 31 | 1).to_ne_bytes()).expect("it is in the row");
                handed.extend(batch.map(|message| message.payload.to_vec()));
            };
            let mut lost = None;
            for _ in 0..4 {
                for node in [1, 2] {
                    let progress =
                        nodes[node].step(Time(0), &mut OneMemory, &mut tamper).expect("it steps");
                    lost = lost.or(progress.lost.map(|(rank, _)| rank));
                }
                nodes[0]
                    .step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {})
                    .expect("it steps");
            }
            assert_eq!((lost, handed), (Some(Rank(0)), vec![]), "{delivery:?}");
        });
    }
}

/// An owed null may be waiting for the slot that becomes free, so a member that frees a slot is not
/// idle (NUL-2).
#[test]
fn freed_slot_releases_an_owed_null() {
    with_large(Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        assert!(send_large(outbox(outboxes, 1), 10));
        nodes[2].large_arrived(ALL, SenderRank(1), 1);
        settle(nodes, &mut delivered);
        while send(outbox(outboxes, 0), &[0]).is_ok() {
            settle(nodes, &mut delivered);
        }
        for rank in [2, 1] {
            send(outbox(outboxes, rank), &[1]).expect("room");
            settle(nodes, &mut delivered);
        }
        nodes[0].large_arrived(ALL, SenderRank(1), 1);
        settle(nodes, &mut delivered);
        assert_eq!(delivered[0].last(), Some(&(1, 1, None)), "the last in the order");
    });
}

#[test]
fn each_large_message_sender_has_a_channel() {
    const SOME: [Rank; 2] = [Rank(1), Rank(2)];
    let some = Subgroup {
        members: &RANKS,
        senders: &SOME,
        window: 4,
        message_max: 8,
        delivery: Delivery::Ordered,
    };
    let all = Subgroup { senders: &RANKS, ..some };
    let subgroups = [all, some, all];
    let layout =
        Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("a good group");
    let large = layout.with_large(&[SubgroupId(2), SubgroupId(1)]).expect("it has those subgroups");
    assert_eq!(large.channels(), 5);
    assert!(large.allows_large(SubgroupId(1)) && !large.allows_large(SubgroupId(0)));
    let channel = |subgroup, sender| large.large_channel(SubgroupId(subgroup), SenderRank(sender));
    assert_eq!(
        [channel(2, 0), channel(2, 2), channel(1, 0), channel(1, 1)],
        [0, 2, 3, 4].map(|number| Some(Channel(number)))
    );
    assert_eq!([channel(0, 0), channel(1, 2), channel(3, 0)], [None; 3]);
    assert_eq!(large.channel_offset(Channel(4)), Some(BLOCK + 4 * 64));
    for rank in RANKS {
        let (with, without) = (large.control_offset(rank, ALL), layout.control_offset(rank, ALL));
        assert_eq!(
            with,
            without.map(|offset| offset + 3 * BLOCK),
            "the cells stand before the subgroups"
        );
    }
    let digests = [&[SubgroupId(2), SubgroupId(1)][..], &[SubgroupId(1), SubgroupId(2)], &[]]
        .map(|large| layout.with_large(large).expect("good").digest());
    assert!(digests[0] != digests[1] && digests[2] == layout.digest());
    for wrong in [&[SubgroupId(3)][..], &[ALL, ALL]] {
        assert_eq!(layout.with_large(wrong).err(), Some(LayoutError::BadLargeSubgroup));
    }
}

/// An event of the run: a member sends, or a sender's blocks arrive at a member.
#[derive(Clone, Copy, Debug)]
enum RunEvent {
    Send { rank: usize, large: bool },
    Arrive { at: usize, from: usize },
}

fn event() -> impl Strategy<Value = RunEvent> {
    prop_oneof![
        (0..3_usize, any::<bool>()).prop_map(|(rank, large)| RunEvent::Send { rank, large }),
        (0..3_usize, 0..3_usize).prop_map(|(at, from)| RunEvent::Arrive { at, from }),
    ]
}

proptest! {
    /// In whatever order slots and blocks arrive, all members deliver in one order that keeps each
    /// sender's order, and in the end they deliver everything.
    #[test]
    fn members_agree_on_order_of_large_messages(events in prop::collection::vec(event(), 0..120)) {
        with_large(Delivery::Ordered, |nodes, outboxes| {
            let mut delivered = vec![Vec::new(); 3];
            let mut sent: [Vec<(u8, bool)>; 3] = Default::default();
            let mut arrived = [[0_u64; 3]; 3];
            let large_sent =
                |sent: &[(u8, bool)]| sent.iter().filter(|(_, large)| *large).count() as u64;
            for event in events {
                match event {
                    RunEvent::Send { rank, large } => {
                        let says = sent[rank].len() as u8;
                        let outbox = outbox(outboxes, rank);
                        let went = if large {
                            send_large(outbox, says)
                        } else {
                            send(outbox, &[says]).is_ok()
                        };
                        if went {
                            sent[rank].push((says, large));
                        }
                    }
                    RunEvent::Arrive { at, from }
                        if arrived[at][from] < large_sent(&sent[from]) =>
                    {
                        arrived[at][from] += 1;
                        nodes[at].large_arrived(ALL, SenderRank(from as u16), arrived[at][from]);
                    }
                    RunEvent::Arrive { .. } => {}
                }
                settle(nodes, &mut delivered);
                // No member delivered a message that another member lacks.
                for (from, sent) in sent.iter().enumerate() {
                    let others = (0..3).filter(|at| *at != from);
                    let least = others.map(|at| arrived[at][from]).min().unwrap_or(0);
                    let is_of = |one: &&DeliveredMessage| {
                        usize::from(one.0) == from && one.2.is_some()
                    };
                    for delivered in &delivered {
                        assert!(delivered.iter().filter(is_of).count() as u64 <= least, "{from}: {sent:?}");
                    }
                }
            }
            for (at, node) in nodes.iter_mut().enumerate() {
                for (from, sent) in sent.iter().enumerate() {
                    if at != from {
                        node.large_arrived(ALL, SenderRank(from as u16), large_sent(sent));
                    }
                }
            }
            settle(nodes, &mut delivered);
            assert!(delivered[0] == delivered[1] && delivered[1] == delivered[2]);
            for (from, sent) in sent.iter().enumerate() {
                let mut large = 0;
                let expected: Vec<DeliveredMessage> = sent
                    .iter()
                    .map(|(says, is_large)| {
                        let count = is_large.then_some(large);
                        large += u64::from(*is_large);
                        (from as u16, *says, count)
                    })
                    .collect();
                let is_of = |one: &&DeliveredMessage| usize::from(one.0) == from;
                let of: Vec<_> = delivered[0].iter().filter(is_of).copied().collect();
                assert_eq!(of, expected);
            }
        });
    }
}
