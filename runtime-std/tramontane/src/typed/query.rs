//! A linearizable query, which a caller waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::copy::Shared;
use super::not_answered::NotAnswered;
use super::pending::Pending;
use super::state_machine::StateMachine;

/// A query that reads this member's copy once its barrier has arrived through the group's order. A
/// future, which works with any executor; a thread [waits](Query::wait).
#[must_use = "nothing is read before it is waited for or awaited"]
pub struct Query<M: StateMachine, F> {
    pub(super) barrier: Pending<M::Answer>,
    pub(super) shared: Arc<Shared<M>>,
    pub(super) read: Option<F>,
}

impl<M: StateMachine, R, F: FnOnce(&M) -> R> Query<M, F> {
    /// Waits for the barrier, for at most `timeout`, and then reads.
    ///
    /// # Errors
    /// [`NotAnswered`]. The query has then read nothing.
    pub fn wait(self, timeout: Duration) -> Result<R, NotAnswered> {
        let outgoing = Arc::clone(self.barrier.outgoing());
        outgoing.count_wait();
        outgoing.wait(self, timeout).unwrap_or(Err(NotAnswered::TimedOut(timeout)))
    }
}

// Nothing borrows from `read`.
impl<M: StateMachine, F> Unpin for Query<M, F> {}

impl<M: StateMachine, R, F: FnOnce(&M) -> R> Future for Query<M, F> {
    type Output = Result<R, NotAnswered>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { barrier, shared, read } = &mut *self;
        match ready!(barrier.poll(context)) {
            Ok(_) => match read.take() {
                Some(read) => Poll::Ready(shared.read(|state| read(&state.machine))),
                None => Poll::Pending,
            },
            Err(NotAnswered::NotSent(why) | NotAnswered::Unknown(why)) => {
                Poll::Ready(Err(NotAnswered::NotRead(why)))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<M: StateMachine, F> std::fmt::Debug for Query<M, F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Query").finish_non_exhaustive()
    }
}
