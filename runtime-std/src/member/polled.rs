//! A member that a polling thread drives.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Application;
use tramontane_core::node::Progress;

use super::lent::Shared;
use super::sender::Sender;
use super::{Member, Stopped};
use crate::poll::{Clock, Done, Ending, Poller, Steps};
use tramontane_core::fabric::HostFabric;

/// What is stepped, by whoever has the turn.
struct Engine<F: HostFabric, A> {
    member: Member<F>,
    application: A,
    clock: Clock,
}

/// A running member. Dropping it closes it without waiting for what is under way.
pub struct Polled {
    poller: Poller,
    shared: Arc<Shared>,
}

impl Polled {
    pub(super) fn start<F, A>(member: Member<F>, application: A) -> std::io::Result<Self>
    where
        F: HostFabric + Send + 'static,
        A: Application + Send + 'static,
    {
        let shared = Arc::clone(&member.shared);
        let poller =
            Poller::start(Engine { member, application, clock: Clock::new() }, shared.ending())?;
        Ok(Self { poller, shared })
    }

    /// A handle to send in a subgroup, if this member does. Any thread may have one.
    #[must_use]
    pub fn sender(&self, subgroup: SubgroupId) -> Option<Sender> {
        Sender::new(&self.shared, subgroup, Some(Arc::clone(self.poller.driver())))
    }

    /// Why this member is no longer part of its group, if it is not.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.poller.stopped()
    }

    /// Waits until all that was sent here is delivered everywhere and all that was seen is
    /// delivered here, at most `timeout`. True if it is.
    #[must_use]
    pub fn settle(&self, timeout: Duration) -> bool {
        self.poller.settle(timeout)
    }

    /// Writes posted so far: what a group that rests must not do. Waits for the turn, at most a
    /// step and an upcall.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.poller.writes()
    }

    /// Ends the polling thread and leaves the group. What is under way is not waited for; see
    /// [`Polled::settle`].
    ///
    /// # Errors
    /// Why the member had stopped before, if it had.
    pub fn close(self) -> Result<(), Stopped> {
        match self.poller.close() {
            Stopped::Closed => Ok(()),
            stopped => Err(stopped),
        }
    }
}

impl std::fmt::Debug for Polled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Polled").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}

impl<F, A> Steps for Engine<F, A>
where
    F: HostFabric + Send + 'static,
    A: Application + Send + 'static,
{
    type Fabric = F;
    type Done = Progress;

    fn fabric(&mut self) -> &mut F {
        &mut self.member.fabric
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn ending(&self) -> &Ending {
        self.member.shared.ending()
    }

    #[inline]
    fn work(&mut self) -> Result<Progress, Stopped> {
        self.member.step(&mut self.application)
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        Ok(())
    }

    fn check_interval(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn sleep_max(&self) -> Duration {
        Duration::from_millis(200)
    }

    fn idle_time(&self) -> Duration {
        self.member.polled
    }

    fn is_settled(&self) -> bool {
        self.member.is_settled()
    }

    fn writes(&self) -> u64 {
        self.member.writes()
    }

    fn end(&mut self, why: Stopped) -> Stopped {
        self.member.shared.ending().stop(why)
    }

    fn leave(&mut self) {
        self.member.fabric.leave();
    }
}

impl Done for Progress {
    fn is_idle(&self) -> bool {
        Progress::is_idle(self)
    }
}
