//! `tramontane-lab bench`: its output and its refusals. Rates are not judged here.

use crate::bench;
use crate::support::TestFolder;

#[test]
fn bench_measures_shared_memory_sending_and_ring() {
    let place = TestFolder::new();
    let report = bench(
        &place,
        &["multicast", "--probe", "--messages", "2000", "--rounds", "1", "--bytes", "64"],
    );
    let row = &report["rows"][0];
    assert_eq!((row["fabric"].as_str(), row["nodes"].as_u64()), (Some("shm"), Some(2)));
    assert!(row["messages_per_s"]["median"].as_f64() > Some(0.0), "{row}");
    assert!(row["probe"]["ratio"]["median"].as_f64() > Some(0.0), "{row}");
    assert!(row["writes_per_message"].as_f64() > Some(0.0), "{row}");
    place.assert_empty();
}

#[test]
fn bench_measures_tcp_sending_and_the_mesh() {
    let place = TestFolder::new();
    let tcp = ["multicast", "--fabric", "tcp", "--probe", "--rounds", "1", "--bytes", "1024"];
    for more in [&["--nodes", "3"][..], &["--nodes", "2", "--senders", "one", "--unpinned"]] {
        let report = bench(&place, &[&tcp[..], &["--messages", "500"], more].concat());
        let row = &report["rows"][0];
        let probe = &row["probe"];
        assert_eq!(
            (row["fabric"].as_str(), probe["kind"].as_str()),
            (Some("tcp"), Some("mesh")),
            "{row}"
        );
        let median = |field: &str| probe[field]["median"].as_f64().expect("a figure");
        let (bare, delivered) = (median("received_bytes_per_s"), median("delivered_bytes_per_s"));
        assert!(
            bare > 0.0 && (median("ratio") / (delivered / bare) - 1.0).abs() < 1e-9,
            "one round: {probe}"
        );
        let all = row["bytes_per_s"].as_f64().expect("a rate");
        // With three senders, two thirds of the deliveries come from other members.
        assert!(
            row["nodes"] != 3 || (delivered / all * 1.5 - 1.0).abs() < 1e-9,
            "{delivered} of {all}"
        );
        assert!(delivered < all, "the own messages are not counted: {delivered} of {all}");
    }
    place.assert_empty();
}

#[test]
fn bench_compares_keyed_with_unencrypted_sending() {
    let place = TestFolder::new();
    let keyed = ["multicast", "--fabric", "tcp", "--key", "--messages", "500", "--rounds", "1"];
    let report = bench(&place, &[&keyed[..], &["--bytes", "1024"]].concat());
    let row = &report["rows"][0];
    assert_eq!(row["probe"]["kind"], "unencrypted", "{row}");
    let median = |figure: &serde_json::Value| figure["median"].as_f64().expect("a figure");
    let [with, without] = [&row["messages_per_s"], &row["probe"]["messages_per_s"]].map(median);
    assert!((median(&row["probe"]["ratio"]) / (with / without) - 1.0).abs() < 1e-9, "{row}");
    place.assert_empty();
}

#[test]
fn bench_reports_polling_thread_and_disabled_techniques() {
    let place = TestFolder::new();
    let polled =
        ["multicast", "--drive", "polled", "--messages", "500", "--rounds", "1", "--bytes", "8"];
    assert_eq!(bench(&place, &polled)["rows"][0]["drive"], "polled");
    let without =
        ["multicast", "--nodes", "3", "--messages", "200", "--rounds", "1", "--bytes", "8"];
    let report = bench(&place, &[&without[..], &["--without", "nulls,late-posting"]].concat());
    assert_eq!(report["rows"][0]["techniques"], "send+receive+delivery");
    place.assert_empty();
}

#[test]
fn bench_measures_latency_and_idle_time() {
    let place = TestFolder::new();
    let report = bench(&place, &["latency", "--messages", "200", "--rounds", "1"]);
    assert!(report["last_ratio"]["median"].as_f64() > Some(0.0), "{report}");
    let report = bench(&place, &["idle", "--seconds", "1"]);
    assert_eq!(report["writes"], 0, "an idle group posts nothing");
    assert!(report["total_percent"].as_f64() < Some(50.0), "it sleeps: {report}");
    assert!(report["wakeups_per_s"].as_f64() < Some(1_000.0), "it sleeps: {report}");
    place.assert_empty();
}

#[test]
fn bench_measures_latency_at_shares_of_the_rate() {
    let place = TestFolder::new();
    let folder = tempfile::tempdir().expect("a folder");
    let drawing = folder.path().join("load.svg").display().to_string();
    let load = ["load", "--messages", "300", "--rounds", "1", "--bytes", "8", "--draw", &drawing];
    let report = bench(&place, &[&load[..], &["--shares", "10,100"]].concat());
    let rows = report["rows"].as_array().expect("rows");
    for (row, share) in rows.iter().zip([10, 100]) {
        assert_eq!(row["share_percent"], share);
        let times = ["p50_ns", "p99_ns", "p999_ns", "max_ns"]
            .map(|time| row[time]["median"].as_f64().expect("a time"));
        assert!(times[0] > 0.0 && times.is_sorted(), "{row}");
    }
    assert_eq!(rows.len(), 2);
    let drawn = std::fs::read_to_string(drawing).expect("it was drawn");
    assert!(drawn.contains("8 B, p99.9"), "{drawn}");
    place.run(&["bench", "load", "--shares", "0"]).failed(2, &["1..=100"]);
    place.run(&["bench", "load", "--fabric", "verbs"]).failed(2, &["--fabric shm"]);
    place.assert_empty();
}

#[test]
fn invalid_experiment_arguments_are_refused() {
    let place = TestFolder::new();
    place.run(&["bench", "multicast", "--nodes", "0"]).failed(2, &["--nodes is 0"]);
    place.run(&["bench", "multicast", "--rounds", "0"]).failed(2, &["--rounds is 0"]);
    place.run(&["bench", "multicast", "--window", "0"]).failed(2, &["window"]);
    place.run(&["bench", "multicast", "--nodes", "3", "--probe"]).failed(2, &["--probe"]);
    let alone = ["bench", "multicast", "--fabric", "tcp", "--nodes", "1", "--probe"];
    place.run(&alone).failed(2, &["--probe", "--nodes 2"]);
    place.run(&["bench", "multicast", "--key"]).failed(2, &["--key", "--fabric tcp"]);
    place.run(&["bench", "worker", "idling", "nonsense"]).failed(2, &["not a task"]);
    place.run(&["bench", "worker", "nonsense", "{}"]).failed(2, &["nonsense"]);
    place.assert_empty();
}

#[test]
fn bench_measures_large_messages_beside_small_ones() {
    let place = TestFolder::new();
    for fabric in ["shm", "tcp"] {
        let run =
            ["views", "--large", "8388608", "--nodes", "2", "--rounds", "1", "--fabric", fabric];
        let report = bench(&place, &run);
        for (row, senders) in report["rows"].as_array().expect("rows").iter().zip([1, 2]) {
            assert_eq!(row["senders"], senders);
            let median = |field: &str| row[field]["median"].as_f64().expect("a figure");
            let (large, small) = (median("large_bytes_per_s"), median("small_bytes_per_s"));
            assert!(small > 0.0, "{report}");
            assert!((median("ratio") / (large / small) - 1.0).abs() < 1e-9, "one round: {report}");
        }
    }
    for wrong in ["10240", "268435457"] {
        place.run(&["bench", "views", "--large", wrong]).failed(2, &["--large", "268435456"]);
    }
    place.assert_empty();
}

#[test]
fn help_names_every_experiment_and_fabric() {
    let help = TestFolder::new().run(&["--help"]).succeeded();
    let help = String::from_utf8(help).expect("text");
    let (_, bench) = help.split_once("  bench ").expect("a line");
    // The command's text ends where the next command begins. A line may be wrapped.
    let (bench, _) = bench.split_once("  adapter ").expect("the next");
    for word in [
        "multicast",
        "blocks",
        "latency",
        "idle",
        "views",
        "shared memory",
        "TCP",
        "RDMA",
        "simulated",
    ] {
        assert!(bench.contains(word), "{word}: {bench}");
    }
}

#[test]
fn experiments_refuse_options_of_another_fabric() {
    let place = TestFolder::new();
    place.run(&["bench", "latency", "--gid", "1"]).failed(2, &["--gid", "--fabric verbs"]);
    place.run(&["bench", "multicast", "--fabric", "verbs", "--probe"]).failed(2, &["--probe"]);
    place.assert_empty();
}
