//! A group's files in shared memory are removed while it runs, as cleaners of `/dev/shm` and the
//! end of a session do. No member is lost, and nodes join as before.

use std::path::PathBuf;
use std::time::Duration;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::overlay::{Overlay, leaders_are_killed_and_come_back};
use crate::support::wait_for;

/// Returns the group's folder.
fn folder(group: &GroupFile) -> PathBuf {
    group.place.left().pop().expect("a root").join("log")
}

#[test]
fn removing_group_folder_loses_no_member() {
    let group = GroupFile::of(Transport::SharedMemory, 5);
    let mut nodes: Vec<Node> = (0..5).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2, 3, 4]);
    assert!(group.place.clean());
    nodes.pop().expect("the last").kill();
    nodes[0].write(&lines(0, 0..20));
    group.await_same(&[0, 1, 2, 3], 20);
    nodes[0].await_errors("they are re-created");
    group.await_members(&[0, 1, 2, 3]);
    // A node that looks while the folder is being emptied re-creates its files twice.
    wait_for("status reports it", || {
        let status = String::from_utf8(group.run("status", &[]).output).expect("text");
        let is_told = |line: &str| {
            line.starts_with("node 0: files of this node in ") && line.contains("re-created ")
        };
        status.lines().any(is_told).then_some(())
    });

    // The files are removed repeatedly while nodes join, are killed, and leave.
    let cleaner = group.place.cleaner(Duration::from_millis(700));
    for round in 1..4 {
        nodes.push(group.node(4, &[]));
        nodes[4].await_errors("joined 4");
        let killed = nodes.pop().expect("the last");
        nodes[0].write(&lines(0, 20 * round..20 * round + 20));
        killed.kill();
        nodes[round].await_errors(&format!("view {}: 0 1 2 3; gone 4", 2 * round + 2));
    }
    assert!(cleaner.end() > 0, "it found nothing to remove");
    group.await_same(&[0, 1, 2, 3], 80);
    group.await_members(&[0, 1, 2, 3]);
    // Its socket may have been removed a moment ago, and the error says to try again.
    let leave = || group.run("leave", &["--id", "3", "--time-limit", "30"]);
    wait_for("node 3 leaves", || leave().status.success().then_some(()));
    nodes[3].assert_left();
    drop(nodes);
}

#[test]
fn removed_group_files_are_recreated() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let nodes = [group.node(0, &[]), group.node(1, &[])];
    group.run("status", &[]);
    let late = group.variant("name", "initial = [0, 1]\nname");
    drop(nodes);
    std::fs::copy(late, &group.config).expect("a file");
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    group.await_members(&[0, 1]);
    for (round, kind) in ["member", "memory", "door"].into_iter().enumerate() {
        let file = folder(&group).join(format!("{kind}-0"));
        std::fs::remove_file(&file).expect("it was there");
        wait_for("it is there again", || file.exists().then_some(()));
        let joiner = group.node(2, &[]);
        group.await_members(&[0, 1, 2]);
        nodes[1].write(&lines(1, 5 * round..5 * round + 5));
        group.await_same(&[0, 1, 2], 5 * round + 5);
        joiner.kill();
        group.await_members(&[0, 1]);
    }
}

#[test]
fn node_reports_folder_it_cannot_recreate() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let mut nodes: Vec<Node> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    let folder = folder(&group);
    let aside = folder.with_extension("aside");
    std::fs::rename(&folder, &aside).expect("it was there");
    std::fs::write(&folder, "something else").expect("a file");
    nodes[0].await_errors("cannot be re-created");
    nodes.pop().expect("the last").kill();
    nodes[0].write(&lines(0, 0..5));
    group.await_same(&[0, 1], 5);
    nodes[1].await_errors("view 2: 0 1; gone 2");
    std::fs::remove_file(&folder).expect("it was there");
    group.await_members(&[0, 1]);
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
    std::fs::remove_dir_all(aside).expect("it was there");
}

#[test]
fn shards_continue_after_their_folders_are_removed() {
    let overlay = Overlay::new("shm");
    leaders_are_killed_and_come_back(&overlay, || assert!(overlay.place.clean()));
}
