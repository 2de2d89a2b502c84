//! A joining node receives the state of all its subgroups, and everything after it, regardless of
//! what happens to the group in the meantime.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::group_support::subgroups::{ALL, Nodes, TWO};
use tramontane_runtime::carrier::Carrier;

const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// Only nodes 2 and 3 belong to "two". Node 3 is slow to restore the state of "all", and node 2
/// joins in the meantime.
#[test]
fn joiner_restores_subgroup_populated_during_transfer() {
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 4, &[0, 1], &[2, 3]);
        nodes.start_all(&[0, 1]);
        nodes.send(0, ALL, 0);
        nodes.await_messages(&[0, 1], ALL, &[(0, 0)]);
        let told = nodes.prepare(3);
        told.holds_state.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| nodes.start(3));
            nodes.await_that("node 3 takes over a state", || told.restored(ALL) == 1);
            nodes.start(2);
            let numbers: Vec<(u32, u64)> = (0..5).map(|number| (2, number)).collect();
            numbers.iter().for_each(|(_, number)| nodes.send(2, TWO, *number));
            nodes.await_messages(&[2], TWO, &numbers);
            told.holds_state.store(false, Ordering::Relaxed);
        });
        nodes.await_members(&[0, 1, 2, 3]);
        nodes.send(2, TWO, 5);
        let numbers: Vec<(u32, u64)> = (0..6).map(|number| (2, number)).collect();
        nodes.await_messages(&[2, 3], TWO, &numbers);
        nodes.await_messages(&[2, 3], ALL, &[(0, 0)]);
    }
}

/// Nodes 2 and 3 are both slow, and continue at the same moment. Both end up with the same state,
/// no matter which of them joins first.
#[test]
fn simultaneous_joiners_begin_subgroup_with_same_state() {
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 4, &[0, 1], &[2, 3]);
        nodes.start_all(&[0, 1]);
        nodes.send(0, ALL, 0);
        let told = [2, 3].map(|node| nodes.prepare(node));
        told.iter().for_each(|told| told.holds_state.store(true, Ordering::Relaxed));
        std::thread::scope(|scope| {
            for node in [2, 3] {
                let nodes = &nodes;
                scope.spawn(move || {
                    nodes.start(node);
                    (0..3).for_each(|number| nodes.send(node, TWO, number));
                });
            }
            nodes.await_that("both take over a state", || {
                told.iter().all(|told| told.restored(ALL) == 1)
            });
            told.iter().for_each(|told| told.holds_state.store(false, Ordering::Relaxed));
        });
        nodes.await_members(&[0, 1, 2, 3]);
        nodes.await_that("node 2 has all", || told[0].messages(TWO).len() == 6);
        nodes.await_messages(&[3], TWO, &told[0].messages(TWO));
    }
}

/// Node 2 supplies node 3 with "two", and is killed after the group has been asked to admit node 3,
/// but before it can do so.
#[test]
fn supplier_that_dies_before_admission_is_replaced() {
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 5, &[0, 1, 2, 4], &[2, 3, 4]);
        nodes.start_all(&[0, 1, 2, 4]);
        nodes.send(2, TWO, 0);
        nodes.await_messages(&[2, 4], TWO, &[(2, 0)]);
        // No agreement is possible while node 1 does not step.
        let busy = nodes.told(1);
        busy.holds_delivery.store(true, Ordering::Relaxed);
        nodes.send(0, ALL, 0);
        nodes.await_that("node 1 is busy", || !busy.messages(ALL).is_empty());
        let told = nodes.prepare(3);
        std::thread::scope(|scope| {
            scope.spawn(|| nodes.start(3));
            nodes.await_that("node 3 takes over", || {
                told.restored(ALL) == 1 && told.restored(TWO) == 1
            });
            // The group needs only a few more messages to receive the request for admission, and
            // 300 ms is long enough for them.
            std::thread::sleep(Duration::from_millis(300));
            nodes.kill(2);
            std::thread::sleep(Duration::from_millis(100));
            busy.holds_delivery.store(false, Ordering::Relaxed);
        });
        nodes.await_members(&[0, 1, 3, 4]);
        nodes.send(4, TWO, 0);
        nodes.await_messages(&[3, 4], TWO, &[(2, 0), (4, 0)]);
        nodes.await_messages(&[0, 1, 3, 4], ALL, &[(0, 0)]);
        let views = nodes.told(0).views();
        let came = views.iter().position(|members| members.contains(&3)).expect("it came in");
        assert!(views[came..].iter().all(|members| members.contains(&3)), "{carrier:?}: {views:?}");
    }
}
