//! Links between two hosts that break while others keep working. The kernel's filter drops the
//! packets of one node's process, which needs root and `nft`.

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;

/// The user group that identifies a node's packets.
const MARK: u32 = 4_242;

/// A filter that drops packets from marked processes to addresses. It is removed on drop.
struct BrokenLink(String);

impl BrokenLink {
    /// Starts the filter. Returns `None` if this process may not filter packets.
    fn to(addresses: &[&str]) -> Option<Self> {
        let ports: Vec<&str> =
            addresses.iter().filter_map(|address| address.rsplit(':').next()).collect();
        let table = format!("tramontane_{}_{}", std::process::id(), ports.join("_"));
        let rules = format!(
            "table ip {table} {{ chain output {{ type filter hook output priority 0; \
             meta skgid {MARK} tcp dport {{ {} }} drop; }}; }}",
            ports.join(", ")
        );
        let made = Command::new("nft").arg(rules).output();
        made.is_ok_and(|made| made.status.success()).then_some(Self(table))
    }
}

impl Drop for BrokenLink {
    fn drop(&mut self) {
        let _ = Command::new("nft").args(["delete", "table", "ip", &self.0]).output();
    }
}

fn marked_node(group: &GroupFile, id: usize) -> Node {
    let (id_text, log) = (id.to_string(), group.log_path(id));
    let log = log.to_str().expect("a path");
    let base = ["node", "--config", &group.config, "--id", &id_text, "--log", log];
    let mut command = group.place.command(&base);
    command.gid(MARK);
    Node::start(command)
}

/// Returns the addresses of a group's nodes.
fn addresses(group: &GroupFile) -> Vec<String> {
    let text = group.text();
    let of = text.lines().filter_map(|line| line.strip_prefix("address = "));
    of.map(|address| address.trim_matches('"').to_owned()).collect()
}

#[test]
fn node_waits_until_all_members_reach_it() {
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    let text = group.text().replace("= 3000", "= 1000");
    group.write(&format!("initial = [0, 1]\n{text}"));
    let Some(link) = BrokenLink::to(&[&addresses(&group)[1]]) else {
        eprintln!("inconclusive: this user may not filter packets");
        return;
    };
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    group.await_members(&[0, 1]);
    let joiner = marked_node(&group, 2);
    joiner.await_errors("this node cannot reach node 1");
    let notes = wait_for("a notice", || {
        let status = String::from_utf8(group.run("status", &[]).output).expect("text");
        status.contains("node 2 is waiting").then_some(status)
    });
    assert!(notes.contains("node 0: node 2 is waiting: node 1 cannot reach it"), "{notes}");
    // In the meantime, no delivery is delayed.
    let until = Instant::now() + Duration::from_secs(4);
    let mut written = 0;
    while Instant::now() < until {
        nodes[1].write(&lines(1, written..written + 1));
        written += 1;
        group.await_same(&[0, 1], written);
    }
    assert!(!nodes[0].errors().contains("view 2"), "{}", nodes[0].errors());
    drop(link);
    nodes[0].await_errors("view 2: 0 1 2; joined 2");
    group.await_same(&[0, 1, 2], written);
}

/// Both nodes reach the members when they begin to join, and neither reaches the other.
#[test]
fn simultaneous_joiners_without_link_are_not_both_admitted() {
    let group = GroupFile::of(Transport::TcpWithKey, 4);
    let text = group.text().replace("= 3000", "= 1000");
    group.write(&format!("initial = [0, 1]\n{text}"));
    let addresses = addresses(&group);
    let Some(link) = BrokenLink::to(&[&addresses[2], &addresses[3]]) else {
        eprintln!("inconclusive: this user may not filter packets");
        return;
    };
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    group.await_members(&[0, 1]);
    nodes[0].write(&lines(0, 0..20));
    group.await_same(&[0, 1], 20);
    let _joiners = [2, 3].map(|id| marked_node(&group, id));
    wait_for("a notice", || {
        let status = String::from_utf8(group.run("status", &[]).output).expect("text");
        let waits = |(one, other)| {
            status.contains(&format!("node {one} is waiting: node {other} cannot reach it"))
        };
        [(2, 3), (3, 2)].into_iter().any(waits).then_some(())
    });
    let errors = nodes[0].errors();
    assert!(!errors.contains("view 3"), "one joiner was admitted and lost: {errors}");
    drop(link);
    group.await_members(&[0, 1, 2, 3]);
    assert!(!nodes[0].errors().contains("view 4"), "{}", nodes[0].errors());
    group.await_same(&[0, 1, 2, 3], 20);
}
