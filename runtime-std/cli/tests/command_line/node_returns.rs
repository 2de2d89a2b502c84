//! Nodes are killed and restart immediately while others join: no other node is lost.

use std::time::Duration;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;
use rustix::process::Signal;

const ROUNDS: u64 = 16;

/// When a node is admitted, it calls all members. One of them has just died, and its next process
/// starts before the call times out.
#[test]
fn quick_restart_during_join_removes_no_other_node() {
    let group = GroupFile::of(Transport::TcpWithKey, 4);
    group.write(&group.text().replace("name = \"log\"\n", "name = \"log\"\ninitial = [0, 1, 2]\n"));
    let mut nodes: Vec<Option<Node>> = (0..3).map(|id| Some(group.node(id, &[]))).collect();
    group.await_members(&[0, 1, 2]);
    nodes.push(None);
    for round in 0..ROUNDS {
        let joins = |nodes: &[Option<Node>]| {
            nodes[0].as_ref().expect("it runs").errors().matches("joined 3").count()
        };
        let before = joins(&nodes);
        nodes[3] = Some(group.node(3, &[]));
        if round % 2 == 0 {
            wait_for("the view with the joiner", || (joins(&nodes) > before).then_some(()));
        } else {
            // The kill happens at some moment during the join.
            std::thread::sleep(Duration::from_millis(8 * round));
        }
        nodes[1].take().expect("it runs").kill();
        std::thread::sleep(Duration::from_millis(20 * (round % 10)));
        nodes[1] = Some(group.node(1, &[]));
        group.await_members(&[0, 1, 2, 3]);
        // A leftover call reaches the next process within moments.
        std::thread::sleep(Duration::from_millis(300));
        for (id, node) in nodes.iter_mut().enumerate() {
            let node = node.as_mut().expect("it runs");
            assert!(node.is_running(), "round {round}: node {id}: {}", node.errors());
            node.write(&lines(id, 0..1));
        }
        group.await_members(&[0, 1, 2, 3]);
        let joiner = nodes[3].as_mut().expect("it runs");
        joiner.signal(Signal::TERM);
        joiner.assert_left();
        group.await_members(&[0, 1, 2]);
    }
    let said = nodes[0].as_ref().expect("it runs").errors();
    let gone: Vec<&str> = said.lines().filter_map(|line| line.split("; gone ").nth(1)).collect();
    // In each round, the killed node is removed once, and the joining node leaves. No other node
    // leaves the view.
    assert!(
        gone.iter().all(|nodes| nodes.split(' ').all(|node| node == "1" || node == "3")),
        "{said}"
    );
    assert_eq!(u64::try_from(said.matches("gone 1").count()).expect("few"), ROUNDS, "{said}");
}
