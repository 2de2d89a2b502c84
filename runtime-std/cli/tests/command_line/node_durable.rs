//! Nodes with durable logs: their reports on durable lines, and their state after they are killed.

use serde_json::Value;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;

/// Creates a group whose only subgroup is logged.
pub fn logged_group(carrier: Transport, nodes: usize) -> GroupFile {
    let group = GroupFile::of(carrier, nodes);
    let subgroup = "[[subgroups]]\nname = \"lines\"\nlogged = true\n";
    group.write(&(group.text() + subgroup));
    group
}

/// Starts a node with a log of its lines and a folder for its durable log.
pub fn durable_node(group: &GroupFile, id: usize, more: &[&str]) -> Node {
    let data = group.place.path().join(format!("data-{id}"));
    group.node(id, &[&["--data", data.to_str().expect("a path"), "--json"], more].concat())
}

/// Returns a node's reports on durable lines: here, on a majority, and on all nodes.
pub fn durable_lines(node: &Node) -> Vec<[u64; 3]> {
    let output = node.output();
    let lines = output.lines().filter(|line| line.starts_with("{\"durable\":"));
    lines
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("JSON");
            let durable = line["durable"].as_object().expect("counts");
            assert_eq!((durable.len(), line.as_object().map(serde_json::Map::len)), (3, Some(1)));
            ["here", "majority", "all"].map(|name| durable[name].as_u64().expect("a count"))
        })
        .collect()
}

#[track_caller]
pub fn await_durable(node: &Node, all: u64) {
    wait_for("it is durable everywhere", || {
        durable_lines(node).last().is_some_and(|last| last[2] == all).then_some(())
    });
}

/// Returns the messages of a durable log, as `tramontane log` prints them.
pub fn logged(group: &GroupFile, id: usize) -> String {
    let folder = group.place.path().join(format!("data-{id}/lines"));
    let folder = folder.to_str().expect("a path");
    let printed = group.place.run(&["log", folder, "--json"]).succeeded();
    let printed = String::from_utf8(printed).expect("text");
    let text = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["message"]["text"].as_str().map(|text| format!("{text}\n"))
    };
    printed.lines().filter_map(text).collect()
}

#[test]
fn reported_durable_counts_only_grow() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 3);
        let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
        for part in 0..5 {
            nodes[part % 3].write(&lines(part, 0..20));
        }
        let log = group.await_same(&[0, 1, 2], 100);
        for node in &nodes {
            await_durable(node, 100);
            let reported = durable_lines(node);
            for [here, majority, all] in &reported {
                assert!(all <= here && all <= majority && *here <= 100, "{reported:?}");
            }
            let grows = |pair: &[[u64; 3]]| (0..3).all(|at| pair[0][at] <= pair[1][at]);
            assert!(reported.windows(2).all(|pair| grows(pair) && pair[0] != pair[1]));
        }
        // A node answers with a status that it updates only at intervals.
        wait_for("the status with what is durable", || {
            let status = group.status();
            let durable = &status["nodes"][1]["status"]["subgroups"][0]["durable"];
            (durable["here"] == 100 && durable["all"] == 100).then_some(())
        });
        wait_for("the table with what is durable", || {
            let table = String::from_utf8(group.run("status", &[]).succeeded()).expect("text");
            table.contains("durable 100/100/100").then_some(())
        });
        for node in nodes {
            node.kill();
        }
        for id in 0..3 {
            assert_eq!(logged(&group, id), log, "{carrier:?}: node {id}");
        }
    }
}

/// A node that is killed while lines flow returns, and both of its logs have all lines.
#[test]
fn killed_node_returns_with_all_lines_in_order() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 3);
        let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
        nodes[0].write(&lines(0, 0..50));
        group.await_same(&[0, 1, 2], 50);
        for round in 1..3 {
            let last = nodes.pop().expect("node 2");
            nodes[1].write(&lines(round, 0..50));
            last.kill();
            group.await_members(&[0, 1]);
            nodes[0].write(&lines(10 + round, 0..50));
            nodes.push(durable_node(&group, 2, &[]));
            group.await_members(&[0, 1, 2]);
            nodes[2].write(&lines(20 + round, 0..50));
            let count = 50 + 150 * round;
            group.await_same(&[0, 1, 2], count);
            for node in &nodes {
                await_durable(node, u64::try_from(count).expect("small"));
            }
        }
        for node in nodes {
            node.kill();
        }
        for id in 0..3 {
            assert_eq!(logged(&group, id), group.log(0), "{carrier:?}: node {id}");
        }
    }
}
