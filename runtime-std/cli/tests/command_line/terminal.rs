//! Terminal output: tables fit the terminal, and no progress line remains after ^C.

use crate::support::TestFolder;
use crate::support::terminal::{
    assert_no_bar_is_left, assert_tables_fit, await_shown, interrupted, on_terminal,
};

#[test]
fn interrupted_demo_clears_its_progress_bar() {
    let place = TestFolder::new();
    let shown = on_terminal(&place, "demo --nodes 2 --repeat 100000");
    await_shown(&shown, "messages delivered");
    assert_no_bar_is_left(&interrupted(shown), "messages delivered");
}

#[test]
fn printed_tables_fit_the_terminal() {
    assert_tables_fit(&["demo", "layout --nodes 16"]);
}
