//! The one loop: what every step of a member, or of a node of block groups, begins and ends with,
//! and how it sleeps.
//!
//! # Invariants
//! - After an upcall panicked, or a step failed, nothing is stepped any more (DEL-2).
//! - What comes before the step between arming and sleeping is found by it; what comes after it
//!   rings (IDL-1).

use std::time::Duration;

use tramontane_core::fabric::Fabric as _;

use super::clock::Clock;
use super::ending::{Ending, guarded};
use crate::member::Stopped;
use tramontane_core::fabric::HostFabric;

/// What a step did.
pub(crate) trait Done {
    /// Nothing: another step would find nothing either until something comes.
    fn is_idle(&self) -> bool;
}

/// What is stepped: by a thread of its own, by senders that wait, or by its caller.
pub(crate) trait Steps: Send {
    /// The fabric below.
    type Fabric: HostFabric;
    /// What a step did.
    type Done: Done;

    /// The fabric below.
    fn fabric(&mut self) -> &mut Self::Fabric;

    /// The time, as steps are given it.
    fn clock(&mut self) -> &mut Clock;

    /// Why it ended, once it has.
    fn ending(&self) -> &Ending;

    /// Does what there is to do now: a bounded amount. Runs within the guard against panics.
    fn work(&mut self) -> Result<Self::Done, Stopped>;

    /// Once in many steps, after the time was read: takes what other threads ask.
    fn take_requests(&mut self) -> Result<(), Stopped>;

    /// After each check of the peers: shows how things stand.
    fn show_status(&mut self) {}

    /// From one check of the peers to the next: also how long a lost process may go unnoticed.
    fn check_interval(&self) -> Duration;

    /// The longest sleep now.
    fn sleep_max(&self) -> Duration;

    /// After how long without work it sleeps.
    fn idle_time(&self) -> Duration;

    /// Whether nothing is under way.
    fn is_settled(&self) -> bool;

    /// Writes posted so far, heartbeats left out.
    fn writes(&self) -> u64;

    /// Its part is over, for this reason or an earlier one, which it returns. Later calls do
    /// nothing.
    fn end(&mut self, why: Stopped) -> Stopped;

    /// Ends if it has not, and tells the peers that it goes. Later calls do nothing.
    fn leave(&mut self);
}

/// One step: never blocks.
#[inline]
pub(crate) fn step<S: Steps>(steps: &mut S) -> Result<S::Done, Stopped> {
    if steps.clock().is_reading_due() {
        begin_with_reading(steps)?;
    }
    match guarded(|| steps.work()) {
        Ok(done) => Ok(done),
        Err(why) => Err(steps.end(why)),
    }
}

#[cold]
fn begin_with_reading<S: Steps>(steps: &mut S) -> Result<(), Stopped> {
    if let Some(stopped) = steps.ending().stopped() {
        return Err(steps.end(stopped));
    }
    let interval = steps.check_interval();
    steps.clock().read();
    if steps.clock().is_check_due(interval) {
        steps.fabric().check_peers();
        steps.show_status();
    }
    guarded(|| steps.take_requests()).map_err(|why| steps.end(why))
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slept<D> {
    /// A peer, or a thread of this process, rang; or there was work already.
    pub(crate) was_rung: bool,
    /// What the step beside it did.
    pub(crate) done: D,
}

/// Sleeps until somebody rings, at most `timeout`, unless there is work already; then steps once.
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
