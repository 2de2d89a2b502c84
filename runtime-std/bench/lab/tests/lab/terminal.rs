//! The terminal output of experiments: tables that fit the width, and no trace of a progress bar
//! after ^C.

use crate::support::TestFolder;
use crate::support::terminal::{
    assert_no_bar_is_left, assert_tables_fit, await_shown, interrupted, on_terminal,
};

#[test]
fn interrupted_experiment_clears_its_progress_bar() {
    let place = TestFolder::new();
    let shown = on_terminal(&place, "bench multicast --nodes 2,2,2,2 --rounds 200");
    await_shown(&shown, "2 members, 1 bytes");
    assert_no_bar_is_left(&interrupted(shown), "2 members, 1 bytes");
}

#[test]
fn experiment_tables_fit_the_terminal() {
    assert_tables_fit(&[
        "bench multicast --nodes 2 --bytes 10240 --messages 2000 --rounds 1 --probe",
        "bench record --seeds 1 --only rdmc-steps,rdmc-fractus-network",
    ]);
}

#[test]
fn row_is_printed_on_one_line_without_terminal() {
    let place = TestFolder::new();
    let run = ["bench", "record", "--seeds", "1", "--only", "rdmc-steps,rdmc-fractus-network"];
    let text = String::from_utf8(place.run(&run).succeeded()).expect("text");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("rdmc-")).collect();
    let is_whole = |row: &&str| row.ends_with("held") || row.ends_with("input");
    assert!(rows.len() == 2 && rows.iter().all(is_whole), "{text}");
}
