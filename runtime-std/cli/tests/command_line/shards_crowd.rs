//! Shards with many more client processes than processors.

use std::fs::File;
use std::io::Write as _;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::overlay::Overlay;

/// The maximum of `clients_max`.
const CLIENTS: usize = 1024;

/// The number of clients that start at a time. More would mostly wait for each other.
const AT_A_TIME: usize = 32;

/// Starts a client process, and lets it send one line.
fn start(overlay: &Overlay, number: usize) -> Child {
    let words = ["send", "--to", "g1,g2", "--time-limit", "600"];
    let mut command = overlay.place.command(&overlay.command(&words));
    let printed = File::create(overlay.place.path().join(format!("client-{number}")));
    command.stdin(Stdio::piped()).stdout(Stdio::from(printed.expect("a file")));
    let mut client = command.spawn().expect("it starts");
    let input = client.stdin.as_mut().expect("it is piped");
    writeln!(input, "line of {number}").expect("it reads");
    client
}

/// Returns whether a client has printed its answer.
fn is_answered(overlay: &Overlay, number: usize) -> bool {
    let path = overlay.place.path().join(format!("client-{number}"));
    std::fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n'))
}

/// Every client sends a line and stays. Then half of the clients are killed, and the others leave.
#[track_caller]
fn thousand_clients(fabric: &str) {
    let overlay = Overlay::with(
        fabric,
        &format!("clients_max = {CLIENTS}\nclient_window = 4\nclient_lease_ms = 60000\n"),
    );
    let _replicas = overlay.start_all();
    overlay.await_leader("g1");
    let mut clients = Vec::new();
    for number in 0..CLIENTS {
        clients.push(start(&overlay, number));
        while (number + 1) % AT_A_TIME == 0
            && !(0..=number).rev().take(AT_A_TIME).all(|number| is_answered(&overlay, number))
        {
            for client in &mut clients {
                assert_eq!(client.try_wait().expect("it is a child"), None, "a client has ended");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    overlay.await_clients(CLIENTS);
    for group in ["g1", "g2"] {
        overlay.await_same(group, CLIENTS);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        if number % 2 == 0 {
            client.kill().expect("it runs");
        } else {
            drop(client.stdin.take());
        }
    }
    for (number, mut client) in clients.into_iter().enumerate() {
        let status = client.wait().expect("it is a child");
        assert_eq!(status.success(), number % 2 == 1, "client {number}");
    }
    overlay.await_clients(0);
    overlay.send("g1,g2", "at last\n");
    overlay.await_same("g2", CLIENTS + 1);
}

#[test]
#[ignore = "starts 1,024 processes, which would disturb other tests"]
fn thousand_client_processes_over_shared_memory() {
    thousand_clients("shm");
}

#[test]
#[ignore = "starts 1,024 processes, which would disturb other tests"]
fn thousand_client_processes_over_tcp() {
    thousand_clients("tcp");
}
