//! The files of `--log`: rotation by SIGHUP, and groups in which only some nodes have a log file.

use std::process::Command;

use crate::node_durable::logged_group;
use crate::support::group::{GroupFile, Node, Transport, kill_all, lines};
use crate::support::wait_for;
use rustix::process::Signal;

/// Rotates the log of a node, as logrotate does.
fn rotate(group: &GroupFile, node: &Node, id: usize) -> String {
    let rotated = group.place.path().join(format!("rotated-{id}"));
    std::fs::rename(group.log_path(id), &rotated).expect("a log");
    node.signal(Signal::HUP);
    wait_for("a new log", || group.log_path(id).exists().then_some(()));
    std::fs::read_to_string(rotated).expect("a log")
}

#[test]
fn joiner_receives_lines_since_last_sighup() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    for (id, node) in nodes.iter().enumerate() {
        assert_eq!(rotate(&group, node, id), lines(0, 0..10));
    }
    // A second rotation finds nothing to do.
    nodes[0].signal(Signal::HUP);
    nodes[0].write(&lines(0, 10..20));
    assert_eq!(group.await_same(&[0, 1], 10), lines(0, 10..20));

    let joiner = group.node(2, &[]);
    joiner.await_errors("log-2.1");
    assert_eq!(group.await_same(&[0, 1, 2], 10), lines(0, 10..20));
    let kept = std::fs::read_to_string(group.place.path().join("log-2.1"));
    assert_eq!(kept.expect("its lines of before"), lines(0, 0..10));
}

#[test]
fn durable_log_is_complete_after_rotation_and_restart() {
    let group = logged_group(Transport::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    nodes[0].await_errors("the durable log is in ");
    assert!(nodes[0].errors().contains("log-0.data"), "{}", nodes[0].errors());
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1], 10);
    assert_eq!(rotate(&group, &nodes[0], 0), lines(0, 0..10));
    nodes[1].write(&lines(1, 0..10));
    wait_for("the lines since", || (group.log(0) == lines(1, 0..10)).then_some(()));
    wait_for("all lines", || (group.log(1).lines().count() == 20).then_some(()));
    // A line is in the log once it is delivered, and on the disks shortly afterwards.
    wait_for("all lines on all disks", || {
        let table = String::from_utf8(group.run("status", &[]).output).ok()?;
        table.contains("durable 20/20/20").then_some(())
    });
    kill_all(nodes);
    let _nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    let all = group.await_same(&[0, 1], 20);
    assert_eq!(all, lines(0, 0..10) + &lines(1, 0..10));
}

/// `script` is the terminal. When it closes, the programs on it must shut down in order.
#[test]
fn node_leaves_when_its_terminal_closes() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let mut stays = group.node(0, &[]);
    let node = group.place.command(&["node", "--config", &group.config, "--id", "1", "--log"]);
    let arguments: Vec<_> = node.get_args().map(|part| part.to_str().expect("text")).collect();
    let program = node.get_program().to_str().expect("text");
    let log = group.log_path(1);
    let line = format!("exec {program} {} {}", arguments.join(" "), log.display());
    let mut command = Command::new("script");
    command.args(["-qefc", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    command.envs(node.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let terminal = Node::start(command);
    group.await_members(&[0, 1]);
    terminal.kill();
    group.await_members(&[0]);
    assert!(!stays.errors().contains("view 3"), "one view without it: {}", stays.errors());
    stays.write("on\n");
    group.await_same(&[0], 1);
}

#[test]
fn nodes_with_mismatched_log_options_are_refused() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let state = |id: usize| format!("{}/state-{id}", group.place.path().display());
        let without = |id: usize| {
            let (id_text, state) = (id.to_string(), state(id));
            group.run("node", &["--id", &id_text, "--state", &state, "--time-limit", "600"])
        };
        // While the group forms, both nodes report the difference.
        let mut first = group.node(0, &["--time-limit", "600"]);
        without(1).failed_at_last(5, &["node 0 was started with --log", "all nodes or to none"]);
        let (code, errors) = first.ended();
        assert!(code == Some(5) && errors.contains("node 1 was started without --log"), "{errors}");

        // In a running group, the report is immediate.
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
        group.await_members(&[0, 1, 2]);
        nodes.pop().expect("the last").kill();
        group.await_members(&[0, 1]);
        let refused = without(2);
        refused
            .failed_at_last(5, &["the members were started with --log", "this one with --log too"]);
        let _third = group.node(2, &[]);
        group.await_members(&[0, 1, 2]);
    }
}
