//! Unix sockets: the process that owns a socket, sockets of dead owners, and removal of the file.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{LONG, go, operator, server};
use tramontane_control::{Address, Listener, Purpose};

/// The environment variable with the path at which the child listens until it is killed.
const CHILD: &str = "TRAMONTANE_MESH_TEST_CHILD";

fn address(folder: &tempfile::TempDir) -> Address {
    Address::Unix(folder.path().join("3.socket"))
}

fn path(address: &Address) -> &Path {
    match address {
        Address::Unix(path) => path,
        Address::Tcp(address) => panic!("{address}"),
    }
}

/// Leaves behind a socket file of a killed process.
fn leave_stale(address: &Address) {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "sockets::child_listens_until_killed", "--nocapture"])
        .env(CHILD, path(address))
        .stdout(Stdio::null())
        .spawn()
        .expect("a process");
    let until = Instant::now() + LONG;
    while std::os::unix::net::UnixStream::connect(path(address)).is_err() {
        assert!(Instant::now() < until, "the child does not listen");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(path(address).exists());
}

#[test]
fn child_listens_until_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let _listener = Listener::bind(&Address::Unix(path.into())).expect("a socket");
    std::thread::sleep(LONG);
}

#[test]
fn socket_of_a_killed_process_is_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address(&folder);
    leave_stale(&address);
    let (_server, clients) = server(Listener::bind(&address).expect("nobody is there"), None);
    assert!(go(&address, operator(), None, Purpose::Ask).is_ok());
    assert!(clients.recv_timeout(LONG).is_ok());
}

#[test]
fn only_one_process_replaces_a_dead_socket() {
    for round in 0..10 {
        let folder = tempfile::tempdir().expect("a folder");
        let address = address(&folder);
        leave_stale(&address);
        let binding: Vec<_> = (0..8)
            .map(|_| {
                let address = address.clone();
                std::thread::spawn(move || Listener::bind(&address))
            })
            .collect();
        let bound: Vec<_> =
            binding.into_iter().map(|thread| thread.join().expect("no panic")).collect();
        let refused = |bound: &&std::io::Result<Listener>| {
            bound.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
        };
        assert_eq!(bound.iter().filter(refused).count(), 7, "round {round}: {bound:?}");
        assert!(std::os::unix::net::UnixStream::connect(path(&address)).is_ok());
    }
}

#[test]
fn socket_with_a_listener_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address(&folder);
    let _listener = Listener::bind(&address).expect("a socket");
    // More connections than the kernel queues before they are accepted.
    for _ in 0..200 {
        let error = Listener::bind(&address).expect_err("somebody listens");
        assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    }
    assert!(path(&address).exists());
}

#[test]
fn file_that_is_not_a_socket_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address(&folder);
    std::fs::write(path(&address), "a letter").expect("written");
    let error = Listener::bind(&address).expect_err("a file");
    assert_eq!(error.kind(), ErrorKind::AddrInUse, "{error}");
    assert_eq!(std::fs::read(path(&address)).expect("read"), b"a letter");
    let long = Address::Unix(folder.path().join("l".repeat(120)));
    assert!(Listener::bind(&long).is_err());
    assert!(go(&long, operator(), None, Purpose::Ask).is_err());
    assert!(Listener::bind(&Address::Unix(folder.path().join("none/3.socket"))).is_err());
}

#[test]
fn socket_file_is_private_and_removed_with_listeners() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address(&folder);
    let first = Listener::bind(&address).expect("a socket");
    let mode = path(&address).metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    let second = first.try_clone().expect("a handle");
    drop(first);
    assert!(path(&address).exists());
    let (server, _visitors) = server(second, None);
    drop(server);
    assert!(!path(&address).exists());
}

#[test]
fn listener_keeps_another_listeners_socket_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = address(&folder);
    let first = Listener::bind(&address).expect("a socket");
    std::fs::remove_file(path(&address)).expect("removed");
    let second = Listener::bind(&address).expect("nothing is there");
    drop(first);
    assert!(path(&address).exists());
    drop(second);
    assert!(!path(&address).exists());
}
