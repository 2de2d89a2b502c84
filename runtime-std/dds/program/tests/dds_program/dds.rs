//! `tramontane-dds`: topics between real processes.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tramontane_dds::{Domain, DomainParticipant, Level, Octets, WriterQos};
use tramontane_runtime::group::{ControlEndpoints, StartOptions};
use tramontane_runtime::shared_memory::Root;

use crate::support::{LONG, TestFolder, wait_for};

#[track_caller]
fn perf(place: &TestFolder, arguments: &[&str]) -> Value {
    let common = ["perf", "--seconds", "0.05", "--rounds", "1", "--json"];
    let output = place.run(&[&common[..], arguments].concat()).succeeded();
    place.assert_empty();
    serde_json::from_slice(&output).expect("JSON")
}

#[test]
fn throughput_runs_lose_no_sample_at_any_level() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    let logs = folder.path().to_str().expect("text");
    for (level, subscribers, fabric) in [
        ("unordered", 1, "shm"),
        ("atomic", 2, "shm"),
        ("volatile", 1, "shm"),
        ("logged", 1, "shm"),
        ("atomic", 1, "tcp"),
    ] {
        let count = subscribers.to_string();
        let seen = perf(
            &place,
            &[
                "--level",
                level,
                "--subscribers",
                &count,
                "--bytes",
                "100",
                "--fabric",
                fabric,
                "--data",
                logs,
            ],
        );
        assert_eq!((&seen["level"], &seen["subscribers"]), (&level.into(), &subscribers.into()));
        assert_eq!(seen["lost"], 0);
        let rate = seen["samples_per_s"]["median"].as_f64().expect("a rate");
        assert!(rate > 0.0, "{seen}");
        let bytes = seen["bytes_per_s"].as_f64().expect("a rate");
        assert!((bytes / (rate * 100.0) - 1.0).abs() < 1e-9, "{seen}");
    }
    assert!(std::fs::read_dir(logs).expect("a folder").next().is_none(), "logs are left");
}

#[test]
fn round_trips_are_measured_to_all_subscribers() {
    let place = TestFolder::new();
    let seen = perf(&place, &["--mode", "ping", "--subscribers", "2", "--bytes", "64"]);
    let times = &seen["round_trip_us"];
    // On a busy machine, one round trip may take longer than the whole measurement.
    assert!(times["count"].as_u64().expect("a count") >= 1, "{seen}");
    let at = |quantile: &str| times[quantile]["median"].as_f64().expect("a time");
    assert!(0.0 < at("p50") && at("p50") <= at("p99") && at("p99") <= at("max") * 1.01, "{seen}");
    assert_eq!(seen.get("samples_per_s"), None);
}

#[test]
fn perf_prints_a_table_and_refuses_invalid_arguments() {
    let place = TestFolder::new();
    let output = place.run(&["perf", "--seconds", "0.02", "--rounds", "1"]).succeeded();
    let text = String::from_utf8(output).expect("text");
    assert!(text.contains("samples/s") && text.contains("atomic"), "{text}");
    place.run(&["perf", "--bytes", "7"]).failed(2, &["bytes"]);
    place.run(&["perf", "--level", "logged"]).failed(2, &["--data"]);
    let gateway = ["gateway", "--domain", "/nowhere", "--id", "0", "--mirror"];
    place.run(&[&gateway[..], &["T=In"]].concat()).failed(2, &["T=FROM,TO"]);
    place.run(&[&gateway[..], &["T"]].concat()).failed(2, &["--features rtps"]);
    place.run(&["spy", "--domain", "/nowhere", "--id", "0", "T"]).failed(2, &["/nowhere"]);
}

const DOMAIN: &str = r#"
[group]
name = "flight"
nodes = [{ id = 0 }, { id = 1 }]
initial = [0]

[[topics]]
name = "Bytes"
type = "Octets"
level = "volatile"
publishers = [0]
keep_depth = 2
"#;

#[test]
fn spy_prints_kept_and_new_samples() {
    let place = TestFolder::new();
    let path = place.file("domain.toml", DOMAIN.as_bytes());
    let domain = Domain::read(&path).expect("a domain");
    let options = StartOptions { root: Root::under(place.path()), ..StartOptions::new(0) };
    let own = DomainParticipant::join(&domain, options).expect("it joins");
    let topic = own.topic::<Octets>("Bytes").expect("a topic");
    let mut writer =
        own.create_datawriter(&topic, WriterQos::of(Level::Volatile)).expect("a writer");
    for byte in 1..=3 {
        writer.write(&Octets(vec![byte; 2])).expect("room");
    }
    writer.wait_for_acknowledgments(LONG).expect("delivered");
    let path = path.to_str().expect("a path");
    let spy =
        place.start(&["spy", "--domain", path, "--id", "1", "Bytes", "--count", "3", "--json"]);
    let started = std::time::Instant::now();
    while writer.publication_matched_status().current_count == 0 {
        assert!(started.elapsed() < LONG, "the spy comes");
        std::thread::sleep(Duration::from_millis(1));
    }
    writer.write(&Octets(vec![4; 2])).expect("room");
    let output = String::from_utf8(spy.wait().succeeded()).expect("text");
    let lines: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let cdr: Vec<&str> = lines.iter().filter_map(|line| line["cdr"].as_str()).collect();
    assert_eq!(cdr, ["020000000202", "020000000303", "020000000404"]);
    let historical: Vec<bool> =
        lines.iter().filter_map(|line| line["historical"].as_bool()).collect();
    assert_eq!(historical, [true, true, false]);
    assert!(lines.iter().all(|line| line["writer"] == "0.0" && line["instance_state"] == "alive"));
    assert_eq!(lines[2]["sequence"], 4);
    drop(writer);
    own.leave(LONG).expect("it leaves");
}

/// In a domain of two, the other member ends if this one disappears without leaving.
#[test]
fn spy_leaves_in_any_case() {
    let place = TestFolder::new();
    let path = place.file("domain.toml", DOMAIN.as_bytes());
    let text = path.to_str().expect("a path");
    let spy =
        |topic: &'static str| ["spy", "--domain", text, "--id", "1", "--join-timeout", "60", topic];
    let mut joining = place.start(&spy("Bytes"));
    std::thread::sleep(Duration::from_millis(300));
    joining.signal(Signal::TERM);
    assert_eq!(joining.wait_with_input().status.code(), Some(143));
    let domain = Domain::read(&path).expect("a domain");
    let options = StartOptions { root: Root::under(place.path()), ..StartOptions::new(0) };
    let own = DomainParticipant::join(&domain, options).expect("it joins");
    place.run(&spy("Other")).failed(2, &["Other"]);
    let topic = own.topic::<Octets>("Bytes").expect("a topic");
    let writer = own.create_datawriter(&topic, WriterQos::of(Level::Volatile)).expect("a writer");
    let mut running = place.start(&spy("Bytes"));
    wait_for("the spy", || (writer.publication_matched_status().current_count > 0).then_some(()));
    running.signal(Signal::INT);
    assert_eq!(running.wait_with_input().status.code(), Some(130));
    wait_for("the view without the spy", || (own.status().members == [0]).then_some(()));
    assert_eq!(own.stopped(), None);
    drop(writer);
    own.leave(LONG).expect("it leaves");
}

/// An external spy needs only an address: it is not one of the domain's nodes.
#[test]
fn external_spy_needs_only_an_address() {
    let place = TestFolder::new();
    let text = format!("{DOMAIN}clients = true\n");
    let domain = Domain::read(&place.file("domain.toml", text.as_bytes())).expect("a domain");
    let root = Root::under(place.path());
    let endpoints = ControlEndpoints::of(domain.group(), &root).expect("addresses");
    let address = endpoints.addresses().next().expect("node 0").to_string();
    let options = StartOptions { root, ..StartOptions::new(0) };
    let own = DomainParticipant::join(&domain, options).expect("it joins");
    let topic = own.topic::<Octets>("Bytes").expect("a topic");
    let mut writer =
        own.create_datawriter(&topic, WriterQos::of(Level::Volatile)).expect("a writer");
    for byte in 1..=3 {
        writer.write(&Octets(vec![byte; 2])).expect("room");
    }
    writer.wait_for_acknowledgments(LONG).expect("delivered");
    let spy = place.start(&["spy", "--to", &address, "Bytes", "--count", "3", "--json"]);
    let started = std::time::Instant::now();
    while writer.publication_matched_status().current_count == 0 {
        assert!(started.elapsed() < LONG, "the spy comes");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(own.status().members, [0]);
    writer.write(&Octets(vec![4; 2])).expect("room");
    let output = String::from_utf8(spy.wait().succeeded()).expect("text");
    let lines: Vec<Value> =
        output.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let cdr: Vec<&str> = lines.iter().filter_map(|line| line["cdr"].as_str()).collect();
    assert_eq!(cdr, ["020000000202", "020000000303", "020000000404"]);
    assert!(lines.iter().all(|line| line["writer"] == "0.0"));
    place.run(&["spy", "--to", &address, "None"]).failed(2, &["declares no topic"]);
    place.run(&["spy", "Bytes"]).failed(2, &["--to"]);
    place.run(&["spy", "--to", &address, "--id", "0", "Bytes"]).failed(2, &["--to"]);
    drop(writer);
    own.leave(LONG).expect("it leaves");
}

const PLACES: &str = r#"
[group]
name = "flight"
nodes = [{ id = 0 }, { id = 1 }]
initial = [0]

[[topics]]
name = "Bytes"
type = "Octets"

[[places]]
count = 1
level = "volatile"

[[places]]
count = 1
level = "volatile"
clients = true
"#;

#[test]
fn topics_are_created_listed_and_deleted() {
    let place = TestFolder::new();
    let path = place.file("domain.toml", PLACES.as_bytes());
    let domain = Domain::read(&path).expect("a domain");
    let options = StartOptions { root: Root::under(place.path()), ..StartOptions::new(0) };
    let own = DomainParticipant::join(&domain, options).expect("it joins");
    let path = path.to_str().expect("a path");
    let common = ["topics", "--domain", path, "--id", "1"];
    let topics = |more: &[&str]| place.run(&[&common[..], more].concat());
    let listed = |more: &[&str]| {
        let output = String::from_utf8(topics(more).succeeded()).expect("text");
        let lines = output.lines().map(|line| serde_json::from_str(line).expect("JSON"));
        let lines: Vec<Value> = lines.collect();
        lines
    };
    let alarms = ["--create", "Alarms", "--type", "Octets", "--level", "volatile"];
    let lines = listed(&[&alarms[..], &["--json"]].concat());
    let names: Vec<&str> = lines.iter().filter_map(|line| line["topic"].as_str()).collect();
    assert_eq!(names, ["Bytes", "Alarms"]);
    assert_eq!((&lines[1]["declared"], &lines[1]["level"]), (&false.into(), &"volatile".into()));
    // The topic outlives its creator.
    let found = own.find_topic::<Octets>("Alarms", LONG).expect("it is there");
    let mut writer =
        own.create_datawriter(&found, WriterQos::of(Level::Volatile)).expect("a writer");
    writer.write(&Octets(vec![7])).expect("room");
    let spy = ["spy", "--domain", path, "--id", "1", "Alarms", "--count", "1", "--json"];
    let spied = String::from_utf8(place.run(&spy).succeeded()).expect("text");
    assert!(spied.contains("\"cdr\":\"0100000007\""), "{spied}");
    let told = topics(&["--create", "Alarms", "--type", "Other", "--level", "volatile"]);
    told.failed(2, &["Alarms", "differs in type"]);
    let full = topics(&["--create", "More", "--type", "Octets", "--level", "volatile"]);
    full.failed(4, &["no place is free", "More"]);
    // A topic for external participants, at a separate place.
    let outside = ["--create", "Seen", "--type", "Octets", "--level", "volatile", "--clients"];
    assert_eq!(listed(&[&outside[..], &["--json"]].concat()).len(), 3);
    let seen = own.find_topic::<Octets>("Seen", LONG).expect("it is there");
    let mut seen = own.create_datawriter(&seen, WriterQos::of(Level::Volatile)).expect("a writer");
    seen.write(&Octets(vec![8])).expect("room");
    let endpoints = ControlEndpoints::of(domain.group(), &Root::under(place.path()));
    let address = endpoints.expect("addresses").addresses().next().expect("one").to_string();
    let spy = ["spy", "--to", &address, "Seen", "--count", "1", "--json"];
    let spied = String::from_utf8(place.run(&spy).succeeded()).expect("text");
    assert!(spied.contains("\"cdr\":\"0100000008\""), "{spied}");
    drop(seen);
    topics(&["--delete", "Seen"]).succeeded();
    topics(&["--delete", "Bytes"]).failed(2, &["declared"]);
    topics(&["--create", "x", "--type", "y", "--level", "logged"]).failed(2, &["declared"]);
    let lines = listed(&["--delete", "Alarms", "--json"]);
    assert_eq!(lines.len(), 1);
    assert!(writer.is_topic_deleted());
    let plain = String::from_utf8(topics(&[]).succeeded()).expect("text");
    let words: Vec<&str> = plain.split_whitespace().collect();
    assert_eq!(words, ["topic", "type", "level", "declared", "Bytes", "Octets", "atomic", "yes"]);
    drop(writer);
    own.leave(LONG).expect("it leaves");
}
