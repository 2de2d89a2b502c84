//! Clients: their places, and errors that name a cause.

use std::collections::BTreeSet;
use std::time::Duration;

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{
    Answers, Client, Description, Destinations, GroupId, Places, SendError, StartError,
    StartOptions,
};

use crate::support::{LONG, Started, overlay, start_these, wait_until};

fn running(change: impl Fn(&mut Description)) -> (Description, Vec<Started>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut description = overlay(Carrier::SharedMemory, &[None], folder.path());
    change(&mut description);
    let places = Places::new(&description, description.overlay().expect("a tree"));
    let started = start_these(&description, places.replicas());
    (description, started, folder)
}

fn connect(description: &Description, limit: Duration) -> Result<Client, StartError> {
    let mut options = StartOptions::default();
    options.time_limit = limit;
    Client::connect(description, Destinations::default(), options)
}

#[test]
fn simultaneous_clients_get_separate_places() {
    let (description, started, _folder) = running(|description| description.clients_max = 3);
    let clients: Vec<Client> = std::thread::scope(|scope| {
        let threads = [(); 3].map(|()| scope.spawn(|| connect(&description, LONG)));
        threads.map(|thread| thread.join().expect("no panic").expect("a place")).into()
    });
    let numbers: BTreeSet<u16> = clients.iter().map(|client| client.number().0).collect();
    assert_eq!(numbers.len(), 3);
    let error = connect(&description, Duration::from_millis(200)).expect_err("all are taken");
    assert!(matches!(error, StartError::NoSeat(3)), "{error}");
    let mut clients = clients.into_iter();
    let mut first = clients.next().expect("three");
    first.multicast(Destinations::of(GroupId(0)), b"from the first", Answers::All).expect("taken");
    let (number, incarnation) = (first.number(), first.incarnation());
    assert!(first.leave(LONG).expect("it goes on"));
    let mut next = connect(&description, LONG).expect("a place is free");
    assert_eq!(next.number(), number);
    assert!(next.incarnation() > incarnation);
    next.multicast(Destinations::of(GroupId(0)), b"from the next", Answers::All).expect("taken");
    next.wait(LONG).expect("it goes on").expect("answered");
    for one in &started {
        wait_until("both are delivered", || one.keeper.len() == 2);
        assert_eq!(one.keeper.payloads(), ["from the first", "from the next"]);
    }
}

#[test]
fn lost_clients_place_is_freed_after_lease() {
    let (description, _started, _folder) = running(|description| {
        description.clients_max = 1;
        description.client_lease_ms = 300;
    });
    let mut first = connect(&description, LONG).expect("a place");
    first.multicast(Destinations::of(GroupId(0)), b"last words", Answers::All).expect("taken");
    first.wait(LONG).expect("it goes on").expect("answered");
    drop(first);
    let mut next = connect(&description, LONG).expect("the place is free again");
    assert_eq!(next.incarnation(), 2);
    next.multicast(Destinations::of(GroupId(0)), b"more", Answers::All).expect("taken");
    next.wait(LONG).expect("it goes on").expect("answered");
}

#[test]
fn refused_multicast_names_cause_and_keeps_message() {
    let (description, started, _folder) = running(|description| {
        description.message_max = 8;
        description.client_window = 2;
    });
    let mut client = connect(&description, LONG).expect("a place");
    let to = Destinations::of(GroupId(0));
    let mut refused = |to, payload: &[u8]| client.multicast(to, payload, Answers::All);
    assert_eq!(refused(to, b"nine byte"), Err(SendError::TooLong));
    assert_eq!(refused(Destinations::default(), b""), Err(SendError::NoDestination));
    assert_eq!(refused(to.with(GroupId(7)), b""), Err(SendError::UnknownDestination));
    assert!(refused(to, b"one").is_ok() && refused(to, b"two").is_ok());
    assert_eq!(refused(to, b"three"), Err(SendError::Full));
    client.wait(LONG).expect("it goes on").expect("answered");
    client.multicast(to, b"three", Answers::All).expect("there is room again");
    assert!(client.leave(LONG).expect("it goes on"), "all is answered first");
    for one in &started {
        wait_until("all is delivered", || one.keeper.len() == 3);
        assert_eq!(one.keeper.payloads(), ["one", "two", "three"]);
    }
}

#[test]
fn client_with_mismatched_configuration_is_refused() {
    let (description, _started, _folder) = running(|_| {});
    let longer = Description { log_entries: description.log_entries + 1, ..description.clone() };
    let referred = Description { references_from: Some(64), ..description };
    for other in [longer, referred] {
        let error = connect(&other, LONG).expect_err("it has another configuration");
        assert!(
            matches!(&error, StartError::Refused { .. })
                && error.to_string().contains("a different configuration"),
            "{error}"
        );
    }
}
