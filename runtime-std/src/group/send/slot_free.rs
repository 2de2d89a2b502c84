//! Waiting for a free slot as a task, without blocking a thread.
//!
//! # Invariants
//! - A task is woken after a slot has become free, a view has begun or ended, or the member has
//!   ended. It then tries again, because another sender may have taken the slot.
//! - A wait that begins while a slot becomes free is woken too. The engine notes that slots have
//!   become free until it has seen a waiting task, and the registration rings for a step.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use tramontane_core::smc::ReserveError;

use super::receipt::Receipt;
use super::send_state::SendState;
use super::sender::Sender;
use crate::member::{SendError, Stopped};

/// The wait until a slot may be free: see [`Sender::slot_free`]. A future, which works with any
/// executor.
#[must_use = "nothing is waited for before it is awaited"]
pub struct SlotFree {
    state: Arc<SendState>,
    /// The number of changes of the view's ring when the sender last looked.
    turns: u64,
    /// The registration of the waiting task.
    key: Option<u64>,
}

impl<K> Sender<K> {
    /// Returns a future that ends when a slot may be free. Await it after
    /// [`try_reserve`](Sender::try_reserve) has found none, and then try again. It also ends when
    /// the member has ended.
    pub fn slot_free(&self) -> SlotFree {
        SlotFree { state: Arc::clone(&self.state), turns: self.turns(), key: None }
    }

    /// Sends a copy of `message`, and waits for a slot without blocking the thread, even across
    /// view changes. If the caller steps the member, another task or thread must step it during the
    /// wait.
    ///
    /// # Errors
    /// Returns [`SendError`]; in that case, nothing has been sent. Never
    /// [`SendError::TimedOut`].
    pub async fn send_async(&mut self, message: &[u8]) -> Result<Receipt<K>, SendError> {
        loop {
            let sent = self.try_reserve(message.len()).map(|mut slot| {
                slot.payload().copy_from_slice(message);
                slot.commit()
            });
            match sent {
                Ok(ordinal) => return Ok(self.receipt(ordinal)),
                Err(ReserveError::TooLarge { length, limit }) => {
                    return Err(SendError::TooLarge { length, limit });
                }
                // Another thread has just taken a slot, so there may be another one.
                Err(ReserveError::Contended) => std::hint::spin_loop(),
                Err(ReserveError::Full) if self.state.counts.has_ended() => {
                    return Err(self.state.ending.stopped().unwrap_or(Stopped::Closed).into());
                }
                Err(ReserveError::Full) => self.slot_free().await,
            }
        }
    }
}

impl SlotFree {
    /// Returns whether the sender must look again, whatever the slots are.
    fn has_changed(&self) -> bool {
        self.state.counts.has_ended() || self.state.turns.load(Ordering::Acquire) != self.turns
    }
}

impl Future for SlotFree {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.key.is_some_and(|key| !self.state.counts.is_awaiting_slot(key)) {
            return Poll::Ready(());
        }
        self.key = Some(self.state.counts.wait_for_slot(self.key, context.waker()));
        if self.has_changed() {
            return Poll::Ready(());
        }
        self.state.ring();
        Poll::Pending
    }
}

impl Drop for SlotFree {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.state.counts.forget_slot(key);
        }
    }
}

impl std::fmt::Debug for SlotFree {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SlotFree").finish_non_exhaustive()
    }
}
