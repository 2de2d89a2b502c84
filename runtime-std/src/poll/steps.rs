//! The single loop: the beginning and the end of every step of a member, or of a node of block
//! groups, and its sleep.
//!
//! # Invariants
//! - Nothing is stepped after an upcall has panicked or a step has failed (DEL-2).
//! - Work that arrives before the step between arming and sleeping is found by that step; work that
//!   arrives later rings (IDL-1).

use std::time::Duration;

use tramontane_core::fabric::Fabric as _;

use super::clock::Clock;
use super::ending::{Ending, guarded};
use crate::member::Stopped;
use tramontane_core::fabric::HostFabric;

/// The result of a step.
pub(crate) trait Done {
    /// Returns whether there was no work. Further steps would find none either until something
    /// arrives.
    fn is_idle(&self) -> bool;
}

/// A node that is stepped by its own thread, by waiting senders, or by its caller.
pub(crate) trait Steps: Send {
    /// The fabric in use.
    type Fabric: HostFabric;
    /// The result of a step.
    type Done: Done;

    /// Returns the fabric in use.
    fn fabric(&mut self) -> &mut Self::Fabric;

    /// Returns the clock that steps use.
    fn clock(&mut self) -> &mut Clock;

    /// Returns the cell that holds the reason for the node's end, once the node has ended.
    fn ending(&self) -> &Ending;

    /// Does a bounded amount of the work that is possible now. Runs within the guard against
    /// panics.
    fn work(&mut self) -> Result<Self::Done, Stopped>;

    /// Handles the requests of other threads. Called once per several steps, after the time has
    /// been read.
    fn take_requests(&mut self) -> Result<(), Stopped>;

    /// Publishes the node's status. Called after each check of the peers.
    fn show_status(&mut self) {}

    /// Returns the interval between checks of the peers, which is also the maximum time for which a
    /// lost process goes unnoticed.
    fn check_interval(&self) -> Duration;

    /// Returns the current maximum sleep.
    fn sleep_max(&self) -> Duration;

    /// Returns the time without work after which the node sleeps.
    fn idle_time(&self) -> Duration;

    /// Returns whether nothing is in flight.
    fn is_settled(&self) -> bool;

    /// Returns the number of writes posted so far, excluding heartbeats.
    fn writes(&self) -> u64;

    /// Ends the node for the reason `why`, unless it has already ended for an earlier one. Returns
    /// the reason that counts. Later calls do nothing.
    fn end(&mut self, why: Stopped) -> Stopped;

    /// Ends the node if it has not ended yet, and announces its departure to the peers. Later calls
    /// do nothing.
    fn leave(&mut self);
}

/// Runs one step. Never blocks.
#[inline]
pub(crate) fn step<S: Steps>(steps: &mut S) -> Result<S::Done, Stopped> {
    if steps.clock().is_reading_due() {
        begin_with_reading(steps)?;
    }
    match guarded(|| steps.work()) {
        Ok(done) => Ok(done),
        Err(why) => Err(end(steps, why)),
    }
}

#[cold]
fn begin_with_reading<S: Steps>(steps: &mut S) -> Result<(), Stopped> {
    if let Some(stopped) = steps.ending().stopped() {
        return Err(end(steps, stopped));
    }
    let interval = steps.check_interval();
    steps.clock().read();
    if steps.clock().is_check_due(interval) {
        steps.fabric().check_peers();
        steps.show_status();
    }
    guarded(|| steps.take_requests()).map_err(|why| end(steps, why))
}

/// Ends the node. A sender may still step it; each such step begins with a reading, which finds
/// that the node has ended.
#[cold]
fn end<S: Steps>(steps: &mut S, why: Stopped) -> Stopped {
    steps.clock().read_at_next_step();
    steps.end(why)
}

/// The outcome of a sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slept<D> {
    /// Whether a peer or a thread of this process rang, or there was work already.
    pub(crate) was_rung: bool,
    /// The result of the step that follows the sleep.
    pub(crate) done: D,
}

/// Sleeps until a bell rings, for at most `timeout`, unless there is already work; then steps once.
pub(crate) fn sleep<S: Steps>(steps: &mut S, timeout: Duration) -> Result<Slept<S::Done>, Stopped> {
    let timeout = timeout.min(steps.sleep_max());
    let mut was_rung = true;
    if steps.fabric().arm() {
        steps.clock().read_at_next_step();
        let done = step(steps)?;
        if !done.is_idle() {
            steps.fabric().disarm();
            return Ok(Slept { was_rung: false, done });
        }
        was_rung = steps.fabric().sleep(timeout);
    }
    steps.fabric().disarm();
    steps.clock().read_at_next_step();
    Ok(Slept { was_rung, done: step(steps)? })
}
