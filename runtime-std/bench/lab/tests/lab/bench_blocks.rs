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
fn each_combination_of_arguments_is_a_row() {
    let place = TestFolder::new();
    let few = ["--bytes", "9000", "--block", "4096", "--messages", "3", "--rounds", "1"];
    let many =
        ["blocks", "--fabric", "shm", "--nodes", "2,3", "--algorithm", "pipeline,chain,tree"];
    let report = bench(&place, &[&many[..], &few[..]].concat());
    let rows = report["rows"].as_array().expect("rows");
    let of = |algorithm: &str| rows.iter().filter(|row| row["algorithm"] == algorithm).count();
    assert_eq!((of("pipeline"), of("chain"), of("tree"), rows.len()), (2, 2, 2, 6), "{report}");
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
    ] {
        refused(&[&["--fabric", "shm"], more].concat(), words);
    }
    refused(&["--fabric", "tcp", "--probe"], &["--probe", "--fabric shm"]);
    place.assert_empty();
}
