//! The restart test with two real processes, one of which is killed.

#![allow(clippy::unwrap_used)]

use std::process::Command;

fn pair(messages: &str, restarts: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_tramontane-partition"))
        .args(["pair", messages, restarts])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{complained}");
    let end = format!("{messages} messages at both in one order, {restarts} restarts");
    assert!(said.contains(&end), "{said}{complained}");
}

#[test]
fn two_processes_deliver_the_same_messages() {
    pair("1000", "0");
}

#[test]
fn two_processes_deliver_same_messages_despite_kills() {
    pair("1000", "4");
}
