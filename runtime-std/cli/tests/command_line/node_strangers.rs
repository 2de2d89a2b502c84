//! Limits on unauthenticated peers of a running group: they can neither shut out members, operators
//! and scrapers by staying silent nor fill the nodes' memory.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::support::group::{GroupFile, Transport, lines};
use crate::support::{LONG, free_addresses, wait_for};
use tramontane_control::{
    Address, HostAddress, Identity, OpenSessionError, OpenedSession, Purpose, Refusal, SharedKey,
    incarnation, open_session,
};
use tramontane_core::ids::NodeId;
use tramontane_runtime::group::Description;

static NEVER: AtomicBool = AtomicBool::new(false);

fn description(group: &GroupFile) -> Description {
    Description::read(Path::new(&group.config)).expect("a group file")
}

fn address(description: &Description, node: usize) -> SocketAddr {
    let address = description.nodes[node].address.as_ref().and_then(HostAddress::literal);
    address.expect("over TCP")
}

/// Connects to node 0 as a process that has the group file and its key.
fn go(
    description: &Description,
    node: u32,
    purpose: Purpose,
) -> Result<OpenedSession, OpenSessionError> {
    let key =
        description.key_file.as_deref().map(|path| SharedKey::from_file(path).expect("a key"));
    let digest = description.digest();
    let identity = Identity {
        node: NodeId(node),
        incarnation: incarnation().expect("random numbers"),
        digest,
    };
    open_session(
        &Address::from(address(description, 0)),
        &identity,
        key.as_ref(),
        purpose,
        LONG,
        &NEVER,
    )
}

/// Returns the resident memory of a node's process in KiB.
fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a field");
    line.split_ascii_whitespace().nth(1).expect("a number").parse().expect("a number")
}

#[test]
fn connections_with_unlisted_ids_use_no_memory() {
    const VISITS: u32 = 3000;
    const GROWTH_MAX_KIB: u64 = 24 << 10;
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    let description = description(&group);
    let before = resident_kib(nodes[0].pid());
    let mut let_in = 0;
    for visit in 0..VISITS {
        let purpose = if visit % 2 == 0 { Purpose::Peer } else { Purpose::Join };
        match go(&description, 1_000 + visit, purpose) {
            Err(OpenSessionError::Refused(Refusal::NotAMember | Refusal::Busy)) => {}
            Err(error) => panic!("{error}"),
            Ok(_) => let_in += 1,
        }
    }
    let growth = resident_kib(nodes[0].pid()).saturating_sub(before);
    assert_eq!(let_in, 0, "strangers were let in; the node grew by {growth} KiB");
    assert!(growth < GROWTH_MAX_KIB, "the node grew by {growth} KiB");
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
}

#[test]
fn repeated_peer_connections_use_bounded_memory() {
    const VISITS: u32 = 500;
    const GROWTH_MAX_KIB: u64 = 24 << 10;
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    let description = description(&group);
    let before = resident_kib(nodes[0].pid());
    // This peer has the key, so it may be any node. The resources of its connections are freed when
    // it disconnects.
    let let_in = (0..VISITS).filter(|_| go(&description, 2, Purpose::Peer).is_ok()).count();
    assert!(let_in > 0, "nothing was tried");
    let growth = resident_kib(nodes[0].pid()).saturating_sub(before);
    assert!(growth < GROWTH_MAX_KIB, "the node grew by {growth} KiB");
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
}

/// Traffic that is encrypted on the wire must not be in a file that other users can read.
#[test]
fn logs_of_group_with_key_are_private() {
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    // A node that receives the state writes a new file, which replaces its log.
    std::fs::remove_file(group.log_path(2)).expect("its log");
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
    group.await_same(&[0, 1, 2], 10);
    for id in 0..3 {
        let log = std::fs::metadata(group.log_path(id)).expect("its log");
        assert_eq!(log.permissions().mode() & 0o777, 0o600, "node {id}");
    }
}

/// Opens up to `count` silent connections, as many as the system permits.
fn silent(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count).map(|_| TcpStream::connect(to).expect("it listens")).collect()
}

/// Requests the metrics as a scraper does.
fn scrape(metrics: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(metrics)?;
    stream.set_read_timeout(Some(LONG))?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")?;
    let mut page = String::new();
    stream.read_to_string(&mut page)?;
    Ok(page)
}

#[test]
fn silent_connections_do_not_block_clients() {
    const SILENT: usize = 150;
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let metrics = free_addresses(1).remove(0);
    let mut nodes = vec![group.node(0, &["--metrics", &metrics])];
    nodes.extend((1..3).map(|id| group.node(id, &[])));
    group.await_members(&[0, 1, 2]);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    let metrics: SocketAddr = metrics.parse().expect("an address");
    let door = address(&description(&group), 0);
    let mut held = silent(door, SILENT);
    held.extend(silent(metrics, SILENT));
    let page = scrape(metrics).expect("it is served");
    assert!(page.contains("tramontane_view_members"), "{page}");
    // Each silent connection is reopened whenever it is closed, while an operator asks and a node
    // joins.
    nodes.push(group.node(2, &[]));
    wait_for("a node that joins", || {
        held.retain_mut(is_open);
        held.extend(silent(door, 20));
        held.extend(silent(metrics, 20));
        held.drain(..held.len().saturating_sub(2 * SILENT));
        let status = group.status();
        let members =
            status["nodes"][0]["status"]["members"].as_array().expect("node 0 answers").len();
        assert!(scrape(metrics).expect("it is served").contains("200 OK"));
        (members == 3).then_some(())
    });
    nodes[2].write(&lines(2, 0..10));
    group.await_same(&[0, 1, 2], 10);
}

/// Returns whether the peer still holds a connection open.
fn is_open(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    loop {
        match stream.read(&mut [0; 64]) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}
