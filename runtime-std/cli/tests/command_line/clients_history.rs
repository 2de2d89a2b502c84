//! Subscribers that resume in a group whose order differs from the one that they have seen (EXT-3).

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::client_support::{group_of, start};
use crate::node_durable::{await_durable, durable_node, logged_group};
use crate::support::group::{GroupFile, Node, Transport, lines as group_lines};
use crate::support::wait_for;

/// Exit status of a subscriber that has seen another history.
const HISTORY: Option<i32> = Some(11);

/// Builds a library that delays syncs.
fn held_sync() -> PathBuf {
    // The library is not stored in the group's folder, because on some machines files there cannot
    // be executed.
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("held_sync.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command_line/support/held_sync.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
    library
}

/// Starts a node whose syncs wait while the file `hold` exists.
fn held_node(group: &GroupFile, id: usize, library: &Path, hold: &Path) -> Node {
    let (id_text, log) = (id.to_string(), group.log_path(id));
    let data = group.place.path().join(format!("data-{id}"));
    let mut command = group.place.command(&["node", "--config", &group.config, "--id", &id_text]);
    command.arg("--json").arg("--log").arg(log).arg("--data").arg(data);
    command.env("LD_PRELOAD", library).env("HOLD_SYNC", hold);
    Node::start(command)
}

fn subscribe(group: &GroupFile, more: &[&str]) -> Node {
    let base = ["subscribe", "--config", &group.config, "--json", "--from", "0"];
    let subscriber = Node::start(group.place.command(&[&base[..], more].concat()));
    wait_for("a subscriber", || subscriber.output().contains("\"subscribed\"").then_some(()));
    subscriber
}

fn events(subscriber: &Node) -> Vec<Value> {
    let output = subscriber.output();
    output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// Returns the texts of the messages beginning at position 0.
fn texts(events: &[Value]) -> Vec<String> {
    let messages = events.iter().filter(|event| event["event"] == "message");
    let text = |event: &Value| event["text"].as_str().expect("text").to_owned();
    messages.map(text).collect()
}

/// Kills all nodes at once. Everything that they have not synced is lost.
fn kill_all(nodes: &mut Vec<Node>) {
    nodes.iter().for_each(|node| node.signal(Signal::KILL));
    nodes.drain(..).for_each(Node::kill);
}

/// Returns the first printed position whose message differs from `order` or is missing there.
fn first_changed(printed: &[String], order: &str) -> usize {
    let order: Vec<&str> = order.lines().collect();
    let is_same = |(at, text): &(usize, &String)| order.get(*at) == Some(&text.as_str());
    printed.iter().enumerate().take_while(is_same).count()
}

/// A subscriber follows delivered messages, and all nodes are killed. Messages that were not
/// durable are lost, and other lines take their positions.
#[test]
fn subscriber_learns_first_position_changed_by_restart() {
    let group = logged_group(Transport::SharedMemory, 3);
    group.write(&group.text().replace("logged = true", "logged = true\nclients = true"));
    let (library, hold) = (held_sync(), group.place.path().join("hold"));
    let node = |id| held_node(&group, id, &library, &hold);
    let mut nodes: Vec<Node> = (0..3).map(node).collect();
    group.await_members(&[0, 1, 2]);
    let mut subscriber = subscribe(&group, &["--level", "delivered", "--time-limit", "60"]);
    let write = |nodes: &mut [Node], lines: std::ops::Range<usize>| {
        nodes[0].write(&group_lines(0, lines.clone()));
        let have_come = || (texts(&events(&subscriber)).len() == lines.end).then_some(());
        wait_for("the lines", have_come);
    };
    write(&mut nodes, 0..100);
    nodes.iter().for_each(|node| await_durable(node, 100));
    std::fs::write(&hold, "").expect("a file");
    // Some of the first lines are in a file but not synced; the others are in memory.
    (1..11).for_each(|round| write(&mut nodes, round * 100..(round + 1) * 100));
    kill_all(&mut nodes);
    let mut nodes: Vec<Node> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    let other: String = (0..2_000).map(|number| format!("other-{number}\n")).collect();
    nodes[1].write(&other);
    wait_for("the last line", || group.log(0).contains("other-1999\n").then_some(()));
    let (status, errors) = subscriber.ended();
    let events = events(&subscriber);
    let changed = events.last().expect("an event").clone();
    let printed = texts(&events);
    let first = first_changed(&printed, &group.log(0));
    assert!((100..printed.len()).contains(&first), "{first} of {}", printed.len());
    assert_eq!(status, HISTORY, "{errors}");
    assert_eq!((&changed["event"], &changed["from"]), (&"changed".into(), &first.into()));
    assert!(errors.contains(&format!("--from {first}")), "{errors}");
}

/// The group is formed anew, and then has fewer messages or different ones.
#[test]
fn subscriber_detects_a_re_formed_group() {
    for lines in ["", "new-0\nnew-1\n"] {
        let group = group_of(Transport::SharedMemory, "");
        let mut nodes = start(&group);
        let mut subscriber = subscribe(&group, &["--time-limit", "5"]);
        let old: String = (0..50).map(|number| format!("old-{number}\n")).collect();
        nodes[0].write(&old);
        wait_for("all lines", || (texts(&events(&subscriber)).len() == 50).then_some(()));
        kill_all(&mut nodes);
        let mut nodes: Vec<Node> = (0..3).map(|id| group.node(id, &["--new-group"])).collect();
        group.await_members(&[0, 1, 2]);
        nodes[2].write(lines);
        let (status, errors) = subscriber.ended();
        assert_eq!(status, HISTORY, "{errors}");
        let changed = events(&subscriber).pop().expect("an event");
        assert_eq!((&changed["event"], &changed["from"]), (&"changed".into(), &0.into()));
    }
}
