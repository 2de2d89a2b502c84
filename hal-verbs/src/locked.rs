//! How much memory this process may hold in place, which registration takes, as a message tells it.

use rustix::process::{Resource, getrlimit};

/// Bytes that this process may lock now; none if there is no limit.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Memlock).current
}

/// A limit, as a message says it.
pub(crate) struct Limit(pub(crate) Option<u64>);

impl std::fmt::Display for Limit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(out, "{bytes} B"),
            None => out.write_str("any amount, so the machine itself is short of memory"),
        }
    }
}
