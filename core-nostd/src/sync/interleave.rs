//! Interleaving of threads between two accesses to rows. Only searches use it; they are built with
//! `--cfg tramontane_interleave`. No other build includes this file.
//!
//! Requirement: COR-4.

use std::cell::Cell;

std::thread_local! {
    static BETWEEN: Cell<Option<fn()>> = const { Cell::new(None) };
}

/// Makes this thread call a function before each load of a row's cell and before each store to a
/// cell of the local row.
pub fn set_between_accesses(between: Option<fn()>) {
    BETWEEN.set(between);
}

pub(crate) fn between_accesses() {
    if let Some(between) = BETWEEN.get() {
        between();
    }
}
