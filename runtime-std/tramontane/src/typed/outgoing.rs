//! This member's own commands and barriers on their way to the group.
//!
//! A message gets a slot at once if one is free and no earlier message waits. Otherwise it waits,
//! and one of these sends it: a thread that waits for an answer, which steps the member in the
//! meantime; the member itself, when it delivers; or the hand-over thread.
//!
//! # Invariants
//! - Messages are sent with the lock held, or by the hand-over thread if a large message is the
//!   first that waits. A node's messages are delivered in the order of sending, also across views.
//!   So the first entry of `in_flight` belongs to the next own message that is delivered.
//! - An entry is in `in_flight` before its message can be delivered.
//! - Every entry is answered: by its message, by `end`, or by the hand-over thread if its message
//!   is large and has no ordinal when the member ends.
//! - While messages wait, the hand-over thread is not idle. While it waits for such messages, its
//!   state is `Idle`, so that the next message wakes it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use tramontane_runtime::group::{Fate, MemberSteps, Ordinal, Sender};
use tramontane_runtime::member::Stopped;

use super::answers::{AnswerOutcome, AnswerTable, Key};
use super::limits::ReplicatedOptions;
use super::not_answered::NotAnswered;
use super::pending::Pending;
use super::reading::is_reading;
use super::unslotted::Unslotted;

/// The number of messages of this member on their way from which a waiting thread steps the member.
/// With fewer, it parks, because the member's own thread then also serves the other members as soon
/// as something arrives.
const STEP_FROM: usize = 16;

/// The state that proposing threads, the hand-over thread and the member share.
pub(super) struct Outgoing<A> {
    state: Mutex<OutgoingState<A>>,
    /// Signalled when the hand-over thread is needed, and when the member has ended.
    changed: Condvar,
    /// The number of waits by threads. Some may go uncounted.
    waits: AtomicU64,
}

pub(super) struct OutgoingState<A> {
    /// `None` before the start, after the end, and at a node that does not send. It keeps the
    /// member's memory, and so the member must not keep it for longer than it runs.
    sender: Option<Sender>,
    /// Steps the member, as long as there is a sender.
    stepping: MemberSteps,
    options: ReplicatedOptions,
    pub(super) answers: AnswerTable<A>,
    /// Messages without a slot, in the order of proposal.
    pub(super) unslotted: Unslotted,
    /// The entries of sent messages, in the order of sending, that have not been delivered here.
    in_flight: VecDeque<Key>,
    pub(super) hand_over: HandOverState,
    /// The number of waits at the last delivery.
    waits_seen: u64,
    pub(super) ended: Option<Stopped>,
    /// The tasks that wait for the end.
    end_wakers: Vec<Waker>,
}

/// The hand-over thread's occupation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandOverState {
    /// No message waits.
    Idle,
    /// Others may be sending the messages that wait.
    Watching,
    /// Told that nobody else sends them.
    Needed,
    Sending,
}

impl<A> Outgoing<A> {
    pub(super) fn new(options: ReplicatedOptions) -> Arc<Self> {
        let state = OutgoingState {
            sender: None,
            stepping: MemberSteps::default(),
            options,
            answers: AnswerTable::new(),
            unslotted: Unslotted::new(),
            in_flight: VecDeque::new(),
            hand_over: HandOverState::Idle,
            waits_seen: 0,
            ended: None,
            end_wakers: Vec::new(),
        };
        let (changed, waits) = (Condvar::new(), AtomicU64::new(0));
        Arc::new(Self { state: Mutex::new(state), changed, waits })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, OutgoingState<A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the condition no longer holds. The end of the member is signalled.
    pub(super) fn wait_while(
        &self,
        mut is_so: impl FnMut(&mut OutgoingState<A>) -> bool,
    ) -> MutexGuard<'_, OutgoingState<A>> {
        let waited = self.changed.wait_while(self.lock(), |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in the hand-over thread until a message waits for a slot or the member has ended.
    pub(super) fn await_unslotted(&self) -> MutexGuard<'_, OutgoingState<A>> {
        self.wait_while(|state| {
            let is_idle = state.unslotted.is_empty() && state.ended.is_none();
            if is_idle {
                // Others may have sent the message that woke this thread. Then it is idle again.
                state.hand_over = HandOverState::Idle;
            }
            is_idle
        })
    }

    /// Waits in the same way, for at most `timeout`.
    pub(super) fn wait_timeout_while<'o>(
        &self,
        state: MutexGuard<'o, OutgoingState<A>>,
        timeout: Duration,
        mut is_so: impl FnMut(&OutgoingState<A>) -> bool,
    ) -> MutexGuard<'o, OutgoingState<A>> {
        let waited = self.changed.wait_timeout_while(state, timeout, |state| is_so(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Begins to send.
    pub(super) fn begin(&self, sender: Sender) {
        let mut state = self.lock();
        if state.ended.is_none() {
            state.stepping = sender.stepping();
            state.sender = Some(sender);
        }
    }

    /// Sends a message, or lets it wait for a slot. Never blocks. May take the
    /// bytes.
    pub(super) fn send(self: &Arc<Self>, bytes: &mut Vec<u8>, is_barrier: bool) -> Pending<A> {
        let mut state = self.lock();
        if let Some(key) = state.try_send(bytes, is_barrier) {
            drop(state);
            return Pending::new(Arc::clone(self), key);
        }
        if let Some(refusal) = state.refusal(bytes.len()) {
            drop(state);
            return Pending::refused(Arc::clone(self), refusal);
        }
        let key = state.answers.add(is_barrier);
        let is_needed = if state.is_large(bytes.len()) {
            state.unslotted.push_large(key, std::mem::take(bytes));
            state.hand_over != HandOverState::Sending
        } else {
            state.unslotted.push_small(key, bytes);
            state.hand_over == HandOverState::Idle
        };
        if is_needed {
            state.hand_over = HandOverState::Watching;
            drop(state);
            self.changed.notify_all();
        }
        Pending::new(Arc::clone(self), key)
    }

    /// Returns an answer and the number of its message, or registers the waker.
    pub(super) fn poll(
        &self,
        key: Key,
        waker: &Waker,
    ) -> Poll<Result<(Option<A>, Ordinal), NotAnswered>> {
        let mut state = self.lock();
        let Some((outcome, ordinal)) = state.answers.take(key) else {
            state.send_unslotted();
            let replaced = state.answers.register(key, waker);
            drop(state);
            // Dropping a waker may run its owner's code.
            drop(replaced);
            return Poll::Pending;
        };
        // The caller's own waker is dropped with the lock, but nothing is left of the answer.
        let (_, waker) = state.answers.release(key);
        drop(state);
        drop(waker);
        Poll::Ready(outcome.map(|answer| (answer, ordinal)).map_err(|why| *why))
    }

    /// Lets go of an entry whose answer nobody takes any longer.
    pub(super) fn abandon(&self, key: Key) {
        let mut state = self.lock();
        let left = state.answers.release(key);
        drop(state);
        drop(left);
    }

    /// Notes that a thread waits. Such threads send what waits for slots.
    pub(super) fn count_wait(&self) {
        let now = self.waits.load(Ordering::Relaxed).wrapping_add(1);
        self.waits.store(now, Ordering::Relaxed);
    }

    /// Waits for a future that waits for answers, for at most `timeout`. Steps the member in the
    /// meantime if it is busy.
    pub(super) fn wait<F: Future + Unpin>(
        &self,
        future: F,
        timeout: Duration,
    ) -> Option<F::Output> {
        let state = self.lock();
        let is_busy = state.in_flight.len() + state.unslotted.len() >= STEP_FROM;
        // The step of a thread that reads the state could not change the state.
        let stepping = match is_busy && !is_reading() {
            true => state.stepping.clone(),
            false => MemberSteps::default(),
        };
        drop(state);
        stepping.wait(future, timeout)
    }

    pub(super) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns the reason for the end, or registers the waker.
    pub(super) fn poll_end(&self, waker: &Waker) -> Poll<Stopped> {
        let mut state = self.lock();
        if let Some(why) = &state.ended {
            return Poll::Ready(why.clone());
        }
        if !state.end_wakers.iter().any(|registered| registered.will_wake(waker)) {
            state.end_wakers.push(waker.clone());
        }
        Poll::Pending
    }

    /// Returns whether messages of a running member wait for slots.
    pub(super) fn has_unslotted(&self) -> bool {
        let state = self.lock();
        state.ended.is_none() && !state.unslotted.is_empty()
    }

    /// Stores the answers to own messages that have been delivered, in their order. Leaves those
    /// that nobody waits for. Returns false if the messages were sent in another order.
    pub(super) fn answer(
        &self,
        answers: &mut [Option<AnswerOutcome<A>>],
        wakers: &mut Vec<Waker>,
    ) -> bool {
        let mut state = self.lock();
        for outcome in answers {
            let Some(key) = state.in_flight.pop_front() else { return false };
            let is_barrier = matches!(outcome, Some(Ok(None)));
            if state.answers.is_barrier(key) != is_barrier {
                return false;
            }
            wakers.extend(state.answers.give(key, outcome));
        }
        state.send_unslotted();
        let waits = self.waits();
        let is_waited = std::mem::replace(&mut state.waits_seen, waits) != waits;
        if state.hand_over == HandOverState::Watching && !is_waited && !state.unslotted.is_empty() {
            state.hand_over = HandOverState::Needed;
            drop(state);
            self.changed.notify_all();
        }
        true
    }

    /// Notes that the member has ended, and gives the reason to all who wait. Returns what is to be
    /// woken.
    pub(super) fn end(&self, why: &Stopped) -> Vec<Waker> {
        let mut state = self.lock();
        state.ended = Some(why.clone());
        state.stepping = MemberSteps::default();
        let (sender, in_flight) = (state.sender.take(), std::mem::take(&mut state.in_flight));
        let mut wakers = std::mem::take(&mut state.end_wakers);
        for key in in_flight {
            // The hand-over thread answers a message that has no ordinal yet.
            if let (Some(sender), Some(ordinal)) = (&sender, state.answers.ordinal(key)) {
                wakers.extend(state.answers.fail(key, fate(sender, ordinal, why)));
            }
        }
        state.fail_unslotted(why, &mut wakers);
        drop(state);
        self.changed.notify_all();
        // Returns the member's memory.
        drop(sender);
        wakers
    }
}

/// Returns the reason why a sent message that was not delivered has no answer.
pub(super) fn fate<K>(sender: &Sender<K>, ordinal: Ordinal, why: &Stopped) -> NotAnswered {
    match sender.receipt(ordinal).fate() {
        Fate::NotSent => NotAnswered::NotSent(why.clone()),
        Fate::Delivered | Fate::UnderWay | Fate::Unknown => NotAnswered::Unknown(why.clone()),
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
        let is_full = self.options.is_full(waiting, self.unslotted.bytes(), bytes);
        is_full.then_some(NotAnswered::Overloaded { waiting })
    }

    fn is_large(&self, bytes: usize) -> bool {
        self.sender.as_ref().is_none_or(|sender| bytes > sender.message_max())
    }

    /// Sends a message if no earlier one waits and a slot is free now.
    fn try_send(&mut self, bytes: &[u8], is_barrier: bool) -> Option<Key> {
        let Self { sender: Some(sender), unslotted, answers, in_flight, .. } = self else {
            return None;
        };
        if !unslotted.is_empty() || bytes.len() > sender.message_max() {
            return None;
        }
        let mut slot = sender.try_reserve(bytes.len()).ok()?;
        slot.payload().copy_from_slice(bytes);
        let key = answers.add(is_barrier);
        in_flight.push_back(key);
        answers.sent(key, slot.commit());
        Some(key)
    }

    /// Sends the first messages that wait, as far as slots are free now.
    pub(super) fn send_unslotted(&mut self) {
        let Self { sender: Some(sender), unslotted, answers, in_flight, .. } = self else { return };
        let most = u32::try_from(unslotted.small_first()).unwrap_or(u32::MAX);
        if most == 0 {
            return;
        }
        let Ok(mut run) = sender.try_reserve_run(most) else { return };
        while let Some((key, bytes)) = unslotted.first_small()
            && let Ok(Some(mut slot)) = run.next(bytes.len())
        {
            slot.payload().copy_from_slice(bytes);
            in_flight.push_back(key);
            answers.sent(key, slot.commit());
            unslotted.pop();
        }
    }

    /// Fails all messages that wait, because the member has ended. One that is being sent, and
    /// those after it, are left to the hand-over thread.
    pub(super) fn fail_unslotted(&mut self, why: &Stopped, wakers: &mut Vec<Waker>) {
        while let Some(key) = self.unslotted.pop_unless_sending() {
            wakers.extend(self.answers.fail(key, NotAnswered::NotSent(why.clone())));
        }
    }

    /// Notes that the first message that waits is being sent. It may be delivered before its
    /// ordinal is known.
    pub(super) fn expect(&mut self, key: Key) {
        self.in_flight.push_back(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type TestOutgoing = Outgoing<()>;

    fn push(outgoing: &TestOutgoing, state: &mut OutgoingState<()>) {
        let key = state.answers.add(false);
        state.unslotted.push_small(key, &mut vec![7]);
        state.hand_over = HandOverState::Watching;
        outgoing.changed.notify_all();
    }

    /// The thread is woken for a message that another thread sends before it gets the lock. A
    /// thread that then waited as `Watching` would never be woken again.
    #[test]
    fn thread_woken_for_nothing_is_idle_again() {
        let outgoing = TestOutgoing::new(ReplicatedOptions::default());
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| outgoing.await_unslotted().unslotted.len());
            for _ in 0..100 {
                let mut state = outgoing.lock();
                push(&outgoing, &mut state);
                state.unslotted.pop();
                drop(state);
                while outgoing.lock().hand_over != HandOverState::Idle {
                    assert!(!thread.is_finished());
                    std::thread::yield_now();
                }
            }
            push(&outgoing, &mut outgoing.lock());
            assert_eq!(thread.join().expect("no panic"), 1);
        });
    }
}
