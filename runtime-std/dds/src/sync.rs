//! The locks and flags that the delivering thread shares with the application's threads. They are
//! loom's when the interleavings of a reader are explored (`reader/core/interleavings.rs`).

use std::time::Duration;

#[cfg(not(all(test, tramontane_interleave)))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

#[cfg(all(test, tramontane_interleave))]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering},
};

/// Locks data that no panic leaves half changed.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Waits while a condition holds, for at most `timeout`.
#[cfg(not(all(test, tramontane_interleave)))]
pub(crate) fn wait_while<'l, T>(
    changed: &Condvar,
    guard: MutexGuard<'l, T>,
    timeout: Duration,
    is_so: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'l, T> {
    let waited = changed.wait_timeout_while(guard, timeout, is_so);
    waited.unwrap_or_else(std::sync::PoisonError::into_inner).0
}

/// No time passes during an exploration, so a wait that nothing ends is reported as a deadlock.
#[cfg(all(test, tramontane_interleave))]
pub(crate) fn wait_while<'l, T>(
    changed: &Condvar,
    mut guard: MutexGuard<'l, T>,
    _: Duration,
    mut is_so: impl FnMut(&mut T) -> bool,
) -> MutexGuard<'l, T> {
    while is_so(&mut guard) {
        guard = changed.wait(guard).unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    guard
}
