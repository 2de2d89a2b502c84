//! Facts about the process, which the state machine needs.
//!
//! A snapshot replaces the state machine as a whole, so it cannot keep anything of its own process.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static INCARNATION: OnceLock<u64> = OnceLock::new();
static REPLY_MAX: AtomicUsize = AtomicUsize::new(64 << 20);

/// Returns the random number of this process, which marks the batches that it answers.
pub(crate) fn incarnation() -> u64 {
    *INCARNATION.get_or_init(|| RandomState::new().build_hasher().finish())
}

/// Returns the maximum number of bytes of the replies to one run of requests.
pub(crate) fn reply_max() -> usize {
    REPLY_MAX.load(Ordering::Relaxed)
}

/// Sets the maximum number of bytes of the replies to one run of requests.
pub(crate) fn set_reply_max(bytes: usize) {
    REPLY_MAX.store(bytes, Ordering::Relaxed);
}
