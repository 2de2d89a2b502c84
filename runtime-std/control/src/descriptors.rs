//! How a control server shares out the descriptors of its process (`ulimit -n`), so that external
//! clients leave some to members, operators and files.

use std::fmt::Display;
use std::os::fd::{AsFd, AsRawFd as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

/// The most descriptors that no external client gets.
const KEPT_MAX: usize = 256;

/// One part of so many of all descriptors is the number of slots for connections of one kind.
const SLOTS: usize = 8;

/// The shortest time between two warnings.
const WARNING_PAUSE: Duration = Duration::from_secs(10);

fn limit() -> usize {
    let limit = getrlimit(Resource::Nofile).current;
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}

/// The number of slots for connections, `most` or fewer: a stranger has two descriptors.
pub(super) fn slots(most: usize) -> usize {
    most.min(limit() / SLOTS).max(1)
}

/// Whether a descriptor that was just opened is one of those that no external client gets: the
/// system gives the lowest number that is free.
pub(super) fn is_kept(descriptor: impl AsFd) -> bool {
    let (limit, number) = (limit(), descriptor.as_fd().as_raw_fd());
    usize::try_from(number).is_ok_and(|number| number >= limit - KEPT_MAX.min(limit / 2))
}

/// Connections that were refused because something ran out, of which a warning now and then tells.
#[derive(Debug, Default)]
pub(super) struct Shortage(Mutex<Refused>);

#[derive(Debug, Default)]
struct Refused {
    warned: Option<Instant>,
    /// Connections that were refused since then.
    count: u64,
}

impl Shortage {
    /// One more connection is refused.
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
