//! What a terminal shows: tables that fit it, and nothing of a bar after ^C. `script`, which every
//! Debian has, is the terminal.

use std::path::Path;
use std::process::Command;

use crate::support::group::Node;
use crate::support::{Place, children_of, send, wait_for};
use rustix::process::Signal;

/// What most terminals have.
const COLUMNS: usize = 80;

/// The program on a terminal of its own. What it shows is the output of this.
fn on_terminal(place: &Place, arguments: &str) -> Node {
    let program = env!("CARGO_BIN_EXE_tramontane");
    let mut command = Command::new("script");
    let command_line = format!("stty cols {COLUMNS}; exec {program} {arguments}");
    command.args(["-qefc", &command_line, "/dev/null"]);
    // Bars look at it, and there is none without a terminal.
    command.env("TERM", "xterm").env("SHELL", "/bin/sh").env("TRAMONTANE_SHM_DIR", place.path());
    Node::start(command)
}

/// Ends it by ^C, and gives all that was shown.
#[track_caller]
fn interrupted(mut shown: Node) -> String {
    shown.write("\x03");
    let (code, errors) = shown.ended();
    assert_eq!(code, Some(130), "{errors}{}", shown.output());
    shown.output()
}

/// The last bar was cleared away.
#[track_caller]
fn assert_no_bar_is_left(shown: &str, mark: &str) {
    let drawn = shown.rfind(mark).expect("there was a bar");
    let cleared = shown.rfind("\x1b[2K").expect("something was cleared");
    assert!(cleared > drawn, "{shown:?}");
}

/// Bars are drawn without an end of a line: what is shown is looked for in what was read so far.
#[track_caller]
fn await_shown(shown: &Node, mark: &str) {
    wait_for("a bar", || shown.output().contains(mark).then_some(()));
}

#[test]
fn a_demo_that_is_interrupted_leaves_no_bar() {
    let place = Place::new();
    let shown = on_terminal(&place, "demo --nodes 2 --repeat 100000");
    await_shown(&shown, "messages delivered");
    assert_no_bar_is_left(&interrupted(shown), "messages delivered");
}

#[test]
fn an_experiment_that_is_interrupted_leaves_no_bar() {
    let place = Place::new();
    let shown = on_terminal(&place, "bench multicast --nodes 2,2,2,2 --rounds 200");
    await_shown(&shown, "2 members, 1 bytes");
    assert_no_bar_is_left(&interrupted(shown), "2 members, 1 bytes");
}

#[test]
fn a_copy_that_is_interrupted_leaves_no_bar_and_tells_a_rate_that_can_be() {
    let place = Place::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (file, to) = (folder.path().join("file"), folder.path().join("to"));
    std::fs::write(&file, vec![7; 768 << 20]).expect("a large file");
    std::fs::create_dir(&to).expect("a folder");
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let shown = on_terminal(&place, &format!("copy {} --to {}", text(&file), text(&to)));
    // It stands still until there is a bar: then much more may have arrived than the bar has seen
    // come.
    let copies = wait_for("a copy", || {
        let root = *children_of(shown.pid()).first()?;
        let members = children_of(root);
        let begun = std::fs::read_dir(&to).ok()?.next().is_some();
        (begun && !members.is_empty()).then_some(members)
    });
    std::thread::sleep(std::time::Duration::from_millis(100));
    copies.iter().for_each(|pid| send(*pid, Signal::STOP));
    std::thread::sleep(std::time::Duration::from_millis(2200));
    copies.iter().for_each(|pid| send(*pid, Signal::CONT));
    await_shown(&shown, "of 768.00 MiB");
    let shown = interrupted(shown);
    assert_no_bar_is_left(&shown, "of 768.00 MiB");
    assert!(!shown.contains("TiB/s") && shown.contains("B/s"), "{shown:?}");
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

#[test]
fn tables_fit() {
    let place = Place::new();
    for arguments in [
        "demo",
        "bench multicast --fabric sim --nodes 4 --messages 2000",
        "bench multicast --nodes 2 --bytes 10240 --messages 2000 --rounds 1 --probe",
        "bench parameters --profile spindle",
        "bench blocks --fabric sim --experiment algorithms",
        "layout --nodes 16",
    ] {
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

#[test]
fn a_row_is_one_line_where_there_is_no_terminal() {
    let place = Place::new();
    let run = ["bench", "multicast", "--fabric", "sim", "--nodes", "4,8", "--messages", "200"];
    let text = String::from_utf8(place.run(&run).succeeded()).expect("text");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("sim ")).collect();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.ends_with(')')), "{text}");
}
