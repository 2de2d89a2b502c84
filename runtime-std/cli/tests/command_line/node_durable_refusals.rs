//! Durable logs that cannot be used: each is reported in one line, and none does any harm.

use std::io::Write as _;
use std::process::Command;

use crate::node_durable::{await_durable, durable_lines, durable_node, logged, logged_group};
use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::small_disk::SmallDisk;
use crate::support::wait_for;

/// Starts a node that must fail. Checks the status, and that standard error is one line with these
/// parts.
fn refused(group: &GroupFile, id: usize, more: &[&str], status: i32, parts: &[&str]) {
    let id = id.to_string();
    group.run("node", &[&["--id", &id], more].concat()).failed(status, parts);
}

#[test]
fn data_option_requires_a_logged_subgroup() {
    let group = logged_group(Transport::SharedMemory, 1);
    // Without --log, the folder is next to the group file.
    let mut alone =
        Node::start(group.place.command(&["node", "--config", &group.config, "--id", "0"]));
    alone.await_errors("view 1: 0");
    assert!(alone.errors().contains("group.data-0"), "{}", alone.errors());
    assert!(group.place.path().join("group.data-0/lines").is_dir());
    alone.signal(rustix::process::Signal::TERM);
    alone.assert_left();
    let plain = GroupFile::of(Transport::SharedMemory, 1);
    refused(&plain, 0, &["--data-keep-mb", "1"], 2, &["no durable log", "logged = true"]);
    let data = plain.place.path().join("data");
    let data = data.to_str().expect("a path");
    refused(&plain, 0, &["--data", data], 2, &["no logged subgroup", "logged = true"]);
    for (change, why) in [
        ("unordered = true", "it is unordered"),
        ("restart_empty = true", "restart_empty"),
        ("name = \"view\"", "a different name"),
    ] {
        let text = group.text() + change + "\n";
        let text = if change.starts_with("name") {
            group.text().replace("name = \"lines\"", change)
        } else {
            text
        };
        group.place.file("wrong.toml", text.as_bytes());
        let wrong = group.place.path().join("wrong.toml");
        let wrong = wrong.to_str().expect("a path");
        let more = ["node", "--config", wrong, "--id", "0", "--data", data];
        group.place.run(&more).failed(2, &[why, "; "]);
    }
    for (field, why) in
        [("majority = false\n", "majority = true"), ("membership = \"fixed\"\n", "changing")]
    {
        let text = group.text().replace("heartbeat_ms", &format!("{field}heartbeat_ms"));
        let wrong = group.place.file("wrong.toml", text.as_bytes());
        let wrong = wrong.to_str().expect("a path");
        let more = ["node", "--config", wrong, "--id", "0", "--data", data];
        group.place.run(&more).failed(2, &["cannot be logged", why, "; "]);
    }
}

#[test]
fn log_of_another_node_is_refused_unchanged() {
    let group = logged_group(Transport::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| durable_node(&group, id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    nodes.iter().for_each(|node| await_durable(node, 10));
    let data = group.place.path().join("data-0");
    let data_text = data.to_str().expect("a path");
    // Node 0 still has its own log.
    let other = group.variant("name = \"log\"", "name = \"glo\"");
    let alone = ["node", "--config", &other, "--id", "0", "--data", data_text];
    group.place.run(&alone).failed(5, &["another process uses the log", "; "]);
    nodes.remove(0).kill();
    group.place.run(&alone).failed(5, &["contains the log of", "glo", "; "]);
    nodes.remove(0).kill();
    refused(
        &group,
        0,
        &["--data", &data_text.replace("-0", "-1")],
        5,
        &["of node 1, not of node 0", "; "],
    );
    assert_eq!((logged(&group, 0), logged(&group, 1)), (lines(0, 0..10), lines(0, 0..10)));

    // The format number follows the first eight bytes, and its checksum follows the number.
    for name in ["metadata-1", "metadata-2"] {
        let file = data.join("lines").join(name);
        let mut bytes = std::fs::read(&file).expect("it is there");
        bytes[8..12].copy_from_slice(&99_u32.to_le_bytes());
        let checksum = xxhash_rust::xxh3::xxh3_64(&bytes[..12]).to_le_bytes();
        bytes[12..16].copy_from_slice(&checksum[..4]);
        std::fs::write(&file, bytes).expect("it can be written");
    }
    refused(&group, 0, &["--data", data_text], 5, &["format 99", "newer", "; "]);
}

/// Returns the durable lines of a node whose log is in `folder`.
fn logged_in(group: &GroupFile, folder: &str) -> usize {
    let printed = group.place.run(&["log", &format!("{folder}/lines")]).succeeded();
    String::from_utf8(printed).expect("text").lines().count()
}

#[test]
fn node_exits_on_full_disk_and_keeps_lines() {
    let group = logged_group(Transport::SharedMemory, 3);
    // The disk has room for one segment of 64 MiB, but not quite for two.
    let Some(disk) = SmallDisk::mount(&group.place, "100m") else { return };
    let mut nodes: Vec<_> = (0..2).map(|id| durable_node(&group, id, &[])).collect();
    let folder = disk.folder();
    let arguments = ["node", "--config", &group.config, "--id", "2", "--json", "--data", &folder];
    let mut full = Node::start(group.place.command(&arguments));
    nodes[0].write(&lines(0, 0..10));
    await_durable(&nodes[0], 10);
    let line = format!("{}\n", "x".repeat(10_000));
    let mut input = nodes[0].take_input();
    let writing = std::thread::spawn(move || {
        let _ = input.write_all(line.repeat(7_500).as_bytes());
    });
    let (code, errors) = full.ended();
    assert_eq!(code, Some(4), "{errors}");
    let last = errors.lines().last().expect("an error");
    assert!(last.contains("no space is left") && last.contains("; "), "{errors}");
    let reported = durable_lines(&full).last().expect("it reported")[0];
    let kept = u64::try_from(logged_in(&group, &folder)).expect("small");
    assert!(kept >= reported && reported > 10, "{kept} of {reported}");
    group.await_members(&[0, 1]);
    writing.join().expect("it writes");
    await_durable(&nodes[1], 7_510);
    // The records that it lacks have no room either.
    refused(&group, 2, &["--data", &folder], 4, &["no space is left", "; "]);
    disk.remount("size=300m");
    let again = Node::start(group.place.command(&arguments));
    await_durable(&again, 7_510);
}

#[test]
fn node_exits_on_failed_sync_and_keeps_lines() {
    let group = logged_group(Transport::SharedMemory, 3);
    let mut nodes: Vec<_> = (0..2).map(|id| durable_node(&group, id, &[])).collect();
    let data = group.place.path().join("data-2");
    let data = data.to_str().expect("a path");
    let arguments = ["node", "--config", &group.config, "--id", "2", "--json", "--data", data];
    let command = group.place.command(&arguments);
    // The system reports one failed write, as it does for a failing disk.
    let mut traced = Command::new("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fdatasync"]);
    traced.args(["-e", "inject=fdatasync:error=EIO:when=12"]).arg(command.get_program());
    traced.args(command.get_args()).envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let can_trace = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !can_trace.is_ok_and(|status| status.success()) {
        eprintln!("inconclusive: there is no strace, or it may not trace");
        return;
    }
    let mut failing = Node::start(traced);
    group.await_members(&[0, 1, 2]);
    for number in 0..20 {
        nodes[0].write(&lines(0, number..number + 1));
        await_durable_somewhere(&nodes[0], u64::try_from(number).expect("small") + 1);
    }
    let (code, errors) = failing.ended();
    assert_eq!(code, Some(4), "{errors}");
    let last = errors.lines().last().expect("an error");
    assert!(last.contains("cannot sync") && last.contains("; "), "{errors}");
    let reported = durable_lines(&failing).last().expect("it reported")[0];
    group.await_members(&[0, 1]);
    assert!(lines(0, 0..20).starts_with(&logged(&group, 2)));
    let kept = u64::try_from(logged(&group, 2).lines().count()).expect("small");
    assert!(kept >= reported && reported > 0, "{kept} of {reported}");

    // The node returns with the lines that it has, and fetches the rest.
    let again = durable_node(&group, 2, &[]);
    await_durable(&again, 20);
    again.kill();
    assert_eq!(logged(&group, 2), lines(0, 0..20));
}

/// Waits until `majority` lines are durable on a majority.
fn await_durable_somewhere(node: &Node, majority: u64) {
    wait_for("it is durable at a majority", || {
        durable_lines(node).last().is_some_and(|last| last[1] >= majority).then_some(())
    });
}

#[test]
fn read_only_data_folder_is_refused_unchanged() {
    let group = logged_group(Transport::SharedMemory, 1);
    let Some(disk) = SmallDisk::mount(&group.place, "100m") else { return };
    let folder = disk.folder();
    let arguments = ["node", "--config", &group.config, "--id", "0", "--json", "--data", &folder];
    let mut node = Node::start(group.place.command(&arguments));
    node.write(&lines(0, 0..5));
    await_durable(&node, 5);
    node.kill();
    disk.remount("ro");
    refused(&group, 0, &["--data", &folder], 4, &["cannot be written to", "; "]);
    assert_eq!(logged_in(&group, &folder), 5);
    disk.remount("rw");
}

#[test]
fn file_size_limit_ends_node_with_status_4() {
    let group = logged_group(Transport::SharedMemory, 1);
    for blocks in ["4", "64", "2048"] {
        let limited = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.env("TRAMONTANE_SHM_DIR", group.place.path()).args(["-c", &limited]);
        command.args([env!("CARGO_BIN_EXE_tramontane"), "node", "--id", "0", "--config"]);
        command.args([&group.config, "--data-keep-mb", "64", "--quiet"]);
        let mut node = Node::start(command);
        // A node that has exited no longer reads.
        let _ = node.take_input().write_all(&b"a line that fills the log\n".repeat(200_000));
        let (status, errors) = node.ended();
        assert_eq!(status, Some(4), "{blocks}: {errors}");
        assert!(errors.lines().last().is_some_and(|line| line.contains("; ")), "{errors}");
    }
}

/// The limits range from what the program needs to be loaded to what a small group needs at its
/// start and later.
#[test]
fn memory_limit_ends_node_with_status_4() {
    let group = logged_group(Transport::SharedMemory, 1);
    let limited = |kilobytes: u64, arguments: &[&str]| {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -v {kilobytes}; exec \"$0\" \"$@\"");
        command.env("TRAMONTANE_SHM_DIR", group.place.path()).args(["-c", &limited]);
        command.arg(env!("CARGO_BIN_EXE_tramontane")).args(arguments);
        Node::start(command)
    };
    let starts = |kilobytes: &u64| limited(*kilobytes, &["--version"]).ended().0 == Some(0);
    let least = (0..).map(|step| step * 4_000).find(starts).expect("without a limit");
    let mut refused = 0;
    for kilobytes in (1..=20).map(|step| least + step * 1_500) {
        let mut node =
            limited(kilobytes, &["node", "--config", &group.config, "--id", "0", "--leave-at-end"]);
        // A node that has exited no longer reads.
        let _ = node.take_input().write_all(&b"a line that fills the rings\n".repeat(20_000));
        let (status, errors) = node.ended();
        refused += u32::from(status == Some(4));
        assert!([Some(0), Some(4)].contains(&status), "{kilobytes}: {status:?} {errors}");
        let last = errors.lines().last().expect("a view, or an error");
        assert!(status == Some(0) || last.contains("; "), "{kilobytes}: {errors}");
    }
    assert!(refused > 0, "none was refused");
}
