//! The reason why a member, or a node of block groups, ended; and the guard around the upcalls.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use crate::member::Stopped;

/// The reason why a member is no longer part of its group. Only the first reason is kept.
#[derive(Debug, Default)]
pub(crate) struct Ending(OnceLock<Stopped>);

impl Ending {
    /// Ends the member for the given reason, unless it has already ended. Returns the first reason.
    pub(crate) fn stop(&self, why: Stopped) -> Stopped {
        self.0.get_or_init(|| why).clone()
    }

    /// Returns the reason why the member ended, or `None` if it is running.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.0.get().cloned()
    }
}

/// Calls `body`, in which the application may panic, and turns a panic into an error (DEL-2).
#[inline]
pub(crate) fn guarded<R>(body: impl FnOnce() -> Result<R, Stopped>) -> Result<R, Stopped> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => Err(Stopped::panicked(payload.as_ref())),
    }
}
