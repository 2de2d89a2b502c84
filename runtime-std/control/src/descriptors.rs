//! Divides the descriptors of a control server's process (`ulimit -n`), so that external clients
//! leave some for members, operators and files.

use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

/// The maximum number of descriptors that external clients may not use.
const KEPT_MAX: usize = 256;

/// The divisor of the descriptor limit that yields the number of slots for connections of one kind.
const SLOTS: usize = 8;

/// The minimum time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(10);

fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the number of slots for connections, up to `most`. A peer that is being greeted uses two
/// descriptors.
pub(super) fn slots(most: usize) -> usize {
    most.min(limit() / SLOTS).max(1)
}

/// Returns whether a newly opened descriptor is one of those that external clients may not use. The
/// system always assigns the lowest free number.
pub(super) fn is_kept(descriptor: impl AsFd) -> bool {
    let (limit, number) = (limit(), descriptor.as_fd().as_raw_fd());
    usize::try_from(number).is_ok_and(|number| number >= limit - KEPT_MAX.min(limit / 2))
}

/// Connections refused because a resource was exhausted, reported by occasional warnings.
#[derive(Debug, Default)]
pub(super) struct Shortage(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    warned: Option<Instant>,
    /// The number of connections refused since the last warning.
    count: u64,
}

impl Shortage {
    /// Counts a refused connection.
    pub(super) fn refuse(&self, why: impl Display) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.count += 1;
        if refused.warned.is_none_or(|warned| warned.elapsed() >= WARNING_PAUSE) {
            tracing::warn!(
                connections = refused.count,
                "refused connections: {why}; connect fewer clients to this process, or raise its \
                 limits (ulimit -n, -u)"
            );
            *refused = Refused { warned: Some(Instant::now()), count: 0 };
        }
    }
}
