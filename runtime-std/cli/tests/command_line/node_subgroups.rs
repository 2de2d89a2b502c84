//! `tramontane node` in a group with several subgroups, each with its own log.

use std::path::PathBuf;

use crate::support::group::{GroupFile, Node, Transport, kill_all, lines, lines_of};
use crate::support::wait_for;
use rustix::process::Signal;

/// Nodes 0 and 1 are in one subgroup, 2 and 3 in the other, and node 4 in both.
const SUBGROUPS: &str = "[[subgroups]]\nname = \"left\"\nmembers = [0, 1, 4]\n\
                         [[subgroups]]\nname = \"right\"\nmembers = [2, 3, 4]\nsenders = [2, 3]\n";

fn log_of(group: &GroupFile, id: usize, subgroup: &str) -> PathBuf {
    group.place.path().join(format!("log-{id}.{subgroup}"))
}

/// Waits until these nodes have `count` lines of a subgroup, with the same bytes.
#[track_caller]
fn await_same(group: &GroupFile, ids: [usize; 3], subgroup: &str, count: usize) -> String {
    let logs = ids.map(|id| {
        wait_for(&format!("the lines of {subgroup} at {id}"), || {
            let log = std::fs::read_to_string(log_of(group, id, subgroup)).ok()?;
            (log.lines().count() >= count).then_some(log)
        })
    });
    assert_eq!(logs[0], logs[1], "{subgroup}");
    assert_eq!(logs[0], logs[2], "{subgroup}");
    logs[0].clone()
}

#[test]
fn returning_node_restores_its_subgroup_logs() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 5);
        group.write(&(group.text() + SUBGROUPS));
        let mut nodes: Vec<Node> = (0..5).map(|id| group.node(id, &[])).collect();
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 0..50));
        }
        // Node 4 sends in the first of its subgroups in which it may send.
        await_same(&group, [0, 1, 4], "left", 150);
        await_same(&group, [2, 3, 4], "right", 100);

        nodes.pop().expect("the last").kill();
        nodes[0].await_errors("view 2: 0 1 2 3; gone 4\n");
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 50..100));
        }
        nodes.push(group.node(4, &["--subgroup", "left"]));
        nodes[4].await_errors("joined 4\n");
        nodes[4].write(&lines(4, 50..60));
        let left = await_same(&group, [0, 1, 4], "left", 260);
        let right = await_same(&group, [2, 3, 4], "right", 200);
        for (log, id, count) in
            [(&left, 0, 100), (&left, 1, 100), (&left, 4, 60), (&right, 2, 100), (&right, 3, 100)]
        {
            assert_eq!(lines_of(log, id), lines(id, 0..count), "{carrier:?}, of {id}");
        }
        for (id, subgroup) in [(0, "right"), (1, "right"), (2, "left"), (3, "left")] {
            assert!(!log_of(&group, id, subgroup).exists(), "{id} is not in {subgroup}");
        }
    }
}

#[test]
fn non_sender_exits_with_status_2() {
    let group = GroupFile::of(Transport::SharedMemory, 5);
    group.write(&(group.text() + SUBGROUPS));
    for (id, subgroup, words) in [
        ("4", "right", ["right", "send"]),
        ("0", "right", ["right", "send"]),
        ("0", "middle", ["middle", "subgroup"]),
    ] {
        group.run("node", &["--id", id, "--subgroup", subgroup]).failed(2, &words);
    }
}

/// The nodes of one logged subgroup leave or are killed, one at a time, while the group continues
/// in another subgroup. Those nodes return. Then all nodes are stopped and restarted, as the nodes'
/// output advises.
#[test]
fn logged_subgroup_keeps_messages_while_members_are_absent() {
    const LOGGED: &str = "[[subgroups]]\nname = \"left\"\nmembers = [0, 1]\nlogged = true\n\
                          [[subgroups]]\nname = \"right\"\nmembers = [2, 3, 4]\nlogged = true\n";
    for (carrier, signal) in Transport::ALL.into_iter().zip([Signal::TERM, Signal::KILL]) {
        let group = GroupFile::of(carrier, 5);
        group.write(&(group.text() + LOGGED));
        let start = |id: usize| {
            let data = group.place.path().join(format!("data-{id}"));
            group.node(id, &["--data", data.to_str().expect("a path")])
        };
        let await_lines = |id: usize, subgroup: &str, count: usize| {
            wait_for(&format!("{count} lines of {subgroup} at {id}"), || {
                let log = std::fs::read_to_string(log_of(&group, id, subgroup)).ok()?;
                (log.lines().count() == count).then_some(log)
            })
        };
        let await_durable = |count: usize| {
            wait_for("lines are durable", || {
                let table = String::from_utf8(group.run("status", &[]).output).expect("text");
                table.contains(&format!("durable {count}/{count}/{count}")).then_some(())
            })
        };
        let mut nodes: Vec<Node> = (0..5).map(start).collect();
        group.await_members(&[0, 1, 2, 3, 4]);
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 0..50));
        }
        (0..2).for_each(|id| drop(await_lines(id, "left", 100)));
        (2..5).for_each(|id| drop(await_lines(id, "right", 150)));
        let mut end_first = |members: &[u64]| {
            nodes[0].signal(signal);
            nodes.remove(0).ended();
            group.await_members(members);
            nodes[0].write(&lines(9, 0..10));
        };
        end_first(&[1, 2, 3, 4]);
        // Node 0 has none of these lines.
        let left = await_lines(1, "left", 110);
        await_durable(110);
        end_first(&[2, 3, 4]);
        let right = await_lines(4, "right", 160);
        await_durable(160);
        nodes[0].await_errors("subgroup \"left\" is closed");

        nodes.extend([start(0), start(1)]);
        group.await_members(&[0, 1, 2, 3, 4]);
        nodes[3].await_errors("start them, then end all nodes of the group and start them all");
        match signal {
            Signal::KILL => kill_all(nodes),
            _ => {
                nodes.iter().for_each(|node| node.signal(signal));
                nodes.iter_mut().for_each(Node::assert_left);
            }
        }
        let mut nodes: Vec<Node> = (0..5).map(start).collect();
        group.await_members(&[0, 1, 2, 3, 4]);
        nodes.iter().for_each(|node| assert!(!node.errors().contains("is closed"), "{carrier:?}"));
        nodes[0].write("after\n");
        nodes[2].write("after\n");
        for (id, subgroup, lines) in
            [(0, "left", &left), (1, "left", &left), (2, "right", &right), (4, "right", &right)]
        {
            let log = await_lines(id, subgroup, lines.lines().count() + 1);
            assert_eq!(log, format!("{lines}after\n"), "{carrier:?}: {id}");
        }
    }
}
