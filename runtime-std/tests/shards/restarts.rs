//! Replicas that end and return, including leaders, and a group that is lost.

use std::path::Path;
use std::time::Duration;

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::member::Stopped;
use tramontane_runtime::shards::{
    Client, Description, Destinations, Places, ReplicaId, StartError, StartOptions,
};

use crate::support::{
    leader, overlay, overlay_by_reference, send, start_one, start_these, wait_until,
};

fn comes_back(carrier: Carrier, overlay: fn(Carrier, &[Option<usize>], &Path) -> Description) {
    let folder = tempfile::tempdir().expect("a folder");
    let description = overlay(carrier, &[None, Some(0)], folder.path());
    let places = Places::new(&description, description.overlay().expect("a tree"));
    let mut started = start_these(&description, places.replicas());
    let mut client =
        Client::connect(&description, Destinations::default(), StartOptions::default())
            .expect("it connects");
    let all = places.overlay().all();
    let mut sent = 0;
    // Restarts the leader of each group, and then the leader of the first group again.
    for group in [0, 1, 0] {
        send(&mut client, all, sent, 100);
        sent += 100;
        let gone = started.swap_remove(leader(&started, group));
        gone.running.close();
        send(&mut client, all, sent, 100);
        sent += 100;
        let again = start_one(&description, gone.id).expect("it comes back");
        wait_until("it counts again", || again.running.status().state.counts());
        assert!(again.running.status().incarnation >= 2);
        started.push(again);
    }
    send(&mut client, all, sent, 50);
    sent += 50;
    let expected: Vec<String> = (0..sent).map(|number| format!("message {number}")).collect();
    for one in &started {
        wait_until("all is delivered", || one.keeper.len() >= sent);
        assert_eq!(one.keeper.payloads(), expected, "{:?}", one.id);
        assert_eq!(one.running.stopped(), None);
    }
}

#[test]
fn replicas_return_over_shared_memory() {
    comes_back(Carrier::SharedMemory, overlay);
}

#[test]
fn replicas_return_over_tcp() {
    comes_back(Carrier::Tcp, overlay);
}

#[test]
fn replicas_return_over_rdma() {
    comes_back(Carrier::Verbs, overlay);
}

#[test]
fn replicas_with_references_return_over_shared_memory() {
    comes_back(Carrier::SharedMemory, overlay_by_reference);
}

#[test]
fn replicas_with_references_return_over_tcp() {
    comes_back(Carrier::Tcp, overlay_by_reference);
}

/// A replica returns and meets the client, which is not stepped, so the replica gives up their
/// view. The client then finds that out.
#[test]
fn paused_client_reconnects_to_returned_replica() {
    for carrier in [Carrier::SharedMemory, Carrier::Tcp] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut description = overlay(carrier, &[None], folder.path());
        description.client_lease_ms = 60_000;
        let places = Places::new(&description, description.overlay().expect("a tree"));
        let mut started = start_these(&description, places.replicas());
        let options = StartOptions::default();
        let mut client =
            Client::connect(&description, Destinations::default(), options).expect("it connects");
        let all = places.overlay().all();
        send(&mut client, all, 0, 1);
        let gone = started.pop().expect("three");
        gone.running.close();
        send(&mut client, all, 1, 1);
        let again = start_one(&description, gone.id).expect("it comes back");
        // A replica waits for a client for five seconds.
        std::thread::sleep(Duration::from_secs(6));
        wait_until("the client is there again", || {
            client.step().expect("it continues");
            again.running.status().clients == 1
        });
    }
}

fn one_group(folder: &Path) -> (Description, Vec<ReplicaId>) {
    let description = overlay(Carrier::SharedMemory, &[None], folder);
    let places = Places::new(&description, description.overlay().expect("a tree"));
    let replicas = places.replicas().collect();
    (description, replicas)
}

#[test]
fn every_replica_reports_loss_of_majority() {
    let folder = tempfile::tempdir().expect("a folder");
    let (description, replicas) = one_group(folder.path());
    let mut started = start_these(&description, replicas.iter().copied());
    started.drain(1..).for_each(|gone| drop(gone.running.close()));
    let errors: Vec<StartError> = std::thread::scope(|scope| {
        let description = &description;
        let back = |id| scope.spawn(move || start_one(description, id).err().expect("it is lost"));
        let threads = [back(replicas[1]), back(replicas[2])];
        threads.map(|thread| thread.join().expect("no panic")).into_iter().collect()
    });
    for error in errors {
        assert!(matches!(&error, StartError::GroupLost { group } if group == "g1"), "{error}");
    }
    let last = started.pop().expect("the first");
    wait_until("the last one stops", || last.running.stopped().is_some());
    assert_eq!(last.running.stopped(), Some(Stopped::GroupLost("g1".into())));
}

#[test]
fn waiting_replica_names_missing_replicas() {
    let folder = tempfile::tempdir().expect("a folder");
    let (description, replicas) = one_group(folder.path());
    let mut options = StartOptions::default();
    options.time_limit = Duration::from_millis(100);
    let application = |_: &tramontane_runtime::shards::Delivered<'_>| 0;
    let error = tramontane_runtime::shards::start(&description, replicas[1], options, application)
        .expect_err("nobody is there");
    assert_eq!(error.to_string(), "these replicas did not respond in time: g1.0, g1.2; start them");
}
