//! Messages of a `tramontane-copy` that is refused, interrupted or failing, and the files that it
//! leaves.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::copies::{content, hosts, joined, sources, targets};
use crate::support::{RunningProgram, TestFolder, children_of, send, wait_for};
use rustix::process::Signal;

/// More bytes than the buffers of a sender and a receiver hold.
const MORE_THAN_BUFFERS: usize = 150 << 20;

/// Returns the current length of one unpacked file.
fn unpacked(to: &Path, name: &str) -> Option<u64> {
    fs::metadata(to.join(".tramontane-copy").join(name))
        .ok()
        .map(|data| data.len())
        .filter(|bytes| *bytes > 0)
}

#[test]
fn refused_copy_leaves_targets_unchanged() {
    let place = TestFolder::new();
    let file = place.file("file", b"content").display().to_string();
    let to: [PathBuf; 2] = targets(&place);
    let (all, first) = (joined(&to), to[0].display().to_string());
    let nowhere = place.path().join("nowhere").display().to_string();
    let copy = |arguments: &[&str]| place.run(arguments);
    copy(&[&nowhere, "--to", &all]).failed(3, &["nowhere", "No such file"]);
    copy(&[&file, &file, "--to", &all]).failed(2, &["two", "name file"]);
    copy(&["/", "--to", &all]).failed(2, &["is inside /"]);
    copy(&[&file, "--to", &format!("{all},{nowhere}")]).failed(2, &["no directory", "nowhere"]);
    copy(&[&file, "--to", &all, "--algorithm", "hybrid"]).failed(2, &["racks"]);
    copy(&[&file, "--to", &all, "--block", "17"]).failed(2, &["4096", "8388608"]);
    copy(&[&file, "--to", "/proc"]).failed(1, &["cannot write to /proc"]);
    let again = to[0].join("../to-0").display().to_string();
    for twice in [&first, &again] {
        copy(&[&file, "--to", &format!("{all},{twice}")])
            .failed(2, &["to-0", "same directory", "once"]);
    }
    assert!(to.iter().all(|to| content(to).len() == 1), "nothing came");

    fs::write(to[1].join("file"), b"older").expect("a file");
    copy(&[&file, "--to", &all]).failed(3, &["to-1", "exists already", "remove it"]);
    assert_eq!(content(&to[0]).len(), 1, "nobody has it if one cannot have it");
    assert_eq!(fs::read(to[1].join("file")).expect("it is there"), b"older");

    fs::create_dir(to[0].join(".tramontane-copy")).expect("what an interrupted copy leaves");
    copy(&[&file, "--to", &first]).failed(3, &["interrupted", "cannot be resumed", "remove it"]);
    assert!(to[0].join(".tramontane-copy").exists(), "it may be somebody's");
}

#[test]
fn killed_receiver_ends_copy_for_all() {
    for fabric in ["shm", "tcp"] {
        let place = TestFolder::new();
        let sources = sources(&place);
        let to: [PathBuf; 3] = targets(&place);
        // Blocks of 4 KB make the copy take a while.
        let large = sources[0].display().to_string();
        let all = joined(&to);
        let mut copy = place.start(&[&large, "--to", &all, "--fabric", fabric, "--block", "4096"]);
        let unpacked = to[1].join(".tramontane-copy/large");
        wait_for("something to be unpacked", || {
            fs::metadata(&unpacked).ok().filter(|data| data.len() > 0)
        });
        let victims = children_of(copy.pid());
        let is_second = |pid: &&u32| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("\"own\":2")
        };
        send(*victims.iter().find(is_second).expect("a receiver"), Signal::KILL);
        copy.end_input();
        let ended = copy.wait();
        ended.failed(6, &["to-1", "killed"]);
        for (number, to) in to.iter().enumerate() {
            let left: Vec<PathBuf> =
                content(to).into_keys().filter(|name| !name.as_os_str().is_empty()).collect();
            let is_victim = number == 1;
            assert!(is_victim || left.is_empty(), "{left:?} in {}", to.display());
            assert!(!to.join("large").exists(), "it was not complete");
        }
    }
}

#[test]
fn interrupted_copy_leaves_no_files() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 2] = targets(&place);
    let large = sources[0].display().to_string();
    let all = joined(&to);
    let mut copy = place.start(&[&large, "--to", &all, "--block", "4096"]);
    let unpacked = to[1].join(".tramontane-copy/large");
    wait_for("something to be unpacked", || {
        fs::metadata(&unpacked).ok().filter(|data| data.len() > 0)
    });
    copy.signal(Signal::INT);
    assert_eq!(copy.wait_with_input().status.code(), Some(130));
    assert!(
        to.iter().all(|to| content(to).len() == 1),
        "{:?}",
        to.iter().map(|to| content(to).into_keys().collect::<Vec<_>>()).collect::<Vec<_>>()
    );
}

#[test]
fn changed_source_file_fails_copy_everywhere() {
    for becomes in [MORE_THAN_BUFFERS - 1, MORE_THAN_BUFFERS + 1] {
        let place = TestFolder::new();
        let file = place.file("large", &vec![7; MORE_THAN_BUFFERS]);
        let to: [PathBuf; 2] = targets(&place);
        let config = hosts(&place, 3);
        let node = |id: &str, rest: &[&str]| {
            place.start(&[&["--config", &config, "--id", id], rest].concat())
        };
        let receiver = |id: &str, to: &Path| node(id, &["--to", &to.display().to_string()]);
        let receivers: [RunningProgram; 2] = [receiver("1", &to[0]), receiver("2", &to[1])];
        let root = node("0", &[&file.display().to_string()]);
        wait_for("something to be unpacked", || unpacked(&to[0], "large"));
        // While one receiver takes nothing, the sender cannot finish reading.
        receivers[0].signal(Signal::STOP);
        File::options()
            .write(true)
            .open(&file)
            .and_then(|file| file.set_len(becomes as u64))
            .expect("a size");
        receivers[0].signal(Signal::CONT);
        root.wait().failed(3, &["large changed while it was copied"]);
        for (receiver, to) in receivers.into_iter().zip(&to) {
            receiver.wait().failed(3, &["the sending node", "large changed while it was copied"]);
            assert_eq!(content(to).len(), 1, "nobody has it");
        }
    }
}

#[test]
fn destination_inside_source_is_refused() {
    let place = TestFolder::new();
    let source = place.path().join("source");
    fs::create_dir_all(source.join("inner")).expect("directories");
    fs::write(source.join("file"), b"content").expect("a file");
    let link = place.path().join("link");
    std::os::unix::fs::symlink(source.join("inner"), &link).expect("a link");
    let text = source.display().to_string();
    let before = content(&source);
    let within =
        ["", "inner", "inner/../inner", "not/there/yet"].map(|name| source.join(name)).into_iter();
    for to in within.chain([link.clone(), link.join("not-yet")]) {
        let ended = place.run(&[&text, "--to", &to.display().to_string()]);
        ended.failed(2, &["is inside", "being copied", "outside it"]);
    }
    let mut command = place.command(&[".", "--to", "./inner"]);
    command.current_dir(&source);
    RunningProgram::start(command).wait().failed(2, &["./inner is inside .", "outside it"]);
    assert!(content(&source) == before, "nothing came");

    // This directory is next to the source, and its name begins with that of the source.
    let beside = place.path().join("source-beside");
    fs::create_dir(&beside).expect("a directory");
    place.run(&[&text, "--to", &beside.display().to_string()]).succeeded();
    assert!(content(&beside.join("source")) == before);
}

#[test]
fn source_with_unpacked_files_is_refused() {
    let place = TestFolder::new();
    let source = place.path().join("source");
    fs::create_dir_all(source.join("inner")).expect("directories");
    let config = hosts(&place, 2);
    let node =
        |id: &str, rest: &[&str]| place.start(&[&["--config", &config, "--id", id], rest].concat());
    let receiver = node("1", &["--to", &source.join("inner").display().to_string()]);
    node("0", &[&source.display().to_string()])
        .wait()
        .failed(3, &[".tramontane-copy", "is running"]);
    receiver.wait().failed(3, &["the sending node", ".tramontane-copy"]);
    assert_eq!(content(&source).len(), 2, "nothing came");
}

#[test]
fn special_files_are_refused() {
    let place = TestFolder::new();
    let source = place.path().join("source");
    fs::create_dir(&source).expect("a directory");
    let socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket");
    let [to]: [PathBuf; 1] = targets(&place);
    let ended = place.run(&[&source.display().to_string(), "--to", &to.display().to_string()]);
    ended.failed(3, &["socket", "neither a file"]);
    drop(socket);
}

#[test]
fn failed_move_is_reported_and_leaves_no_files() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 2] = targets(&place);
    let config = hosts(&place, 3);
    let node = |id: &str, rest: &[&str]| {
        place.start(&[&["--config", &config, "--id", id, "--block", "4096"], rest].concat())
    };
    let receiver = |id: &str, to: &Path| node(id, &["--to", &to.display().to_string()]);
    let receivers: [RunningProgram; 2] = [receiver("1", &to[0]), receiver("2", &to[1])];
    let files: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    let root = node("0", &files.iter().map(String::as_str).collect::<Vec<_>>());
    // The receiver has checked the names before it unpacks.
    wait_for("something to be unpacked", || unpacked(&to[1], "large"));
    fs::write(to[1].join("tree"), b"somebody's").expect("a file");
    let [first, second] = receivers;
    root.wait().failed(
        6,
        &["not every node", "node 2", "to-1/tree exists already", "node 1 reported success"],
    );
    first.wait().failed(
        6,
        &["is complete", "to-0", "not at every node", "node 2", "to-1/tree exists already"],
    );
    second.wait().failed(3, &["to-1/tree exists already"]);
    assert!(content(&to[0]) == content(&place.path().join("source")), "it keeps what it has");
    assert_eq!(content(&to[1]).len(), 2, "only what was there, and not the half of a copy");
    assert_eq!(fs::read(to[1].join("tree")).expect("it is there"), b"somebody's");
}

#[test]
fn local_copy_reports_failed_move() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 2] = targets(&place);
    let large = sources[0].display().to_string();
    let copy = place.start(&[&large, "--to", &joined(&to), "--block", "4096"]);
    wait_for("something to be unpacked", || unpacked(&to[1], "large"));
    fs::write(to[1].join("large"), b"somebody's").expect("a file");
    copy.wait()
        .failed(6, &["not every node", "to-1/large exists already", "node 1 reported success"]);
    assert!(to[0].join("large").exists());
    assert_eq!(content(&to[1]).len(), 2);
}

#[test]
fn waiting_copy_ends_on_signal() {
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let place = TestFolder::new();
        let file = place.file("file", b"content").display().to_string();
        let to: [PathBuf; 8] = targets(&place);
        let mut copy = place.start(&[&file, "--to", &joined(&to), "--join-timeout", "3600"]);
        // The signal arrives before the members can meet. A receiver that is stopped before it
        // executes its program would also stop the process that starts it.
        let is_receiver = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains("--member"))
        };
        let first =
            wait_for("a receiver", || children_of(copy.pid()).into_iter().find(is_receiver));
        send(first, Signal::STOP);
        wait_for("all receivers", || (children_of(copy.pid()).len() == 8).then_some(()));
        copy.signal(signal);
        assert_eq!(copy.wait_with_input().status.code(), Some(status));
        assert!(!crate::support::is_alive(first), "nobody is left behind");
    }
}

#[test]
fn hosts_report_mismatched_options() {
    let terms = [["--block", "65536"], ["--algorithm", "chain"]];
    for (own, words) in
        terms.iter().zip([["65536 bytes by 'pipeline'", "--block"], ["by 'chain'", "--algorithm"]])
    {
        let place = TestFolder::new();
        let file = place.file("file", b"content").display().to_string();
        let to: [PathBuf; 2] = targets(&place);
        let config = hosts(&place, 3);
        let node = |id: &str, rest: &[&str]| {
            place.start(&[&["--config", &config, "--id", id], rest].concat())
        };
        let receivers = [("1", &to[0]), ("2", &to[1])];
        let receivers = receivers.map(|(id, to)| node(id, &["--to", &to.display().to_string()]));
        node("0", &[own[0], own[1], &file])
            .wait()
            .failed(5, &["node 0 sends", words[0], words[1], "at all nodes"]);
        for receiver in receivers {
            receiver.wait().failed(5, &["node 0 sends", words[0], words[1], "at all nodes"]);
        }
        assert!(to.iter().all(|to| content(to).len() == 1), "nothing came");
    }
}

#[test]
fn hosts_with_conflicting_from_options_are_refused() {
    let place = TestFolder::new();
    let file = place.file("file", b"content").display().to_string();
    let to = targets::<2>(&place).map(|to| to.display().to_string());
    let config = hosts(&place, 2);
    let node =
        |id: &str, rest: &[&str]| place.start(&[&["--config", &config, "--id", id], rest].concat());
    let both = |nodes: [RunningProgram; 2]| {
        for node in nodes {
            node.wait().failed(5, &["does not copy from node", "the same --from"]);
        }
    };
    both([node("0", &["--from", "0", &file]), node("1", &["--from", "1", &file])]);
    both([
        node("0", &["--from", "1", "--to", &to[0]]),
        node("1", &["--from", "0", "--to", &to[1]]),
    ]);
}

#[test]
fn copy_reports_address_in_use_by_node() {
    let place = TestFolder::new();
    let file = place.file("file", b"content").display().to_string();
    let config = hosts(&place, 2);
    let group = fs::read_to_string(&config).expect("it is there");
    let address =
        group.split("address = \"").nth(1).and_then(|rest| rest.split('"').next()).expect("one");
    let _running = std::net::TcpListener::bind(address).expect("it is free");
    let ended = place.run(&["--config", &config, "--id", "0", &file]);
    ended.failed(
        5,
        &[address, "in use", "by this node of the group", "stop the node", "other ports"],
    );
}

/// The key encrypts only TCP traffic, so RDMA with a key must be permitted explicitly at each end.
#[test]
fn unencrypted_copy_with_key_must_be_permitted() {
    let place = TestFolder::new();
    let file = place.file("file", b"content").display().to_string();
    let [to] = targets::<1>(&place).map(|to| to.display().to_string());
    let key = place.file("key", "7f".repeat(32).as_bytes());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("its owner's");
    let group = fs::read_to_string(hosts(&place, 2)).expect("it is there");
    let keyed = |more: &str| {
        let text = format!("key_file = \"key\"\n{more}{group}");
        place.file("keyed.toml", text.as_bytes()).display().to_string()
    };
    let clear = ["RDMA is never encrypted", "allow_clear = true"];
    let config = keyed("");
    for (id, rest) in [("0", [&file, ""]), ("1", ["--to", &to])] {
        let rest: Vec<&str> = rest.into_iter().filter(|word| !word.is_empty()).collect();
        let base = ["--config", &config, "--id", id, "--fabric", "verbs", "--join-timeout", "1"];
        place.run(&[&base, &rest[..]].concat()).failed(2, &clear);
        let allowed = place.run(&[&base, &rest[..], &["--allow-clear"]].concat());
        assert_ne!(allowed.status.code(), Some(2), "it is another thing that lacks: {allowed:?}");
    }
    // Covers every combination of RDMA with a key.
    let verbs = group.replace("\"tcp\"", "\"verbs\"");
    let config = place.file("verbs.toml", format!("key_file = \"key\"\n{verbs}").as_bytes());
    let config = config.display().to_string();
    place.run(&["--config", &config, "--id", "0", &file]).failed(2, &clear);
}

#[test]
fn copy_refuses_options_of_rdma_without_rdma() {
    let words = ["--port", "--fabric verbs"];
    TestFolder::new().run(&["file", "--to", ".", "--port", "1"]).failed(2, &words);
}
