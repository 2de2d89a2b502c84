//! Whether the calling thread reads a state.
//!
//! A thread must not step the member while it reads the state, because the step would wait until
//! the state is no longer read.

use std::cell::Cell;

thread_local! {
    /// The number of reads within each other.
    static READS: Cell<u32> = const { Cell::new(0) };
}

/// Returns whether this thread reads a state.
pub(super) fn is_reading() -> bool {
    READS.get() > 0
}

/// A read by this thread.
pub(super) struct LocalRead(());

impl LocalRead {
    pub(super) fn begin() -> Self {
        READS.set(READS.get() + 1);
        Self(())
    }
}

impl Drop for LocalRead {
    fn drop(&mut self) {
        READS.set(READS.get() - 1);
    }
}
