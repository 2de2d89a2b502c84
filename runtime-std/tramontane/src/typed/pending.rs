//! The wait of a caller for the answer to its command or barrier.

use std::sync::Arc;
use std::task::{Context, Poll};

use tramontane_runtime::group::Ordinal;

use super::answers::Key;
use super::not_answered::NotAnswered;
use super::outgoing::Outgoing;

/// A command or barrier that has been handed over, or refused.
pub(super) struct Pending<A> {
    outgoing: Arc<Outgoing<A>>,
    held: AnswerSource,
}

enum AnswerSource {
    /// The entry of the answer.
    Awaited(Key),
    Refused(Box<NotAnswered>),
    Taken,
}

impl<A> Pending<A> {
    pub(super) const fn new(outgoing: Arc<Outgoing<A>>, key: Key) -> Self {
        Self { outgoing, held: AnswerSource::Awaited(key) }
    }

    pub(super) fn refused(outgoing: Arc<Outgoing<A>>, why: NotAnswered) -> Self {
        Self { outgoing, held: AnswerSource::Refused(Box::new(why)) }
    }

    /// Returns the answer and the number of its message, or registers the waker. The answer is
    /// returned once.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(Option<A>, Ordinal), NotAnswered>> {
        let AnswerSource::Awaited(key) = self.held else {
            return match std::mem::replace(&mut self.held, AnswerSource::Taken) {
                AnswerSource::Refused(why) => Poll::Ready(Err(*why)),
                _ => Poll::Pending,
            };
        };
        let taken = self.outgoing.poll(key, context.waker());
        if taken.is_ready() {
            self.held = AnswerSource::Taken;
        }
        taken
    }

    pub(super) const fn outgoing(&self) -> &Arc<Outgoing<A>> {
        &self.outgoing
    }
}

impl<A> Drop for Pending<A> {
    fn drop(&mut self) {
        if let AnswerSource::Awaited(key) = self.held {
            self.outgoing.abandon(key);
        }
    }
}
