//! What the runtime needs of a fabric beside the seam: sleep, and word of peers that are gone.

use std::time::Duration;

use tramontane_core::fabric::Fabric;

use crate::member::Stopped;

/// Wakes the member that sleeps in this process, if it does. Cheap enough for every commit.
pub trait LocalBell: Clone + Send + Sync + 'static {
    /// Rings if the member sleeps or is about to; what was stored before is seen when it wakes.
    fn ring_if_asleep(&self);
}

/// A fabric that a host can sleep on.
pub trait HostFabric: Fabric {
    /// The bell that application threads of this process ring.
    type Bell: LocalBell;

    /// A bell for another thread.
    fn local_bell(&self) -> Self::Bell;

    /// Sleeps until somebody rings, at most so long. Only after [`Fabric::arm`] said yes and one more look
    /// for work found none. True if somebody rang.
    fn sleep(&mut self, timeout: Duration) -> bool;

    /// After how long without work a polling member does best to sleep: 1 ms, as in Spindle II-D.
    fn idle_time(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// Looks whether peers are still there. A system call a peer: for a timer, not for a loop. What it
    /// finds comes out of [`Fabric::poll`].
    fn check_peers(&mut self);

    /// Tells the peers that this member leaves on purpose. Without it, going counts as a failure. A fabric over
    /// a network waits, at most half a second, until what was posted has arrived.
    fn leave(&mut self);
}

/// Sleeps until somebody rings, at most `timeout`, unless there is work already; then steps once. Whether somebody rang,
/// and what the last step did.
///
/// What comes before the look between arming and sleeping is found by it; what comes after it rings (IDL-1).
pub(crate) fn sleep_unless_busy<D, F: HostFabric, P>(
    driven: &mut D,
    timeout: Duration,
    fabric: impl Fn(&mut D) -> &mut F,
    mut step: impl FnMut(&mut D) -> Result<P, Stopped>,
    is_idle: impl Fn(&P) -> bool,
) -> Result<(bool, P), Stopped> {
    let mut rung = true;
    if fabric(driven).arm() {
        let progress = step(driven)?;
        if !is_idle(&progress) {
            fabric(driven).disarm();
            return Ok((false, progress));
        }
        rung = fabric(driven).sleep(timeout);
    }
    fabric(driven).disarm();
    Ok((rung, step(driven)?))
}
