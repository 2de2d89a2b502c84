//! All nodes of a logged group die, and some disks return changed. In the end, all durable lines
//! are present, or the group has reported which are missing and its advice works.

use std::path::{Path, PathBuf};

use crate::node_durable::{await_durable, durable_node, logged, logged_group};
use crate::support::group::{GroupFile, Node, Transport, kill_all, lines};
use crate::support::{concurrently, wait_for};

pub const COPIES: [&str; 2] = ["membership.json", "membership-2.json"];

pub fn log_folder(group: &GroupFile, id: usize) -> PathBuf {
    group.place.path().join(format!("data-{id}/lines"))
}

pub fn state_folder(group: &GroupFile, id: usize) -> PathBuf {
    group.place.path().join(format!("data-{id}/view"))
}

pub fn segments(group: &GroupFile, id: usize) -> Vec<PathBuf> {
    let files = std::fs::read_dir(log_folder(group, id)).expect("a log");
    let paths = files.map(|file| file.expect("a file").path());
    let is_segment =
        |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().starts_with("segment");
    paths.filter(is_segment).collect()
}

/// Starts a group of three, writes `count` lines until each node has noted that they are durable
/// everywhere, and kills it. Returns the lines.
pub fn killed_group(carrier: Transport, count: usize) -> (GroupFile, String) {
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
    kill_all(nodes);
    (group, all)
}

/// Waits until a node has noted that `count` lines are durable, here and everywhere.
pub fn await_note(group: &GroupFile, id: usize, count: usize) {
    let text = format!("\"end\":{count},\"majority\":{count},\"everywhere\":{count}}}");
    wait_for("the note of a log's end", || {
        let copies = COPIES.iter().map(|name| std::fs::read(state_folder(group, id).join(name)));
        let mut copies =
            copies.map(|copy| String::from_utf8_lossy(&copy.expect("two")).into_owned());
        copies.any(|copy| copy.contains(&text)).then_some(())
    });
}

fn start(group: &GroupFile, ids: &[usize]) -> Vec<Node> {
    ids.iter().map(|id| durable_node(group, *id, &[])).collect()
}

/// Asserts that all three nodes are members and have these lines on disk.
#[track_caller]
fn assert_whole(group: &GroupFile, nodes: Vec<Node>, all: &str, what: &str) {
    group.await_members(&[0, 1, 2]);
    let count = all.lines().count();
    assert_eq!(group.await_same(&[0, 1, 2], count), all, "{what}");
    kill_all(nodes);
    for id in 0..3 {
        wait_for("the log has all", || (logged(group, id) == all).then_some(()));
    }
}

/// A way of losing a node's log, with a name.
type Loss = (&'static str, fn(&GroupFile, usize));

/// Ways of losing a log while the node's state remains.
const LOSSES: [Loss; 5] = [
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
        // The content ends somewhere in the file: its last block and everything after it are zero.
        let file = segments(group, id).pop().expect("a segment");
        let mut bytes = std::fs::read(&file).expect("a file");
        let last = bytes.iter().rposition(|byte| *byte != 0).expect("records");
        bytes[last / 4096 * 4096..].fill(0);
        std::fs::write(&file, bytes).expect("room");
    }),
];

#[test]
fn lost_log_is_restored_from_other_members() {
    each_loss(|at, (what, lose)| {
        let (group, all) = killed_group(Transport::ALL[at % 2], 60);
        lose(&group, at % 3);
        let nodes = start(&group, &[0, 1, 2]);
        assert_whole(&group, nodes, &all, what);
    });
}

/// Calls `run` for each way of losing a log, with its index.
fn each_loss(run: impl Fn(usize, Loss) + Sync) {
    let losses: Vec<_> = LOSSES.into_iter().enumerate().collect();
    concurrently(3, &losses, |(at, loss)| run(*at, *loss));
}

/// The report was about 6,000 lines: the first two logs began empty, and the third was truncated to
/// nothing.
#[test]
fn group_waits_for_logs_lost_at_majority() {
    each_loss(|at, (what, lose)| {
        let (group, all) = killed_group(Transport::ALL[at % 2], 60);
        lose(&group, 0);
        lose(&group, 1);
        let mut nodes = start(&group, &[0, 1]);
        for (id, node) in nodes.iter().enumerate() {
            node.await_errors("waiting for 2: a majority of its members is needed");
            node.await_errors("node 0 is not counted towards the majority, because its log of ");
            node.await_errors("node 1 is not counted towards the majority, because its log of ");
            assert_eq!(group.log_bytes(id) as usize, all.len(), "{what}: nothing is cut");
        }
        // The third node has everything, but a majority of the logs is lost, so an operator must
        // decide.
        let third = durable_node(&group, 2, &[]);
        third.await_errors("restarting view 1; a majority of its members is needed; node 0 is not");
        third.kill();
        nodes.push(durable_node(&group, 2, &["--restart-with-less"]));
        assert_whole(&group, nodes, &all, what);
    });
}

/// Flips a bit in a file.
fn flip(file: &Path, bit: usize) {
    let mut bytes = std::fs::read(file).expect("a file");
    bytes[bit / 8] ^= 1 << (bit % 8);
    std::fs::write(file, bytes).expect("room");
}

#[test]
fn single_damaged_state_copy_is_repaired() {
    let (group, all) = killed_group(Transport::SharedMemory, 60);
    flip(&state_folder(&group, 0).join(COPIES[0]), 8 * 70);
    std::fs::write(state_folder(&group, 1).join(COPIES[1]), "").expect("a file");
    for copy in COPIES {
        flip(&state_folder(&group, 2).join(copy), 8 * 90 + 3);
    }
    let nodes = start(&group, &[0, 1]);
    group.await_members(&[0, 1]);
    nodes[0].await_errors("membership.json was damaged, and has been restored from the other copy");
    nodes[1].await_errors("membership-2.json was damaged");
    // The advice of the third node works.
    let mut third = durable_node(&group, 2, &[]);
    let (status, errors) = third.ended();
    let is_told = errors.contains("both copies of") && errors.contains("move them elsewhere");
    assert!(status == Some(2) && is_told, "{status:?}: {errors}");
    for copy in COPIES {
        let copy = state_folder(&group, 2).join(copy);
        std::fs::rename(&copy, copy.with_extension("damaged")).expect("a file");
    }
    let nodes = nodes.into_iter().chain(start(&group, &[2])).collect();
    assert_whole(&group, nodes, &all, "the state is lost");
}

/// The report was about one flipped bit in a file without a checksum: the log of a removed node was
/// chosen.
#[test]
fn log_of_removed_node_is_not_chosen() {
    let group = logged_group(Transport::TcpWithKey, 3);
    let mut nodes = start(&group, &[0, 1, 2]);
    group.await_members(&[0, 1, 2]);
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    nodes.pop().expect("three").kill();
    group.await_members(&[0, 1]);
    nodes[0].write(&lines(0, 10..60));
    let all = group.await_same(&[0, 1], 60);
    await_durable(&nodes[0], 60);
    kill_all(nodes);
    // Both copies are wrong, as a faulty writer with a correct checksum would leave them.
    for copy in COPIES {
        let path = state_folder(&group, 2).join(copy);
        let text = std::fs::read_to_string(&path).expect("a copy");
        assert!(text.contains("\"view\":1,"), "{text}");
        write_checked(&path, &text.replace("\"view\":1,", "\"view\":9,"));
    }
    let mut nodes = start(&group, &[0, 1, 2]);
    nodes[1].await_errors("only node 2 knows of this view");
    nodes.pop().expect("three").kill();
    group.await_members(&[0, 1]);
    assert_eq!(group.await_same(&[0, 1], 60), all);
    kill_all(nodes);
}

/// Writes a copy of a state with its checksum.
fn write_checked(path: &Path, text: &str) {
    let covered = &text["{\"checksum\":\"0123456789abcdef".len()..];
    let checksum = xxhash_rust::xxh3::xxh3_64(covered.as_bytes());
    std::fs::write(path, format!("{{\"checksum\":\"{checksum:016x}{covered}")).expect("room");
}

/// Damages the last batch of a log: either one bit of its trailer and one of its last line, or its
/// whole end.
fn damage_last_batch(group: &GroupFile, id: usize, all: &str, is_random: bool) {
    let file = segments(group, id).pop().expect("a segment");
    let mut bytes = std::fs::read(&file).expect("a file");
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("records");
    let block = last / 4096 * 4096;
    if is_random {
        let noise = (0_u32..).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8);
        bytes[block..block + 4096].iter_mut().zip(noise).for_each(|(byte, noise)| *byte = noise);
    } else {
        bytes[last] ^= 4;
        let line = all.lines().last().expect("lines").as_bytes();
        let at = bytes.windows(line.len()).rposition(|found| found == line).expect("the line");
        bytes[at] ^= 1;
    }
    std::fs::write(&file, bytes).expect("room");
}

#[test]
fn damaged_last_batch_is_not_treated_as_torn() {
    concurrently(2, &[false, true], |is_random| {
        let is_random = *is_random;
        let (group, all) = killed_group(Transport::SharedMemory, 60);
        damage_last_batch(&group, 1, &all, is_random);
        let folder = log_folder(&group, 1);
        let checked = group.place.run(&["log", folder.to_str().expect("a path"), "--check"]);
        let said = if is_random { "its node had recorded 60 durable records" } else { "damaged" };
        checked.failed_after_output(3, &[said]);
        assert_whole(&group, start(&group, &[0, 1, 2]), &all, "one is damaged");
        // If all three logs are damaged at once, no node has the lost content.
        (0..3).for_each(|id| damage_last_batch(&group, id, &all, is_random));
        let nodes = start(&group, &[0, 1, 2]);
        let why = if is_random { "is not counted" } else { "is damaged at every node that has it" };
        nodes[0].await_errors(why);
        kill_all(nodes);
        let mut nodes = start(&group, &[1, 2]);
        nodes.push(durable_node(&group, 0, &["--restart-with-less"]));
        group.await_members(&[0, 1, 2]);
        nodes[0].write("more\n");
        wait_for("the group goes on", || group.log(2).ends_with("more\n").then_some(()));
        let rest = group.log(2);
        let rest = rest.strip_suffix("more\n").expect("it ends so");
        // The damaged batch may have contained all lines.
        assert!(all.starts_with(rest), "what is left is in order: {rest}");
        kill_all(nodes);
    });
}

/// Copies a folder with all its contents.
pub fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("room");
    for entry in std::fs::read_dir(from).expect("a folder") {
        let (from, to) =
            (entry.as_ref().expect("an entry").path(), to.join(entry.expect("one").file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else {
            std::fs::copy(&from, &to).expect("room");
        }
    }
}

#[test]
fn restored_older_backup_does_not_count() {
    let (group, _) = killed_group(Transport::TcpWithKey, 30);
    let data = group.place.path().join("data-0");
    let backup = group.place.path().join("backup");
    let mut nodes = start(&group, &[0, 1, 2]);
    group.await_members(&[0, 1, 2]);
    (0..3).for_each(|id| await_note(&group, id, 30));
    // The copy is from the same view, because the node is stopped while its folder is copied.
    nodes[0].signal(rustix::process::Signal::STOP);
    copy_folder(&data, &backup);
    nodes[0].signal(rustix::process::Signal::CONT);
    nodes[0].write(&lines(0, 30..60));
    let all = group.await_same(&[0, 1, 2], 60);
    (0..3).for_each(|id| await_note(&group, id, 60));
    kill_all(nodes);
    std::fs::remove_dir_all(&data).expect("a folder");
    std::fs::rename(&backup, &data).expect("a folder");
    let mut nodes = start(&group, &[0, 1]);
    nodes[1].await_errors("because its log is shorter than others have seen");
    nodes.extend(start(&group, &[2]));
    assert_whole(&group, nodes, &all, "two are as they were");
}

/// A node has only its logs. The logs are neither set aside nor overwritten by a new group.
#[test]
fn group_without_state_restarts_from_chosen_log() {
    let (group, all) = killed_group(Transport::SharedMemory, 60);
    for id in 0..3 {
        std::fs::remove_dir_all(state_folder(&group, id)).expect("a folder");
    }
    let mut nodes = start(&group, &[0, 1, 2]);
    for node in &mut nodes {
        let (status, errors) = node.ended();
        let is_told =
            errors.contains("has a log of 60 records") && errors.contains("restart-with-less");
        assert!(status == Some(5) && is_told, "{status:?}: {errors}");
    }
    let mut nodes = vec![durable_node(&group, 1, &["--restart-with-less"])];
    group.await_members(&[1]);
    nodes.extend(start(&group, &[0, 2]));
    assert_whole(&group, nodes, &all, "the states are lost");
}
