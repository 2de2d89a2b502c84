//! Runs the program on a terminal, provided by `script`, a program that is part of every Debian
//! system.

use std::process::Command;

use super::group::Node;
use super::{TestFolder, wait_for};

/// Width of most terminals.
pub const COLUMNS: usize = 80;

/// Starts the program on its own terminal. The output of the returned process is what the terminal
/// shows.
pub fn on_terminal(place: &TestFolder, arguments: &str) -> Node {
    let program = crate::PROGRAM;
    let mut command = Command::new("script");
    let command_line = format!("stty cols {COLUMNS}; exec {program} {arguments}");
    command.args(["-qefc", &command_line, "/dev/null"]);
    // Progress bars depend on `TERM`, which is not set without a terminal.
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").env("TRAMONTANE_SHM_DIR", place.path());
    Node::start(command)
}

/// Ends the program by ^C, and returns everything that was shown.
#[track_caller]
pub fn interrupted(mut shown: Node) -> String {
    shown.write("\x03");
    let (code, errors) = shown.ended();
    assert_eq!(code, Some(130), "{errors}{}", shown.output());
    shown.output()
}

/// Asserts that the last bar has been cleared.
#[track_caller]
pub fn assert_no_bar_is_left(shown: &str, mark: &str) {
    let drawn = shown.rfind(mark).expect("there was a bar");
    let cleared = shown.rfind("\x1b[K").max(shown.rfind("\x1b[2K")).expect("something was cleared");
    assert!(cleared > drawn, "{shown:?}");
}

/// Bars are drawn without a newline, so the text is searched for in all output so far.
#[track_caller]
pub fn await_shown(shown: &Node, mark: &str) {
    wait_for("a bar", || shown.output().contains(mark).then_some(()));
}

#[track_caller]
fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= COLUMNS,
            "{} columns: {line}\n{text}",
            line.chars().count()
        );
    }
}

/// Asserts that each of these commands shows a table that fits a terminal.
#[track_caller]
pub fn assert_tables_fit(commands: &[&str]) {
    let place = TestFolder::new();
    for arguments in commands {
        let mut shown = on_terminal(&place, arguments);
        let (code, errors) = shown.ended();
        let text = shown.output();
        assert_eq!(code, Some(0), "{errors}{text}");
        // Cleared bars precede the last carriage return of their line.
        let text: String = text.lines().map(|line| format!("{}\n", last_shown(line))).collect();
        assert!(text.lines().count() > 3, "{text}");
        assert_fits(&text);
    }
}

/// Returns the visible part of a line after its carriage returns.
fn last_shown(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit(['\r', '\x1b']).next().unwrap_or_default()
}
