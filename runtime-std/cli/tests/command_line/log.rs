//! `tramontane log`: prints, checks and measures a log without its group.

use std::path::{Path, PathBuf};

use crate::support::TestFolder;
use serde_json::Value;
use tramontane_core::ids::{self, NodeId, ViewId};
use tramontane_log::{Batch, Identity, Log, Options, Record, Sequence, SystemFolder};

const OPTIONS: Options = Options { segment_bytes: 16 * 4096, spares_max: 2, noted: None };

fn open(folder: &Path) -> Log<SystemFolder> {
    let identity = Identity { group: "air".into(), subgroup: "tracks".into() };
    let layer = SystemFolder::create(folder).expect("a folder");
    Log::open(layer, &identity, OPTIONS).expect("a log").0
}

/// Creates a log with `records` records, ten per batch.
fn filled(place: &TestFolder, records: u64) -> PathBuf {
    let folder = place.path().join("log");
    let mut log = open(&folder);
    let mut batch = Batch::new();
    for number in 0..records {
        let text = format!("line {number}").into_bytes();
        let bytes: &[u8] = if number == 3 { &[0xff, 0] } else { &text };
        let (view, sender) = (ViewId(1 + number / 50), NodeId((number % 3) as u32));
        let sequence = Sequence(number);
        let (place, is_large) = (ids::Place(2 * number), false);
        let record = Record { sequence, view, place, sender, is_large, bytes };
        batch.push(&record).expect("in order");
        if number % 10 == 9 || number + 1 == records {
            log.commit(&mut batch).expect("it is written");
        }
    }
    folder
}

fn run(place: &TestFolder, folder: &Path, more: &[&str]) -> crate::support::ProgramEnd {
    place.run(&[&["log", folder.to_str().expect("a path")], more].concat())
}

#[test]
fn log_messages_are_printed_in_order() {
    let place = TestFolder::new();
    let folder = filled(&place, 100);
    let lines = run(&place, &folder, &[]).succeeded();
    let lines: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    assert_eq!((lines.len(), lines[0], lines[99]), (101, &b"line 0"[..], &b"line 99"[..]));
    let some = run(&place, &folder, &["--from", "97", "--count", "2"]).succeeded();
    assert_eq!(some, b"line 97\nline 98\n");
    let json = run(&place, &folder, &["--from", "2", "--count", "2", "--json"]).succeeded();
    let json = String::from_utf8(json).expect("text");
    let mut lines = json.lines();
    assert_eq!(
        lines.next(),
        Some(r#"{"sequence":2,"view":1,"place":4,"sender":2,"message":{"text":"line 2"}}"#)
    );
    assert!(lines.next().is_some_and(|line| line.ends_with(r#""message":{"base64":"/wA="}}"#)));
    run(&place, &folder, &["--check", "--state", "/nowhere"]).failed(2, &["no folder /nowhere"]);
    run(&place, &folder, &["--from", "101"]).failed(2, &["101", "0 to 99"]);
}

#[test]
fn log_check_prints_a_summary() {
    let place = TestFolder::new();
    let folder = filled(&place, 105);
    let mut log = open(&folder);
    log.set_values(&[("view", Some(b"1"))]).expect("it is written");
    log.cut(Sequence(103)).expect("in range");
    drop(log);
    let report = run(&place, &folder, &["--check", "--json"]).succeeded();
    let report: Value = serde_json::from_slice(&report).expect("JSON");
    assert_eq!((&report["group"], &report["subgroup"]), (&"air".into(), &"tracks".into()));
    assert_eq!((&report["first"], &report["end"]), (&0.into(), &103.into()));
    assert_eq!((&report["batches"], &report["incarnation"]), (&12.into(), &2.into()));
    assert_eq!((&report["damage"], &report["torn"]), (&Value::Array(vec![]), &false.into()));
    assert_eq!(report["values"], serde_json::json!(["view"]));
    assert_eq!(report["aside"].as_array().map(Vec::len), Some(1));
    let text = String::from_utf8(run(&place, &folder, &["--check"]).succeeded()).expect("text");
    for words in ["subgroup tracks of group air: 103 records", "12 batches", "damaged places: 0"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn damaged_record_is_named_but_not_printed() {
    let place = TestFolder::new();
    let folder = filled(&place, 100);
    let segment = folder.join("segment-00000001");
    let mut bytes = std::fs::read(&segment).expect("a segment");
    let at = bytes.windows(7).position(|bytes| bytes == b"line 42").expect("it is there");
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).expect("the own file");
    let checked = run(&place, &folder, &["--check", "--json"]);
    checked.failed_after_output(3, &["1 place is damaged"]);
    let report: Value = serde_json::from_slice(&checked.output).expect("JSON");
    assert_eq!(report["damage"][0]["records"], serde_json::json!([42, 42]));
    assert_eq!(report["damage"][0]["file"], "segment-00000001");
    let printed = run(&place, &folder, &[]);
    printed.failed_after_output(3, &["record 42 is damaged in segment-00000001"]);
    assert_eq!(printed.output.iter().filter(|byte| **byte == b'\n').count(), 42);
    let rest = run(&place, &folder, &["--from", "43"]).succeeded();
    assert!(rest.starts_with(b"line 43\n"));
}

#[test]
fn unusable_log_is_reported_in_one_line() {
    let place = TestFolder::new();
    run(&place, Path::new("/nowhere"), &[]).failed(3, &["/nowhere"]);
    run(&place, place.path(), &["--check"]).failed(3, &["does not contain a log"]);
    let folder = filled(&place, 3);
    let log = open(&folder);
    run(&place, &folder, &[]).failed(5, &["another process uses the log"]);
    drop(log);
    // A later version's.
    for copy in ["metadata-1", "metadata-2"] {
        let mut bytes = std::fs::read(folder.join(copy)).expect("a copy");
        bytes[8] = 9;
        let check = xxhash_rust::xxh3::xxh3_64(&bytes[..12]).to_le_bytes();
        bytes[12..16].copy_from_slice(&check[..4]);
        std::fs::write(folder.join(copy), bytes).expect("the own file");
    }
    run(&place, &folder, &[]).failed(5, &["has format 9"]);
    run(&place, &folder, &["--check", "--count", "3"]).failed(2, &["--check"]);
}
