//! How a control server divides the descriptors of its process (`ulimit -n`), so that external
//! clients leave some for members, operators and files.

use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

/// Maximum number of descriptors reserved from external clients.
const KEPT_MAX: usize = 256;

/// Divisor of the descriptor limit that gives the number of slots for connections of one kind.
const SLOTS: usize = 8;

/// Minimum time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(10);

fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// Returns the number of slots for connections, at most `most`; a peer being greeted uses two
/// descriptors.
pub(super) fn slots(most: usize) -> usize {
    most.min(limit() / SLOTS).max(1)
}

/// Returns whether a newly opened descriptor is one of those reserved from external clients: the
/// system always assigns the lowest free number.
pub(super) fn is_kept(descriptor: impl AsFd) -> bool {
    let (limit, number) = (limit(), descriptor.as_fd().as_raw_fd());
    usize::try_from(number).is_ok_and(|number| number >= limit - KEPT_MAX.min(limit / 2))
}

/// Connections refused for lack of a resource, reported by occasional warnings.
#[derive(Debug, Default)]
pub(super) struct Shortage(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    warned: Option<Instant>,
    /// Connections refused since then.
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
