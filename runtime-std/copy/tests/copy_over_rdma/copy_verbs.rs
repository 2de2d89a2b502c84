//! `tramontane-copy` over RDMA: real files, real processes, compared byte by byte. These tests need
//! a device: run them in the lab, with `hal-verbs/lab/ci groups`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::copies::{hosts, joined, targets};
use crate::support::{TestFolder, children_of, send, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// Size of the copied file in bytes: some blocks of a message, and the beginning of another
/// message.
const BYTES: usize = 5 << 20;

fn source(place: &TestFolder, bytes: usize) -> (PathBuf, Vec<u8>) {
    let content: Vec<u8> =
        (0..bytes).map(|byte| (byte.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    (place.file("source", &content), content)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn object(output: &[u8]) -> Value {
    serde_json::from_slice(output).expect("one object")
}

#[test]
fn file_arrives_unchanged_over_rdma() {
    for algorithm in ["pipeline", "sequential"] {
        let place = TestFolder::new();
        let (path, content) = source(&place, BYTES);
        let to: [PathBuf; 3] = targets(&place);
        let arguments =
            ["--fabric", "verbs", "--json", "--algorithm", algorithm, "--to", &joined(&to)];
        let result = object(&place.run(&[&arguments[..], &[&text(&path)]].concat()).succeeded());
        println!("{algorithm}: {result}");
        assert_eq!(result["receivers"].as_array().map(Vec::len), Some(3));
        for to in &to {
            assert!(
                fs::read(to.join("source")).expect("it is there") == content,
                "{}",
                to.display()
            );
        }
    }
}

#[test]
fn nodes_of_tcp_group_file_copy_over_rdma() {
    let place = TestFolder::new();
    let (path, content) = source(&place, BYTES);
    let [to]: [PathBuf; 1] = targets(&place);
    let config = hosts(&place, 2);
    let node = |id: &str, rest: &[&str]| {
        let base =
            ["--config", &config, "--id", id, "--fabric", "verbs", "--device", "rxe0", "--json"];
        place.start(&[&base[..], rest].concat())
    };
    let receiver = node("1", &["--to", &text(&to)]);
    let sent = object(&node("0", &[&text(&path)]).wait().succeeded());
    let received = object(&receiver.wait().succeeded());
    assert_eq!(received["checksum"], sent["checksum"]);
    assert!(fs::read(to.join("source")).expect("it is there") == content);
}

#[test]
fn killed_rdma_receiver_ends_copy_for_all() {
    let place = TestFolder::new();
    let (path, _) = source(&place, 64 << 20);
    let to: [PathBuf; 2] = targets(&place);
    let arguments = ["--fabric", "verbs", "--to", &joined(&to), "--block", "65536", &text(&path)];
    let mut copy = place.start(&arguments);
    let unpacked = to[1].join(".tramontane-copy/source");
    wait_for("something to be unpacked", || {
        fs::metadata(&unpacked).ok().filter(|data| data.len() > 0)
    });
    let is_second = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("\"own\":2")
    };
    send(children_of(copy.pid()).into_iter().find(is_second).expect("a receiver"), Signal::KILL);
    copy.end_input();
    copy.wait().failed(6, &["to-1", "killed"]);
    assert!(fs::read_dir(&to[0]).expect("a directory").next().is_none(), "it was not complete");
    assert!(!to[1].join("source").exists());
}
