//! `tramontane-lab bench blocks`: its output and its refusals. Times are not judged here.

use crate::bench;
use crate::support::TestFolder;
use serde_json::Value;

/// Returns whether there is a spread of positive figures.
fn figure(value: &Value) -> bool {
    value["median"].as_f64().is_some_and(|figure| figure > 0.0)
}

/// Returns the probe with this name in a row.
fn probe<'r>(row: &'r Value, name: &str) -> Option<&'r Value> {
    row["probes"].as_array()?.iter().find(|probe| probe["probe"] == name)
}

#[test]
fn bench_measures_block_groups_and_probes() {
    let place = TestFolder::new();
    let few = ["blocks", "--nodes", "3", "--bytes", "100000", "--messages", "3", "--rounds", "1"];
    let shm = ["--fabric", "shm", "--probe"];
    let report = bench(&place, &[&few[..], &shm[..]].concat());
    let row = &report["rows"][0];
    assert_eq!(
        (row["fabric"].as_str(), row["algorithm"].as_str()),
        (Some("shm"), Some("interleaved"))
    );
    for way in ["memcpy", "lent"] {
        let beside = probe(row, way).expect("the usual ways");
        assert!(figure(&beside["latency_ms"]) && figure(&beside["by_row"]), "{row}");
        assert!(figure(&beside["bytes_per_processor_s"]), "{row}");
    }
    assert!(figure(&row["latency_ms"]) && figure(&row["total_bytes_per_s"]), "{row}");
    for algorithm in ["pipeline", "chain"] {
        let tcp = ["--fabric", "tcp", "--block", "4096", "--algorithm", algorithm];
        let report = bench(&place, &[&few[..], &tcp].concat());
        let row = &report["rows"][0];
        assert_eq!(
            (row["fabric"].as_str(), row["algorithm"].as_str()),
            (Some("tcp"), Some(algorithm))
        );
        assert!(figure(&row["latency_ms"]) && row["probes"].is_null(), "{row}");
    }
    place.assert_empty();
}

#[test]
fn overlapping_block_groups_run_concurrently() {
    let place = TestFolder::new();
    let few = ["blocks", "--nodes", "4", "--bytes", "70000", "--messages", "4", "--rounds", "1"];
    for (senders, groups) in [("all", 4), ("half", 2)] {
        for fabric in ["shm", "tcp"] {
            let report =
                bench(&place, &[&few[..], &["--fabric", fabric, "--senders", senders]].concat());
            let row = &report["rows"][0];
            assert_eq!(
                (row["fabric"].as_str(), row["groups"].as_u64()),
                (Some(fabric), Some(groups))
            );
            let fairness = row["fairness"]["median"].as_f64().expect("a share");
            assert!(fairness > 0.0 && fairness <= 1.0, "{row}");
        }
    }
    place.assert_empty();
}

#[test]
fn delay_experiment_measures_pauses_of_one_member() {
    let place = TestFolder::new();
    let arguments =
        ["--experiment", "delays", "--nodes", "3", "--bytes", "600000", "--block", "65536"];
    let few = ["--delayed", "0,2", "--pause-blocks", "40", "--messages", "3", "--rounds", "1"];
    for fabric in ["shm", "tcp"] {
        let report =
            bench(&place, &[&["blocks", "--fabric", fabric], &arguments[..], &few[..]].concat());
        let rows = report["rows"].as_array().expect("rows");
        let undisturbed_ms = rows[0]["latency_ms"]["median"].as_f64().expect("a time");
        assert!(rows[0]["disturbance"].is_null(), "{report}");
        let pauses: Vec<&Value> =
            rows.iter().filter(|row| row["disturbance"]["kind"] == "pause").collect();
        assert_eq!(pauses.len(), 2, "{report}");
        for (row, member) in pauses.into_iter().zip([0, 2]) {
            let pause = &row["disturbance"];
            assert_eq!(
                (pause["member"].as_u64(), pause["blocks"].as_u64()),
                (Some(member), Some(40))
            );
            // Ten blocks in a pipeline of three members take eleven steps. A sleep may last longer
            // than requested, but never shorter.
            let paused_ms = pause["pause_ms"]["median"].as_f64().expect("a time");
            assert!(paused_ms >= undisturbed_ms * 40.0 / 11.0 - 0.001, "{undisturbed_ms}: {row}");
            let cost = pause["cost"]["median"].as_f64().expect("a share");
            let latency_ms = row["latency_ms"]["median"].as_f64().expect("a time");
            assert!(((latency_ms - undisturbed_ms) / paused_ms - cost).abs() < 1e-6, "{row}");
            assert_eq!(row["algorithm"], "pipeline");
        }
    }
    place.assert_empty();
}

#[test]
fn slow_tcp_link_respects_its_rate_limit() {
    let place = TestFolder::new();
    let arguments = [
        "blocks",
        "--fabric",
        "tcp",
        "--experiment",
        "delays",
        "--nodes",
        "2",
        "--bytes",
        "8000000",
    ];
    let limited = ["--link-bytes-per-s", "20000000", "--delayed", "1", "--pause-blocks", "1"];
    let few = ["--messages", "2", "--rounds", "1"];
    let report = bench(&place, &[&arguments[..], &limited[..], &few[..]].concat());
    let rows = report["rows"].as_array().expect("rows");
    let latency_ms = |row: &Value| row["latency_ms"]["median"].as_f64().expect("a time");
    // Data held back by the kernel takes a fixed time, regardless of the machine's speed: 400 ms
    // and 800 ms; a small part is sent ahead.
    assert!(latency_ms(&rows[0]) > 300.0, "{report}");
    let slow = rows.iter().find(|row| row["disturbance"]["kind"] == "slow_link").expect("a row");
    assert_eq!(slow["disturbance"]["link"], "0-1");
    assert!(latency_ms(slow) > 600.0, "{report}");
    assert_eq!(slow["disturbance"]["share_least"], 0.5, "the only link");
    place.assert_empty();
}

#[test]
fn overlap_experiment_varies_the_senders() {
    let place = TestFolder::new();
    let few = ["--nodes", "4", "--bytes", "70000", "--messages", "3", "--rounds", "1"];
    let report = bench(
        &place,
        &[&["blocks", "--fabric", "shm", "--experiment", "overlap"], &few[..]].concat(),
    );
    let groups: Vec<_> =
        report["rows"].as_array().expect("rows").iter().map(|row| &row["groups"]).collect();
    assert_eq!(groups, [1, 2, 4]);
    place.assert_empty();
}

#[test]
fn experiment_determines_which_parameters_vary() {
    let place = TestFolder::new();
    let few = [
        "--nodes",
        "2,3",
        "--bytes",
        "9000",
        "--block",
        "4096",
        "--messages",
        "3",
        "--rounds",
        "1",
    ];
    let report = bench(
        &place,
        &[&["blocks", "--fabric", "shm", "--experiment", "algorithms,scale"], &few[..]].concat(),
    );
    let rows = report["rows"].as_array().expect("rows");
    let of = |experiment: &str| rows.iter().filter(|row| row["experiment"] == experiment).count();
    assert_eq!((of("algorithms"), of("scale"), rows.len()), (2 * 5, 2 * 2, 14), "{report}");
    place.assert_empty();
}

#[test]
fn invalid_block_arguments_are_refused() {
    let place = TestFolder::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        place.run(&[&["bench", "blocks"], arguments].concat()).failed(2, words);
    };
    refused(&["--port", "1"], &["--port", "--fabric verbs"]);
    for (more, words) in [
        (&["--nodes", "1"][..], &["--nodes is 1"][..]),
        (&["--nodes", "13"], &["--nodes is 13"]),
        (&["--bytes", "0"], &["--bytes is 0"]),
        (&["--block", "0"], &["--block is 0"]),
        (&["--rounds", "0"], &["--rounds is 0"]),
        (&["--window", "0"], &["--window"]),
        (&["--window", "17"], &["--window"]),
        (&["--algorithm", "hybrid"], &["racks"]),
        (&["--senders", "all", "--probe"], &["--probe"]),
        (&["--experiment", "overlap", "--probe"], &["--probe"]),
        (&["--experiment", "overlap", "--senders", "all"], &["--senders"]),
        (
            &["--experiment", "delays", "--slow-link", "0-1"],
            &["--slow-link", "--fabric tcp", "--delayed"],
        ),
        (&["--link-bytes-per-s", "5000000"], &["--link-bytes-per-s", "--fabric tcp"]),
        (&["--delayed", "1"], &["--delayed", "--experiment delays"]),
        (&["--experiment", "delays", "--nodes", "4", "--delayed", "4"], &["no member 4", "0 to 3"]),
    ] {
        refused(&[&["--fabric", "shm"], more].concat(), words);
    }
    refused(&["--fabric", "tcp", "--probe"], &["--probe", "--fabric shm"]);
    refused(&["--fabric", "tcp", "--experiment", "delays", "--slow-link", "1-1"], &["1-1"]);
    place.assert_empty();
}
