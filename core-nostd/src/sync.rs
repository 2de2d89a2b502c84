//! Where tests put their own in the place of shared memory: the atomics of the hand-off between threads, replaced by loom's
//! when its interleavings are searched; and the moments between two accesses to rows, at which a simulated group has others
//! go on.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(tramontane_interleave)]
pub(crate) use interleave::between_accesses;

/// A load of a cell of a row, or a store to one, is about to happen. Nothing, but where interleavings of whole groups are
/// searched.
#[cfg(not(tramontane_interleave))]
#[inline(always)]
pub(crate) const fn between_accesses() {}

/// For searches alone, which are built with `--cfg tramontane_interleave`: what a thread does between two accesses to rows.
#[cfg(tramontane_interleave)]
pub mod interleave {
    use std::cell::Cell;

    std::thread_local! {
        static BETWEEN: Cell<Option<fn()>> = const { Cell::new(None) };
    }

    /// Has this thread call a function before each load of a cell of a row, and before each store to one of the own row.
    pub fn set_between_accesses(between: Option<fn()>) {
        BETWEEN.set(between);
    }

    pub(crate) fn between_accesses() {
        if let Some(between) = BETWEEN.get() {
            between();
        }
    }
}
