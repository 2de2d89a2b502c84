//! The right to step a node: a lock that threads try to take but never wait for.
//!
//! A polling thread and senders without a free slot may all want to drive one node. The thread that
//! takes the turn steps it. The others learn that the node is being stepped, and never wait.
//!
//! Requirement: COR-3.

use spin::mutex::{SpinMutex, SpinMutexGuard};

/// A value that one thread at a time may use, and that no thread ever waits for.
#[derive(Debug)]
pub struct Turn<T>(SpinMutex<T>);

/// The held turn, which ends when this value is dropped.
pub type Held<'t, T> = SpinMutexGuard<'t, T>;

impl<T> Turn<T> {
    /// Wraps a value that no thread uses yet.
    pub const fn new(value: T) -> Self {
        Self(SpinMutex::new(value))
    }

    /// Takes the turn unless another thread has it. The call never waits.
    #[inline]
    pub fn take(&self) -> Option<Held<'_, T>> {
        self.0.try_lock()
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
