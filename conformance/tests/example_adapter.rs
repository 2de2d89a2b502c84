//! The adapter of `docs/write-an-adapter.md` does what the page says.

mod driven;

use std::process::{Command, Stdio};

use driven::Run;
use tempfile::TempDir;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/adapters/example.py");

#[test]
fn the_example_passes_what_it_claims_and_the_rest_is_unsupported() {
    let python = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if python.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
        println!("SKIPPED: this test needs python3, and there is none");
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let adapter = format!("python3 '{EXAMPLE}'");
    let results = Run { adapter, nodes: 3, scenarios: &[], seed: 1, deadline_s: 20.0 }.run(folder.path());
    assert_eq!(results.broken(), [""; 0], "{}", results.told);
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
    ];
    for (scenario, status) in results.cases() {
        let expected = if claimed.contains(&scenario) { "passed" } else { "unsupported" };
        assert_eq!(status, expected, "{scenario}\n{}", results.told);
    }
}

#[test]
fn the_example_has_less_than_a_hundred_lines() {
    let lines = std::fs::read_to_string(EXAMPLE).expect("it is there").lines().count();
    assert!(lines < 100, "{lines}");
}
