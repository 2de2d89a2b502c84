//! `tramontane node`s that restart in turn without a pause: `leave`, followed by the same command
//! as before.

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;

/// Number of nodes in the group.
const NODES: usize = 3;

/// Number of restarts per node.
fn rounds() -> usize {
    let rounds = std::env::var("TRAMONTANE_RESTART_ROUNDS").ok();
    rounds.map_or(2, |rounds| rounds.parse().expect("a number"))
}

/// Waits until a node is a member and is not alone: another node is a member too, or is receiving
/// its state. If the last member of a group leaves before another has joined, the group ends.
fn await_company(group: &GroupFile, id: usize) {
    wait_for("company", || {
        let status = &group.status()["nodes"][id]["status"];
        let count = |list: &str| status[list].as_array().map_or(0, Vec::len);
        (count("members") + count("joining") > 1).then_some(())
    });
}

#[test]
fn rolling_restart_loses_no_line() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, NODES);
        let mut nodes: Vec<Node> = (0..NODES).map(|id| group.node(id, &[])).collect();
        group.await_members(&[0, 1, 2]);
        for round in 0..rounds() {
            for (id, node) in nodes.iter_mut().enumerate() {
                await_company(&group, id);
                node.write(&lines(id, round..round + 1));
                let line = format!("{id}-{round}\n");
                wait_for("the line in its log", || group.log(id).contains(&line).then_some(()));
                group.run("leave", &["--id", &id.to_string(), "--time-limit", "60"]).succeeded();
                node.assert_left();
                *node = group.node(id, &[]);
            }
        }
        group.await_members(&[0, 1, 2]);
        group.await_same(&[0, 1, 2], NODES * rounds());
    }
}
