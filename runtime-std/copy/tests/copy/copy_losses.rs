//! `tramontane-copy`: members that are killed, stopped or interrupted, or whose disks fail, and the
//! reports of the other members.

use std::fs;
use std::path::{Path, PathBuf};

use crate::copies::{content, hosts, targets};
use crate::support::{RunningProgram, TestFolder, children_of, send, wait_for};
use rustix::process::Signal;

/// More bytes than the buffers of a sender and a receiver hold.
const MORE_THAN_BUFFERS: usize = 150 << 20;

/// Enough bytes that everything is packed and no buffer is free while a receiver that has the first
/// part is stopped.
const ALL_BUFFERS: usize = 30 << 20;

/// A sender and its receivers, nodes of a group file, in the middle of a large file.
struct Hosts {
    /// Gone last.
    _place: TestFolder,
    root: RunningProgram,
    receivers: Vec<RunningProgram>,
    to: Vec<PathBuf>,
}

impl Hosts {
    fn start() -> Self {
        Self::start_of(3)
    }

    fn start_of(nodes: usize) -> Self {
        Self::start_with(nodes, |place, arguments| RunningProgram::start(place.command(arguments)))
    }

    /// Starts a copy in which `second` starts the process for node 2. A stopped member is lost
    /// after 6 s, half of the stall time. On a busy machine, five members may need 4 s until the
    /// first byte arrives.
    fn start_with(nodes: usize, second: impl Fn(&TestFolder, &[&str]) -> RunningProgram) -> Self {
        let place = TestFolder::new();
        let file = place.file("large", &vec![7; MORE_THAN_BUFFERS]).display().to_string();
        let all: [PathBuf; 4] = targets(&place);
        let to = all[..nodes - 1].to_vec();
        let config = hosts(&place, nodes);
        let node = |id: usize, rest: [&str; 2]| {
            let id = id.to_string();
            let base = ["--config", &config, "--id", &id, "--block", "4096"];
            let arguments = [&base[..], &["--stall-timeout", "12"], &rest].concat();
            if id == "2" { second(&place, &arguments) } else { place.start(&arguments) }
        };
        let receiver = |(id, to): (usize, &PathBuf)| node(id, ["--to", &to.display().to_string()]);
        let receivers = (1..).zip(&to).map(receiver).collect();
        let root = node(0, ["--", &file]);
        Self { _place: place, root, receivers, to }
    }

    fn wait_for_data(&mut self) {
        let Self { root, receivers, to, .. } = self;
        for to in to {
            wait_for("something to be unpacked", || {
                for process in receivers.iter_mut().chain([&mut *root]) {
                    assert!(process.is_running(), "too early: {:?}", process.wait_with_input());
                }
                has_begun(to)
            });
        }
    }

    /// Returns the sender and two receivers.
    fn into_three(self) -> (RunningProgram, [RunningProgram; 2], Vec<PathBuf>, TestFolder) {
        let receivers = <[RunningProgram; 2]>::try_from(self.receivers);
        (self.root, receivers.unwrap_or_else(|_| panic!("two receivers")), self.to, self._place)
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
fn killed_remote_receiver_is_named_by_all() {
    let mut hosts = Hosts::start();
    hosts.wait_for_data();
    let (root, [first, second], to, _place) = hosts.into_three();
    second.signal(Signal::KILL);
    root.wait().failed(6, &["node 2 was lost"]);
    first.wait().failed(6, &["node 2 was lost"]);
    assert!(is_empty(&to[0]), "nobody has it");
}

#[test]
fn failed_write_is_reported_by_all() {
    // The limit simulates a full disk.
    let limited = |place: &TestFolder, arguments: &[&str]| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -f 20000; exec \"$0\" \"$@\""]);
        command.arg(crate::PROGRAM).args(arguments);
        command.env("TRAMONTANE_SHM_DIR", place.path()).env_remove("TRAMONTANE_LOG");
        RunningProgram::start(command)
    };
    let (root, [first, second], to, _place) = Hosts::start_with(3, limited).into_three();
    second.wait().failed(4, &["cannot write to", "to-1", "File too large"]);
    root.wait().failed(4, &["node 2: cannot write to", "File too large"]);
    first.wait().failed(4, &["node 2: cannot write to", "File too large"]);
    assert!(to.iter().all(|to| is_empty(to)), "nobody has it");
}

#[test]
fn lost_sender_is_named_by_all() {
    for (signal, word) in [(Signal::KILL, "was lost"), (Signal::INT, "it was interrupted")] {
        let mut hosts = Hosts::start();
        hosts.wait_for_data();
        hosts.root.signal(signal);
        for receiver in hosts.receivers {
            receiver.wait().failed(6, &["node 0", word]);
        }
        assert!(hosts.to.iter().all(|to| is_empty(to)), "nobody has it");
    }
}

#[test]
fn interrupted_receiver_ends_copy_for_all() {
    let mut hosts = Hosts::start();
    hosts.wait_for_data();
    let (root, [first, second], to, _place) = hosts.into_three();
    second.signal(Signal::INT);
    assert_eq!(second.wait().status.code(), Some(130));
    root.wait().failed(6, &["node 2: it was interrupted"]);
    first.wait().failed(6, &["node 2: it was interrupted"]);
    assert!(to.iter().all(|to| is_empty(to)), "nobody has it");
}

/// Returns whether everything has been packed, so that the sender is only waiting for its
/// receivers.
fn has_packed(root: u32) -> Option<()> {
    let names: Vec<String> = fs::read_dir(format!("/proc/{root}/task"))
        .ok()?
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")).unwrap_or_default())
        .collect();
    let is_copying = names.iter().any(|name| name.trim() != "tramontane");
    (is_copying && names.iter().all(|name| name.trim() != "tramontane-pack")).then_some(())
}

/// Returns whether the receiver already has the whole file.
fn is_there(to: &Path) -> Option<()> {
    to.join("large").exists().then_some(())
}

/// Repeats an attempt until a receiver is stopped in time: on a busy machine, it may already have
/// everything when the signal arrives. Only in that case may the copy succeed.
fn until_in_time(attempt: impl Fn(&TestFolder) -> (Option<i32>, PathBuf), stopped: i32) {
    for _ in 0..20 {
        let place = TestFolder::new();
        let (status, to) = attempt(&place);
        if status == Some(stopped) {
            return;
        }
        let bytes = fs::metadata(to.join("large")).map(|metadata| metadata.len());
        assert_eq!((status, bytes.ok()), (Some(0), Some(ALL_BUFFERS as u64)), "all or nothing");
    }
    panic!("the receiver had all before the signal came, each time");
}

#[test]
fn receiver_interrupted_late_does_not_block_sender() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let attempt = |place: &TestFolder| {
            let file = place.file("large", &vec![7; ALL_BUFFERS]).display().to_string();
            let config = hosts(place, 2);
            let [to]: [PathBuf; 1] = targets(place);
            let node = |id: &str, rest: &[&str]| {
                place.start(&[&["--config", &config, "--id", id, "--block", "4096"], rest].concat())
            };
            let receiver = node("1", &["--to", &to.display().to_string()]);
            let mut root = node("0", &[&file]);
            wait_for("something to be unpacked", || has_begun(&to).or_else(|| is_there(&to)));
            receiver.signal(Signal::STOP);
            wait_for("all to be packed", || has_packed(root.pid()).or_else(|| is_there(&to)));
            root.signal(signal);
            let ended = root.wait_with_input().status.code();
            receiver.signal(Signal::CONT);
            if ended == Some(status) {
                receiver.wait().failed(6, &["node 0"]);
                assert!(is_empty(&to), "nobody has it");
            }
            (ended, to)
        };
        until_in_time(attempt, status);
    }
}

#[test]
fn stopped_local_receiver_does_not_block_sender() {
    for fabric in ["shm", "tcp"] {
        let attempt = |place: &TestFolder| {
            let file = place.file("large", &vec![7; ALL_BUFFERS]).display().to_string();
            let [to]: [PathBuf; 1] = targets(place);
            let mut copy = place.start(&[
                &file,
                "--to",
                &to.display().to_string(),
                "--fabric",
                fabric,
                "--block",
                "4096",
            ]);
            wait_for("something to be unpacked", || has_begun(&to).or_else(|| is_there(&to)));
            let receivers = children_of(copy.pid());
            receivers.iter().for_each(|receiver| send(*receiver, Signal::STOP));
            wait_for("all to be packed", || has_packed(copy.pid()).or_else(|| is_there(&to)));
            copy.signal(Signal::TERM);
            let ended = copy.wait_with_input().status.code();
            let is_left = receivers.iter().any(|receiver| crate::support::is_alive(*receiver));
            assert!(!is_left, "nobody is left behind");
            (ended, to)
        };
        until_in_time(attempt, 143);
    }
}

#[test]
fn stopped_sender_is_named_by_receivers() {
    let mut hosts = Hosts::start_of(3);
    hosts.wait_for_data();
    hosts.root.signal(Signal::STOP);
    for receiver in hosts.receivers {
        receiver.wait().failed(6, &["node 0, the sender, was lost", "heartbeat for 6 s"]);
    }
    assert!(hosts.to.iter().all(|to| is_empty(to)), "no receiver has it");
}

#[test]
fn other_nodes_name_stopped_receiver() {
    let mut hosts = Hosts::start_of(3);
    hosts.wait_for_data();
    hosts.receivers[1].signal(Signal::STOP);
    hosts.root.wait().failed(6, &["node 2 was lost", "heartbeat for 6 s"]);
    let mut receivers = hosts.receivers.into_iter();
    let [first, second] = [receivers.next(), receivers.next()].map(|one| one.expect("two"));
    first.wait().failed(6, &["node 2 was lost", "heartbeat for 6 s"]);
    second.signal(Signal::CONT);
    second.wait().failed(6, &["copy again"]);
    assert!(hosts.to.iter().all(|to| is_empty(to)), "no receiver has it");
}

/// To the two survivors, this looks like a network split in which they are the smaller side.
#[test]
fn members_without_majority_or_sender_keep_no_files() {
    let mut hosts = Hosts::start_of(5);
    hosts.wait_for_data();
    let majority = &hosts.receivers[1..];
    majority.iter().for_each(|receiver| receiver.signal(Signal::STOP));
    hosts.root.wait().failed(6, &["was lost", "heartbeat for 6 s"]);
    let mut receivers = hosts.receivers.into_iter();
    let first = receivers.next().expect("one");
    first.wait().failed(6, &["was lost"]);
    let majority: Vec<RunningProgram> = receivers.collect();
    majority.iter().for_each(|receiver| receiver.signal(Signal::CONT));
    for receiver in majority {
        receiver.wait().failed(6, &["copy again"]);
    }
    assert!(hosts.to.iter().all(|to| is_empty(to)), "no receiver has it");
}

#[test]
fn sender_and_single_receiver_name_each_other() {
    for is_sender in [true, false] {
        let mut hosts = Hosts::start_of(2);
        hosts.wait_for_data();
        let receiver = hosts.receivers.pop().expect("one");
        let (victim, other, words) = match is_sender {
            true => (hosts.root, receiver, ["node 0, the sender", "was lost"]),
            false => (receiver, hosts.root, ["node 1", "was lost"]),
        };
        victim.signal(Signal::KILL);
        other.wait().failed(6, &words);
        if is_sender {
            assert!(is_empty(&hosts.to[0]), "there is no majority");
        }
        assert!(!hosts.to[0].join("large").exists());
    }
}
