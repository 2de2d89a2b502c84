//! `tramontane copy`: real files, real processes, compared byte by byte; and what an interrupted or refused copy leaves.

mod cli_support;

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use cli_support::{Place, children_of, send, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Several messages, and a piece of one.
const LARGE: usize = 40 << 20;

/// Everything that is to be copied: large and empty files, a directory in a directory, an empty one, a link, a mode.
fn sources(place: &Place) -> Vec<PathBuf> {
    let source = place.path().join("source");
    fs::create_dir_all(source.join("tree/inner/empty")).expect("directories");
    let large: Vec<u8> = (0..LARGE).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    fs::write(source.join("large"), large).expect("a file");
    fs::write(source.join("tree/nothing"), b"").expect("a file");
    fs::write(source.join("tree/inner/script"), b"#!/bin/sh\n").expect("a file");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(source.join("tree/inner/script"), mode).expect("its mode");
    let hole = fs::File::create(source.join("tree/hole")).expect("a file");
    hole.set_len(1 << 20).expect("a file with nothing but a hole");
    std::os::unix::fs::symlink("inner/script", source.join("tree/link")).expect("a link");
    vec![source.join("large"), source.join("tree")]
}

fn targets<const N: usize>(place: &Place) -> [PathBuf; N] {
    let directories: [PathBuf; N] = std::array::from_fn(|number| place.path().join(format!("to-{number}")));
    directories.iter().for_each(|directory| fs::create_dir(directory).expect("a directory"));
    directories
}

fn joined(directories: &[PathBuf]) -> String {
    directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(",")
}

/// What stands below a path: content or kind, and mode, by name.
fn content(root: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        let bytes = if metadata.is_dir() {
            left.extend(
                fs::read_dir(&path).expect("a directory").map(|entry| entry.expect("an entry").path()),
            );
            b"a directory".to_vec()
        } else if metadata.is_symlink() {
            fs::read_link(&path).expect("a link").to_string_lossy().into_owned().into_bytes()
        } else {
            fs::read(&path).expect("a file")
        };
        let name = path.strip_prefix(root).expect("below it").to_path_buf();
        let mode = if name.as_os_str().is_empty() { 0 } else { metadata.permissions().mode() };
        found.insert(name, (bytes, mode));
    }
    found
}

#[test]
fn files_and_directories_reach_every_place_as_they_are() {
    for fabric in ["shm", "tcp"] {
        let place = Place::new();
        let sources = sources(&place);
        let to: [PathBuf; 3] = targets(&place);
        let mut arguments = vec!["copy".into(), "--json".into(), "--fabric".into(), fabric.into()];
        arguments.extend(["--to".into(), joined(&to)]);
        arguments.extend(sources.iter().map(|path| path.display().to_string()));
        let output = place.run(&arguments).succeeded();
        let result: Value = serde_json::from_slice(&output).expect("one object");
        assert_eq!(result["receivers"].as_array().map(Vec::len), Some(3));
        assert!(result["receivers"].as_array().expect("three").iter().all(|line| line["files"] == 4));
        assert!(result["bytes"].as_u64().expect("bytes") > LARGE as u64);
        assert_eq!(result["checksum"].as_str().map(str::len), Some(32));
        let source = content(&place.path().join("source"));
        for to in &to {
            assert!(content(to) == source, "{} is not as the source", to.display());
        }
        let left: Vec<PathBuf> = place.left();
        assert!(left.iter().all(|path| !path.join("row-0").exists()), "{left:?}");
    }
}

#[test]
fn one_empty_file_is_a_copy_too_by_any_algorithm() {
    for algorithm in ["pipeline", "sequential", "interleaved", "chain", "tree"] {
        let place = Place::new();
        let file = place.file("empty", b"").display().to_string();
        let to: [PathBuf; 2] = targets(&place);
        let output =
            place.run(&["copy", &file, "--to", &joined(&to), "--algorithm", algorithm, "--block", "4096"]);
        let text = String::from_utf8(output.succeeded()).expect("text");
        assert!(text.contains("the same everywhere"), "{text}");
        assert!(to.iter().all(|to| fs::read(to.join("empty")).expect("it is there").is_empty()));
    }
}

#[test]
fn what_is_refused_leaves_nothing_anywhere() {
    let place = Place::new();
    let file = place.file("file", b"content").display().to_string();
    let to: [PathBuf; 2] = targets(&place);
    let (all, first) = (joined(&to), to[0].display().to_string());
    let nowhere = place.path().join("nowhere").display().to_string();
    let copy = |arguments: &[&str]| place.run(&[&["copy"], arguments].concat());
    copy(&[&nowhere, "--to", &all]).failed(3, &["nowhere", "No such file"]);
    copy(&[&file, &file, "--to", &all]).failed(2, &["two", "called file"]);
    copy(&["/", "--to", &all]).failed(2, &["no name"]);
    copy(&[&file, "--to", &format!("{all},{nowhere}")]).failed(2, &["no directory", "nowhere"]);
    copy(&[&file, "--to", &all, "--algorithm", "hybrid"]).failed(2, &["racks"]);
    copy(&[&file, "--to", &all, "--block", "17"]).failed(2, &["4096"]);
    assert!(to.iter().all(|to| content(to).len() == 1), "nothing came");

    fs::write(to[1].join("file"), b"older").expect("a file");
    copy(&[&file, "--to", &all]).failed(3, &["to-1", "there already", "remove it"]);
    assert_eq!(content(&to[0]).len(), 1, "nobody has it if one cannot have it");
    assert_eq!(fs::read(to[1].join("file")).expect("it is there"), b"older");

    fs::create_dir(to[0].join(".tramontane-copy")).expect("what an interrupted copy leaves");
    copy(&[&file, "--to", &first]).failed(3, &["interrupted", "cannot be resumed", "remove it"]);
    assert!(to[0].join(".tramontane-copy").exists(), "it may be somebody's");
}

#[test]
fn a_receiver_that_is_killed_ends_the_copy_for_all() {
    for fabric in ["shm", "tcp"] {
        let place = Place::new();
        let sources = sources(&place);
        let to: [PathBuf; 3] = targets(&place);
        // A copy that takes a while: blocks of 4 KB.
        let large = sources[0].display().to_string();
        let all = joined(&to);
        let mut copy = place.start(&["copy", &large, "--to", &all, "--fabric", fabric, "--block", "4096"]);
        let unpacked = to[1].join(".tramontane-copy/large");
        wait_for("something to be unpacked", || fs::metadata(&unpacked).ok().filter(|data| data.len() > 0));
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
fn an_interrupted_copy_leaves_nothing() {
    let place = Place::new();
    let sources = sources(&place);
    let to: [PathBuf; 2] = targets(&place);
    let large = sources[0].display().to_string();
    let all = joined(&to);
    let mut copy = place.start(&["copy", &large, "--to", &all, "--block", "4096"]);
    let unpacked = to[1].join(".tramontane-copy/large");
    wait_for("something to be unpacked", || fs::metadata(&unpacked).ok().filter(|data| data.len() > 0));
    copy.signal(Signal::INT);
    assert_eq!(copy.wait_with_input().status.code(), Some(130));
    assert!(
        to.iter().all(|to| content(to).len() == 1),
        "{:?}",
        to.iter().map(|to| content(to).into_keys().collect::<Vec<_>>()).collect::<Vec<_>>()
    );
}

#[test]
fn nodes_of_a_group_file_copy_between_hosts() {
    let place = Place::new();
    let sources = sources(&place);
    let to: [PathBuf; 3] = targets(&place);
    let listeners: Vec<TcpListener> =
        (0..3).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")).collect();
    let mut group = String::from("name = \"hosts\"\nfabric = \"tcp\"\n");
    for (id, listener) in listeners.iter().enumerate() {
        let address = listener.local_addr().expect("its address");
        group += &format!("[[nodes]]\nid = {id}\naddress = \"{address}\"\n");
    }
    drop(listeners);
    let config = place.file("group.toml", group.as_bytes()).display().to_string();
    let node = |id: &str, rest: &[&str]| {
        place.start(&[&["copy", "--config", &config, "--id", id, "--from", "1", "--json"], rest].concat())
    };
    let receivers =
        [("0", &to[0]), ("2", &to[2])].map(|(id, to)| node(id, &["--to", &to.display().to_string()]));
    let files: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    let root = node("1", &files.iter().map(String::as_str).collect::<Vec<_>>());
    let sent: Value = serde_json::from_slice(&root.wait().succeeded()).expect("one object");
    for receiver in receivers {
        let received: Value = serde_json::from_slice(&receiver.wait().succeeded()).expect("one object");
        assert_eq!((&received["checksum"], &received["files"]), (&sent["checksum"], &4.into()));
    }
    let source = content(&place.path().join("source"));
    assert!(content(&to[0]) == source && content(&to[2]) == source);

    let refused = |id: &str, rest: &[&str], words: &[&str]| {
        node(id, rest).wait().failed(2, words);
    };
    refused("1", &["--to", "x"], &["node 1", "copies", "--from"]);
    refused("0", &files.iter().map(String::as_str).collect::<Vec<_>>(), &["node 0", "receives", "--from"]);
    refused("7", &["--to", "x"], &["7"]);
    refused("0", &["--to", "x", "--fabric", "shm"], &["another way", "--fabric"]);
    refused("0", &["--to", "x", "--gid", "1"], &["--gid", "--fabric verbs"]);
}
