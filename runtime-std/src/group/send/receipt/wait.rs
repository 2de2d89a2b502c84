//! Waiting for a level: by a query, by a thread, or by a task.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::counts::WaiterKey;
use super::level::{Level, Reached};
use super::ordinal::Ordinal;
use crate::group::send::send_state::SendState;
use crate::member::Stopped;
use crate::poll::park;

/// The reason why a level has not been reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReached {
    /// The timeout passed. The level may still be reached.
    #[error(
        "the level was not reached within {0:?}, because a member or its disk is slow; allow more \
         time"
    )]
    TimedOut(Duration),
    /// The member has ended, so the outcome is unknown.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A message on its way to a level. A [`Receipt`](super::Receipt) returns one for each level. It is
/// a future, which works with any executor.
#[must_use = "nothing waits before it is asked, waited for or awaited"]
pub struct At<L: Level> {
    state: Arc<SendState>,
    ordinal: Ordinal,
    /// The registration of a waiting task.
    waiter: Option<WaiterKey>,
    level: PhantomData<fn() -> L>,
}

impl<L: Level> At<L> {
    pub(crate) fn new(state: &Arc<SendState>, ordinal: Ordinal) -> Self {
        Self { state: Arc::clone(state), ordinal, waiter: None, level: PhantomData }
    }

    /// Returns whether the message has reached the level, as far as this member knows.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        self.reached().is_some()
    }

    /// Returns the proof that the level has been reached, or `None` if it has not.
    #[must_use]
    pub fn reached(&self) -> Option<Reached<L>> {
        let is_reached = self.ordinal.0 < self.state.counts.get(L::COUNT);
        is_reached.then(|| Reached::new(self.state.subgroup, self.ordinal))
    }

    /// Waits for the level, for at most `timeout`. If the caller steps the member, another thread
    /// must step it during the wait.
    ///
    /// # Errors
    /// [`NotReached`].
    pub fn wait(mut self, timeout: Duration) -> Result<Reached<L>, NotReached> {
        let reached = park(&mut self, timeout).ok_or(NotReached::TimedOut(timeout))?;
        Ok(reached?)
    }

    fn look(&mut self, waker: &Waker) -> Poll<Result<Reached<L>, Stopped>> {
        if let Some(known) = self.known() {
            return Poll::Ready(known);
        }
        self.waiter = self.state.counts.wait(L::COUNT, self.ordinal.0, self.waiter, waker);
        match self.known() {
            Some(known) => Poll::Ready(known),
            None => {
                self.state.ring();
                Poll::Pending
            }
        }
    }

    /// Returns the outcome once it is certain.
    fn known(&self) -> Option<Result<Reached<L>, Stopped>> {
        // Read in this order, so that a level reached before the member ended counts as reached.
        let has_ended = self.state.counts.has_ended();
        let reached = self.reached().map(Ok);
        let stopped = || Err(self.state.ending.stopped().unwrap_or(Stopped::Closed));
        reached.or_else(|| has_ended.then(stopped))
    }
}

impl<L: Level> Future for At<L> {
    type Output = Result<Reached<L>, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.look(context.waker())
    }
}

impl<L: Level> Drop for At<L> {
    fn drop(&mut self) {
        if let Some(key) = self.waiter.take() {
            self.state.counts.forget(L::COUNT, key);
        }
    }
}

impl<L: Level> std::fmt::Debug for At<L> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("At")
            .field("level", &L::COUNT)
            .field("ordinal", &self.ordinal)
            .field("is_reached", &self.is_reached())
            .finish_non_exhaustive()
    }
}
