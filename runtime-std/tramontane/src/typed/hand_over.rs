//! The thread that sends commands that had no free slot, and large commands. So proposing never
//! blocks.

use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane_runtime::group::{LargeUnsent, SendLargeError, Sender};
use tramontane_runtime::member::SendError;

use super::copy::Shared;
use super::not_answered::NotAnswered;
use super::outgoing::{Unslotted, Waiter};
use super::state_machine::StateMachine;

/// The time after which a wait for a slot starts over.
const AGAIN: Duration = Duration::from_secs(1);

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
        loop {
            let outgoing = &self.shared.outgoing;
            let mut state =
                outgoing.wait_while(|state| state.unslotted.is_empty() && state.ended.is_none());
            if let Some(why) = state.ended.clone() {
                let rest = std::mem::take(&mut state.unslotted);
                drop(state);
                for Unslotted { waiter, .. } in rest {
                    let waker = waiter.fail(NotAnswered::NotSent(why.clone()));
                    waker.into_iter().for_each(Waker::wake);
                }
                return;
            }
            state.send_unslotted();
            let Some(first) = state.unslotted.front() else { continue };
            let length = first.bytes.len();
            drop(state);
            // Only this thread removes from the queue, so the first one stays the first.
            if length > self.sender.message_max() {
                self.send_large();
            } else {
                self.send_small(length);
            }
        }
    }

    /// Sends the first message that waits, once it has a slot. Steps the member in the meantime.
    fn send_small(&mut self, length: usize) {
        match self.sender.reserve(length, AGAIN) {
            Ok(mut slot) => {
                let mut state = self.shared.outgoing.lock();
                if state.ended.is_some() {
                    return;
                }
                let Some(Unslotted { bytes, waiter }) = state.pop_unslotted() else { return };
                slot.payload().copy_from_slice(&bytes);
                state.expect(waiter.clone());
                waiter.sent(slot.commit());
            }
            Err(SendError::Stopped(_)) => drop(self.shared.wait_for_end()),
            Err(_) => {}
        }
    }

    /// Sends the first message that waits as a large message.
    fn send_large(&mut self) {
        let outgoing = &self.shared.outgoing;
        // It stays in the queue without its bytes until it has been sent, so that others wait.
        let Some((bytes, waiter)) = outgoing.lock().take_first_bytes() else { return };
        let sent = self.send_large_bytes(bytes, &waiter);
        let outgoing = &self.shared.outgoing;
        let mut state = outgoing.lock();
        let ended = state.ended.clone();
        drop(state.pop_unslotted());
        drop(state);
        let waker = match (sent, ended) {
            (Ok(()), Some(why)) => waiter.fail_by_fate(&self.sender, &why),
            (Ok(()), None) => None,
            (Err(why), _) => waiter.fail(why),
        };
        waker.into_iter().for_each(Waker::wake);
        // It may have been answered before it was known to be sent.
        waiter.wake();
    }

    fn send_large_bytes(
        &mut self,
        bytes: Vec<u8>,
        waiter: &Waiter<M::Answer>,
    ) -> Result<(), NotAnswered> {
        let no_memory = |error: SendLargeError| NotAnswered::NoMemory(error.to_string());
        let length = bytes.len();
        let mut buffer = self.sender.buffer(length).map_err(no_memory)?;
        buffer[..length].copy_from_slice(&bytes);
        drop(bytes);
        // The message may be delivered before its ordinal is known here.
        self.shared.outgoing.push_unanswered(waiter.clone());
        loop {
            match self.sender.send_large(buffer, length, AGAIN) {
                Ok(receipt) => {
                    waiter.sent(receipt.ordinal());
                    return Ok(());
                }
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
