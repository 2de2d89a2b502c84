//! Hundreds of clients, one after another and at the same time.

use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{
    Answers, CLIENTS_MAX, Client, Description, Destinations, GroupId, Places, StartOptions,
};

use crate::support::{LONG, Started, overlay, start_these, wait_until};

/// Number of clients in the ordinary run.
const CLIENTS: u16 = 300;

/// Number of threads that step the clients.
const THREADS: u16 = 4;

fn running(
    carrier: Carrier,
    clients: u16,
    change: impl Fn(&mut Description),
) -> (Description, Vec<Started>, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut description = overlay(carrier, &[None], folder.path());
    description.clients_max = clients;
    description.client_window = 4;
    description.message_max = 64;
    // The machine may be busy.
    description.failure_timeout_ms = 5_000;
    change(&mut description);
    let places = Places::new(&description, description.overlay().expect("a tree"));
    let started = start_these(&description, places.replicas());
    (description, started, folder)
}

fn connect(description: &Description) -> Client {
    let mut options = StartOptions::default();
    options.time_limit = LONG;
    Client::connect(description, Destinations::default(), options).expect("a place")
}

/// Each client sends one message. Then one in three leaves, and the others are lost.
fn one_after_another(carrier: Carrier, clients: u16) {
    let (description, started, _folder) = running(carrier, clients, |_| {});
    for number in 0..clients {
        let mut client = connect(&description);
        let text = number.to_string();
        client
            .multicast(Destinations::of(GroupId(0)), text.as_bytes(), Answers::All)
            .expect("room");
        client.wait(LONG).expect("it continues").expect("answered");
        if number % 3 == 0 {
            assert!(client.leave(LONG).expect("it continues"));
        }
    }
    let expected: Vec<String> = (0..clients).map(|number| number.to_string()).collect();
    for one in &started {
        wait_until("all are delivered", || one.keeper.len() == expected.len());
        assert_eq!(one.keeper.payloads(), expected);
        wait_until("no client is connected", || one.running.status().clients == 0);
    }
}

/// Steps clients until a condition holds.
fn step_until(clients: &mut [Client], mut is_so: impl FnMut(&mut [Client]) -> bool) {
    wait_until("the clients see it", || {
        clients.iter_mut().for_each(|client| {
            client.step().expect("it continues");
        });
        is_so(clients)
    });
}

/// All clients are connected to all replicas while each of them sends a message.
fn at_the_same_time(carrier: Carrier, clients: u16) {
    // A client whose thread connects another one may be stepped rarely.
    let (description, started, _folder) =
        running(carrier, clients, |description| description.client_lease_ms = 60_000);
    let (answered, is_over) = (AtomicU16::new(0), AtomicBool::new(false));
    let stepping = |count: u16| {
        let mut own = Vec::new();
        for _ in 0..count {
            own.push(connect(&description));
            own.iter_mut().for_each(|client: &mut Client| {
                client.step().expect("it continues");
            });
        }
        for client in &mut own {
            let text = client.number().0.to_string();
            let to = Destinations::of(GroupId(0));
            client.multicast(to, text.as_bytes(), Answers::OneOfEach).expect("there is room");
        }
        step_until(&mut own, |own| {
            let polled = own.iter_mut().filter_map(Client::poll).count();
            answered.fetch_add(u16::try_from(polled).expect("few"), Ordering::Relaxed);
            own.iter().all(|client| client.under_way() == 0)
        });
        step_until(&mut own, |_| is_over.load(Ordering::Relaxed));
    };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let count = clients / THREADS + u16::from(thread < clients % THREADS);
            let stepping = &stepping;
            scope.spawn(move || stepping(count));
        }
        wait_until("all are answered", || answered.load(Ordering::Relaxed) == clients);
        for one in &started {
            wait_until("all are connected", || one.running.status().clients == clients);
            wait_until("all are delivered", || one.keeper.len() == usize::from(clients));
            assert_eq!(one.keeper.payloads(), started[0].keeper.payloads());
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for one in &started {
        wait_until("no client is connected", || one.running.status().clients == 0);
    }
}

#[test]
fn hundreds_of_clients_come_one_after_another() {
    one_after_another(Carrier::SharedMemory, CLIENTS);
}

#[test]
fn hundreds_of_clients_are_served_over_shared_memory() {
    at_the_same_time(Carrier::SharedMemory, CLIENTS);
}

#[test]
fn hundreds_of_clients_are_served_over_tcp() {
    at_the_same_time(Carrier::Tcp, CLIENTS);
}

#[test]
#[ignore = "it takes minutes: .ci/full has it"]
fn maximum_number_of_clients_comes_one_after_another() {
    one_after_another(Carrier::SharedMemory, CLIENTS_MAX);
    one_after_another(Carrier::Tcp, CLIENTS_MAX);
}

#[test]
#[ignore = "it needs 16,000 descriptors: .ci/full has it"]
fn maximum_number_of_clients_is_served_over_tcp() {
    at_the_same_time(Carrier::Tcp, CLIENTS_MAX);
}
