//! Values in a member's part of a subgroup's rows that no correct member publishes. The other
//! members do not wait for the owner but report it as misbehaving, and the values have no effect
//! before that.

use crate::common::{Carries, OneMemory, fabric, send, settle, with_group, with_rows};
use tramontane_core::fabric::{Capabilities, ErrorKind, LossCause, Write};
use tramontane_core::ids::{NodeId, Rank, Round, SenderRank, SubgroupId, Time};
use tramontane_core::layout::{ControlCell, Delivery, Group, Layout, SLOT_HEADER, Subgroup};
use tramontane_core::memory::RowWriter;
use tramontane_core::multicast::{Batch, Impossible, Order};
use tramontane_core::node::Node;
use tramontane_core::smc::{Outbox, SlotCounter};

const ALL: SubgroupId = SubgroupId(0);
const RANKS: [Rank; 3] = [Rank(0), Rank(1), Rank(2)];
const NODES: [NodeId; 3] = [NodeId(0), NodeId(1), NodeId(2)];
const WINDOW: u32 = 4;

/// Opens three members after each has sent the others one message, and also passes the layout and
/// the rows.
fn with_three(
    delivery: Delivery,
    body: impl FnOnce(&Layout<'_>, &mut [Node<'_>], &[Option<Outbox<'_>>], &[RowWriter<'_>]),
) {
    with_senders(&RANKS, delivery, body);
}

/// Opens members as `with_three` does, but only `senders` send.
fn with_senders(
    senders: &[Rank],
    delivery: Delivery,
    body: impl FnOnce(&Layout<'_>, &mut [Node<'_>], &[Option<Outbox<'_>>], &[RowWriter<'_>]),
) {
    let subgroup = Subgroup { members: &RANKS, senders, window: WINDOW, message_max: 16, delivery };
    let subgroups = [subgroup];
    let layout =
        Layout::new(Group { members: &NODES, subgroups: &subgroups }).expect("a good group");
    with_rows(&layout, |nodes, outboxes, rows| {
        for outbox in outboxes.iter().flatten() {
            send(outbox, &[1]).expect("room");
        }
        settle(nodes, &mut vec![Vec::new(); 3]);
        body(&layout, nodes, outboxes, rows);
    });
}

/// Publishes `counter` in member 0's second slot, in which member 1 then looks for a message, and
/// returns what member 1 reports.
fn counter_shown(delivery: Delivery, counter: SlotCounter) -> Option<(Rank, LossCause)> {
    let mut said = None;
    with_three(delivery, |layout, nodes, _, rows| {
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        let at = ring.offset + 2 * ring.stride - 8;
        rows[0].cell(at).expect("a counter").publish(counter.encode().expect("it fits"));
        said = step(nodes, 1);
    });
    said
}

fn step(nodes: &mut [Node<'_>], rank: usize) -> Option<(Rank, LossCause)> {
    nodes[rank].step(Time(0), &mut OneMemory, &mut |_: &mut Batch<'_>| {}).expect("it steps").lost
}

const MISBEHAVED: Option<(Rank, LossCause)> = Some((Rank(0), LossCause::Misbehaved));

/// Round 0 is used up by the first messages. The observer sees all its own messages and all that
/// the sender sent before. The only messages that it has not seen are the third member's, of which
/// there are at most four. So five more rounds can be used.
#[test]
fn round_beyond_all_rings_is_misbehaviour() {
    let limit = Order::new(3).expect("three senders").round_limit();
    for round in [1, 2, 5] {
        let counter = SlotCounter::Message(Round(round));
        assert_eq!(counter_shown(Delivery::Ordered, counter), None, "{round}");
        let counter = SlotCounter::UsedBelow(Round(round));
        assert_eq!(counter_shown(Delivery::Ordered, counter), None, "{round}");
    }
    for round in [6, 13, 14, 1000, limit.0 - 1, limit.0, limit.0 + 1] {
        for counter in [SlotCounter::Message(Round(round)), SlotCounter::UsedBelow(Round(round))] {
            assert_eq!(counter_shown(Delivery::Ordered, counter), MISBEHAVED, "{counter:?}");
        }
    }
}

/// ORD-2, DEL-3: a sender skips rounds without being forced to, but no more than other members'
/// messages could explain. All members deliver the sender's messages in one order. One upcall
/// passes over the skipped rounds, in which no member sends.
#[test]
fn members_agree_on_skipped_rounds() {
    with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
        for message in [2, 3] {
            send(outboxes[2].as_ref().expect("a sender"), &[message]).expect("room");
        }
        step(nodes, 2);
        // Rounds 2 and 3 are skipped.
        let ring = layout.ring(Rank(2), ALL).expect("it sends");
        let counter = SlotCounter::Message(Round(4)).encode().expect("it fits");
        rows[2].cell(ring.offset + 3 * ring.stride - 8).expect("a counter").publish(counter);
        let received = layout.control_offset(Rank(2), ALL).expect("its own");
        rows[2].cell(received).expect("a cell").publish(5 * 3);
        let mut upcalls = [Vec::new(), Vec::new()];
        for turn in 0..8 {
            let mut upcall = |batch: &mut Batch<'_>| {
                let messages = batch.map(|message| (message.place.0, message.payload.to_vec()));
                upcalls[turn % 2].push(messages.collect::<Vec<_>>());
            };
            let did = nodes[turn % 2].step(Time(0), &mut OneMemory, &mut upcall);
            assert_eq!(did.expect("it steps").lost, None);
        }
        let expected = vec![(3 + 2, vec![2]), (3 * 4 + 2, vec![3])];
        assert_eq!(upcalls, [vec![expected.clone()], vec![expected]]);
    });
}

/// A lone sender uses a round only for a message, so its counters are known in advance.
#[test]
fn unexpected_counter_of_lone_sender_is_refused() {
    for counter in (0..64).map(|bit| 1_u64 << bit).chain([0, 3, 5, 7]) {
        let mut said = None;
        with_senders(&RANKS[..1], Delivery::Ordered, |layout, nodes, _, rows| {
            let ring = layout.ring(Rank(0), ALL).expect("it sends");
            let at = ring.offset + 2 * ring.stride - 8;
            rows[0].cell(at).expect("a counter").publish(counter);
            said = step(nodes, 1);
        });
        let is_right = counter == 0 || counter == 3;
        assert_eq!(said, if is_right { None } else { MISBEHAVED }, "{counter}");
    }
}

/// A slot without a new message holds the message of the previous lap, which has been delivered
/// here.
#[test]
fn older_message_in_a_slot_is_misbehaviour() {
    with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
        for _ in 0..2 {
            send(outboxes[0].as_ref().expect("a sender"), &[2]).expect("room");
        }
        step(nodes, 0);
        // Two more messages are received here but not delivered, because round 2 has not been
        // delivered.
        assert_eq!(step(nodes, 1), None);
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        let counter = SlotCounter::Message(Round(2)).encode().expect("it fits");
        rows[0].cell(ring.offset + 4 * ring.stride - 8).expect("a counter").publish(counter);
        assert_eq!(step(nodes, 1), MISBEHAVED);
    });
}

#[test]
fn unordered_messages_use_consecutive_rounds() {
    assert_eq!(counter_shown(Delivery::Unordered, SlotCounter::Message(Round(1))), None);
    for counter in [
        SlotCounter::Message(Round(2)),
        SlotCounter::Message(Round(1 << 50)),
        SlotCounter::UsedBelow(Round(2)),
        SlotCounter::UsedBelow(Round(1 << 50)),
    ] {
        assert_eq!(counter_shown(Delivery::Unordered, counter), MISBEHAVED, "{counter:?}");
    }
}

/// Publishes `value` in a cell of member 0's control block, and returns what the observer reports.
fn control_shown(cell: ControlCell, value: u64, observer: usize) -> Option<(Rank, LossCause)> {
    let mut said = None;
    with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
        // A new message makes the observer read the control block.
        send(outboxes[observer].as_ref().expect("a sender"), &[2]).expect("room");
        let at = layout.control_offset(Rank(0), ALL).expect("a member") + cell.offset();
        rows[0].cell(at).expect("a control cell").publish(value);
        said = (0..3).find_map(|_| step(nodes, observer));
    });
    said
}

#[test]
fn silence_beyond_all_rings_is_misbehaviour() {
    // The observer has used two rounds.
    for (silent, said) in [(0, None), (6, None), (7, MISBEHAVED), (u64::MAX, MISBEHAVED)] {
        assert_eq!(control_shown(ControlCell::Silent, silent, 1), said, "silent below {silent}");
    }
}

/// Otherwise no message would become stable, or no slot would become free, ever again.
#[test]
fn shrinking_frontier_is_misbehaviour() {
    for cell in [ControlCell::Received, ControlCell::Delivered] {
        assert_eq!(control_shown(cell, 3, 1), None, "it is three");
        assert_eq!(control_shown(cell, 2, 1), MISBEHAVED, "{cell:?}");
        assert_eq!(control_shown(cell, 0, 1), MISBEHAVED, "{cell:?}");
    }
}

/// Otherwise a message would be delivered, or a slot reused, before some member has the message.
#[test]
fn impossibly_high_frontier_is_misbehaviour() {
    // The observer, sender 1, has used two rounds, so its next turn is at sequence position 7. It
    // has acknowledged three positions, all delivered.
    for (cell, most) in [(ControlCell::Received, 7), (ControlCell::Delivered, 3)] {
        assert_eq!(control_shown(cell, most, 1), None, "{cell:?}");
        assert_eq!(control_shown(cell, most + 1, 1), MISBEHAVED, "{cell:?}");
        assert_eq!(control_shown(cell, u64::MAX, 1), MISBEHAVED, "{cell:?}");
    }
}

#[test]
fn impossibly_high_consumed_count_is_misbehaviour() {
    for (shown, said) in [(0, None), (1, None), (2, None), (3, MISBEHAVED)] {
        with_three(Delivery::Unordered, |layout, nodes, outboxes, rows| {
            send(outboxes[1].as_ref().expect("a sender"), &[2]).expect("room");
            let cell = ControlCell::Consumed(SenderRank(1));
            let at = layout.control_offset(Rank(0), ALL).expect("a member") + cell.offset();
            rows[0].cell(at).expect("a control cell").publish(shown);
            assert_eq!((0..3).find_map(|_| step(nodes, 1)), said, "{shown}");
        });
    }
}

/// Each reason for a refusal has a stable number.
#[test]
fn refusal_reason_has_a_stable_number() {
    with_three(Delivery::Ordered, |layout, nodes, _, rows| {
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        rows[0].cell(ring.offset + 2 * ring.stride - 8).expect("a counter").publish(u64::MAX);
        let mut nothing = |_: &mut Batch<'_>| {};
        let progress = nodes[1].step(Time(0), &mut OneMemory, &mut nothing).expect("it steps");
        assert_eq!(progress.refused, Some((Rank(0), Impossible::Round)));
        assert_eq!(Impossible::Round.code(), 1);
        assert_eq!(Impossible::SlotCheck.code(), 11);
    });
}

/// Lets member 0 change its second slot between receipt and delivery, and returns what member 1
/// reports.
fn slot_changed(
    delivery: Delivery,
    change: impl Fn(&RowWriter<'_>, usize),
) -> Option<(Rank, LossCause)> {
    let mut said = None;
    with_three(delivery, |layout, nodes, outboxes, rows| {
        let ring = layout.ring(Rank(0), ALL).expect("it sends");
        let end = ring.offset + 2 * ring.stride;
        for rank in [0, 1] {
            send(outboxes[rank].as_ref().expect("a sender"), &[2]).expect("room");
        }
        step(nodes, 0);
        match delivery {
            Delivery::Ordered => {
                // Member 1 has the message; it is stable once member 2 has it too.
                assert_eq!((step(nodes, 1), step(nodes, 2)), (None, None));
                change(&rows[0], end);
                said = step(nodes, 1);
            }
            Delivery::Unordered => {
                let mut tamper = |_: &mut Batch<'_>| change(&rows[0], end);
                said = nodes[1].step(Time(0), &mut OneMemory, &mut tamper).expect("it steps").lost;
            }
        }
    });
    said
}

#[test]
fn slot_changed_after_receipt_is_misbehaviour() {
    for (name, counter) in [
        ("an older round", 1),
        ("no message any more", 2),
        ("the round behind its last", 2 * 2 + 1),
        ("a round that it has not reached", 2 * 9 + 1),
        ("a round that nobody can reach", u64::MAX),
    ] {
        let change = |row: &RowWriter<'_>, end: usize| {
            row.cell(end - 8).expect("a counter").publish(counter)
        };
        assert_eq!(slot_changed(Delivery::Ordered, change), MISBEHAVED, "{name}");
    }
    let longer = |row: &RowWriter<'_>, end: usize| {
        row.apply(end - SLOT_HEADER, &17_u32.to_ne_bytes()).expect("a length");
    };
    for delivery in [Delivery::Ordered, Delivery::Unordered] {
        assert_eq!(
            slot_changed(delivery, longer),
            MISBEHAVED,
            "longer than any message, {delivery:?}"
        );
    }
}

/// A sender changes its slot while a batch is handed over. No later message is delivered in its
/// place.
#[test]
fn slot_changed_during_the_upcall_stops_delivery() {
    for counter in [1, 2, 2 * 2 + 1, 2 * 9 + 1, u64::MAX] {
        with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
            let ring = layout.ring(Rank(0), ALL).expect("it sends");
            for rank in [0, 1] {
                send(outboxes[rank].as_ref().expect("a sender"), &[2]).expect("room");
            }
            assert_eq!([0, 1, 2, 0].map(|rank| step(nodes, rank)), [None; 4]);
            let mut delivered = 0;
            let mut tamper = |batch: &mut Batch<'_>| {
                let at = ring.offset + 2 * ring.stride - 8;
                rows[0].cell(at).expect("a counter").publish(counter);
                delivered += batch.count();
            };
            let said = nodes[1].step(Time(0), &mut OneMemory, &mut tamper).expect("it steps").lost;
            assert_eq!((said, delivered), (MISBEHAVED, 0), "{counter}");
        });
    }
}

/// RDM-7: the description of a large message is at most as long as a message in a slot.
#[cfg(feature = "blocks")]
#[test]
fn too_long_large_message_description_is_misbehaviour() {
    let subgroups = [Subgroup {
        members: &RANKS,
        senders: &RANKS,
        window: WINDOW,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let layout = Layout::new(Group { members: &NODES, subgroups: &subgroups })
        .and_then(|layout| layout.with_large(&[ALL]))
        .expect("a good group");
    for (length, said) in [(16, None), (17, MISBEHAVED), (1 << 30, MISBEHAVED)] {
        with_rows(&layout, |nodes, outboxes, rows| {
            send(outboxes[0].as_ref().expect("a sender"), &[1]).expect("room");
            step(nodes, 0);
            let ring = layout.ring(Rank(0), ALL).expect("it sends");
            let header = ring.offset + ring.stride - SLOT_HEADER;
            rows[0].apply(header, &(1_u32 << 31 | length).to_ne_bytes()).expect("a length");
            assert_eq!(step(nodes, 1), said, "{length}");
        });
    }
}

/// A lost member may lack any message whose receipt or delivery it never acknowledged; the view
/// change settles that.
#[test]
fn lost_member_delays_stability_and_slot_reuse() {
    with_senders(&RANKS[..2], Delivery::Ordered, |layout, nodes, outboxes, rows| {
        let mut delivered = [0, 0, 0];
        let mut step = |nodes: &mut [Node<'_>], rank: usize| {
            let mut count = |batch: &mut Batch<'_>| delivered[rank] += batch.count();
            nodes[rank].step(Time(0), &mut OneMemory, &mut count).expect("it steps");
            delivered
        };
        let sender = outboxes[0].as_ref().expect("a sender");
        send(sender, &[2]).expect("room");
        // Member 2 has the message before it is stable, and never delivers it.
        for rank in [0, 2, 1, 0] {
            step(nodes, rank);
        }
        let at =
            layout.control_offset(Rank(2), ALL).expect("a member") + ControlCell::Received.offset();
        rows[2].cell(at).expect("a control cell").publish(0);
        for _ in 0..3 {
            step(nodes, 0);
            assert_eq!(step(nodes, 1), [1, 1, 0]);
        }
        assert!(nodes[0].is_lost() && nodes[1].is_lost());
        let mut sent = 0;
        while send(sender, &[3]).is_ok() {
            sent += 1;
            for rank in [0, 1, 0, 1] {
                assert_eq!(step(nodes, rank), [1, 1, 0], "2 may lack it");
            }
        }
        assert_eq!(sent, WINDOW - 1, "one slot holds what 2 did not hand over");
    });
}

/// Records the peers to which something is posted.
struct Posts(Vec<Rank>);

impl Carries for Posts {
    fn limits(&self) -> Capabilities {
        OneMemory.limits()
    }
    fn carry(&mut self, to: Rank, _: &[Write]) -> Result<(), ErrorKind> {
        self.0.push(to);
        Ok(())
    }
}

fabric!(Posts);

/// Messages that a lost member sends later are not received, because the view change decides which
/// of its messages count. Nothing is posted to it either.
#[test]
fn node_stops_reading_and_posting_to_lost_member() {
    with_three(Delivery::Ordered, |layout, nodes, outboxes, rows| {
        let at =
            layout.control_offset(Rank(0), ALL).expect("a member") + ControlCell::Received.offset();
        rows[0].cell(at).expect("a control cell").publish(0);
        send(outboxes[1].as_ref().expect("a sender"), &[2]).expect("room");
        assert_eq!(step(nodes, 1), MISBEHAVED);
        for rank in [0, 1] {
            send(outboxes[rank].as_ref().expect("a sender"), &[3]).expect("room");
        }
        step(nodes, 0);
        let (mut posts, mut ignore) = (Posts(Vec::new()), |_: &mut Batch<'_>| {});
        let progress = nodes[1].step(Time(0), &mut posts, &mut ignore).expect("it steps");
        assert_eq!((progress.received, progress.lost), (0, None));
        assert_eq!(posts.0, [Rank(2)]);
    });
}

/// The bound covers everything that is possible: members that send as fast as their rings allow,
/// while all others are held up, are not accused.
#[test]
fn member_sending_at_the_limit_is_accepted() {
    with_group(3, &[0, 1, 2], (WINDOW, 16), Delivery::Ordered, |nodes, outboxes| {
        let mut random = 7_u64;
        let mut delivered = vec![0_u64; 3];
        for _ in 0..20_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // One member sends and steps most of the time; the others rarely do.
            let rank = [0, 0, 0, 1, 1, 2, 0, 1][(random >> 40) as usize % 8];
            while send(outboxes[rank].as_ref().expect("a sender"), &[1]).is_ok()
                && random >> 50 & 3 != 0
            {}
            let mut count = |batch: &mut Batch<'_>| delivered[rank] += batch.count() as u64;
            let progress = nodes[rank].step(Time(0), &mut OneMemory, &mut count).expect("it steps");
            assert_eq!(progress.lost, None);
        }
        assert!(delivered.iter().all(|count| *count > 1_000), "{delivered:?}");
    });
}
