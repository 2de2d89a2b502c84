//! `tramontane node`: groups of real processes that survive their members, over shared memory and
//! over TCP with a key.

use std::time::Duration;

use crate::support::group::{GroupFile, Transport, lines, lines_of};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn logs_are_identical_for_any_start_order() {
    for (carrier, order) in
        [(Transport::SharedMemory, [2, 0, 1]), (Transport::TcpWithKey, [1, 2, 0])]
    {
        let group = GroupFile::of(carrier, 3);
        let mut nodes: Vec<_> = order
            .iter()
            .map(|id| {
                let node = group.node(*id, &[]);
                std::thread::sleep(Duration::from_millis(100));
                (*id, node)
            })
            .collect();
        for (id, node) in &mut nodes {
            node.write(&lines(*id, 0..500));
            node.end_input();
        }
        let log = group.await_same(&[0, 1, 2], 1_500);
        for id in 0..3 {
            assert_eq!(lines_of(&log, id), lines(id, 0..500), "{carrier:?}");
        }
        for (_, node) in &nodes {
            assert_eq!(node.output(), "", "what is logged is not printed");
            assert_eq!(node.said(), "view 1: 0 1 2; joined 0 1 2\n");
        }
    }
}

#[test]
fn killed_node_returns_and_receives_missed_lines() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 0..100));
        }
        group.await_same(&[0, 1, 2], 300);
        nodes.pop().expect("the last").kill();
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 100..200));
        }
        group.await_same(&[0, 1], 500);
        nodes[0].await_errors("view 2: 0 1; gone 2\n");
        let back = group.node(2, &[]);
        back.await_errors("view 3: 0 1 2; joined 2\n");
        nodes[1].await_errors("view 3: 0 1 2; joined 2\n");
        nodes.push(back);
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&lines(id, 200..300));
        }
        let log = group.await_same(&[0, 1, 2], 800);
        assert_eq!(lines_of(&log, 0), lines(0, 0..300), "{carrier:?}");
        assert_eq!(lines_of(&log, 2), lines(2, 0..100) + &lines(2, 200..300), "{carrier:?}");
    }
}

/// A line that fits no slot goes by block multicast. No node sees a difference, not even one that
/// joins later.
#[test]
fn megabyte_lines_keep_the_common_order() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let large = "\n[[subgroups]]\nname = \"log\"\nmessage_max = 64\nlarge_max = 3000000\n";
        group.write(&(group.text() + large));
        let long = |id: usize| format!("{id}-{}\n", "long ".repeat(500_000));
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
        for (id, node) in nodes.iter_mut().enumerate() {
            node.write(&(lines(id, 0..20) + &long(id) + &lines(id, 20..40)));
        }
        group.await_same(&[0, 1, 2], 123);
        nodes.pop().expect("the last").kill();
        nodes[0].write(&long(0));
        group.await_same(&[0, 1], 124);
        nodes.push(group.node(2, &[]));
        let log = group.await_same(&[0, 1, 2], 124);
        let expected = lines(0, 0..20) + &long(0) + &lines(0, 20..40) + &long(0);
        assert!(lines_of(&log, 0) == expected, "{carrier:?}");
        nodes[1].write(&format!("1-{}\n", "x".repeat(3_000_000)));
        nodes[1].await_errors("line 42 of the input was not sent: it is longer than 3000000 bytes; raise message_max or large_max");
        nodes[1].write("1-40\n");
        group.await_same(&[0, 1, 2], 125);
    }
}

#[test]
fn node_leaves_on_sigterm_and_at_input_end() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let mut nodes: Vec<_> = [&[][..], &[], &["--leave-at-end"]]
        .iter()
        .enumerate()
        .map(|(id, more)| group.node(id, more))
        .collect();
    nodes[2].write(&lines(2, 0..50));
    nodes[2].end_input();
    nodes[2].assert_left();
    nodes[0].await_errors("view 2: 0 1; gone 2\n");
    nodes[1].write(&lines(1, 0..50));
    group.await_same(&[0, 1], 100);
    nodes[1].signal(Signal::TERM);
    nodes[1].assert_left();
    nodes[0].await_errors("view 3: 0; gone 1\n");
    nodes[0].write(&lines(0, 0..50));
    let log = group.await_same(&[0], 150);
    assert_eq!(
        lines_of(&log, 2),
        lines(2, 0..50),
        "what was sent before the end of the input is delivered"
    );
    nodes[0].signal(Signal::INT);
    nodes[0].assert_left();
    group.place.assert_empty();
}

#[test]
fn second_signal_ends_node_that_cannot_leave() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    nodes[0].await_errors("view 1: 0 1");
    // The node stays alive, but is silent for too long.
    nodes[1].signal(Signal::STOP);
    // Signals within the first half second are one request; a later one is a new request.
    while nodes[0].is_running() {
        nodes[0].signal(Signal::TERM);
        std::thread::sleep(Duration::from_millis(100));
    }
    let (code, errors) = nodes[0].ended();
    assert_eq!(code, Some(143), "{errors}");
    nodes[1].signal(Signal::CONT);
    // This node was left without a majority, because the other of the two nodes fell silent.
    let (code, errors) = nodes[1].ended();
    assert_eq!(code, Some(9), "{errors}");
}

#[test]
fn deliveries_and_views_print_as_text_and_json() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let start = |id: &str, more: &[&str]| {
        let base = ["node", "--config", &group.config, "--id", id];
        crate::support::group::Node::start(group.place.command(&[&base[..], more].concat()))
    };
    let (mut text, mut json) = (start("0", &[]), start("1", &["--json"]));
    text.write("a b\n\n");
    crate::support::wait_for("the lines", || (json.output().lines().count() == 3).then_some(()));
    json.signal(Signal::TERM);
    json.assert_left();
    crate::support::wait_for("the lines", || (text.output() == "a b\n\n").then_some(()));
    let printed: Vec<Value> =
        json.output().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(
        printed[0],
        serde_json::json!({"event": "view", "view": 1, "members": [0, 1], "joined": [0, 1], "gone": []})
    );
    assert_eq!((&printed[1]["text"], &printed[1]["sender"]), (&"a b".into(), &0.into()));
    assert_eq!((&printed[2]["subgroup"], &printed[2]["view"]), (&"log".into(), &1.into()));
    assert_eq!(json.said(), "", "views are among the JSON");
}

#[test]
fn new_group_keeps_previous_logs() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    nodes[0].write("first\n");
    group.await_same(&[0, 1], 1);
    drop(nodes);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &["--new-group"])).collect();
    nodes[1].write("second\n");
    nodes[0].await_errors("log-0.1");
    crate::support::wait_for("the new log", || (group.log(0) == "second\n").then_some(()));
    assert_eq!(
        std::fs::read_to_string(group.place.path().join("log-1.1")).expect("kept"),
        "first\n"
    );
}

#[test]
fn same_name_under_two_roots_forms_separate_groups() {
    let (one, other) =
        (GroupFile::of(Transport::SharedMemory, 1), GroupFile::of(Transport::SharedMemory, 1));
    let (mut first, mut second) = (one.node(0, &[]), other.node(0, &[]));
    first.write("one\n");
    second.write("other\n");
    one.await_same(&[0], 1);
    other.await_same(&[0], 1);
    assert_eq!((one.log(0).as_str(), other.log(0).as_str()), ("one\n", "other\n"));
}
