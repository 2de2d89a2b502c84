//! The wait of a sender, which steps the node itself if the polling thread allows that.

use std::time::{Duration, Instant};

use super::ending::Ending;
use super::idle::Idle;
use super::stepping::Leading;
use crate::member::SendError;

/// The time for which the polling thread keeps off while senders step.
pub(super) const KEEP_OFF: Duration = Duration::from_micros(200);

/// Number of attempts between two readings of the clock.
pub(super) const TRIES_PER_READING: u32 = 64;

/// The time without any progress after which a waiting sender gives up its processor, because some
/// member is slow or has been lost.
pub(super) const WAIT_PATIENCE: Duration = Duration::from_millis(1);

/// Steps a node, or rings its bell, on behalf of a sender.
pub(crate) trait DriveOrRing: Send + Sync {
    /// Steps once, if no other thread has the turn. Returns whether this call did any work.
    fn drive(&self) -> bool;

    /// Wakes the polling thread if it is asleep.
    fn ring(&self);

    /// Returns the threads that wait for this node's progress.
    fn leading(&self) -> &Leading;
}

/// Repeats `attempt` until it succeeds, for at most `timeout`. Steps the node in the meantime if
/// possible.
pub(crate) fn wait_driving<R>(
    driver: Option<&dyn DriveOrRing>,
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
