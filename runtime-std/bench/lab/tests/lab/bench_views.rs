//! Real processes that are killed, stopped and asked to leave under load, with every delivery
//! checked.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

use std::process::Command;

/// Runs ten kills, ten leaves and ten stops, each lasting for the failure timeout. The timeout is
/// generous, because other processes run on this machine. With five members, one may be suspected
/// by mistake in addition to the one that leaves.
fn keeps_its_promises(fabric: &str, ways: &str, rounds: &str) {
    let output = Command::new(crate::PROGRAM)
        .args(["bench", "views", "--fabric", fabric, "--ways", ways, "--rounds", rounds, "--json"])
        .args(["--failure-timeout-ms", "2000", "--nodes", "5", "--settle-ms", "20"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{fabric} {ways}: {said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    let rounds: u64 = rounds.parse().expect("a number");
    // Each round has a view without the member, and a view that includes it again.
    assert!(report["views"].as_u64() >= Some(2 * rounds - 1), "{report}");
    assert!(report["messages"].as_u64() > Some(0), "{report}");
    assert!(report["promised"].as_u64() > Some(0), "{report}");
    let of_way = |way: &str| {
        report["ways"].as_array()?.iter().find(|one| one["way"] == way)?["rounds"].as_u64()
    };
    let ways: Vec<&str> = ways.split(',').collect();
    assert!(ways.iter().all(|way| of_way(way) == Some(rounds / ways.len() as u64)), "{report}");
}

#[test]
fn kills_over_shared_memory_lose_no_message() {
    keeps_its_promises("shm", "kill,leave", "20");
}

#[test]
fn kills_over_tcp_lose_no_message() {
    keeps_its_promises("tcp", "kill,leave", "20");
}

#[test]
fn resumed_members_lose_no_message() {
    keeps_its_promises("shm", "stop", "1");
    keeps_its_promises("tcp", "stop", "1");
}
