//! `tramontane copy`: real files, real processes, compared byte by byte.

mod cli_support;

use std::fs;
use std::path::PathBuf;

use cli_support::Place;
use cli_support::copy::{LARGE, content, hosts, joined, sources, targets};
use serde_json::Value;

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
fn nodes_of_a_group_file_copy_between_hosts() {
    let place = Place::new();
    let sources = sources(&place);
    let to: [PathBuf; 3] = targets(&place);
    let config = hosts(&place, 3);
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
