//! `tramontane copy`: members that are killed, stopped or interrupted, or whose disk fails, and who is told what of it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::copy::{content, hosts, targets};
use crate::support::{Place, Process, children_of, send, wait_for};
use rustix::process::Signal;

/// More than the buffers of a root and a receiver hold.
const MORE_THAN_BUFFERS: usize = 150 << 20;

/// So much that all of it is packed while a receiver that has its beginning is stopped, and that no buffer is free then.
const ALL_BUFFERS: usize = 60 << 20;

/// A root and two receivers of a group file, over TCP, in the middle of a large file.
struct Hosts {
    place: Place,
    root: Process,
    receivers: [Process; 2],
    to: [PathBuf; 2],
}

impl Hosts {
    fn start() -> Self {
        Self::start_with(|place, arguments| Process::start(place.command(arguments)))
    }

    /// With something of one's own for node 2.
    fn start_with(second: impl Fn(&Place, &[&str]) -> Process) -> Self {
        let place = Place::new();
        let file = place.file("large", &vec![7; MORE_THAN_BUFFERS]).display().to_string();
        let to: [PathBuf; 2] = targets(&place);
        let config = hosts(&place, 3);
        let texts: Vec<String> = to.iter().map(|to| to.display().to_string()).collect();
        let node = |id: &'static str, rest: [&str; 2]| {
            let arguments =
                ["copy", "--config", &config, "--id", id, "--block", "4096", rest[0], rest[1]];
            if id == "2" { second(&place, &arguments) } else { place.start(&arguments) }
        };
        let receivers = [node("1", ["--to", &texts[0]]), node("2", ["--to", &texts[1]])];
        let root = node("0", ["--", &file]);
        Self { place, root, receivers, to }
    }

    fn wait_for_data(&self) {
        for to in &self.to {
            wait_for("something to be unpacked", || has_begun(to));
        }
    }
}

fn has_begun(to: &Path) -> Option<()> {
    let unpacked = fs::metadata(to.join(".tramontane-copy/large")).ok()?;
    (unpacked.len() > 0).then_some(())
}

fn is_empty(directory: &Path) -> bool {
    content(directory).len() == 1
}

#[test]
fn a_receiver_that_is_killed_between_hosts_is_named_by_all() {
    let hosts = Hosts::start();
    hosts.wait_for_data();
    let [first, second] = hosts.receivers;
    second.signal(Signal::KILL);
    hosts.root.wait().failed(6, &["node 2"]);
    first.wait().failed(6, &["the node that copies, node 0", "ended at node 2"]);
    assert!(is_empty(&hosts.to[0]), "nobody has it");
}

#[test]
fn a_receiver_that_cannot_write_is_named_by_all_with_what_its_system_said() {
    // The limit stands for a full disk, which a test has none of.
    let limited = |place: &Place, arguments: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "trap '' XFSZ; ulimit -f 20000; exec \"$0\" \"$@\""]);
        command.arg(env!("CARGO_BIN_EXE_tramontane")).args(arguments);
        command.env("TRAMONTANE_SHM_DIR", place.path()).env_remove("TRAMONTANE_LOG");
        Process::start(command)
    };
    let hosts = Hosts::start_with(limited);
    let [first, second] = hosts.receivers;
    second.wait().failed(1, &["cannot write to", "to-1", "File too large"]);
    hosts.root.wait().failed(1, &["node 2: cannot write to", "File too large"]);
    first
        .wait()
        .failed(1, &["the node that copies, node 0: node 2: cannot write to", "File too large"]);
    assert!(hosts.to.iter().all(|to| is_empty(to)), "nobody has it");
}

#[test]
fn a_root_that_is_killed_or_interrupted_is_named_by_all() {
    for (signal, word) in [(Signal::KILL, "is gone"), (Signal::INT, "it was interrupted")] {
        let hosts = Hosts::start();
        hosts.wait_for_data();
        hosts.root.signal(signal);
        for receiver in hosts.receivers {
            receiver.wait().failed(6, &["node 0", word]);
        }
        assert!(hosts.to.iter().all(|to| is_empty(to)), "nobody has it");
    }
}

#[test]
fn a_receiver_is_interrupted_while_data_comes() {
    let hosts = Hosts::start();
    hosts.wait_for_data();
    let [first, second] = hosts.receivers;
    second.signal(Signal::INT);
    assert_eq!(second.wait().status.code(), Some(130));
    hosts.root.wait().failed(6, &["node 2: it was interrupted"]);
    first.wait().failed(6, &["the node that copies, node 0: node 2: it was interrupted"]);
    assert!(hosts.to.iter().all(|to| is_empty(to)), "nobody has it");
}

/// Whether all was packed, and the root waits for its receivers alone.
fn has_packed(root: u32) -> Option<()> {
    let names: Vec<String> = fs::read_dir(format!("/proc/{root}/task"))
        .ok()?
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default())
        .collect();
    let is_copying = names.iter().any(|name| name.trim() != "tramontane");
    (is_copying && names.iter().all(|name| name.trim() != "tramontane-pack")).then_some(())
}

#[test]
fn a_receiver_that_is_stopped_near_the_end_does_not_hold_the_root() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let place = Place::new();
        let file = place.file("large", &vec![7; ALL_BUFFERS]).display().to_string();
        let [to]: [PathBuf; 1] = targets(&place);
        let config = hosts(&place, 2);
        let node = |id: &str, rest: &[&str]| {
            place.start(
                &[&["copy", "--config", &config, "--id", id, "--block", "4096"], rest].concat(),
            )
        };
        let receiver = node("1", &["--to", &to.display().to_string()]);
        let mut root = node("0", &[&file]);
        wait_for("something to be unpacked", || has_begun(&to));
        receiver.signal(Signal::STOP);
        wait_for("all to be packed", || has_packed(root.pid()));
        root.signal(signal);
        assert_eq!(root.wait_with_input().status.code(), Some(status));
        receiver.signal(Signal::CONT);
        receiver.wait().failed(6, &["node 0"]);
        assert!(is_empty(&to), "nobody has it");
    }
}

#[test]
fn a_receiver_that_is_stopped_on_this_machine_does_not_hold_the_root() {
    for fabric in ["shm", "tcp"] {
        let place = Place::new();
        let file = place.file("large", &vec![7; ALL_BUFFERS]).display().to_string();
        let [to]: [PathBuf; 1] = targets(&place);
        let mut copy = place.start(&[
            "copy",
            &file,
            "--to",
            &to.display().to_string(),
            "--fabric",
            fabric,
            "--block",
            "4096",
        ]);
        wait_for("something to be unpacked", || has_begun(&to));
        let [receiver] = children_of(copy.pid())[..] else { panic!("one receiver") };
        send(receiver, Signal::STOP);
        wait_for("all to be packed", || has_packed(copy.pid()));
        copy.signal(Signal::TERM);
        assert_eq!(copy.wait_with_input().status.code(), Some(143));
        assert!(!crate::support::is_alive(receiver), "nobody is left behind");
    }
}

#[test]
#[ignore = "a member that is stopped is told after a minute; CI runs it"]
fn a_root_that_stays_stopped_is_told_by_its_receivers() {
    let hosts = Hosts::start();
    hosts.wait_for_data();
    hosts.root.signal(Signal::STOP);
    for mut receiver in hosts.receivers {
        let told = receiver.wait_patiently();
        told.failed(6, &["node 0, which copies, has said nothing for 60 s"]);
    }
}

#[test]
#[ignore = "a member that is stopped is told after a minute; CI runs it"]
fn a_receiver_that_stays_stopped_is_told_by_the_others() {
    let mut hosts = Hosts::start();
    hosts.wait_for_data();
    hosts.receivers[1].signal(Signal::STOP);
    hosts.root.wait_patiently().failed(6, &["stood still for 60 s"]);
    let [mut first, second] = hosts.receivers;
    first.wait_patiently().failed(6, &["the node that copies, node 0", "stood still for 60 s"]);
    second.signal(Signal::CONT);
    second.wait().failed(6, &["node 0"]);
    assert!(hosts.to.iter().all(|to| is_empty(to)), "nobody has it");
    drop(hosts.place);
}
