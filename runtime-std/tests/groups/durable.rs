//! Tests the content of the members' disks in groups that log the messages that they deliver.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::group_support::{Crowd, PATIENCE, carriers};

/// All members have the messages of all views on disk, in the same order.
#[test]
fn members_log_deliveries_in_order_across_views() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3).logged();
        crowd.start_all(&[0, 1, 2]);
        (0..20).for_each(|number| drop((crowd.send(0, number), crowd.send(2, number))));
        crowd.await_delivered(&[0, 1, 2], 40);
        crowd.kill(2);
        crowd.await_members(&[0, 1], &[0, 1]);
        let mut sender = crowd.logged_sender(1);
        let last = (0..20).map(|number| {
            let bytes = crate::group_support::message(1, number);
            sender.send(&bytes, PATIENCE).expect("it is sent")
        });
        let last = last.last().expect("some were sent");
        last.durable_everywhere().wait(PATIENCE).expect("all disks take it");
        // The messages are durable before anything is closed.
        let status = crowd.running(0).status();
        let durable = status.subgroups[0].durable.expect("it is logged");
        assert!(durable.here >= durable.majority && durable.majority >= durable.all);
        crowd.leave(0);
        crowd.leave(1);
        let told = crowd.told[&0].lock().expect("nobody panics").messages.clone();
        assert_eq!((crowd.logged_at(0), crowd.logged_at(1)), (told.clone(), told.clone()));
        let lost = crowd.logged_at(2);
        assert_eq!(lost[..], told[..lost.len()], "{carrier:?}: what was killed has a part");
    }
}

/// Nothing is delayed, and nothing is synced twice: at a low rate, each message is one commit.
#[test]
fn each_message_is_committed_individually_at_low_rate() {
    let mut crowd = Crowd::of(tramontane_runtime::carrier::Carrier::SharedMemory, 3).logged();
    crowd.start_all(&[0, 1, 2]);
    let mut sender = crowd.logged_sender(0);
    for number in 0..30 {
        let bytes = crate::group_support::message(0, number);
        let receipt = sender.send(&bytes, PATIENCE).expect("it is sent");
        receipt.durable_everywhere().wait(PATIENCE).expect("all disks take it");
    }
    for node in 0..3 {
        crowd.await_that("its status has them", || {
            let durable = crowd.running(node).status().subgroups[0].durable;
            durable.is_some_and(|durable| durable.all == 30)
        });
        let durable = crowd.running(node).status().subgroups[0].durable.expect("it is logged");
        assert_eq!(durable.commits, 30, "node {node}");
    }
}

/// A member that is killed and returns receives what it has missed, and continues its log.
#[test]
fn returning_member_logs_the_same_records() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3).logged();
        crowd.start_all(&[0, 1, 2]);
        (0..10).for_each(|number| drop(crowd.send(0, number)));
        crowd.await_delivered(&[0, 1, 2], 10);
        crowd.kill(2);
        crowd.await_members(&[0, 1], &[0, 1]);
        (10..20).for_each(|number| drop(crowd.send(0, number)));
        crowd.await_delivered(&[0, 1], 20);
        crowd.start(2);
        let mut sender = crowd.logged_sender(2);
        let receipt = sender.send(&crate::group_support::message(2, 0), PATIENCE);
        let receipt = receipt.expect("it is sent");
        receipt.durable_everywhere().wait(PATIENCE).expect("all disks take it");
        crowd.await_delivered(&[0, 1, 2], 21);
        crowd.assert_same_with_state(&[0, 1, 2]);
        for node in 0..3 {
            crowd.await_that("its status has them", || {
                let durable = crowd.running(node).status().subgroups[0].durable;
                durable.is_some_and(|durable| durable.all == 21 && durable.here == 21)
            });
        }
        assert_eq!(crowd.running(2).log_notices(), [], "{carrier:?}: nothing was set aside");
        (0..3).for_each(|node| crowd.kill(node));
        let told = crowd.told[&0].lock().expect("nobody panics").messages.clone();
        (0..3).for_each(|node| assert_eq!(crowd.logged_at(node), told, "{carrier:?}: {node}"));
    }
}

/// Others keep sending while a member joins: the restored and the delivered messages form one log.
#[test]
fn log_of_joiner_has_no_gap_during_traffic() {
    for carrier in carriers() {
        let mut crowd = Crowd::of(carrier, 3).logged();
        crowd.start_all(&[0, 1, 2]);
        crowd.kill(2);
        crowd.await_members(&[0, 1], &[0, 1]);
        let is_over = AtomicBool::new(false);
        let sent = std::thread::scope(|scope| {
            let (mut sender, is_over) = (crowd.sender(0), &is_over);
            let sending = scope.spawn(move || {
                let mut number = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let bytes = crate::group_support::message(0, number);
                    sender.send(&bytes, PATIENCE).expect("it is sent");
                    number += 1;
                }
                number
            });
            crowd.start(2);
            is_over.store(true, Ordering::Relaxed);
            sending.join().expect("it sends")
        });
        let last = crowd.logged_sender(2).send(&crate::group_support::message(2, 0), PATIENCE);
        last.expect("it is sent").durable_everywhere().wait(PATIENCE).expect("disks take it");
        let count = usize::try_from(sent).expect("it is small") + 1;
        crowd.await_delivered(&[0, 1, 2], count);
        for node in 0..3 {
            crowd.await_that("its status has them", || {
                let durable = crowd.running(node).status().subgroups[0].durable;
                durable.is_some_and(|durable| durable.here == sent + 1)
            });
        }
        (0..3).for_each(|node| crowd.leave(node));
        let all = crowd.logged_at(0);
        assert_eq!(all.len(), count);
        assert_eq!((&crowd.logged_at(1), &crowd.logged_at(2)), (&all, &all), "{carrier:?}");
    }
}
