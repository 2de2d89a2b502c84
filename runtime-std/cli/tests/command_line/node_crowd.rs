//! A group of many more nodes than processors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rustix::process::Signal;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::{LONG, wait_for};

const NODES: usize = 64;
const LINES: usize = 10;

/// Waits until all nodes have printed a view of as many members. Asking all nodes for their status
/// again and again would take the processors that they need to meet.
#[track_caller]
fn await_view_of_all(nodes: &[(usize, Node)]) {
    for (_, node) in nodes {
        wait_for("the view", || {
            let errors = node.errors();
            let view = errors.lines().rfind(|line| line.starts_with("view "))?;
            let (members, _) = view.split_once(": ")?.1.split_once(';')?;
            (members.split(' ').count() == nodes.len()).then_some(())
        });
    }
}

/// Starts a group, kills two of its nodes, and stops the others.
#[track_caller]
fn survive_two_kills(carrier: Transport) {
    let group = GroupFile::of(carrier, NODES);
    let mut nodes: Vec<(usize, Node)> = (0..NODES).map(|id| (id, group.node(id, &[]))).collect();
    let ids = |nodes: &[(usize, Node)]| -> Vec<usize> { nodes.iter().map(|(id, _)| *id).collect() };
    await_view_of_all(&nodes);
    nodes.iter_mut().for_each(|(id, node)| node.write(&lines(*id, 0..LINES)));
    group.await_same(&ids(&nodes), NODES * LINES);
    for at in [NODES - 1, NODES / 2] {
        nodes.remove(at).1.kill();
    }
    await_view_of_all(&nodes);
    nodes[0].1.write(&lines(NODES, 0..LINES));
    group.await_same(&ids(&nodes), (NODES + 1) * LINES);
    nodes.iter().for_each(|(_, node)| node.signal(Signal::TERM));
    nodes.iter_mut().for_each(|(_, node)| node.assert_left());
}

#[test]
#[ignore = "starts 64 processes, which would disturb other tests"]
fn sixty_four_nodes_survive_two_kills() {
    survive_two_kills(Transport::SharedMemory);
}

/// Each heartbeat costs each node 63 encrypted frames, so two processors are always busy.
#[test]
#[ignore = "starts 64 processes, which would disturb other tests"]
fn sixty_four_nodes_with_key_survive_two_kills() {
    survive_two_kills(Transport::TcpWithKey);
}

/// Each status takes a handshake with each node.
#[test]
#[ignore = "starts 64 processes, which would disturb other tests"]
fn sixty_four_nodes_with_key_form_while_watched() {
    let group = GroupFile::of(Transport::TcpWithKey, NODES);
    let nodes: Vec<(usize, Node)> = (0..NODES).map(|id| (id, group.node(id, &[]))).collect();
    let is_formed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let until = Instant::now() + LONG;
            while !is_formed.load(Ordering::Relaxed) && Instant::now() < until {
                group.run("status", &[]);
            }
        });
        await_view_of_all(&nodes);
        is_formed.store(true, Ordering::Relaxed);
    });
}
