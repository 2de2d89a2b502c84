//! The library example in the README.

use crate::building::{Terminal, built, wait_for};

const README: &str = include_str!("../../../../README.md");

#[test]
#[ignore = "it builds a crate of its own: .ci/run has it"]
fn readme_library_example_runs_and_members_agree() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let program = built(README, "readings", folder.path());
    let mut terminals: Vec<_> =
        (0..3).map(|node| Terminal::node(&program, root.path(), node)).collect();
    for (node, terminal) in terminals.iter_mut().enumerate() {
        terminal.write(&format!("{node}2.7 degrees"));
    }
    wait_for("all readings", || {
        terminals.iter().all(|terminal| terminal.shown().lines().count() == 3)
    });
    for terminal in &terminals {
        assert_eq!(terminal.shown(), terminals[0].shown());
        assert!(terminal.shown().contains("12.7 degrees (node 1)\n"), "{}", terminal.shown());
    }
    terminals.iter_mut().for_each(Terminal::finish);
}
