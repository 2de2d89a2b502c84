//! Failures of `tramontane demo`: bad input, killed members, a killed parent. In every case, the
//! program reports the failure in one line, and leaves no process and no file.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{RunningProgram, TestFolder, children_of, is_alive, send, wait_for};
use rustix::process::Signal;

/// Arguments of a run that does not end by itself.
const ENDLESS: [&str; 7] = ["demo", "--nodes", "3", "--repeat", "10000000", "--window", "8"];

/// Starts such a run, and returns its members' processes once all are running.
#[track_caller]
fn endless(place: &TestFolder) -> (RunningProgram, Vec<u32>) {
    let process = place.start(&ENDLESS);
    let members = wait_for("three members", || {
        let members = children_of(process.pid());
        (members.len() == 3 && place.members() == 3).then_some(members)
    });
    // Waits until the run has begun.
    std::thread::sleep(Duration::from_millis(300));
    (process, members)
}

#[track_caller]
fn all_end(members: &[u32]) {
    wait_for("the members' end", || members.iter().all(|pid| !is_alive(*pid)).then_some(()));
}

#[test]
fn invalid_demo_arguments_fail_with_one_line() {
    let place = TestFolder::new();
    let wrong: [(&[&str], &str); 15] = [
        (&["--nodes", "0"], "--nodes"),
        (&["--nodes", "1025"], "--nodes"),
        (&["--nodes", "99999999999999999999"], "--nodes"),
        (&["--nodes", "three"], "--nodes"),
        (&["--senders", "0"], "--senders"),
        (&["--nodes", "2", "--senders", "3"], "3 senders are more than the 2 members"),
        (&["--window", "0"], "--window"),
        (&["--window", "4294967295"], "--window"),
        (&["--message-max", "4294967296"], "--message-max"),
        (&["--block", "0"], "--block"),
        (&["--block", "20000"], "20000"),
        (&["--repeat", "0"], "--repeat"),
        (&["--repeat", "18446744073709551615"], "--repeat"),
        (&["--join-timeout", "-1"], "--join-timeout"),
        (&["--nonsense"], "--nonsense"),
    ];
    for (arguments, words) in wrong {
        place.run(&[&["demo"], arguments].concat()).failed(2, &[words]);
    }
    place.run::<&str>(&[]).failed(2, &["no command"]);
    place.assert_empty();
}

#[test]
fn bad_input_is_reported_in_one_line() {
    let place = TestFolder::new();
    let file = |name, content| place.file(name, content).to_str().expect("a path").to_owned();
    let (empty, long) = (file("empty", b""), file("long", &[b'x'; 10_241]));
    let missing = place.path().join("missing").to_str().expect("a path").to_owned();
    let bad: [(&[&str], &[&str]); 6] = [
        (&["--input", &missing], &["missing", "No such file"]),
        (&["--input", "/"], &["directory"]),
        (&["--input", &empty], &["empty"]),
        (&["--input", &long], &["record 1", "10240", "--message-max", "--block"]),
        (&["--message-max", "16"], &["record 18", "16 bytes"]),
        // This input is endless, and contains no newline.
        (&["--input", "/dev/zero"], &["record 1"]),
    ];
    for (arguments, words) in bad {
        place.run(&[&["demo"], arguments].concat()).failed(3, words);
    }
    place.assert_empty();
}

#[test]
fn input_larger_than_memory_is_refused() {
    let place = TestFolder::new();
    place
        .run(&["demo", "--window", "1048576", "--message-max", "268435456"])
        .failed(4, &["not enough shared memory", "TiB"]);
    place.assert_empty();
    let nowhere = place.path().join("nowhere");
    let mut command = place.command(&["demo"]);
    command.env("TRAMONTANE_SHM_DIR", &nowhere);
    RunningProgram::start(command).wait().failed(4, &["nowhere"]);
}

#[test]
fn demo_reports_full_standard_output() {
    let place = TestFolder::new();
    let path = place.file("input", b"a\n");
    let mut command = place.command(&["demo", "--input", path.to_str().expect("a path")]);
    let full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let output = command.stdout(full).stderr(Stdio::piped()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write the output"));
    place.assert_empty();
}

/// A file system of one page, if this user is permitted to mount one.
struct Small(PathBuf);

impl Small {
    fn mount(place: &TestFolder) -> Option<Self> {
        let path = place.path().join("small");
        std::fs::create_dir(&path).expect("a folder");
        let mount = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k", "tramontane-test"])
            .arg(&path)
            .output();
        mount.is_ok_and(|mount| mount.status.success()).then_some(Self(path))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

#[test]
fn demo_reports_full_file_system() {
    let place = TestFolder::new();
    let Some(small) = Small::mount(&place) else {
        eprintln!("not run: this user may not mount a file system");
        return;
    };
    // Each member has a file of one page in this file system.
    let mut command = place.command(&["demo"]);
    command.env("TRAMONTANE_SHM_DIR", &small.0);
    RunningProgram::start(command).wait().failed(4, &["not enough shared memory in", "small"]);
    assert_eq!(std::fs::read_dir(&small.0).expect("a folder").count(), 0, "left behind");
}

#[test]
fn demo_names_killed_member() {
    let place = TestFolder::new();
    let (mut demo, members) = endless(&place);
    send(members[1], Signal::KILL);
    let killed = Instant::now();
    let named = format!("(process {})", members[1]);
    demo.wait_with_input().failed(6, &[&named, "signal 9"]);
    assert!(killed.elapsed() < Duration::from_secs(20));
    all_end(&members);
    place.assert_empty();
}

#[test]
fn demo_names_stalled_member() {
    let place = TestFolder::new();
    let (mut demo, members) = endless(&place);
    send(members[2], Signal::STOP);
    let named = format!("(process {})", members[2]);
    demo.wait_with_input().failed(6, &[&named, "stalled"]);
    all_end(&members);
    place.assert_empty();
}

#[test]
fn interrupted_demo_removes_its_files() {
    let place = TestFolder::new();
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let (mut demo, members) = endless(&place);
        demo.signal(signal);
        let ended = demo.wait_with_input();
        assert_eq!(
            (ended.status.code(), ended.errors.as_str(), ended.output.len()),
            (Some(status), "", 0)
        );
        all_end(&members);
        place.assert_empty();
    }
}

#[test]
fn interrupt_from_terminal_ends_demo_and_members() {
    let place = TestFolder::new();
    let (mut demo, members) = endless(&place);
    for pid in members.iter().chain([&demo.pid()]) {
        send(*pid, Signal::INT);
    }
    let ended = demo.wait_with_input();
    assert_eq!((ended.status.code(), ended.errors.as_str()), (Some(130), ""));
    all_end(&members);
    place.assert_empty();
}

#[test]
fn killed_demo_leaves_no_member_process() {
    let place = TestFolder::new();
    let (demo, members) = endless(&place);
    // Even a stopped process must end.
    send(members[0], Signal::STOP);
    demo.signal(Signal::KILL);
    drop(demo);
    all_end(&members);
    // Members clean up after themselves if the machine permits it.
    let path = place.file("input", b"a\n");
    place.run(&["demo", "--input", path.to_str().expect("a path")]).succeeded();
    place.assert_empty();
}

#[test]
fn next_demo_removes_files_of_crashed_demo() {
    let place = TestFolder::new();
    let (demo, members) = endless(&place);
    // The members are killed at the same time, so that no member can clean up after another.
    for pid in members.iter().chain([&demo.pid()]) {
        send(*pid, Signal::STOP);
    }
    for pid in members.iter().chain([&demo.pid()]) {
        send(*pid, Signal::KILL);
    }
    drop(demo);
    all_end(&members);
    assert!(place.members() > 0, "a crash leaves files, or this test is about nothing");
    let path = place.file("input", b"a\n");
    place.run(&["demo", "--input", path.to_str().expect("a path")]).succeeded();
    place.assert_empty();
}
