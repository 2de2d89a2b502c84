//! Delivery in the absence of failures.

use std::path::Path;

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{
    Answers, Client, Description, Destinations, Places, SendError, StartOptions,
};

use crate::support::{LONG, overlay, overlay_by_reference, start_these, wait_until};

/// A function that creates an overlay of groups with these parents.
type MakeOverlay = fn(Carrier, &[Option<usize>], &Path) -> Description;

fn one_order(carrier: Carrier, overlay: MakeOverlay) {
    let folder = tempfile::tempdir().expect("a folder");
    let description = overlay(carrier, &[None, Some(0), Some(0)], folder.path());
    let places = Places::new(&description, description.overlay().expect("a tree"));
    let started = start_these(&description, places.replicas());
    let mut client =
        Client::connect(&description, Destinations::default(), StartOptions::default())
            .expect("it connects");
    let sets: Vec<Destinations> =
        [&["g2"][..], &["g2", "g3"], &["g1", "g2", "g3"], &["g3"], &["g1", "g3"]]
            .into_iter()
            .map(|names| places.destinations(names.iter().copied()).expect("they are there"))
            .collect();
    let mut answered = 0;
    for number in 0..300_usize {
        let to = sets[number % sets.len()];
        let payload = format!("message {number}");
        while client.multicast(to, payload.as_bytes(), Answers::All) == Err(SendError::Full) {
            answered += usize::from(client.wait(LONG).expect("it goes on").is_some());
        }
    }
    while answered < 300 {
        let of = client.wait(LONG).expect("it goes on").expect("it is answered");
        let by = client.deliveries(&of);
        let groups: Destinations =
            by.iter().fold(Destinations::default(), |set, by| set.with(by.replica.group));
        assert_eq!(groups, of.destinations, "each group has delivered");
        answered += 1;
    }
    for group in places.overlay().all().iter() {
        let mut logs = started.iter().filter(|one| one.id.group == group);
        let first = &logs.next().expect("three").keeper;
        let expected = (0..300).filter(|number| sets[number % sets.len()].contains(group)).count();
        wait_until("all is delivered", || first.len() == expected);
        for other in logs {
            wait_until("all is delivered", || other.keeper.len() == expected);
            assert_eq!(other.keeper.payloads(), first.payloads());
        }
    }
    assert!(client.leave(LONG).expect("it leaves"), "the groups close its place");
    for one in started {
        assert_eq!(one.running.stopped(), None);
        one.running.close();
    }
}

#[test]
fn groups_deliver_in_one_order_over_shared_memory() {
    one_order(Carrier::SharedMemory, overlay);
}

#[test]
fn groups_deliver_in_one_order_over_tcp() {
    one_order(Carrier::Tcp, overlay);
}

#[test]
fn groups_deliver_in_one_order_over_rdma() {
    one_order(Carrier::Verbs, overlay);
}

#[test]
fn groups_order_messages_by_reference_over_shared_memory() {
    one_order(Carrier::SharedMemory, overlay_by_reference);
}

#[test]
fn groups_order_messages_by_reference_over_tcp() {
    one_order(Carrier::Tcp, overlay_by_reference);
}

#[test]
fn groups_order_messages_by_reference_over_rdma() {
    one_order(Carrier::Verbs, overlay_by_reference);
}
