//! Marks threads that may be inside a listener.

use std::cell::Cell;

use crate::error::DdsError;

thread_local! {
    static IN_LISTENER: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread may be inside a listener.
pub(crate) fn is_in_listener() -> bool {
    IN_LISTENER.get()
}

/// Refuses a call from a listener.
pub(crate) fn check_not_in_listener(call: &'static str) -> Result<(), DdsError> {
    if is_in_listener() { Err(DdsError::IllegalOperation(call)) } else { Ok(()) }
}

/// Calls `body` with this thread marked as possibly inside a listener.
pub(super) fn upcall<R>(body: impl FnOnce() -> R) -> R {
    /// Restores the mark even if a listener panics, because the thread may be the application's.
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_LISTENER.set(self.0);
        }
    }
    let _leave = Leave(IN_LISTENER.replace(true));
    body()
}
