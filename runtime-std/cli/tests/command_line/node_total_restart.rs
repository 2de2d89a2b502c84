//! All nodes of a logged group die or leave at once, and are restarted (DUR-6, DUR-12).

use rustix::process::Signal;

use crate::node_durable::{await_durable, durable_lines, durable_node, logged, logged_group};
use crate::node_lost_disks::{COPIES, state_folder};
use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;

/// Starts the nodes with these ids in the given order.
fn start(group: &GroupFile, order: &[usize]) -> Vec<(usize, Node)> {
    order.iter().map(|id| (*id, durable_node(group, *id, &[]))).collect()
}

/// Kills all nodes, as a power cut would, and returns the number of lines that were durable on a
/// majority.
fn kill_all(nodes: Vec<(usize, Node)>) -> usize {
    for (_, node) in &nodes {
        node.signal(Signal::KILL);
    }
    let reported = nodes.iter().filter_map(|(_, node)| Some(durable_lines(node).last()?[1])).max();
    nodes.into_iter().for_each(|(_, node)| node.kill());
    usize::try_from(reported.unwrap_or(0)).expect("small")
}

/// Asks all nodes to leave at the same time, as a shutdown of the machine does, and returns the
/// number of durable lines.
#[track_caller]
fn stop_all(group: &GroupFile, mut nodes: Vec<(usize, Node)>) -> usize {
    nodes.iter().for_each(|(_, node)| node.signal(Signal::TERM));
    nodes.iter_mut().for_each(|(_, node)| node.assert_left());
    nodes.iter().map(|(id, _)| logged(group, *id).lines().count()).max().unwrap_or(0)
}

/// Returns the lines in the nodes' logs, which must all be the same and have at least `least`
/// lines.
#[track_caller]
fn same_lines(group: &GroupFile, nodes: &[(usize, Node)], least: usize) -> String {
    wait_for("all have the same lines", || {
        let logs: Vec<String> = nodes.iter().map(|(id, _)| group.log(*id)).collect();
        let is_same = logs.iter().all(|log| *log == logs[0]);
        (is_same && logs[0].lines().count() >= least).then(|| logs[0].clone())
    })
}

/// Writes lines until many are durable on a majority, and more are in flight.
fn write_under_load(nodes: &mut [(usize, Node)], round: usize) {
    let before = durable_lines(&nodes[0].1).last().map_or(0, |last| last[1]);
    for part in 0..4 {
        for (id, node) in nodes.iter_mut() {
            node.write(&lines(round * 10 + *id, part * 100..(part + 1) * 100));
        }
    }
    wait_for("some lines are durable", || {
        (durable_lines(&nodes[0].1).last()?[1] > before + 100).then_some(())
    });
}

fn ids(nodes: &[(usize, Node)]) -> Vec<u64> {
    let mut ids: Vec<u64> = nodes.iter().map(|(id, _)| *id as u64).collect();
    ids.sort_unstable();
    ids
}

#[test]
fn nodes_killed_under_load_restart_in_any_order() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 3);
        let mut nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        let mut known = String::new();
        for (round, order) in [[2, 0, 1], [1, 2, 0], [0, 2, 1]].iter().enumerate() {
            write_under_load(&mut nodes, round);
            let durable = kill_all(nodes);
            nodes = start(&group, order);
            group.await_members(&[0, 1, 2]);
            let lines = same_lines(&group, &nodes, durable);
            assert!(lines.starts_with(&known), "{carrier:?}: what was there is there");
            known = lines;
        }
        nodes[0].1.write(&lines(99, 0..10));
        let count = known.lines().count() + 10;
        let all = same_lines(&group, &nodes, count);
        await_durable(&nodes[0].1, count as u64);
        kill_all(nodes);
        (0..3).for_each(|id| assert_eq!(logged(&group, id), all, "{carrier:?}: {id}"));
    }
}

/// Simulates `docker compose down` and the shutdown of a machine.
#[test]
fn nodes_that_leave_together_can_restart() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 4);
        group.write(&format!("initial = [0, 1, 2]\n{}", group.text()));
        let mut nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        let mut known = String::new();
        for (round, leaves_first) in [false, true, false].into_iter().enumerate() {
            write_under_load(&mut nodes, round);
            if leaves_first {
                stop_all(&group, vec![nodes.remove(0)]);
            }
            if round == 2 {
                // The node is joining, or has just joined.
                nodes.extend(start(&group, &[3]));
                let folder = group.place.path().join("data-3");
                wait_for("it starts", || folder.exists().then_some(()));
            }
            let joins = nodes.iter().position(|(id, _)| *id == 3).map(|at| nodes.remove(at));
            joins.iter().for_each(|(_, node)| node.signal(Signal::TERM));
            let durable = stop_all(&group, nodes);
            // The node may not have been a member yet.
            joins.into_iter().for_each(|(_, mut node)| drop(node.ended()));
            nodes = start(&group, &[2, 0, 1]);
            group.await_members(&[0, 1, 2]);
            let lines = same_lines(&group, &nodes, durable);
            assert!(lines.starts_with(&known), "{carrier:?}: what was there is there");
            known = lines;
        }
        kill_all(nodes);
        (0..3).for_each(|id| assert_eq!(logged(&group, id), known, "{carrier:?}: {id}"));
    }
}

/// Returns whether a node's record says that the group continues in this view.
fn has_decided(group: &GroupFile, id: usize, view: u64) -> bool {
    COPIES.iter().any(|copy| {
        let text = std::fs::read(state_folder(group, id).join(copy)).unwrap_or_default();
        let stored = serde_json::from_slice::<serde_json::Value>(&text).unwrap_or_default();
        stored["record"]["view"] == view
    })
}

/// A member of the decided view is stopped, so that two nodes outside the view find the other
/// member in the meeting.
#[test]
fn new_nodes_wait_while_members_meet() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 4);
        group.write(&format!("initial = [0, 1, 2]\n{}", group.text()));
        let mut nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        nodes[0].1.write(&lines(0, 0..50));
        nodes.iter().for_each(|(_, node)| await_durable(node, 50));
        kill_all(nodes);
        std::fs::remove_dir_all(group.place.path().join("data-2")).expect("a folder");
        let mut nodes = start(&group, &[0, 1, 2, 3]);
        wait_for("a decision", || has_decided(&group, 0, 2).then_some(()));
        nodes[1].1.signal(Signal::STOP);
        std::thread::sleep(std::time::Duration::from_secs(2));
        nodes[1].1.signal(Signal::CONT);
        for (id, node) in &mut nodes {
            assert!(node.is_running(), "{carrier:?}: node {id}: {}", node.ended().1);
        }
        group.await_members(&[0, 1, 2, 3]);
        nodes[0].1.write(&lines(7, 0..10));
        await_durable(&nodes[0].1, 60);
        kill_all(nodes);
    }
}

/// DUR-12: earlier versions promised a view without members, and decided on it at the next start.
#[test]
fn stored_empty_view_does_not_prevent_restart() {
    for (is_decided, order) in [(false, [2, 0, 1]), (true, [0, 1, 2]), (true, [1, 2, 0])] {
        let group = logged_group(Transport::SharedMemory, 3);
        let mut nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        nodes[0].1.write(&lines(0, 0..50));
        nodes.iter().for_each(|(_, node)| await_durable(node, 50));
        kill_all(nodes);
        for id in 0..3 {
            let folder = group.place.path().join(format!("data-{id}/view"));
            let text = std::fs::read(folder.join("membership.json")).expect("it was a member");
            let mut last: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            last = last["record"].take();
            last["format"] = 1.into();
            last.as_object_mut().expect("a record").remove("logs");
            // One node has not learned of the decision.
            if is_decided && id > 0 {
                last["view"] = 2.into();
                last["members"] = serde_json::json!([]);
                last["closed"] = serde_json::json!([0]);
                last["heard"] = serde_json::json!([1, 0]);
            } else {
                last["promise"] = serde_json::json!({
                    "ballot": [u8::from(is_decided), 1], "view": 2, "members": [], "ends": [50],
                });
            }
            std::fs::write(folder.join("membership.json"), last.to_string()).expect("a file");
            std::fs::remove_file(folder.join("membership-2.json")).expect("a file");
        }
        let mut nodes = start(&group, &order[..2]);
        std::thread::sleep(std::time::Duration::from_millis(300));
        nodes.extend(start(&group, &order[2..]));
        group.await_members(&[0, 1, 2]);
        nodes[0].1.write(&lines(7, 0..10));
        let all = same_lines(&group, &nodes, 60);
        await_durable(&nodes[0].1, 60);
        kill_all(nodes);
        (0..3).for_each(|id| assert_eq!(logged(&group, id), all, "{is_decided}: {id}"));
    }
}

/// A failure must be reported as in a running group. Otherwise, the node would silently retry
/// forever.
#[test]
fn node_exits_if_disk_fails_during_restart() {
    for carrier in Transport::ALL {
        let group = logged_group(carrier, 3);
        let mut nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        nodes[0].1.write(&lines(0, 0..50));
        nodes.iter().for_each(|(_, node)| await_durable(node, 50));
        kill_all(nodes);
        // One copy can be neither written nor read.
        let copy = |id| group.place.path().join(format!("data-{id}/view/membership-2.json"));
        let fail = |id| {
            std::fs::remove_file(copy(id)).expect("a file");
            std::fs::create_dir(copy(id)).expect("a folder");
        };
        let repair = |id| std::fs::remove_dir(copy(id)).expect("a folder");
        let ends = |node: &mut Node, id: usize| {
            let (status, errors) = node.ended();
            assert_eq!(status, Some(4), "{carrier:?}: {errors}");
            let last = errors.lines().last().expect("a line");
            let folder = format!("data-{id}/view: Is a directory");
            assert!(last.contains(&folder) && last.contains("; use a state folder"), "{errors}");
        };
        let mut fails = start(&group, &[2]);
        fails[0].1.await_errors("waiting for 0, 1");
        fail(2);
        let others = start(&group, &[0, 1]);
        ends(&mut fails[0].1, 2);
        // The others are a majority. The node returns once its disk is repaired.
        group.await_members(&[0, 1]);
        repair(2);
        fails = start(&group, &[2]);
        group.await_members(&[0, 1, 2]);
        kill_all(fails);
        kill_all(others);
        (0..3).for_each(fail);
        start(&group, &[0, 1, 2]).iter_mut().for_each(|(id, node)| ends(node, *id));
        (0..3).for_each(repair);
        let all = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        kill_all(all);
        (0..3).for_each(|id| assert_eq!(logged(&group, id), lines(0, 0..50), "{carrier:?}: {id}"));
    }
}

#[test]
fn group_restarts_before_its_fifth_node_returns() {
    let group = logged_group(Transport::TcpWithKey, 5);
    let mut nodes = start(&group, &[0, 1, 2, 3, 4]);
    group.await_members(&[0, 1, 2, 3, 4]);
    write_under_load(&mut nodes, 0);
    let durable = kill_all(nodes);
    let mut nodes = start(&group, &[4, 2, 1, 3]);
    group.await_members(&[1, 2, 3, 4]);
    same_lines(&group, &nodes, durable);
    nodes[0].1.write(&lines(77, 0..20));
    nodes.extend(start(&group, &[0]));
    group.await_members(&[0, 1, 2, 3, 4]);
    let all = same_lines(&group, &nodes, durable + 20);
    await_durable(&nodes[4].1, all.lines().count() as u64);
    kill_all(nodes);
    (0..5).for_each(|id| assert_eq!(logged(&group, id), all, "{id}"));
}

#[test]
fn restart_with_less_continues_without_missing_nodes() {
    let group = logged_group(Transport::SharedMemory, 3);
    let mut nodes = start(&group, &[0, 1, 2]);
    group.await_members(&[0, 1, 2]);
    write_under_load(&mut nodes, 0);
    kill_all(nodes);
    let alone = durable_node(&group, 1, &[]);
    alone.await_errors("waiting for 0, 2: a majority of its members is needed");
    alone.kill();
    let mut nodes = vec![(1, durable_node(&group, 1, &["--restart-with-less"]))];
    group.await_members(&[1]);
    nodes[0].1.write(&lines(5, 0..10));
    let own = same_lines(&group, &nodes, 10);
    let noted = std::fs::read_to_string(group.place.path().join("data-1/view/membership.json"));
    assert!(noted.expect("a file").contains("\"with_less\":[2]"), "it is written down");
    // The logs of the others are set aside, not replayed.
    nodes.extend(start(&group, &[0, 2]));
    group.await_members(&[0, 1, 2]);
    assert!(same_lines(&group, &nodes, 10).starts_with(&own));
    assert_eq!(ids(&nodes), [0, 1, 2]);
    kill_all(nodes);
}

#[test]
fn nodes_killed_during_restart_can_restart() {
    let group = logged_group(Transport::TcpWithKey, 3);
    let mut nodes = start(&group, &[0, 1, 2]);
    group.await_members(&[0, 1, 2]);
    write_under_load(&mut nodes, 0);
    let durable = kill_all(nodes);
    for pause_ms in [100, 300, 500, 800, 1200] {
        let nodes = start(&group, &[0, 1, 2]);
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        kill_all(nodes);
    }
    let nodes = start(&group, &[2, 1, 0]);
    group.await_members(&[0, 1, 2]);
    let all = same_lines(&group, &nodes, durable);
    kill_all(nodes);
    (0..3).for_each(|id| assert_eq!(logged(&group, id), all, "{id}"));
}

/// A node's disk after a power cut during the group's first formation.
#[derive(Clone, Copy, Debug)]
enum Formed {
    /// The first view is decided.
    Decided,
    /// The group is being formed.
    Noted,
    /// Nothing.
    Nothing,
}

/// Found by `runtime-std/lab/power`: one node knew that the first view was decided, and the others,
/// which did not, were treated as new nodes.
#[test]
fn group_survives_power_loss_while_forming() {
    use Formed::{Decided, Noted, Nothing};
    for (carrier, found, pause_ms) in [
        (Transport::SharedMemory, [Decided, Noted, Noted], 0),
        (Transport::SharedMemory, [Decided, Noted, Noted], 700),
        (Transport::TcpWithKey, [Noted, Decided, Decided], 700),
        (Transport::TcpWithKey, [Noted, Noted, Noted], 0),
        (Transport::SharedMemory, [Nothing, Noted, Nothing], 0),
    ] {
        let group = logged_group(carrier, 3);
        let nodes = start(&group, &[0, 1, 2]);
        group.await_members(&[0, 1, 2]);
        kill_all(nodes);
        for (id, found) in found.iter().enumerate() {
            leave(&group.place.path().join(format!("data-{id}/view/membership.json")), *found);
        }
        let mut nodes = start(&group, &[1, 2]);
        std::thread::sleep(std::time::Duration::from_millis(pause_ms));
        nodes.extend(start(&group, &[0]));
        group.await_members(&[0, 1, 2]);
        nodes[1].1.write(&lines(1, 0..10));
        let all = same_lines(&group, &nodes, 10);
        await_durable(&nodes[0].1, 10);
        kill_all(nodes);
        (0..3).for_each(|id| assert_eq!(logged(&group, id), all, "{found:?}: {id}"));
    }
}

fn leave(remembered: &std::path::Path, found: Formed) {
    match found {
        Formed::Decided => {}
        Formed::Nothing => std::fs::remove_file(remembered).expect("it was a member"),
        Formed::Noted => {
            let text = std::fs::read(remembered).expect("it was a member");
            let mut noted: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
            noted["view"] = 0.into();
            noted["members"] = serde_json::Value::Array(Vec::new());
            noted["incarnation"] = 0.into();
            std::fs::write(remembered, noted.to_string()).expect("a file");
        }
    }
}
