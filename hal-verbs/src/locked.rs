//! The limit on the memory that this process may lock, which registration requires, and the limit's
//! form in messages.

use rustix::process::{Resource, getrlimit};

/// Returns the number of bytes that this process may currently lock, or `None` if there is no
/// limit.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// A limit as messages print it.
pub(crate) struct Limit(pub(crate) Option<u64>);

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(out, "{bytes} B"),
            None => out.write_str("any amount, so the machine itself is short of memory"),
        }
    }
}
