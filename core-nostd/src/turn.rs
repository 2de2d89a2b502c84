//! Whose turn it is to step a node: a lock that is only ever tried.
//!
//! A polling thread and senders without a free slot may all want to drive one node. Whoever gets the turn
//! steps; whoever does not knows that somebody else does, and never waits.

use spin::mutex::{SpinMutex, SpinMutexGuard};

/// Something that one thread at a time may use, and nobody waits for.
#[derive(Debug)]
pub struct Turn<T>(SpinMutex<T>);

/// The turn; it ends when this is dropped.
pub type Held<'t, T> = SpinMutexGuard<'t, T>;

impl<T> Turn<T> {
    /// Nobody's turn yet.
    pub const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Takes the turn, unless somebody has it. Never waits.
    #[inline]
    pub fn take(&self) -> Option<Held<'_, T>> {
        self.0.try_lock()
    }

    /// What was inside.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
