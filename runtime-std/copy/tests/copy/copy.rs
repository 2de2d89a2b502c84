//! `tramontane-copy`: real files, real processes, compared byte by byte.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::copies::{LARGE, content, hosts, joined, sources, targets};
use crate::support::{TestFolder, children_of};
use serde_json::Value;

/// The buffers of three members take 192 MiB.
const LARGER_THAN_ALL_BUFFERS: u64 = 512 << 20;

/// This covers a member's own buffers, those of other members that it maps, and the program itself.
const MEMORY_MAX: u64 = 200 << 20;

#[test]
fn files_and_directories_arrive_unchanged() {
    for fabric in ["shm", "tcp"] {
        let place = TestFolder::new();
        let sources = sources(&place);
        let to: [PathBuf; 3] = targets(&place);
        let mut arguments = vec!["--json".into(), "--fabric".into(), fabric.into()];
        arguments.extend(["--to".into(), joined(&to)]);
        arguments.extend(sources.iter().map(|path| path.display().to_string()));
        let output = place.run(&arguments).succeeded();
        let result: Value = serde_json::from_slice(&output).expect("one object");
        assert_eq!(result["receivers"].as_array().map(Vec::len), Some(3));
        assert!(
            result["receivers"].as_array().expect("three").iter().all(|line| line["files"] == 5)
        );
        assert!(result["bytes"].as_u64().expect("bytes") > LARGE as u64);
        assert_eq!(result["checksum"].as_str().map(str::len), Some(32));
        let source = content(&place.path().join("source"));
        for to in &to {
            assert!(content(to) == source, "{} is not as the source", to.display());
        }
        let left: Vec<PathBuf> = place.left();
        assert!(left.iter().all(|path| !path.join("member-0").exists()), "{left:?}");
    }
}

#[test]
#[ignore = "copies two gigabytes in all, and takes 20 s; CI runs it"]
fn copy_of_large_file_takes_bounded_memory() {
    for fabric in ["shm", "tcp"] {
        let place = TestFolder::new();
        let path = place.path().join("large");
        let file = File::create(&path).expect("a file");
        for number in 0..LARGER_THAN_ALL_BUFFERS >> 20 {
            file.write_all_at(&[number as u8; 1 << 20], number << 20).expect("room");
        }
        let to: [PathBuf; 2] = targets(&place);
        let path = path.display().to_string();
        let mut copy = place.start(&[&path, "--to", &joined(&to), "--fabric", fabric]);
        let mut most = BTreeMap::new();
        while copy.is_running() {
            for pid in children_of(copy.pid()).into_iter().chain([copy.pid()]) {
                most.insert(pid, peak_memory(pid).or(most.get(&pid).copied()).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        copy.wait().succeeded();
        println!("{fabric}: {most:?}");
        assert_eq!(most.len(), 3, "one process a place, and one that copies");
        assert!(
            most.values().all(|bytes| (1 << 20..MEMORY_MAX).contains(bytes)),
            "{fabric}: {most:?}"
        );
        for to in &to {
            assert_eq!(
                fs::metadata(to.join("large")).expect("it is there").len(),
                LARGER_THAN_ALL_BUFFERS
            );
        }
    }
}

/// Returns the peak memory of a process in bytes, including memory of other processes that it maps.
fn peak_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[test]
fn empty_file_is_copied_by_any_algorithm() {
    for algorithm in ["pipeline", "sequential", "interleaved", "chain", "tree"] {
        let place = TestFolder::new();
        let file = place.file("empty", b"").display().to_string();
        let to: [PathBuf; 2] = targets(&place);
        let output =
            place.run(&[&file, "--to", &joined(&to), "--algorithm", algorithm, "--block", "4096"]);
        let text = String::from_utf8(output.succeeded()).expect("text");
        assert!(text.contains("the same everywhere"), "{text}");
        assert!(to.iter().all(|to| fs::read(to.join("empty")).expect("it is there").is_empty()));
    }
}

#[test]
fn setuid_setgid_and_sticky_bits_are_removed() {
    let place = TestFolder::new();
    let tree = place.path().join("tree");
    fs::create_dir(&tree).expect("a directory");
    let [to]: [PathBuf; 1] = targets(&place);
    let modes = [("program", 0o6755), ("sticky", 0o1644), ("inner", 0o7777), ("", 0o2755)];
    for (name, mode) in modes {
        let path = tree.join(name);
        match name {
            "inner" => fs::create_dir(&path).expect("a directory"),
            "" => {}
            _ => fs::write(&path, b"content").expect("a file"),
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its owner may");
    }
    place.run(&[&tree.display().to_string(), "--to", &to.display().to_string()]).succeeded();
    for (name, mode) in modes {
        let arrived =
            fs::metadata(to.join("tree").join(name)).expect("it is there").permissions().mode();
        assert_eq!(arrived & 0o7777, mode & 0o777, "{name:?}: {arrived:o}");
    }
}

#[test]
fn nodes_of_a_group_file_copy_files() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 3] = targets(&place);
    let config = hosts(&place, 3);
    let node = |id: &str, rest: &[&str]| {
        place.start(&[&["--config", &config, "--id", id, "--from", "1", "--json"], rest].concat())
    };
    let receivers = [("0", &to[0]), ("2", &to[2])]
        .map(|(id, to)| node(id, &["--to", &to.display().to_string()]));
    let files: Vec<String> = sources.iter().map(|path| path.display().to_string()).collect();
    let root = node("1", &files.iter().map(String::as_str).collect::<Vec<_>>());
    let sent: Value = serde_json::from_slice(&root.wait().succeeded()).expect("one object");
    for receiver in receivers {
        let received: Value =
            serde_json::from_slice(&receiver.wait().succeeded()).expect("one object");
        assert_eq!((&received["checksum"], &received["files"]), (&sent["checksum"], &5.into()));
    }
    let source = content(&place.path().join("source"));
    assert!(content(&to[0]) == source && content(&to[2]) == source);

    let refused = |id: &str, rest: &[&str], words: &[&str]| {
        node(id, rest).wait().failed(2, words);
    };
    refused("1", &["--to", "x"], &["node 1", "sender", "--from"]);
    refused(
        "0",
        &files.iter().map(String::as_str).collect::<Vec<_>>(),
        &["node 0", "receiver", "--from"],
    );
    refused("7", &["--to", "x"], &["7"]);
    refused("0", &["--to", "x", "--fabric", "shm"], &["different fabric", "--fabric"]);
    refused("0", &["--to", "x", "--gid", "1"], &["--gid", "--fabric verbs"]);
}

#[test]
fn nodes_in_racks_copy_files() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 4] = targets(&place);
    let config = hosts(&place, 4);
    let file = sources[0].display().to_string();
    let bytes = fs::read(&sources[0]).expect("a file");
    let hybrid = ["--config", &config, "--algorithm", "hybrid"];
    let without = [&hybrid[..], &["--id", "0", &file]].concat();
    place.run(&without).failed(2, &["not in several racks", "--algorithm"]);

    let mut text = fs::read_to_string(&config).expect("a group file");
    for (id, rack) in ["a", "b", "a", "b"].into_iter().enumerate() {
        let line = format!("id = {id}\n");
        text = text.replace(&line, &format!("{line}rack = \"{rack}\"\n"));
    }
    fs::write(&config, text).expect("a group file");
    let receivers: Vec<_> = (1..4)
        .map(|id: usize| {
            let (id, to) = (id.to_string(), to[id].display().to_string());
            place.start(&[&hybrid[..], &["--id", &id, "--to", &to]].concat())
        })
        .collect();
    place.run(&without).succeeded();
    for (receiver, to) in receivers.into_iter().zip(&to[1..]) {
        receiver.wait().succeeded();
        let copied = to.join(sources[0].file_name().expect("a name"));
        assert!(fs::read(copied).expect("it is there") == bytes);
    }
}

#[test]
#[ignore = "41 processes; CI runs it"]
fn many_local_receivers_get_the_same_files() {
    let place = TestFolder::new();
    let sources = sources(&place);
    let to: [PathBuf; 40] = targets(&place);
    let mut arguments = vec!["--json".into(), "--to".into(), joined(&to)];
    arguments.extend(sources.iter().map(|path| path.display().to_string()));
    let output = place.start(&arguments).wait_patiently().succeeded();
    let result: Value = serde_json::from_slice(&output).expect("one object");
    assert_eq!(result["receivers"].as_array().map(Vec::len), Some(to.len()));
    let source = content(&place.path().join("source"));
    assert!(to.iter().all(|to| content(to) == source), "not everywhere the same");
}
