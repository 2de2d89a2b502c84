//! A member that a polling thread drives.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Application;

use super::lent::Shared;
use super::sender::Sender;
use super::{Idle, Member, Stopped};
use crate::host::HostFabric;
use crate::poll::{Driven, Look, Poller};

/// What is stepped, by whoever has the turn.
struct Engine<F: HostFabric, A> {
    member: Member<F>,
    application: A,
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
        let poller = Poller::start(Engine { member, application }, shared.ending())?;
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

    /// Waits until all that was sent here is delivered everywhere and all that was seen is delivered here,
    /// at most `timeout`. True if it is.
    #[must_use]
    pub fn settle(&self, timeout: Duration) -> bool {
        self.poller.settle(timeout)
    }

    /// Writes posted so far: what a group that rests must not do. Waits for the turn, at most a step and an
    /// upcall.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.poller.look().writes
    }

    /// Ends the polling thread and leaves the group. What is under way is not waited for; see
    /// [`Polled::settle`].
    ///
    /// # Errors
    /// Why the member had stopped before, if it had.
    pub fn close(self) -> Result<(), Stopped> {
        self.poller.close()
    }
}

impl std::fmt::Debug for Polled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Polled").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}

impl<F, A> Driven for Engine<F, A>
where
    F: HostFabric + Send + 'static,
    A: Application + Send + 'static,
{
    type Bell = F::Bell;

    fn bell(&self) -> F::Bell {
        self.member.fabric.local_bell()
    }

    fn idle(&self) -> Idle {
        self.member.idle()
    }

    #[inline]
    fn step(&mut self) -> Result<bool, Stopped> {
        Ok(!self.member.step(&mut self.application)?.is_idle())
    }

    fn sleep(&mut self, timeout: Duration) -> Result<bool, Stopped> {
        Ok(!self.member.sleep(&mut self.application, timeout)?.is_idle())
    }

    fn look(&self) -> Look {
        Look { is_settled: self.member.is_settled(), writes: self.member.writes() }
    }

    fn leave(&mut self) {
        self.member.fabric.leave();
    }
}
