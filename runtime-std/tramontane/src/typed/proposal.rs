//! The answer to a proposed command, which a caller waits for.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tramontane_runtime::group::{Logged, Ordinal, Receipt, Sender};
use tramontane_runtime::member::Stopped;

use super::not_answered::NotAnswered;
use super::pending::Pending;

/// The places where a command must be durable before its answer is returned. Each level includes
/// the levels before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// In this member's log, for which a sync has returned.
    Here,
    /// In the logs of a majority of the members.
    Majority,
    /// In the logs of all current members.
    Everywhere,
}

/// A proposed command, whose answer is what applying it at this member returned. A future, which
/// works with any executor; a thread [waits](Proposal::wait).
///
/// Dropping it abandons the answer. The command is still applied.
#[must_use = "the answer says whether the command is applied"]
pub struct Proposal<A> {
    pending: Pending<A>,
    durable: Option<Box<Durable<A>>>,
}

/// The wait until a command is durable, of whichever level.
type ReachedLevel = Pin<Box<dyn Future<Output = Result<(), Stopped>> + Send>>;

/// The second part of a wait: an answer, until its command is durable. A barrier has none.
pub(super) struct Durable<A> {
    durability: Durability,
    sender: Sender<Logged>,
    answer: Option<A>,
    reached: Option<ReachedLevel>,
}

impl<A> Proposal<A> {
    pub(super) const fn new(pending: Pending<A>) -> Self {
        Self { pending, durable: None }
    }

    pub(super) fn durable(mut self, durability: Durability, sender: Sender<Logged>) -> Self {
        self.durable = Some(Box::new(Durable::new(durability, sender)));
        self
    }

    /// Waits for the answer, for at most `timeout`.
    ///
    /// # Errors
    /// [`NotAnswered`]. After [`NotAnswered::TimedOut`], the command may still be applied.
    pub fn wait(mut self, timeout: Duration) -> Result<A, NotAnswered> {
        self.pending.outgoing().count_wait();
        if let Poll::Ready(answer) =
            Pin::new(&mut self).poll(&mut Context::from_waker(Waker::noop()))
        {
            return answer;
        }
        let outgoing = Arc::clone(self.pending.outgoing());
        outgoing.wait(self, timeout).unwrap_or(Err(NotAnswered::TimedOut(timeout)))
    }
}

// Nothing borrows from the answer.
impl<A> Unpin for Proposal<A> {}

impl<A> Future for Proposal<A> {
    type Output = Result<A, NotAnswered>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { pending, durable } = &mut *self;
        match durable {
            None => match ready!(pending.poll(context)) {
                Ok((Some(answer), _)) => Poll::Ready(Ok(answer)),
                // Only a barrier has no answer.
                Ok((None, _)) => Poll::Pending,
                Err(why) => Poll::Ready(Err(why)),
            },
            Some(durable) => match ready!(durable.poll(pending, context)) {
                Ok(Some(answer)) => Poll::Ready(Ok(answer)),
                Ok(None) => Poll::Pending,
                Err(why) => Poll::Ready(Err(why)),
            },
        }
    }
}

impl<A> Durable<A> {
    pub(super) const fn new(durability: Durability, sender: Sender<Logged>) -> Self {
        Self { durability, sender, answer: None, reached: None }
    }

    /// Returns the answer once the command or barrier is durable.
    pub(super) fn poll(
        &mut self,
        pending: &mut Pending<A>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<A>, NotAnswered>> {
        let reached = match &mut self.reached {
            Some(reached) => reached,
            empty => match ready!(pending.poll(context)) {
                Ok((answer, ordinal)) => {
                    self.answer = answer;
                    empty.insert(reached(&self.sender, ordinal, self.durability))
                }
                Err(error) => return Poll::Ready(Err(error)),
            },
        };
        let reached = ready!(reached.as_mut().poll(context));
        let answer = self.answer.take();
        Poll::Ready(reached.map(|()| answer).map_err(NotAnswered::NotDurable))
    }
}

/// Returns the wait until a message is durable.
fn reached(sender: &Sender<Logged>, ordinal: Ordinal, durability: Durability) -> ReachedLevel {
    let receipt: Receipt<Logged> = sender.receipt(ordinal);
    Box::pin(async move {
        match durability {
            Durability::Here => receipt.durable_here().await.map(drop),
            Durability::Majority => receipt.durable_majority().await.map(drop),
            Durability::Everywhere => receipt.durable_everywhere().await.map(drop),
        }
    })
}

impl<A> std::fmt::Debug for Proposal<A> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Proposal").finish_non_exhaustive()
    }
}
