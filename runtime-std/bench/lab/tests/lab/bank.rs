//! `tramontane-lab bank`: no money is lost while leaders are killed.

use std::time::{Duration, Instant};

use crate::support::TestFolder;
use serde_json::Value;

/// Returns how long clients make transfers.
fn seconds() -> String {
    std::env::var("TRAMONTANE_SHARDS_SECONDS").unwrap_or_else(|_| "2".to_owned())
}

#[test]
fn bank_conserves_money() {
    assert_bank_conserves_money(&[]);
}

#[test]
fn bank_conserves_money_with_payloads_by_reference() {
    assert_bank_conserves_money(&["--references-from", "1"]);
}

fn assert_bank_conserves_money(options: &[&str]) {
    let place = TestFolder::new();
    let seconds = seconds();
    let words = ["bank", "--json", "--clients", "2", "--rate", "300", "--duration"];
    let started = Instant::now();
    let output = place
        .run(&[&words[..], &[&seconds, "--kill-interval", "0.5"], options].concat())
        .succeeded();
    let outcome: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(outcome["suite"], "passed", "{outcome}");
    assert_eq!(outcome["conserved"], true);
    assert_eq!(outcome["replicas_equal"], true);
    assert_eq!(outcome["transfers"], outcome["delivered"]);
    assert!(outcome["transfers"].as_u64() > Some(0));
    let had_time = started.elapsed() > Duration::from_secs(1);
    assert!(had_time && outcome["leader_kills"].as_u64() > Some(0), "{outcome}");
    place.assert_empty();
}

#[test]
fn bank_refuses_rdma_options_without_rdma() {
    TestFolder::new().run(&["bank", "--gid", "1"]).failed(2, &["--gid", "--fabric verbs"]);
}
