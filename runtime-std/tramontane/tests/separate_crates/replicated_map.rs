//! The replicated map in the guide.

use crate::building::{Terminal, ask, block, built};

const PAGE: &str = include_str!("../../../../docs/guide/src/programs/replicated-state.md");
const EXAMPLE: &str = include_str!("../../examples/replicated_map.rs");

#[test]
fn guide_shows_map_example_in_fifty_lines() {
    let program = block(PAGE, "```rust,no_run\n");
    assert_eq!(format!("{program}\n"), EXAMPLE);
    assert!(EXAMPLE.lines().count() <= 50);
}

#[test]
#[ignore = "it builds a crate of its own: .ci/run has it"]
fn map_survives_killed_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
    let program = built(PAGE, "map", folder.path());
    let start = |node| Terminal::node(&program, root.path(), node);
    let mut terminals: Vec<_> = (0..3).map(start).collect();
    assert_eq!(ask(&mut terminals[0], "put colour red"), "None");
    assert_eq!(ask(&mut terminals[1], "put colour blue"), "Some(\"red\")");
    // Killed while the others propose.
    terminals[2].child.kill().expect("it runs");
    let mut previous = "blue".to_owned();
    for number in 0..50 {
        let value = format!("shade-{number}");
        let answer = ask(&mut terminals[number % 2], &format!("put colour {value}"));
        assert_eq!(answer, format!("Some(\"{previous}\")"));
        previous = value;
    }
    // The node returns, and receives the map.
    terminals[2] = start(2);
    for terminal in &mut terminals {
        assert_eq!(ask(terminal, "get colour"), format!("Some(\"{previous}\")"));
    }
    assert_eq!(ask(&mut terminals[2], "put colour red"), format!("Some(\"{previous}\")"));
    terminals.iter_mut().for_each(Terminal::finish);
}
