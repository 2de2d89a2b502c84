//! Checks that the adapter of `docs/write-an-adapter.md` does what the page says.

use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::runs;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters/example.py");

pub fn example_adapter_passes_every_claimed_scenario() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if python.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        println!("SKIPPED: this test needs python3, and there is none");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let adapter = format!("python3 '{EXAMPLE}'");
    let statuses = runs::play(&adapter, 3, Vec::new(), 20.0, folder.path());
    let claimed = [
        "one-sender",
        "all-senders",
        "bursts",
        "silent-senders",
        "large-messages",
        "empty-messages",
        "quiet",
        "overlapping-groups",
        "across-groups",
        "outside-sender",
        "boundary-sizes",
        "long-stream",
    ];
    for (scenario, status) in &statuses {
        if status == runs::STARVED {
            println!("inconclusive: this machine has no time for {scenario}");
            continue;
        }
        let expected = if claimed.contains(&scenario.as_str()) { "passed" } else { "unsupported" };
        assert_eq!(status, expected, "{scenario}");
    }
    assert!(claimed.iter().all(|scenario| statuses.contains_key(*scenario)), "{statuses:?}");
}

pub fn example_adapter_has_under_a_hundred_lines() {
    let lines = std::fs::read_to_string(EXAMPLE).expect("it is there").lines().count();
    assert!(lines < 100, "{lines}");
}
