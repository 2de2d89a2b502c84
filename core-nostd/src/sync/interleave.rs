//! What a thread does between two accesses to rows: for searches alone, which are built with
//! `--cfg tramontane_interleave`. No other build has this file.
//!
//! Requirement: COR-4.

use std::cell::Cell;

std::thread_local! {
    static BETWEEN: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Has this thread call a function before each load of a cell of a row, and before each store to
/// one of the own row.
pub fn set_between_accesses(between: Option<fn()>) {
    BETWEEN.set(between);
}

pub(crate) fn between_accesses() {
    if let Some(between) = BETWEEN.get() {
        between();
    }
}
