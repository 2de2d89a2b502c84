//! A node returns to a group that has continued: with a log that lacks many records, or with a tail
//! that the group has replaced, or with a damaged log.

use std::path::{Path, PathBuf};

use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_log::{Batch, Identity, Log, Options, Record, SystemFolder};

use crate::node_durable::{await_durable, durable_node, logged, logged_group};
use crate::support::group::{GroupFile, Node, Transport, lines};

/// Starts three nodes with ten lines, and kills the last node. The other two then have ten more
/// lines.
fn group_that_went_on(carrier: Transport, carries_on: &str) -> (GroupFile, Vec<Node>) {
    let group = logged_group(carrier, 3);
    let mut nodes: Vec<_> = (0..3).map(|id| durable_node(&group, id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    nodes.iter().for_each(|node| await_durable(node, 10));
    nodes.pop().expect("node 2").kill();
    group.await_members(&[0, 1]);
    nodes[1].write(carries_on);
    (group, nodes)
}

fn log_folder(group: &GroupFile, id: usize) -> PathBuf {
    group.place.path().join(format!("data-{id}/lines"))
}

fn open(folder: &Path) -> Log<SystemFolder> {
    let layer = SystemFolder::create(folder).expect("a folder");
    let identity = Identity { group: "log".to_owned(), subgroup: "lines".to_owned() };
    Log::open(layer, &identity, Options::default()).expect("nobody has it").0
}

/// Asserts that the node is back with all lines, and can supply a node that has nothing.
fn assert_back(group: &GroupFile, mut nodes: Vec<Node>, two: Node, count: usize) {
    group.await_members(&[0, 1, 2]);
    nodes.push(two);
    nodes.iter().for_each(|node| await_durable(node, u64::try_from(count).expect("small")));
    let log = group.await_same(&[0, 1, 2], count);
    for node in nodes {
        node.kill();
    }
    (0..3).for_each(|id| assert_eq!(logged(group, id), log, "node {id}"));
}

#[test]
fn replaced_log_tail_is_set_aside_and_named() {
    for carrier in Transport::ALL {
        let (group, nodes) = group_that_went_on(carrier, &lines(1, 0..10));
        nodes.iter().for_each(|node| await_durable(node, 20));
        // This simulates a node that was among the few that had more of the first view.
        let folder = log_folder(&group, 2);
        let mut log = open(&folder);
        let mut batch = Batch::new();
        for number in 0..3 {
            let record = Record {
                sequence: log.end().plus(number),
                view: ViewId(1),
                place: Place(1_000_000 + number),
                sender: NodeId(2),
                is_large: false,
                bytes: b"never ordered",
            };
            batch.push(&record).expect("they follow one another");
        }
        log.commit(&mut batch).expect("room");
        drop(log);
        let two = durable_node(&group, 2, &[]);
        two.await_errors("the group continued without 3 records of this node; they are kept in ");
        let errors = two.errors();
        let kept = errors.split("kept in ").nth(1).and_then(|rest| rest.lines().next());
        let name = kept.and_then(|kept| kept.rsplit('/').next()).expect("a path").to_owned();
        assert_back(&group, nodes, two, 20);
        let (log, _) = Log::open_to_read(SystemFolder::read_only(&folder).expect("a log"), None)
            .expect("it is whole");
        let mut aside = 0;
        let each = |record: Record<'_>| aside += u32::from(record.bytes == b"never ordered");
        log.read_aside(&name, each).expect("it is there");
        assert_eq!(aside, 3, "{carrier:?}: {errors}");
    }
}

#[test]
fn damaged_records_are_repaired_from_a_member() {
    let (group, nodes) = group_that_went_on(Transport::SharedMemory, &lines(1, 0..10));
    nodes.iter().for_each(|node| await_durable(node, 20));
    let folder = log_folder(&group, 2);
    let segment = std::fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.to_string_lossy().contains("segment"))
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("it is there");
    for line in ["0-3", "0-7"] {
        let at = bytes.windows(3).position(|window| window == line.as_bytes()).expect("a line");
        bytes[at] ^= 1;
    }
    std::fs::write(&segment, bytes).expect("it can be written");
    let two = durable_node(&group, 2, &[]);
    for number in [3, 7] {
        two.await_errors(&format!(
            "records {number} to {number} were damaged, and have been repaired"
        ));
    }
    assert_back(&group, nodes, two, 20);
    let checked = group.place.run(&["log", folder.to_str().expect("a path"), "--check"]);
    checked.succeeded();
}

/// The node lacks far more than fits in one message, or than a join could leave for its last step.
#[test]
fn late_node_fetches_missed_log_during_traffic() {
    let line = format!("{}\n", "y".repeat(8_000));
    let (group, mut nodes) = group_that_went_on(Transport::TcpWithKey, &line.repeat(2_000));
    nodes.iter().for_each(|node| await_durable(node, 2_010));
    let two = durable_node(&group, 2, &[]);
    for number in 0..20 {
        nodes[0].write(&lines(7, number..number + 1));
    }
    assert_back(&group, nodes, two, 2_030);
}

/// A node whose folder is gone counts as new: it receives everything, and stores it on its own
/// disk.
#[test]
fn node_with_empty_folder_joins_as_new() {
    let (group, nodes) = group_that_went_on(Transport::SharedMemory, &lines(1, 0..10));
    nodes.iter().for_each(|node| await_durable(node, 20));
    std::fs::remove_dir_all(log_folder(&group, 2)).expect("it is there");
    let two = durable_node(&group, 2, &[]);
    assert_back(&group, nodes, two, 20);
}

/// Returns the size of a log's files in bytes.
fn bytes_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|found| found.len()).sum()
}

/// The records that were dropped are covered by a snapshot. The node returns with the snapshot and
/// the remaining records, again and again.
#[test]
fn node_with_bounded_log_returns() {
    let group = logged_group(Transport::SharedMemory, 3);
    let start = |id: usize| {
        let data = group.place.path().join(format!("data-{id}"));
        let (data, id) = (data.to_str().expect("a path"), id.to_string());
        let base = ["node", "--config", &group.config, "--id", &id, "--json"];
        let more = ["--data", data, "--data-keep-mb", "1"];
        Node::start(group.place.command(&[&base[..], &more].concat()))
    };
    let mut nodes: Vec<_> = (0..3).map(start).collect();
    group.await_members(&[0, 1, 2]);
    let line = |part: u64| format!("{part}-{}\n", "z".repeat(1_000));
    for part in 0..4 {
        for piece in 1..=6 {
            nodes[0].write(&line(part).repeat(500));
            let count = 3_000 * part + 500 * piece;
            nodes.iter().for_each(|node| await_durable(node, count));
        }
        nodes.pop().expect("node 2").kill();
        group.await_members(&[0, 1]);
        nodes.push(start(2));
        group.await_members(&[0, 1, 2]);
        let said = nodes[2].errors();
        assert!(!said.contains("the log in"), "its log is as it was: {said}");
    }
    // 12 MB were logged: 1 to 2 MB are kept, in segments of 256 KiB. In addition, there are one or
    // two copies of the last 1000 lines, and two spare segments.
    for id in 0..3 {
        let bytes = bytes_of(&log_folder(&group, id));
        assert!((1 << 20..8 << 20).contains(&bytes), "node {id}: {bytes}");
    }
    nodes[1].write("the last\n");
    nodes.iter().for_each(|node| await_durable(node, 12_001));
    let said: Vec<String> = nodes.iter().map(Node::errors).collect();
    for node in nodes {
        node.kill();
    }
    let logs: Vec<String> = (0..3).map(|id| logged(&group, id)).collect();
    for log in &logs {
        let expected = (0..4).map(|part| line(part).repeat(3_000)).collect::<String>();
        assert!((expected + "the last\n").ends_with(log), "it is the end of all lines");
        let counts: Vec<_> = logs.iter().map(|log| log.lines().count()).collect();
        // A line that was logged alone takes 4 KiB.
        assert!((256..5_000).contains(&log.lines().count()), "{counts:?}: {said:?}");
    }
}
