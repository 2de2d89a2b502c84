//! The program's advice when a group is incomplete: each piece of advice is given and followed, and
//! afterwards all lines are present.

use crate::node_durable::{await_durable, durable_node, logged_group};
use crate::support::group::{GroupFile, Node, Transport, kill_all, lines};
use crate::support::overlay::Overlay;
use crate::support::wait_for;
use rustix::process::Signal;

/// Starts three nodes with durable logs, with ten lines that are durable everywhere.
fn logged_ten(carrier: Transport) -> (GroupFile, Vec<Node>) {
    ten(carrier, true)
}

/// Starts three nodes that have ten lines, durable everywhere if they log.
fn ten(carrier: Transport, is_logged: bool) -> (GroupFile, Vec<Node>) {
    let group = if is_logged { logged_group(carrier, 3) } else { GroupFile::of(carrier, 3) };
    let start = |id| if is_logged { durable_node(&group, id, &[]) } else { group.node(id, &[]) };
    let mut nodes: Vec<_> = (0..3).map(start).collect();
    group.await_members(&[0, 1, 2]);
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    if is_logged {
        nodes.iter().for_each(|node| await_durable(node, 10));
    }
    (group, nodes)
}

/// Asserts that the ten lines, and one more from a node, are in every log.
#[track_caller]
fn assert_whole(group: &GroupFile, nodes: &mut [Node]) {
    group.await_members(&[0, 1, 2]);
    nodes[2].write("after\n");
    assert_eq!(group.await_same(&[0, 1, 2], 11), lines(0, 0..10) + "after\n");
    nodes.iter().for_each(|node| node_advises_no_new_group(&node.errors()));
}

#[track_caller]
fn node_advises_no_new_group(errors: &str) {
    assert!(!errors.contains("new-group"), "{errors}");
}

/// Removes the node's state in the folder `data-ID`, as if its disk had been replaced.
fn wipe(group: &GroupFile, id: usize) {
    std::fs::remove_dir_all(group.place.path().join(format!("data-{id}"))).expect("its data");
}

#[test]
fn restart_with_less_restores_lines_of_one_disk() {
    for carrier in Transport::ALL {
        let (group, nodes) = logged_ten(carrier);
        kill_all(nodes);
        wipe(&group, 0);
        wipe(&group, 1);
        let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
        nodes[0].await_errors("start node 2 again with the option restart-with-less");
        nodes[1].await_errors("start node 2 again with the option restart-with-less");
        nodes[2].await_errors("0, 1 are running, but have no data of the group");
        nodes[2].await_errors("start node 2 again with the option restart-with-less");
        let told = group.run("status", &["--id", "2"]);
        assert!(told.errors.contains("restart-with-less"), "{}", told.errors);
        nodes.pop().expect("the last").kill();
        nodes.push(durable_node(&group, 2, &["--restart-with-less"]));
        assert_whole(&group, &mut nodes);
    }
}

/// Node 0 left before the last view, so only node 2 can continue with less.
#[test]
fn advice_names_node_that_can_restart_with_less() {
    let (group, mut nodes) = logged_ten(Transport::SharedMemory);
    nodes[0].signal(Signal::TERM);
    nodes[0].assert_left();
    nodes[2].write("after\n");
    group.await_same(&[1, 2], 11);
    kill_all(nodes);
    wipe(&group, 1);
    let mut nodes = vec![durable_node(&group, 0, &[]), durable_node(&group, 2, &[])];
    for node in &nodes {
        node.await_errors("start node 2 again with the option restart-with-less");
    }
    nodes.remove(0).kill();
    nodes.insert(0, durable_node(&group, 0, &["--restart-with-less"]));
    nodes[0].await_errors("has no effect at node 0, because the group does not");
    nodes.pop().expect("node 2").kill();
    nodes[0].await_errors("give it to one of the nodes 1, 2 instead");
    nodes.push(durable_node(&group, 2, &["--restart-with-less"]));
    group.await_members(&[0, 2]);
    assert_eq!(group.await_same(&[0, 2], 11), lines(0, 0..10) + "after\n");
}

#[test]
fn timed_out_node_advises_restart_with_less() {
    let (group, nodes) = logged_ten(Transport::SharedMemory);
    kill_all(nodes);
    wipe(&group, 0);
    let last = durable_node(&group, 2, &[]);
    let mut new = durable_node(&group, 0, &["--time-limit", "3"]);
    let (code, errors) = new.ended();
    assert!(code == Some(5) && errors.contains("node 2 is restarting the group"), "{errors}");
    last.kill();
    let mut last = durable_node(&group, 2, &["--time-limit", "3"]);
    let (code, errors) = last.ended();
    assert!(code == Some(5) && errors.contains("waiting for 0, 1"), "{errors}");
    assert!(
        errors.contains("start them, or, ") && errors.contains("restart-with-less"),
        "{errors}"
    );
    node_advises_no_new_group(&errors);
    // The node that still has data is started, as the advice says.
    let mut nodes = vec![durable_node(&group, 1, &[]), durable_node(&group, 2, &[])];
    nodes.insert(0, durable_node(&group, 0, &[]));
    assert_whole(&group, &mut nodes);
}

#[test]
fn advice_names_only_the_mismatched_key() {
    for is_logged in [true, false] {
        let (group, mut nodes) = ten(Transport::TcpWithKey, is_logged);
        let start = |config: &str, more: &[&str]| {
            let data = format!("{}/data-2", group.place.path().display());
            let log = group.log_path(2);
            let log = log.to_str().expect("a path");
            let base = ["node", "--config", config, "--id", "2", "--log", log];
            let data: &[&str] = if is_logged { &["--data", &data] } else { &[] };
            Node::start(group.place.command(&[&base[..], data, more].concat()))
        };
        nodes.pop().expect("the last").kill();
        group.await_members(&[0, 1]);
        group.key("other", "3c");
        let other = group.variant("key_file = \"key\"", "key_file = \"other\"");
        let mut strange = start(&other, &["--time-limit", "12"]);
        wait_for("the cause, again and again", || {
            let errors = strange.errors();
            (errors.matches("a different key; give all processes the same key file").count() > 1)
                .then_some(())
        });
        let (code, errors) = strange.ended();
        assert_eq!(code, Some(5), "{errors}");
        node_advises_no_new_group(&errors);
        assert!(!errors.contains("restart-with-less"), "{errors}");
        assert!(errors.lines().last().expect("an error").contains("different key"), "{errors}");
        nodes.push(start(&group.config, &[]));
        assert_whole(&group, &mut nodes);
    }
}

/// Follows the guide's instructions on its page about hosts.
#[test]
fn key_can_be_changed_while_nodes_are_stopped() {
    for is_logged in [true, false] {
        let (group, mut nodes) = ten(Transport::TcpWithKey, is_logged);
        nodes.iter().for_each(|node| node.signal(Signal::TERM));
        nodes.iter_mut().for_each(Node::assert_left);
        group.key("key", "3c");
        let start = |id| match is_logged {
            true => durable_node(&group, id, &[]),
            false => group.node(id, &["--new-group"]),
        };
        let mut nodes: Vec<_> = (0..3).map(start).collect();
        group.await_members(&[0, 1, 2]);
        if is_logged {
            assert_whole(&group, &mut nodes);
            continue;
        }
        let kept = std::fs::read_to_string(group.place.path().join("log-1.1"));
        assert_eq!(kept.expect("the log of before"), lines(0, 0..10));
        nodes[0].write(&lines(0, 10..20));
        group.await_same(&[0, 1, 2], 10);
    }
}

#[test]
fn error_names_changed_group_file_as_cause() {
    let (group, mut nodes) = logged_ten(Transport::SharedMemory);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    let other = group.variant("heartbeat_ms = 50", "heartbeat_ms = 30");
    let data = group.place.path().join("data-2");
    let log = group.log_path(2);
    let [data, log] = [&data, &log].map(|path| path.to_str().expect("a path"));
    let arguments = ["node", "--config", &other, "--id", "2", "--log", log, "--data", data];
    let refused = group.place.run(&[&arguments[..], &["--time-limit", "600"]].concat());
    refused.failed_at_last(5, &["(heartbeat_ms)", "same group file"]);
    assert!(!refused.errors.contains("restart-with-less"), "{}", refused.errors);
    nodes.push(durable_node(&group, 2, &[]));
    assert_whole(&group, &mut nodes);
}

#[test]
fn empty_membership_file_is_set_aside_without_loss() {
    let (group, nodes) = logged_ten(Transport::SharedMemory);
    kill_all(nodes);
    let view = group.place.path().join("data-1/view");
    for entry in std::fs::read_dir(&view).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with("membership") {
            std::fs::write(entry.path(), "").expect("a file");
        }
    }
    let mut nodes: Vec<_> = [0, 2].map(|id| durable_node(&group, id, &[])).into();
    let mut damaged = durable_node(&group, 1, &[]);
    let (code, errors) = damaged.ended();
    assert!(code == Some(2) && errors.contains("move them elsewhere"), "{code:?} {errors}");
    node_advises_no_new_group(&errors);
    for entry in std::fs::read_dir(&view).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with("membership") {
            let to = view.join("..").join(format!("away-{}", entry.file_name().display()));
            std::fs::rename(entry.path(), to).expect("another name");
        }
    }
    nodes.insert(1, durable_node(&group, 1, &[]));
    assert_whole(&group, &mut nodes);
}

#[test]
fn node_without_majority_advises_full_restart() {
    let (group, mut nodes) = logged_ten(Transport::SharedMemory);
    nodes.drain(1..).for_each(Node::kill);
    let (code, errors) = nodes[0].ended();
    assert!(code == Some(9) && errors.contains("the others that ended again"), "{errors}");
    assert!(!errors.contains("joins as a new process"), "{errors}");
    let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
    assert_whole(&group, &mut nodes);
}

#[test]
fn re_formed_unlogged_group_keeps_old_files() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let start = |more: &[&str]| -> Vec<Node> { (0..3).map(|id| group.node(id, more)).collect() };
    let mut nodes = start(&[]);
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    kill_all(nodes);
    // While some nodes are missing, no node advises the user to give the group up.
    let alone = group.node(0, &[]);
    alone.await_errors("start a member that still has the group's state\n");
    node_advises_no_new_group(&alone.errors());
    alone.kill();
    for mut node in start(&[]) {
        let (code, errors) = node.ended();
        let last = errors.lines().last().unwrap_or_default();
        assert!(
            code == Some(5) && last.contains("if no such member exists any longer"),
            "{errors}"
        );
        assert!(last.contains("new-group") && last.contains("are kept"), "{errors}");
    }
    let _nodes = start(&["--new-group"]);
    group.await_members(&[0, 1, 2]);
    for id in 0..3 {
        let kept = group.place.path().join(format!("log-{id}.1"));
        wait_for("the log of before", || kept.exists().then_some(()));
        assert_eq!(std::fs::read_to_string(kept).expect("kept"), lines(0, 0..10));
    }
}

/// A group of shards that ended as a whole: its replicas and the others report that, and all logs
/// are kept when the group is started anew.
#[test]
fn overlay_ends_and_keeps_logs_after_group_loss() {
    let overlay = Overlay::new("shm");
    let mut replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1,g2", "first\n");
    let before = overlay.await_same("g1", 1);
    for replica in &replicas[..3] {
        replica.signal(Signal::KILL);
    }
    replicas.drain(..3).for_each(|mut replica| drop(replica.wait_with_input()));
    let again = |name: &str| {
        let log = overlay.place.path().join(format!("log-{name}"));
        let log = log.to_str().expect("a path");
        Node::start(overlay.place.command(&overlay.command(&["--id", name, "--log", log])))
    };
    let mut returned = vec![again("g1.0"), again("g1.1")];
    returned[0].await_errors("starting; waiting for g1.2; start each");
    returned.push(again("g1.2"));
    for mut replica in returned {
        let (code, errors) = replica.ended();
        assert_eq!(code, Some(9), "{errors}");
        assert!(errors.contains("stop all processes of the overlay"), "{errors}");
    }
    for mut replica in replicas {
        replica.signal(Signal::TERM);
        replica.wait_with_input();
    }
    let _replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1,g2", "second\n");
    let kept = std::fs::read_to_string(overlay.place.path().join("log-g1.1.1"));
    assert_eq!(kept.expect("the log of before"), before);
}
