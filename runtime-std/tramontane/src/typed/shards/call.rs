//! The answers to a call, which its caller waits for.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use serde::de::DeserializeOwned;
use tramontane_core::ids::GroupId;

use super::call_queue::CallLimits;
use super::machine::answer_byte;
use super::no_answers::NoAnswers;
use crate::typed::encoding::decode;

/// The answer of one group, as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ShardAnswer {
    pub(super) group: GroupId,
    /// One of the values in `answer_byte`.
    pub(super) byte: u8,
    /// The length of the answer, of which at most the limit has arrived.
    pub(super) length: u64,
    pub(super) bytes: Vec<u8>,
}

type CallOutcome = Result<Vec<ShardAnswer>, NoAnswers>;

/// A call that is being waited for.
pub(super) struct CallEntry {
    outcome: Mutex<(Option<CallOutcome>, Option<Waker>)>,
    given: Condvar,
}

impl CallEntry {
    pub(super) fn new(outcome: Option<CallOutcome>) -> Arc<Self> {
        Arc::new(Self { outcome: Mutex::new((outcome, None)), given: Condvar::new() })
    }

    /// Ends the call.
    pub(super) fn give(&self, outcome: CallOutcome) {
        let mut state = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 = Some(outcome);
        let waker = state.1.take();
        drop(state);
        self.given.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A command that was proposed to some groups, whose answers are what applying it returned in each
/// of them. A future, which works with any executor; a thread [waits](ShardProposal::wait).
///
/// Dropping it abandons the answers. The command is still applied.
#[must_use = "the answers say whether the command is applied"]
pub struct ShardProposal<A> {
    call: Arc<CallEntry>,
    limits: Arc<CallLimits>,
    answers: PhantomData<fn() -> A>,
}

impl<A: DeserializeOwned> ShardProposal<A> {
    pub(super) const fn new(call: Arc<CallEntry>, limits: Arc<CallLimits>) -> Self {
        Self { call, limits, answers: PhantomData }
    }

    /// Waits for the answers, for at most `timeout`. Returns one answer per group.
    ///
    /// # Errors
    /// [`NoAnswers`]. After [`NoAnswers::TimedOut`], the command may still be applied.
    pub fn wait(self, timeout: Duration) -> Result<BTreeMap<GroupId, A>, NoAnswers> {
        let state = self.call.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.call.given.wait_timeout_while(state, timeout, |state| state.0.is_none());
        let outcome = waited.unwrap_or_else(PoisonError::into_inner).0.0.take();
        self.decoded(outcome.unwrap_or(Err(NoAnswers::TimedOut(timeout))))
    }

    fn decoded(&self, outcome: CallOutcome) -> Result<BTreeMap<GroupId, A>, NoAnswers> {
        outcome?.into_iter().map(|answer| Ok((answer.group, self.decoded_one(answer)?))).collect()
    }

    fn decoded_one(&self, answer: ShardAnswer) -> Result<A, NoAnswers> {
        let ShardAnswer { group, byte, length, bytes } = answer;
        let group = self.limits.places.group_name(group).to_owned();
        let why = || String::from_utf8_lossy(&bytes).into_owned();
        match byte {
            answer_byte::UNREAD => Err(NoAnswers::Unread { group, why: why() }),
            answer_byte::NOT_ENCODED => Err(NoAnswers::AnswerUnread { group, why: why() }),
            _ if length > bytes.len() as u64 => {
                let limit = self.limits.answer_max;
                Err(NoAnswers::AnswerTooLarge { group, bytes: length, limit })
            }
            _ => decode(&bytes)
                .map_err(|why| NoAnswers::AnswerUnread { group, why: why.to_string() }),
        }
    }
}

impl<A: DeserializeOwned> Future for ShardProposal<A> {
    type Output = Result<BTreeMap<GroupId, A>, NoAnswers>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.call.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match state.0.take() {
            Some(outcome) => {
                drop(state);
                Poll::Ready(self.decoded(outcome))
            }
            None => {
                let replaced = state.1.replace(context.waker().clone());
                drop(state);
                drop(replaced);
                Poll::Pending
            }
        }
    }
}

impl<A> std::fmt::Debug for ShardProposal<A> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ShardProposal").finish_non_exhaustive()
    }
}
