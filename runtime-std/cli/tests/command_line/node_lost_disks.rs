//! All nodes of a group that logs die, and some disks come back other than they were: what was
//! durable is there in the end, or the group says what is lacking, and what it says to do works.

use std::path::PathBuf;

use crate::node_durable::{await_durable, durable_node, logged, logged_group};
use crate::support::group::{Carrier, Group, Node, lines};
use crate::support::wait_for;

const COPIES: [&str; 2] = ["membership.json", "membership-2.json"];

fn log_folder(group: &Group, id: usize) -> PathBuf {
    group.place.path().join(format!("data-{id}/lines"))
}

fn state_folder(group: &Group, id: usize) -> PathBuf {
    group.place.path().join(format!("data-{id}/view"))
}

fn segments(group: &Group, id: usize) -> Vec<PathBuf> {
    let files = std::fs::read_dir(log_folder(group, id)).expect("a log");
    let paths = files.map(|file| file.expect("a file").path());
    let is_segment =
        |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().starts_with("segment");
    paths.filter(is_segment).collect()
}

/// A group of three that has so many lines on all disks, each node having noted that, and is
/// killed. Gives the lines.
pub fn killed_group(carrier: Carrier, count: usize) -> (Group, String) {
    let group = logged_group(carrier, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    for (id, node) in nodes.iter_mut().enumerate() {
        let share = id * count / 3..(id + 1) * count / 3;
        node.write(&lines(id, share));
    }
    let all = group.await_same(&[0, 1, 2], count);
    for (id, node) in nodes.iter().enumerate() {
        await_durable(node, count as u64);
        await_note(&group, id, count);
    }
    nodes.into_iter().for_each(Node::kill);
    (group, all)
}

/// Waits until a node noted that so many lines are durable, here and everywhere.
fn await_note(group: &Group, id: usize, count: usize) {
    let text = format!("\"end\":{count},\"majority\":{count},\"everywhere\":{count}}}");
    wait_for("the note of a log's end", || {
        let copies = COPIES.iter().map(|name| std::fs::read(state_folder(group, id).join(name)));
        let mut copies =
            copies.map(|copy| String::from_utf8_lossy(&copy.expect("two")).into_owned());
        copies.any(|copy| copy.contains(&text)).then_some(())
    });
}

fn start(group: &Group, ids: &[usize]) -> Vec<Node> {
    ids.iter().map(|id| durable_node(group, *id, &[])).collect()
}

/// All three are members, and have these lines on disk.
#[track_caller]
fn assert_whole(group: &Group, nodes: Vec<Node>, all: &str, what: &str) {
    group.await_members(&[0, 1, 2]);
    let count = all.lines().count();
    assert_eq!(group.await_same(&[0, 1, 2], count), all, "{what}");
    nodes.into_iter().for_each(Node::kill);
    for id in 0..3 {
        wait_for("the log has all", || (logged(group, id) == all).then_some(()));
    }
}

/// Ways in which a log is lost beside a state that is not.
const LOSSES: [(&str, fn(&Group, usize)); 5] = [
    ("the folder is gone", |group, id| {
        std::fs::remove_dir_all(log_folder(group, id)).expect("a log");
    }),
    ("the segments are gone", |group, id| {
        segments(group, id).iter().for_each(|file| std::fs::remove_file(file).expect("a file"));
    }),
    ("the segments are empty", |group, id| {
        segments(group, id).iter().for_each(|file| std::fs::write(file, b"").expect("a file"));
    }),
    ("the segments are zeros", |group, id| {
        for file in segments(group, id) {
            let length = std::fs::metadata(&file).expect("a file").len();
            std::fs::write(&file, vec![0; usize::try_from(length).expect("small")]).expect("room");
        }
    }),
    ("the end is zeros", |group, id| {
        // What is written ends somewhere in the file: zeros from its last block on.
        let file = segments(group, id).pop().expect("a segment");
        let mut bytes = std::fs::read(&file).expect("a file");
        let last = bytes.iter().rposition(|byte| *byte != 0).expect("records");
        bytes[last / 4096 * 4096..].fill(0);
        std::fs::write(&file, bytes).expect("room");
    }),
];

#[test]
fn a_lost_log_comes_from_the_others() {
    for (at, (what, lose)) in LOSSES.iter().enumerate() {
        let (group, all) = killed_group(Carrier::ALL[at % 2], 60);
        lose(&group, at % 3);
        let nodes = start(&group, &[0, 1, 2]);
        assert_whole(&group, nodes, &all, what);
    }
}

/// Filed with 6,000 lines: the first two began with none, and the third was cut to nothing.
#[test]
fn logs_lost_at_a_majority_are_waited_for_and_named() {
    for (at, (what, lose)) in LOSSES.iter().enumerate() {
        let (group, all) = killed_group(Carrier::ALL[at % 2], 60);
        lose(&group, 0);
        lose(&group, 1);
        let mut nodes = start(&group, &[0, 1]);
        for (id, node) in nodes.iter().enumerate() {
            node.await_errors("waiting for 2: most of its members are needed");
            node.await_errors("node 0 does not count: its log of \"lines\" ");
            node.await_errors("node 1 does not count: its log of \"lines\" ");
            assert_eq!(group.log_bytes(id) as usize, all.len(), "{what}: nothing is cut");
        }
        // The third has all, and a majority of logs is lost: an operator decides.
        let third = durable_node(&group, 2, &[]);
        third.await_errors("restarting; most of its members are needed; node 0 does not count");
        third.kill();
        nodes.push(durable_node(&group, 2, &["--restart-with-less"]));
        assert_whole(&group, nodes, &all, what);
    }
}
