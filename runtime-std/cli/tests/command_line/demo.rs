//! `tramontane demo`: real processes, real input, and digests that are computed independently.

use std::io::Write as _;

use crate::support::TestFolder;
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_128;

/// Returns input with lines of every kind: empty, not UTF-8, long, and without a newline at the
/// end.
fn lines() -> Vec<u8> {
    let mut input = Vec::new();
    for number in 0..500_u32 {
        writeln!(input, "record {number} {}", "x".repeat(number as usize % 90)).expect("memory");
    }
    input.extend_from_slice(b"\n\n\xff\xfe\n\0\r\nno newline");
    input
}

fn records(input: &[u8]) -> Vec<&[u8]> {
    let input = input.strip_suffix(b"\n").unwrap_or(input);
    input.split(|byte| *byte == b'\n').collect()
}

#[track_caller]
fn demo(place: &TestFolder, arguments: &[&str]) -> Value {
    let output = place.run(&[&["demo", "--json"], arguments].concat()).succeeded();
    place.assert_empty();
    let text = String::from_utf8(output).expect("text");
    assert_eq!(text.matches('\n').count(), 1, "one object and nothing else: {text}");
    serde_json::from_str(&text).expect("JSON")
}

#[track_caller]
fn counts(result: &Value, key: &str) -> Vec<u64> {
    result["nodes"]
        .as_array()
        .expect("nodes")
        .iter()
        .map(|node| node[key].as_u64().expect(key))
        .collect()
}

#[track_caller]
fn digest(result: &Value) -> String {
    let nodes = result["nodes"].as_array().expect("nodes");
    let digests: Vec<&str> =
        nodes.iter().map(|node| node["digest"].as_str().expect("digest")).collect();
    assert!(digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    assert_eq!(result["agree"], true);
    digests[0].to_owned()
}

/// Computes the documented digest of records that one sender sent.
fn digest_of<'r>(sender: u32, records: impl IntoIterator<Item = &'r [u8]>) -> String {
    let mut framed = Vec::new();
    for record in records {
        framed.extend_from_slice(&sender.to_le_bytes());
        framed.extend_from_slice(&u32::try_from(record.len()).expect("a length").to_le_bytes());
        framed.extend_from_slice(record);
    }
    format!("{:032x}", xxh3_128(&framed))
}

#[test]
fn every_group_delivers_every_record_once() {
    let place = TestFolder::new();
    let input = lines();
    let path = place.file("input", &input);
    let path = path.to_str().expect("a path");
    let total = records(&input).len() as u64;
    for (nodes, senders) in [(1, 1), (2, 2), (3, 1), (3, 3), (4, 2)] {
        let (n, s) = (nodes.to_string(), senders.to_string());
        let result =
            demo(&place, &["--nodes", &n, "--senders", &s, "--input", path, "--window", "7"]);
        digest(&result);
        assert_eq!(counts(&result, "id"), (0..nodes).collect::<Vec<u64>>());
        assert_eq!(counts(&result, "delivered"), vec![total; nodes as usize]);
        let dealt = |id: u64| if id < senders { (total - id).div_ceil(senders) } else { 0 };
        assert_eq!(counts(&result, "sent"), (0..nodes).map(dealt).collect::<Vec<u64>>());
        // A member that does not send owes no nulls.
        let nulls = counts(&result, "nulls");
        assert!(nulls[senders as usize..].iter().all(|nulls| *nulls == 0), "{nulls:?}");
    }
}

#[test]
fn single_sender_digest_covers_records_in_order() {
    let place = TestFolder::new();
    let input = lines();
    let path = place.file("input", &input);
    let path = path.to_str().expect("a path");
    let result = demo(&place, &["--nodes", "2", "--senders", "1", "--input", path]);
    assert_eq!(digest(&result), digest_of(0, records(&input)));

    let thrice =
        demo(&place, &["--nodes", "2", "--senders", "1", "--input", path, "--repeat", "3"]);
    let all: Vec<&[u8]> = [records(&input), records(&input), records(&input)].concat();
    assert_eq!(digest(&thrice), digest_of(0, all));

    let blocks =
        demo(&place, &["--nodes", "2", "--senders", "1", "--input", path, "--block", "1000"]);
    assert_eq!(digest(&blocks), digest_of(0, input.chunks(1000)));
    assert_eq!(counts(&blocks, "delivered")[0], input.len().div_ceil(1000) as u64);

    let twice = demo(&place, &["--nodes", "2", "--senders", "1", "--input", path, "--input", path]);
    assert_eq!(digest(&twice), digest_of(0, [records(&input), records(&input)].concat()));
}

#[test]
fn demo_json_has_documented_shape() {
    let place = TestFolder::new();
    let path = place.file("input", b"a\nb\n");
    let result = demo(&place, &["--nodes", "2", "--input", path.to_str().expect("a path")]);
    let keys =
        |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let sorted = |mut keys: Vec<String>| {
        keys.sort();
        keys
    };
    assert_eq!(
        sorted(keys(&result)),
        ["agree", "bytes_per_s", "latency_us", "messages_per_s", "nodes"]
    );
    assert_eq!(sorted(keys(&result["latency_us"])), ["max", "p50", "p99"]);
    assert_eq!(sorted(keys(&result["nodes"][1])), ["delivered", "digest", "id", "nulls", "sent"]);
    let number = |value: &Value| value.as_f64().expect("a number");
    let latency = &result["latency_us"];
    assert!(number(&latency["p50"]) <= number(&latency["p99"]));
    assert!(number(&latency["p99"]) <= number(&latency["max"]) && number(&latency["p50"]) > 0.0);
    assert!(number(&result["messages_per_s"]) > 0.0 && number(&result["bytes_per_s"]) > 0.0);
}

#[test]
fn default_demo_prints_a_table_of_aircraft() {
    let place = TestFolder::new();
    let text = String::from_utf8(place.run(&["demo"]).succeeded()).expect("text");
    for words in [
        "member",
        "sent",
        "delivered",
        "nulls",
        "digest",
        "136803",
        "messages/s",
        "B/s",
        "p99",
        "agreed",
    ] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    place.assert_empty();
}

#[test]
fn demo_input_may_be_a_pipe() {
    let place = TestFolder::new();
    let input = lines();
    let mut process =
        place.start(&["demo", "--json", "--nodes", "2", "--senders", "1", "--input", "/dev/stdin"]);
    process.write(&input);
    let output = process.wait().succeeded();
    let result: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(digest(&result), digest_of(0, records(&input)));
}

#[test]
fn demo_delivers_large_records_with_small_windows() {
    let place = TestFolder::new();
    let input: Vec<u8> = (0..300_000_u32).flat_map(|number| number.to_le_bytes()).collect();
    let path = place.file("input", &input);
    let path = path.to_str().expect("a path");
    let arguments = [
        "--nodes",
        "3",
        "--block",
        "100000",
        "--message-max",
        "100000",
        "--window",
        "1",
        "--input",
        path,
    ];
    let result = demo(&place, &arguments);
    digest(&result);
    assert_eq!(counts(&result, "delivered"), [12; 3]);
}

#[test]
fn concurrent_demos_do_not_interfere() {
    let place = TestFolder::new();
    let path = place.file("input", &lines());
    let path = path.to_str().expect("a path");
    let start = |senders| {
        place.start(&[
            "demo",
            "--json",
            "--nodes",
            "2",
            "--senders",
            senders,
            "--repeat",
            "20",
            "--input",
            path,
        ])
    };
    let (one, other) = (start("1"), start("2"));
    for (process, senders) in [(one, 1), (other, 2)] {
        let result: Value = serde_json::from_slice(&process.wait().succeeded()).expect("JSON");
        digest(&result);
        assert_eq!(counts(&result, "sent").iter().filter(|sent| **sent > 0).count(), senders);
    }
    place.assert_empty();
}

#[test]
fn demo_logs_only_on_request() {
    let place = TestFolder::new();
    let path = place.file("input", b"a\n");
    let path = path.to_str().expect("a path");
    let mut command = place.command(&["demo", "--nodes", "2", "--input", path]);
    command.env("TRAMONTANE_LOG", "debug");
    let ended = crate::support::RunningProgram::start(command).wait();
    assert!(
        ended.status.success() && ended.errors.contains("all members are there"),
        "{}",
        ended.errors
    );
    let mut wrong = place.command(&["demo"]);
    wrong.env("TRAMONTANE_LOG", "a=b=c");
    crate::support::RunningProgram::start(wrong).wait().failed(2, &["TRAMONTANE_LOG"]);
}

#[test]
fn demo_member_cannot_be_started_by_hand() {
    let place = TestFolder::new();
    place.run(&["demo-member", "{}"]).failed(2, &["tramontane demo"]);
}
