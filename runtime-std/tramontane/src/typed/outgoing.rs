//! This member's own commands and barriers on their way to the group.
//!
//! # Invariants
//! - All messages that this node sends are sent here, with the lock held or only by the hand-over
//!   thread. A node's messages are delivered in the order of sending, also across views. So the
//!   first unanswered waiter belongs to the next own message that is delivered.
//! - A waiter is queued before its message can be delivered.
//! - Every waiter is answered: by its message, by `end`, or by the hand-over thread if its message
//!   has no ordinal when the member ends.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use tramontane_runtime::group::{Fate, Ordinal, Sender};
use tramontane_runtime::member::Stopped;

use super::limits::ReplicatedOptions;
use super::not_answered::NotAnswered;
use super::pending::Pending;

/// The part that waits for one of this member's messages.
pub(super) enum Waiter<A> {
    Command(Arc<Pending<A>>),
    Barrier(Arc<Pending<()>>),
}

/// A message that has no slot yet.
pub(super) struct Unslotted<A> {
    pub(super) bytes: Vec<u8>,
    pub(super) waiter: Waiter<A>,
}

/// The state that proposing threads, the hand-over thread and the member share.
pub(super) struct Outgoing<A> {
    state: Mutex<OutgoingState<A>>,
    /// Signalled when the hand-over thread has work, and when the member has ended.
    changed: Condvar,
}

pub(super) struct OutgoingState<A> {
    /// `None` before the start, after the end, and at a node that does not send. It keeps the
    /// member's memory, and so the member must not keep it for longer than it runs.
    sender: Option<Sender>,
    options: ReplicatedOptions,
    /// Messages without a slot, in the order of proposal.
    pub(super) unslotted: VecDeque<Unslotted<A>>,
    unslotted_bytes: usize,
    /// The waiters of sent messages, in the order of sending, that the member has not taken.
    unanswered: VecDeque<Waiter<A>>,
    pub(super) ended: Option<Stopped>,
}

impl<A> Outgoing<A> {
    pub(super) const fn new(options: ReplicatedOptions) -> Self {
        let state = OutgoingState {
            sender: None,
            options,
            unslotted: VecDeque::new(),
            unslotted_bytes: 0,
            unanswered: VecDeque::new(),
            ended: None,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, OutgoingState<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition no longer holds. The end of the member is signalled.
    pub(super) fn wait_while(
        &self,
        mut is_so: impl FnMut(&OutgoingState<A>) -> bool,
    ) -> MutexGuard<'_, OutgoingState<A>> {
        let waited = self.changed.wait_while(self.lock(), |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to send.
    pub(super) fn begin(&self, sender: Sender) {
        let mut state = self.lock();
        if state.ended.is_none() {
            state.sender = Some(sender);
        }
    }

    /// Sends a message, or passes it to the hand-over thread. Never blocks. A waiter whose message
    /// cannot be sent is answered.
    pub(super) fn send(&self, bytes: Vec<u8>, waiter: Waiter<A>) {
        let mut state = self.lock();
        let refusal = match state.refusal(bytes.len()) {
            None if state.try_send(&bytes, &waiter) => return,
            None => {
                state.unslotted_bytes += bytes.len();
                state.unslotted.push_back(Unslotted { bytes, waiter });
                drop(state);
                self.changed.notify_one();
                return;
            }
            Some(refusal) => refusal,
        };
        drop(state);
        waiter.fail(refusal).into_iter().for_each(Waker::wake);
    }

    /// Returns whether messages of a running member wait for slots.
    pub(super) fn has_unslotted(&self) -> bool {
        let state = self.lock();
        state.ended.is_none() && !state.unslotted.is_empty()
    }

    /// Moves the waiters of sent messages to the end of `taken`.
    pub(super) fn take_unanswered(&self, taken: &mut VecDeque<Waiter<A>>) {
        taken.append(&mut self.lock().unanswered);
    }

    /// Queues the waiter of a message that is sent without the lock.
    pub(super) fn push_unanswered(&self, waiter: Waiter<A>) {
        self.lock().unanswered.push_back(waiter);
    }

    /// Notes that the member has ended. Answers the waiters of all sent messages: those in `taken`,
    /// and those that the member has not taken. Returns what is to be woken.
    pub(super) fn end(&self, taken: VecDeque<Waiter<A>>, why: &Stopped) -> Vec<Waker> {
        let mut state = self.lock();
        state.ended = Some(why.clone());
        let (sender, unanswered) = (state.sender.take(), std::mem::take(&mut state.unanswered));
        drop(state);
        self.changed.notify_all();
        let Some(sender) = sender else { return Vec::new() };
        let waiters = taken.into_iter().chain(unanswered);
        waiters.filter_map(|waiter| waiter.fail_by_fate(&sender, why)).collect()
    }
}

impl<A> OutgoingState<A> {
    /// Returns the reason why a message of this size cannot be accepted.
    fn refusal(&self, bytes: usize) -> Option<NotAnswered> {
        if let Some(stopped) = &self.ended {
            return Some(NotAnswered::NotSent(stopped.clone()));
        }
        let Some(sender) = &self.sender else { return Some(NotAnswered::NotASender) };
        let limit = sender.large_max().unwrap_or(0).max(sender.message_max());
        if bytes > limit {
            return Some(NotAnswered::TooLarge { bytes, limit });
        }
        let waiting = self.unslotted.len();
        let ReplicatedOptions { waiting_max, waiting_bytes_max } = self.options;
        let is_full = waiting >= waiting_max
            || waiting > 0 && self.unslotted_bytes.saturating_add(bytes) > waiting_bytes_max;
        is_full.then_some(NotAnswered::Overloaded { waiting })
    }

    /// Sends a message if no earlier one waits and a slot is free now.
    fn try_send(&mut self, bytes: &[u8], waiter: &Waiter<A>) -> bool {
        let Self { sender: Some(sender), unslotted, unanswered, .. } = self else { return false };
        if !unslotted.is_empty() || bytes.len() > sender.message_max() {
            return false;
        }
        let Ok(mut slot) = sender.try_reserve(bytes.len()) else { return false };
        slot.payload().copy_from_slice(bytes);
        unanswered.push_back(waiter.clone());
        waiter.sent(slot.commit());
        true
    }

    /// Sends the first messages that wait, as far as slots are free now.
    pub(super) fn send_unslotted(&mut self) {
        // Taken out, because a message is sent only if none waits before it.
        let mut unslotted = std::mem::take(&mut self.unslotted);
        while let Some(Unslotted { bytes, waiter }) = unslotted.front()
            && self.try_send(bytes, waiter)
        {
            self.unslotted_bytes -= bytes.len();
            unslotted.pop_front();
        }
        self.unslotted = unslotted;
    }

    /// Removes the first message that waits.
    pub(super) fn pop_unslotted(&mut self) -> Option<Unslotted<A>> {
        let first = self.unslotted.pop_front()?;
        self.unslotted_bytes -= first.bytes.len();
        Some(first)
    }

    /// Returns the bytes of the first message that waits, which keeps its place, and its waiter.
    pub(super) fn take_first_bytes(&mut self) -> Option<(Vec<u8>, Waiter<A>)> {
        let first = self.unslotted.front_mut()?;
        let bytes = std::mem::take(&mut first.bytes);
        self.unslotted_bytes -= bytes.len();
        Some((bytes, first.waiter.clone()))
    }

    /// Queues the waiter of a message whose slot is committed before the lock is released.
    pub(super) fn expect(&mut self, waiter: Waiter<A>) {
        self.unanswered.push_back(waiter);
    }
}

impl<A> Waiter<A> {
    pub(super) fn sent(&self, ordinal: Ordinal) {
        match self {
            Self::Command(pending) => pending.sent(ordinal),
            Self::Barrier(pending) => pending.sent(ordinal),
        }
    }

    pub(super) fn wake(&self) {
        match self {
            Self::Command(pending) => pending.wake(),
            Self::Barrier(pending) => pending.wake(),
        }
    }

    pub(super) fn fail(&self, why: NotAnswered) -> Option<Waker> {
        match self {
            Self::Command(pending) => pending.answer(Err(why)),
            Self::Barrier(pending) => pending.answer(Err(why)),
        }
    }

    /// Answers with the message's fate after the end. A message without an ordinal is left to the
    /// hand-over thread.
    pub(super) fn fail_by_fate<K>(&self, sender: &Sender<K>, why: &Stopped) -> Option<Waker> {
        let ordinal = match self {
            Self::Command(pending) => pending.ordinal(),
            Self::Barrier(pending) => pending.ordinal(),
        };
        self.fail(match sender.receipt(ordinal?).fate() {
            Fate::NotSent => NotAnswered::NotSent(why.clone()),
            Fate::Delivered | Fate::UnderWay | Fate::Unknown => NotAnswered::Unknown(why.clone()),
        })
    }
}

impl<A> Clone for Waiter<A> {
    fn clone(&self) -> Self {
        match self {
            Self::Command(pending) => Self::Command(Arc::clone(pending)),
            Self::Barrier(pending) => Self::Barrier(Arc::clone(pending)),
        }
    }
}
