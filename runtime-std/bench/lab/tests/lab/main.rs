//! The program `tramontane-lab` from a user's view: real processes, their output and exit statuses.

mod adapter;
mod bench_blocks;
mod bench_durable;
mod bench_record;
mod bench_shards;
mod bench_views;
mod experiments;
mod plan;
#[path = "../../../../cli/tests/command_line/support/mod.rs"]
mod support;
mod terminal;

use support::TestFolder;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_tramontane-lab");

/// Returns the JSON output of an experiment.
#[track_caller]
fn bench(place: &TestFolder, arguments: &[&str]) -> serde_json::Value {
    // Simulated runs take a quarter of a minute on an idle machine.
    let run = &mut place.start(&[&["bench"], arguments, &["--json"]].concat());
    let output = run.wait_patiently().succeeded();
    serde_json::from_slice(&output).expect("JSON")
}
