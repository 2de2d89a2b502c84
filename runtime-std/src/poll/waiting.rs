//! How a sender waits: it steps the node itself, where a polling thread lets it.

use std::time::{Duration, Instant};

use super::ending::Ending;
use super::idle::Idle;
use crate::member::SendError;

/// How long the polling thread keeps off while senders step.
pub(super) const KEEP_OFF: Duration = Duration::from_micros(200);

/// Tries between two readings of the clock.
const TRIES_PER_READING: u32 = 64;

/// After so long without any progress a sender that waits gives its processor away: a member is
/// slow, or gone.
const WAIT_PATIENCE: Duration = Duration::from_millis(1);

/// Steps a node, or rings for it, on behalf of a sender.
pub(crate) trait Drive: Send + Sync {
    /// Steps once, if no other thread has the turn. True if this call did something.
    fn drive(&self) -> bool;

    /// Wakes the polling thread if it sleeps.
    fn ring(&self);
}

/// Tries until it works, at most `timeout`, stepping the node meanwhile where that is possible.
pub(crate) fn wait_driving<R>(
    driver: Option<&dyn Drive>,
    ending: &Ending,
    timeout: Duration,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, SendError> {
    let start = Instant::now();
    let mut idle = Idle::new(WAIT_PATIENCE);
    let mut tries = 0_u32;
    loop {
        tries = tries.wrapping_add(1);
        let drove = driver.is_some_and(|driver| driver.drive());
        if let Some(done) = attempt() {
            return Ok(done);
        }
        if let Some(stopped) = ending.stopped() {
            return Err(stopped.into());
        }
        let mut is_stuck = false;
        if drove {
            idle.reset();
        } else if idle.pause() {
            is_stuck = true;
            std::thread::sleep(KEEP_OFF.min(timeout));
        }
        if (is_stuck || tries.is_multiple_of(TRIES_PER_READING)) && start.elapsed() >= timeout {
            return Err(SendError::TimedOut(timeout));
        }
    }
}
