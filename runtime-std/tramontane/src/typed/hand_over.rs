//! The thread that sends large commands, and small ones that had no free slot if nobody else sends
//! them. So proposing never blocks.

use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane_runtime::group::{LargeUnsent, Ordinal, SendLargeError, Sender};
use tramontane_runtime::member::SendError;

use super::answers::Key;
use super::copy::Shared;
use super::not_answered::NotAnswered;
use super::outgoing::{HandOverState, OutgoingState, fate};
use super::state_machine::StateMachine;

/// The time after which a wait for a slot starts over.
const AGAIN: Duration = Duration::from_secs(1);

/// The minimum and maximum time for which the thread lets others send the commands that wait. It is
/// longer while no slot becomes free, because a member is stalled.
const WATCH_MIN: Duration = Duration::from_millis(1);
const WATCH_MAX: Duration = Duration::from_millis(32);

/// Starts the thread. It ends when the member has ended.
pub(super) fn start<M: StateMachine>(
    shared: &Arc<Shared<M>>,
    sender: Sender,
) -> std::io::Result<JoinHandle<()>> {
    let hand_over = HandOver { shared: Arc::clone(shared), sender };
    std::thread::Builder::new().name("tramontane-send".into()).spawn(move || hand_over.run())
}

struct HandOver<M: StateMachine> {
    shared: Arc<Shared<M>>,
    sender: Sender,
}

impl<M: StateMachine> HandOver<M> {
    fn run(mut self) {
        let mut watch = WATCH_MIN;
        loop {
            let shared = Arc::clone(&self.shared);
            let mut state = shared.outgoing.await_unslotted();
            if let Some(why) = state.ended.clone() {
                let mut wakers = Vec::new();
                state.fail_unslotted(&why, &mut wakers);
                drop(state);
                wakers.into_iter().for_each(Waker::wake);
                return;
            }
            if state.unslotted.is_large_first() {
                state.hand_over = HandOverState::Sending;
                drop(state);
                self.send_large();
                watch = WATCH_MIN;
                continue;
            }
            let waits = shared.outgoing.waits();
            state.hand_over = HandOverState::Watching;
            state = shared.outgoing.wait_timeout_while(state, watch, |state| {
                state.hand_over == HandOverState::Watching && is_small_waiting(state)
            });
            if is_small_waiting(&state) && shared.outgoing.waits() == waits {
                state.hand_over = HandOverState::Sending;
                drop(state);
                let is_progress = self.send_small();
                watch = if is_progress { WATCH_MIN } else { (watch * 2).min(WATCH_MAX) };
            } else {
                watch = WATCH_MIN;
            }
        }
    }

    /// Steps the member, and sends small messages, until none waits or a thread waits for an
    /// answer. Returns whether any was sent or need not be sent here.
    fn send_small(&self) -> bool {
        let outgoing = &self.shared.outgoing;
        let (waits, before) = (outgoing.waits(), outgoing.lock().unslotted.len());
        let sent = std::future::poll_fn(|_| {
            let mut state = outgoing.lock();
            state.send_unslotted();
            match is_small_waiting(&state) && outgoing.waits() == waits {
                true => Poll::Pending,
                false => Poll::Ready(()),
            }
        });
        // Nobody wakes this thread if it parks, and so it looks again soon.
        let sent = self.sender.stepping().wait(sent, 2 * WATCH_MIN);
        sent.is_some() || outgoing.lock().unslotted.len() < before
    }

    /// Sends the first message that waits as a large message.
    fn send_large(&mut self) {
        let shared = Arc::clone(&self.shared);
        // It stays in the queue without its bytes until it has been sent, so that others wait.
        let mut state = shared.outgoing.lock();
        let Some((key, bytes)) = state.unslotted.take_large_bytes() else { return };
        state.answers.hold(key);
        drop(state);
        let sent = self.send_large_bytes(key, bytes);
        let mut state = shared.outgoing.lock();
        state.unslotted.pop();
        let mut wakers = Vec::new();
        let why = match &sent {
            Ok(ordinal) => {
                state.answers.sent(key, *ordinal);
                state.ended.as_ref().map(|why| fate(&self.sender, *ordinal, why))
            }
            Err(why) => Some(why.clone()),
        };
        if let Some(why) = why
            && !state.answers.is_answered(key)
        {
            wakers.extend(state.answers.fail(key, why));
        }
        // It may have been answered before it was known to be sent.
        let (left, waker) = state.answers.release(key);
        drop(state);
        drop(left);
        wakers.into_iter().chain(waker).for_each(Waker::wake);
    }

    fn send_large_bytes(&mut self, key: Key, bytes: Vec<u8>) -> Result<Ordinal, NotAnswered> {
        let no_memory = |error: SendLargeError| NotAnswered::NoMemory(error.to_string());
        let length = bytes.len();
        let mut buffer = self.sender.buffer(length).map_err(no_memory)?;
        buffer[..length].copy_from_slice(&bytes);
        drop(bytes);
        self.shared.outgoing.lock().expect(key);
        loop {
            match self.sender.send_large(buffer, length, AGAIN) {
                Ok(receipt) => return Ok(receipt.ordinal()),
                Err(LargeUnsent {
                    why: SendLargeError::Send(SendError::TimedOut(_)),
                    buffer: Some(same),
                }) => buffer = same,
                // The size has been checked, so the member is ending.
                Err(_) => return Err(NotAnswered::NotSent(self.shared.wait_for_end())),
            }
        }
    }
}

/// Returns whether the first message that waits is small, and the member is running.
fn is_small_waiting<A>(state: &OutgoingState<A>) -> bool {
    state.ended.is_none() && !state.unslotted.is_empty() && !state.unslotted.is_large_first()
}
