//! Delivery in a group whose members share one memory.

use crate::common::{OneMemory, send, settle, with_group};
use tramontane_core::ids::{Position, SubgroupId, Time};
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;
use tramontane_core::smc::{Outbox, ReserveError};

#[test]
fn all_members_deliver_all_messages_in_one_order() {
    with_group(3, &[0, 1, 2], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..20_u8 {
            for (sender, outbox) in outboxes.iter().flatten().enumerate() {
                send(outbox, &[sender as u8, round]).expect("a slot is free");
            }
            settle(nodes, &mut delivered);
        }
        assert_eq!(delivered[0].len(), 60);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[0], delivered[2]);
        assert!(nodes.iter().all(Node::is_settled));
    });
}

#[test]
fn nulls_let_a_single_active_sender_proceed() {
    with_group(3, &[0, 1, 2], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..50_u8 {
            send(outboxes[2].as_ref().expect("a sender"), &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..50).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 3]);
    });
}

#[test]
fn full_ring_refuses_messages_until_all_deliver() {
    with_group(2, &[0], (3, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        for _ in 0..3 {
            send(outbox, &[]).expect("a slot is free");
        }
        assert_eq!(send(outbox, &[]), Err(ReserveError::Full));
        let mut delivered = vec![Vec::new(); 2];
        settle(nodes, &mut delivered);
        assert_eq!(delivered, vec![vec![Vec::<u8>::new(); 3]; 2], "empty messages are messages");
        send(outbox, &[1; 16]).expect("slots are free again");
        assert_eq!(send(outbox, &[1; 17]), Err(ReserveError::TooLarge { length: 17, limit: 16 }));
    });
}

#[test]
fn dropped_reservation_uses_a_position_without_delivery() {
    with_group(2, &[0, 1], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut delivered = vec![Vec::new(); 2];
        for round in 0..10_u8 {
            let dropped = outbox.reserve(4).expect("a slot is free");
            send(outbox, &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
            assert_eq!(delivered[1].len(), usize::from(round), "held back by the reservation");
            drop(dropped);
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..10).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 2]);
    });
}

#[test]
fn unordered_delivery_does_not_wait_for_silent_senders() {
    with_group(3, &[0, 1], (3, 16), Delivery::Unordered, |nodes, outboxes| {
        let mut delivered = vec![Vec::new(); 3];
        for round in 0..30_u8 {
            send(outboxes[1].as_ref().expect("a sender"), &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> = (0..30).map(|round| vec![round]).collect();
        assert_eq!(delivered, vec![expected; 3]);
    });
}

#[test]
fn silence_declaration_ends_at_the_next_message() {
    with_group(3, &[0, 1, 2], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let (talker, silent) =
            (outboxes[1].as_ref().expect("a sender"), outboxes[0].as_ref().expect("one"));
        let mut delivered = vec![Vec::new(); 3];
        silent.declare_silence(1_000);
        for round in 0..40_u8 {
            send(talker, &[round]).expect("a slot is free");
            settle(nodes, &mut delivered);
        }
        send(silent, b"back").expect("a slot is free");
        send(talker, b"on").expect("a slot is free");
        settle(nodes, &mut delivered);
        assert_eq!(delivered[0].len(), 42);
        assert_eq!(delivered[0], delivered[1]);
        assert_eq!(delivered[0], delivered[2]);
    });
}

/// Returns the number of writes that a silent member posts while another sends messages one at a
/// time.
fn writes_of_a_silent_member(declare: impl Fn(&Outbox<'_>)) -> u32 {
    let mut writes = 0;
    with_group(2, &[0, 1], (8, 16), Delivery::Ordered, |nodes, outboxes| {
        let (silent, talker) =
            (outboxes[0].as_ref().expect("a sender"), outboxes[1].as_ref().expect("one"));
        let mut delivered = vec![Vec::new(); 2];
        send(silent, b"last words").expect("a slot is free");
        declare(silent);
        settle(nodes, &mut delivered);
        for round in 0..20_u8 {
            send(talker, &[round]).expect("a slot is free");
            writes += settle(nodes, &mut delivered)[0];
        }
        assert_eq!(delivered[0].len(), 21);
        assert_eq!(delivered[0], delivered[1]);
    });
    writes
}

#[test]
fn declaring_silence_saves_a_write_per_message() {
    let undeclared = writes_of_a_silent_member(|_| {});
    let declared = writes_of_a_silent_member(|outbox| outbox.declare_silence(1_000));
    assert_eq!(
        undeclared - declared,
        19,
        "a marker for each message but the first, whose round was used"
    );
}

#[test]
fn unused_slots_of_a_run_are_dropped() {
    with_group(2, &[0], (6, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut delivered = vec![Vec::new(); 2];
        for round in 0..10_u8 {
            let mut run = outbox.reserve_run(4).expect("slots are free");
            assert_eq!((run.left(), outbox.reserved()), (4, Position(u64::from(round) * 6 + 4)));
            assert_eq!(run.next(17).err(), Some(ReserveError::TooLarge { length: 17, limit: 16 }));
            for number in 0..3 {
                let mut slot = run.next(2).expect("it fits").expect("one is left");
                slot.payload().copy_from_slice(&[round, number]);
                slot.commit();
            }
            drop(run);
            assert_eq!(outbox.reserve_run(9).map(|run| run.left()), Ok(2), "no more than are free");
            settle(nodes, &mut delivered);
        }
        let expected: Vec<Vec<u8>> =
            (0..10).flat_map(|round| (0..3).map(move |number| vec![round, number])).collect();
        assert_eq!(delivered, vec![expected; 2]);
    });
}

#[test]
fn overdue_reservation_is_reported_until_it_ends() {
    with_group(2, &[0], (4, 16), Delivery::Ordered, |nodes, outboxes| {
        let outbox = outboxes[0].as_ref().expect("a sender");
        let mut overdue_at = |seconds: u64| {
            let mut nothing = |_: &mut Batch<'_>| {};
            let now = Time(seconds * 1_000_000_000);
            nodes[0].step(now, &mut OneMemory, &mut nothing).expect("it steps").overdue
        };
        assert_eq!(overdue_at(1), None);
        let held = outbox.reserve(1).expect("a slot is free");
        send(outbox, &[1]).expect("a slot is free");
        assert_eq!(overdue_at(10), None, "seen for the first time");
        assert_eq!(overdue_at(11), None, "within the second that the options allow");
        assert_eq!(overdue_at(12), Some(SubgroupId(0)));
        held.commit();
        assert_eq!(overdue_at(13), None);
        assert_eq!(overdue_at(99), None);
    });
}
