//! Groups whose membership changes. Their members are threads of this process, over shared memory,
//! over TCP, and over RDMA if there is a device or a fake one is requested.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::time::Duration;

use crate::group_support::{Crowd, PATIENCE, carriers};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Fate;
use tramontane_runtime::member::Stopped;

#[test]
fn all_members_deliver_in_the_same_order() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        for turn in 0..100 {
            for node in 0..3 {
                crowd.send(node, turn);
            }
        }
        crowd.await_delivered(&[0, 1, 2], 300);
        crowd.assert_same(&[0, 1, 2]);
    }
}

#[test]
fn dead_member_is_removed_without_message_loss() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        for turn in 0..50 {
            for node in 0..3 {
                crowd.send(node, turn);
            }
        }
        crowd.kill(1);
        for turn in 50..100 {
            for node in [0, 2] {
                crowd.send(node, turn);
            }
        }
        crowd.await_all_of(&[0, 2], &[0, 2], 100);
        crowd.assert_same(&[0, 2]);
        assert_eq!(crowd.members_at(0), [0, 2]);
    }
}

/// There are more members than a peer's queue of descriptors has room for (10 by default).
#[test]
fn sixteen_members_survive_two_deaths() {
    let all: Vec<u32> = (0..16).collect();
    let surviving = &all[..14];
    for carrier in [Carrier::SharedMemory, Carrier::Tcp] {
        let mut crowd = Crowd::of(carrier, 16).patient();
        crowd.start_all(&all);
        for node in &all {
            crowd.send(*node, 0);
        }
        crowd.await_delivered(&all, 16);
        crowd.assert_same(&all);
        crowd.kill(14);
        crowd.kill(15);
        crowd.await_members(surviving, surviving);
        for node in surviving {
            crowd.send(*node, 1);
        }
        crowd.await_all_of(surviving, surviving, 2);
        crowd.assert_same(surviving);
    }
}

#[test]
fn returning_member_restores_group_state() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        for node in 0..3 {
            crowd.send(node, 0);
        }
        crowd.leave(2);
        for node in 0..2 {
            crowd.send(node, 1);
        }
        crowd.start(2);
        crowd.send(2, 1);
        crowd.await_all_of(&[0, 1, 2], &[0, 1, 2], 2);
        crowd.assert_same_with_state(&[0, 1, 2]);
    }
}

#[test]
fn last_member_halts_only_after_peer_death() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 2);
        crowd.start_all(&[0, 1]);
        crowd.kill(1);
        crowd.await_stopped(0, |stopped| matches!(stopped, Stopped::Halted { .. }));

        let mut crowd = Crowd::of(carrier, 2);
        crowd.start_all(&[0, 1]);
        crowd.leave(1);
        let receipt = crowd.send(0, 0);
        crowd.await_all_of(&[0], &[0], 1);
        crowd.await_fate(&receipt);
        crowd.leave(0);
    }
}

#[test]
fn message_reserved_before_view_change_keeps_order() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3);
        crowd.start_all(&[0, 1, 2]);
        let mut first = crowd.sender(0);
        let mut second = first.clone();
        let mut slot = first.try_reserve(16).expect("a slot is free");
        slot.payload().copy_from_slice(&crate::group_support::message(0, 0));
        second.send(&crate::group_support::message(0, 1), PATIENCE).expect("room for another");
        crowd.kill(2);
        crowd.await_view(0, 2);
        std::thread::sleep(Duration::from_millis(20));
        assert!(second.try_reserve(16).is_err(), "the next view's ring is not handed out yet");
        slot.commit();
        second.send(&crate::group_support::message(0, 2), PATIENCE).expect("it goes on");
        crowd.await_all_of(&[0, 1], &[0], 3);
        crowd.assert_same(&[0, 1]);
    }
}

#[test]
fn two_members_return_after_simultaneous_deaths() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 5);
        crowd.start_all(&[0, 1, 2, 3, 4]);
        crowd.send(0, 0);
        crowd.await_delivered(&[0, 1, 2, 3, 4], 1);
        crowd.kill(3);
        crowd.kill(4);
        crowd.await_members(&[0, 1, 2], &[0, 1, 2]);
        crowd.start_all(&[3, 4]);
        crowd.send(4, 0);
        crowd.await_delivered(&[0, 1, 2, 3, 4], 2);
        crowd.assert_same_with_state(&[0, 1, 2, 3, 4]);
    }
}

#[test]
fn closed_member_returns_undelivered_messages() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 2);
        crowd.start_all(&[0, 1]);
        let first = crowd.send(0, 0);
        crowd.await_all_of(&[0, 1], &[0], 1);
        let told = std::sync::Arc::clone(&crowd.told[&1]);
        // The application is slow: its member has received the next message, but will receive no
        // further one.
        let busy = told.lock().expect("nobody panics");
        let calls = crowd.calls(1);
        let second = crowd.send(0, 1);
        crowd.await_all_of(&[0], &[0], 2);
        crowd.await_call(1, calls + 1);
        let third = crowd.send(0, 2);
        crowd.await_sent(0, 3);
        let mut sender = crowd.sender(0);
        let mut other = sender.clone();
        let held = other.try_reserve(16).expect("a slot is free");
        let fourth =
            sender.send(&crate::group_support::message(0, 3), PATIENCE).expect("room for another");
        let (stopped, unsent) = crowd.close(0);
        drop((held, busy));
        assert_eq!(stopped, Stopped::Closed);
        let given_back: Vec<_> = unsent.iter().map(|one| (one.payload[8], one.was_sent)).collect();
        assert_eq!(given_back, [(2, true), (3, false)], "sent, and behind a slot that was held");
        for _ in 0..2 {
            let fates = [&first, &second, &third, &fourth].map(|receipt| receipt.fate());
            assert_eq!(fates, [Fate::Delivered, Fate::Delivered, Fate::Unknown, Fate::NotSent]);
            // An attempt to send steps the member once more, but that changes nothing.
            assert!(
                sender
                    .send(&crate::group_support::message(0, 4), Duration::from_millis(1))
                    .is_err()
            );
        }
    }
}
