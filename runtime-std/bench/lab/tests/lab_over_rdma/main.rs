//! The program `tramontane-lab` over RDMA. It needs a device: `hal-verbs/lab/ci` runs it in the
//! lab, by name.

#[path = "../../../../cli/tests/command_line/support/mod.rs"]
mod support;

use serde_json::Value;
use support::TestFolder;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-lab");

#[test]
fn experiments_run_over_rdma_and_report_counters() {
    let place = TestFolder::new();
    let bench = |arguments: &[&str]| -> Value {
        let output = place
            .run(&[&["bench"], arguments, &["--fabric", "verbs", "--json"]].concat())
            .succeeded();
        serde_json::from_slice(&output).expect("JSON")
    };
    let rate = bench(&[
        "multicast",
        "--senders",
        "one",
        "--messages",
        "200",
        "--rounds",
        "1",
        "--bytes",
        "1024",
    ]);
    let row = &rate["rows"][0];
    assert_eq!(
        (&row["fabric"], row["counts"].as_array().map(Vec::len)),
        (&"verbs".into(), Some(2)),
        "{row}"
    );
    // Every message is sent to one peer, and every write is counted.
    assert!(row["counts"][0]["bytes"].as_u64() >= Some(200 * 1024), "{row}");
    let latency = bench(&["latency", "--messages", "50", "--rounds", "1", "--one-sender"]);
    assert!(latency["last_ns"]["median"].as_f64() > Some(0.0), "{latency}");
    let blocks = bench(&[
        "blocks",
        "--nodes",
        "3",
        "--bytes",
        "300000",
        "--algorithm",
        "pipeline,sequential",
        "--messages",
        "3",
        "--rounds",
        "1",
    ]);
    let rows = blocks["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2, "{blocks}");
    assert!(
        rows.iter().all(|row| row["fabric"] == "verbs" && row["latency_ms"]["median"].as_f64() > Some(0.0)),
        "{blocks}"
    );
    place.assert_empty();
}
