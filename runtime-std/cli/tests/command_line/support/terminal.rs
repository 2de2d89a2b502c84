//! The program on a terminal: `script`, which every Debian has, is the terminal.

use std::process::Command;

use super::group::Node;
use super::{Place, wait_for};

/// What most terminals have.
pub const COLUMNS: usize = 80;

/// The program on a terminal of its own. What it shows is the output of this.
pub fn on_terminal(place: &Place, arguments: &str) -> Node {
    let program = crate::PROGRAM;
    let mut command = Command::new("script");
    let command_line = format!("stty cols {COLUMNS}; exec {program} {arguments}");
    command.args(["-qefc", &command_line, "/dev/null"]);
    // Bars look at it, and there is none without a terminal.
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").env("TRAMONTANE_SHM_DIR", place.path());
    Node::start(command)
}

/// Ends it by ^C, and gives all that was shown.
#[track_caller]
pub fn interrupted(mut shown: Node) -> String {
    shown.write("\x03");
    let (code, errors) = shown.ended();
    assert_eq!(code, Some(130), "{errors}{}", shown.output());
    shown.output()
}

/// The last bar was cleared away.
#[track_caller]
pub fn assert_no_bar_is_left(shown: &str, mark: &str) {
    let drawn = shown.rfind(mark).expect("there was a bar");
    let cleared = shown.rfind("\x1b[K").max(shown.rfind("\x1b[2K")).expect("something was cleared");
    assert!(cleared > drawn, "{shown:?}");
}

/// Bars are drawn without an end of a line: what is shown is looked for in what was read so far.
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

/// Each of these commands shows a table that fits a terminal.
#[track_caller]
pub fn assert_tables_fit(commands: &[&str]) {
    let place = Place::new();
    for arguments in commands {
        let mut shown = on_terminal(&place, arguments);
        let (code, errors) = shown.ended();
        let text = shown.output();
        assert_eq!(code, Some(0), "{errors}{text}");
        // Bars, which are cleared, stand before the last return of their line.
        let text: String = text.lines().map(|line| format!("{}\n", last_shown(line))).collect();
        assert!(text.lines().count() > 3, "{text}");
        assert_fits(&text);
    }
}

/// What is left of a line after returns to its beginning.
fn last_shown(line: &str) -> &str {
    line.trim_end_matches('\r').rsplit(['\r', '\x1b']).next().unwrap_or_default()
}
