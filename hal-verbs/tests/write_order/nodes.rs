//! Whole nodes in which only the fabric keeps the order.

use std::time::{Duration, Instant};

use tramontane_verbs::fake::Placement;
use tramontane_verbs::{Counters, Limits};

use super::bench::{by_updates, promised, reordering};
use super::group::{device, nodes::with_nodes};

const MESSAGES: u64 = 300;
const MEMBERS: u16 = 3;

/// Delivers all messages on all members, each unchanged. Returns the counters of the sender's
/// fabric.
fn deliver_all(limits: Limits) -> Counters {
    let mut counters = Counters::default();
    with_nodes(MEMBERS, limits, |seats| {
        let (mut sent, until) = (0, Instant::now() + Duration::from_secs(60));
        while seats.iter().any(|seat| seat.delivered < MESSAGES) {
            assert!(Instant::now() < until, "not all is delivered");
            while sent < MESSAGES && seats[0].send(sent) {
                sent += 1;
            }
            for seat in seats.iter_mut() {
                seat.step();
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        counters = *seats[0].fabric.counters();
    });
    counters
}

#[test]
fn nodes_deliver_in_order_over_unordered_devices() {
    let network = device::take_instead(reordering(Placement::BytesReordered), 1);
    let counters = deliver_all(Limits::default());
    println!("{MESSAGES} messages to {} peers, by updates: {counters:?}", MEMBERS - 1);
    assert!(counters.updates > 0 && network.counts().placed_out_of_order > 0);
    assert_eq!(network.counts().not_ready, 0, "no request found no receive");
}

#[test]
fn nodes_send_no_updates_over_ordered_devices() {
    let network = device::take_instead(tramontane_verbs::fake::Profile::strict(), 1);
    for limits in [Limits::default(), promised()] {
        let counters = deliver_all(limits);
        println!("{MESSAGES} messages to {} peers, by the device: {counters:?}", MEMBERS - 1);
        assert_eq!((counters.updates, counters.updates_taken), (0, 0));
    }
    assert_eq!(network.counts().placed_out_of_order, 0);
}

/// Returns the counters of the sender's fabric and of another's, to one peer, for messages that are
/// sent one at a time.
fn one_at_a_time(limits: Limits) -> [Counters; 2] {
    let mut counters = [Counters::default(); 2];
    with_nodes(2, limits, |seats| {
        for number in 0..MESSAGES {
            assert!(seats[0].send(number), "a slot is free");
            let until = Instant::now() + Duration::from_secs(20);
            while seats.iter().any(|seat| seat.delivered <= number || !seat.node.is_settled()) {
                assert!(Instant::now() < until, "message {number} is not delivered");
                for seat in seats.iter_mut() {
                    seat.step();
                }
                std::thread::sleep(Duration::from_micros(10));
            }
        }
        // The sender's last posts are still in flight, and are not awaited.
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            counters = [0, 1].map(|seat: usize| *seats[seat].fabric.counters());
            if counters[1].updates_taken == counters[0].updates || Instant::now() > until {
                break;
            }
            for seat in seats.iter_mut() {
                seat.step();
            }
            std::thread::sleep(Duration::from_micros(10));
        }
    });
    counters
}

#[test]
fn updates_reduce_requests_per_message() {
    let _network = device::take_instead(tramontane_verbs::fake::Profile::strict(), 1);
    let by_device = one_at_a_time(promised());
    let by_updates = one_at_a_time(by_updates());
    for (what, [sender, other]) in [("device", by_device), ("updates", by_updates)] {
        println!("by {what}, the sender: {sender:?}\nby {what}, the other: {other:?}");
    }
    for (device, updates) in by_device.iter().zip(&by_updates) {
        assert_eq!(device.lists, updates.lists);
        assert_eq!(updates.lists, updates.updates, "the answers tell what was taken");
        assert_eq!(updates.doorbells, device.doorbells);
    }
    assert_eq!(by_updates[1].updates_taken, by_updates[0].updates, "one receive a list");
}
