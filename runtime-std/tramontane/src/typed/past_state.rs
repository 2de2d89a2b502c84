//! The waits for the state at a time, and for the durability of a version.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::copy::Shared;
use super::not_answered::NotAnswered;
use super::pending::Pending;
use super::proposal::Durable;
use super::state_machine::StateMachine;
use super::versioned::StateVersion;

/// The state at a time, once no command can be applied with an earlier time. A future, which works
/// with any executor; a thread [waits](StateAtTime::wait).
#[must_use = "nothing is read before it is waited for or awaited"]
pub struct StateAtTime<M: StateMachine> {
    pub(super) barrier: Pending<M::Answer>,
    pub(super) shared: Arc<Shared<M>>,
    pub(super) time_us: u64,
}

impl<M: StateMachine> StateAtTime<M> {
    /// Waits for at most `timeout`.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub fn wait(self, timeout: Duration) -> Result<M, NotAnswered> {
        let outgoing = Arc::clone(self.barrier.outgoing());
        outgoing.count_wait();
        outgoing.wait(self, timeout).unwrap_or(Err(NotAnswered::TimedOut(timeout)))
    }
}

// Nothing borrows from the barrier.
impl<M: StateMachine> Unpin for StateAtTime<M> {}

impl<M: StateMachine> Future for StateAtTime<M> {
    type Output = Result<M, NotAnswered>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(match ready!(self.barrier.poll(context)) {
            Ok(_) => self.shared.state_at_time(self.time_us),
            Err(NotAnswered::NotSent(why) | NotAnswered::Unknown(why)) => {
                Err(NotAnswered::NotRead(why))
            }
            Err(error) => Err(error),
        })
    }
}

/// The notice that a version is durable. A future, which works with any executor; a thread
/// [waits](DurableVersion::wait).
#[must_use = "the version may not be durable before it is waited for or awaited"]
pub struct DurableVersion<M: StateMachine> {
    pub(super) barrier: Pending<M::Answer>,
    pub(super) durable: Durable<M::Answer>,
    pub(super) version: StateVersion,
    pub(super) machine: PhantomData<fn() -> M>,
}

impl<M: StateMachine> DurableVersion<M> {
    /// Waits until the version is durable, for at most `timeout`, and returns it.
    ///
    /// # Errors
    /// [`NotAnswered`].
    pub fn wait(self, timeout: Duration) -> Result<StateVersion, NotAnswered> {
        let outgoing = Arc::clone(self.barrier.outgoing());
        outgoing.count_wait();
        outgoing.wait(self, timeout).unwrap_or(Err(NotAnswered::TimedOut(timeout)))
    }
}

// Nothing borrows from the barrier.
impl<M: StateMachine> Unpin for DurableVersion<M> {}

impl<M: StateMachine> Future for DurableVersion<M> {
    type Output = Result<StateVersion, NotAnswered>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { barrier, durable, version, .. } = &mut *self;
        Poll::Ready(match ready!(durable.poll(barrier, context)) {
            Ok(_) => Ok(*version),
            Err(NotAnswered::NotSent(why) | NotAnswered::Unknown(why)) => {
                Err(NotAnswered::NotDurable(why))
            }
            Err(error) => Err(error),
        })
    }
}

impl<M: StateMachine> std::fmt::Debug for StateAtTime<M> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StateAtTime").field("time_us", &self.time_us).finish_non_exhaustive()
    }
}

impl<M: StateMachine> std::fmt::Debug for DurableVersion<M> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DurableVersion").field("version", &self.version).finish_non_exhaustive()
    }
}
