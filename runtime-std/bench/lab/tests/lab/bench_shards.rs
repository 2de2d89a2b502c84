//! `tramontane-lab bench shards`: short runs, whose figures are not judged.

use crate::bench;
use crate::support::TestFolder;
use serde_json::Value;

fn median(row: &Value, figure: &str) -> f64 {
    row[figure]["median"].as_f64().unwrap_or_else(|| panic!("{figure}: {row}"))
}

#[test]
fn shard_bench_measures_both_payload_paths() {
    let place = TestFolder::new();
    let report = bench(&place, &["shards", "--rounds", "1", "--messages", "300", "--window", "16"]);
    let rows = report["rows"].as_array().expect("rows");
    for fabric in ["shm", "tcp"] {
        for system in ["TRAM", "TRAM, references"] {
            for destinations in [1, 2] {
                for under_way in [1, 16] {
                    let is_it = |row: &&Value| {
                        row["fabric"] == fabric
                            && row["system"] == system
                            && row["destinations"] == destinations
                            && row["under_way"] == under_way
                    };
                    let row = rows.iter().find(is_it).expect("a row");
                    let [middle, late, last] =
                        ["median_us", "p99_us", "max_us"].map(|figure| median(row, figure));
                    assert!(0.0 < middle && middle <= late && late <= last, "{row}");
                    assert!(median(row, "messages_per_s") > 0.0, "{row}");
                }
            }
        }
    }
    assert_eq!(rows.len(), 16);
    place.assert_empty();
}

#[test]
fn killed_leader_is_replaced_and_measured() {
    let place = TestFolder::new();
    let report = bench(&place, &["shards", "--fabric", "shm", "--kills", "2"]);
    let takeovers = &report["takeovers"][0];
    assert_eq!(takeovers["kills"], 2);
    let time = |what: &str, of: &str| takeovers[what][of].as_f64().expect("a time");
    assert!(0.0 < time("leads_ms", "median"), "{takeovers}");
    assert!(time("leads_ms", "median") <= time("delivers_ms", "max"), "{takeovers}");
    place.assert_empty();
}

#[test]
fn unsupported_shard_runs_are_refused() {
    let place = TestFolder::new();
    place.run(&["bench", "shards", "--fabric", "verbs"]).failed(2, &["shm and tcp"]);
}
