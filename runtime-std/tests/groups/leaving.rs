//! Members leave while others join. No state is lost, and the group continues.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::group_support::subgroups::{ALL, Nodes, TWO};
use tramontane_runtime::carrier::Carrier;

const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// The number of attempts per fabric; `TRAMONTANE_LEAVE_TRIES` overrides it.
const TRIES: u64 = 5;

/// The approximate time of a join on an idle machine.
const JOIN_MS: u64 = 50;

fn tries() -> u64 {
    let wanted = std::env::var("TRAMONTANE_LEAVE_TRIES").ok();
    wanted.map_or(TRIES, |text| text.parse().expect("a number"))
}

/// Node 0 supplies node 2, and leaves a moment after that has begun. The moment is slightly later
/// in each attempt.
#[test]
fn member_can_leave_while_another_joins() {
    std::thread::scope(|scope| {
        for carrier in CARRIERS {
            scope.spawn(move || {
                (0..tries()).for_each(|attempt| leave_during_join(carrier, attempt))
            });
        }
    });
}

fn leave_during_join(carrier: Carrier, attempt: u64) {
    let nodes = Nodes::of(carrier, 3, &[0, 1], &[0, 1, 2]);
    nodes.start_all(&[0, 1]);
    nodes.send(0, ALL, 0);
    nodes.send(0, TWO, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| nodes.start(2));
        std::thread::sleep(Duration::from_millis(JOIN_MS * attempt / tries()));
        scope.spawn(|| nodes.leave(0));
    });
    nodes.await_members(&[1, 2]);
    nodes.send(2, ALL, 0);
    nodes.await_messages(&[1, 2], ALL, &[(0, 0), (2, 0)]);
    nodes.await_messages(&[1, 2], TWO, &[(0, 0)]);
}

/// The only member of a group, and of a subgroup, is asked to leave while it supplies another node.
/// It stays until that node has been admitted.
#[test]
fn last_member_stays_until_joiner_is_admitted() {
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 2, &[0], &[0, 1]);
        nodes.start(0);
        nodes.send(0, TWO, 0);
        nodes.await_messages(&[0], TWO, &[(0, 0)]);
        let told = nodes.prepare(1);
        told.holds_state.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| nodes.start(1));
            nodes.await_that("node 1 takes over a state", || told.restored(ALL) == 1);
            scope.spawn(|| nodes.leave(0));
            std::thread::sleep(Duration::from_millis(300));
            told.holds_state.store(false, Ordering::Relaxed);
        });
        nodes.await_members(&[1]);
        nodes.send(1, TWO, 0);
        nodes.await_messages(&[1], TWO, &[(0, 0), (1, 0)]);
    }
}

/// Each node in turn leaves and immediately returns, while the previous one may still be joining.
#[test]
fn rolling_restart_keeps_group_state() {
    const ROUNDS: u64 = 5;
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 3, &[0, 1, 2], &[0, 1, 2]);
        nodes.start_all(&[0, 1, 2]);
        let mut sent = Vec::new();
        for round in 0..ROUNDS {
            std::thread::scope(|scope| {
                for node in 0..3 {
                    // If no other node is a member or joining, a leave ends the group.
                    let others: Vec<u32> = (0..3).filter(|other| *other != node).collect();
                    nodes.await_that("the node is a member, and not the last", || {
                        // The view at this node may still contain a node that has left.
                        let is_there = |other: &u32| {
                            nodes.is_up(*other) && nodes.members(node).contains(other)
                                || nodes.joining(node).contains(other)
                        };
                        nodes.members(node).contains(&node) && others.iter().any(is_there)
                    });
                    nodes.send(node, TWO, round);
                    sent.push((node, round));
                    nodes.leave(node);
                    let nodes = &nodes;
                    scope.spawn(move || nodes.start(node));
                }
            });
        }
        nodes.await_members(&[0, 1, 2]);
        nodes.await_that("all is delivered", || nodes.told(0).messages(TWO).len() == sent.len());
        let messages = nodes.told(0).messages(TWO);
        nodes.await_messages(&[0, 1, 2], TWO, &messages);
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        sent.sort_unstable();
        assert_eq!(sorted, sent, "{carrier:?}");
    }
}

/// A node finds the group running, but the group's only member is killed before it has admitted the
/// node. Nodes that start later mistake this node for a running member. Like them, it must look for
/// the group again, and nothing remains of the state that it has received.
#[test]
fn joiner_forms_group_after_last_member_dies() {
    for carrier in CARRIERS {
        let nodes = Nodes::of(carrier, 3, &[0, 1, 2], &[0, 1, 2]);
        nodes.start_all(&[0, 1, 2]);
        nodes.send(0, ALL, 0);
        nodes.await_messages(&[0], ALL, &[(0, 0)]);
        nodes.leave(1);
        nodes.leave(2);
        nodes.await_members(&[0]);
        let told = nodes.prepare(1);
        told.holds_state.store(true, Ordering::Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(|| nodes.start(1));
            nodes.await_that("node 1 takes over a state", || told.restored(ALL) == 1);
            nodes.kill(0);
            nodes.prepare(0);
            told.holds_state.store(false, Ordering::Relaxed);
            scope.spawn(|| nodes.start(0));
            scope.spawn(|| nodes.start(2));
        });
        nodes.await_members(&[0, 1, 2]);
        nodes.send(1, ALL, 7);
        nodes.await_messages(&[0, 1, 2], ALL, &[(1, 7)]);
    }
}
