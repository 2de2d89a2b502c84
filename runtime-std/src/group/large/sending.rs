//! Sends large messages by block multicast, in the same order as all other messages (RDM-7).

use std::sync::Arc;
use std::time::Duration;

use super::limits::{DESCRIPTION_BYTES, describe};
use super::send_queue::QueuedBytes;
use crate::block_transfer::buffer::Buffer;
use crate::fabric::BlockMemoryError;
use crate::group::send::receipt::Receipt;
use crate::group::send::receipt::ordinal::Ordinal;
use crate::group::send::sender::Sender;
use crate::member::SendError;
use crate::poll::wait_driving;

/// The reason why a large message is not sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendLargeError {
    /// The subgroup does not allow large messages.
    #[error(
        "the subgroup does not allow large messages; set large_max in the group file of all members"
    )]
    NotAllowed,
    /// The message exceeds its buffer or the subgroup's limit.
    #[error(
        "a large message of {bytes} bytes exceeds the limit of {limit}; send a shorter message, or \
         raise large_max"
    )]
    TooLarge {
        /// Its bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// There is no memory for the message.
    #[error(transparent)]
    Memory(#[from] BlockMemoryError),
    /// An error that can occur for any message.
    #[error(transparent)]
    Send(#[from] SendError),
}

/// A large message that was not sent, with its buffer.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct LargeUnsent {
    /// The reason.
    pub why: SendLargeError,
    /// The buffer that was to be sent. `None` if it was lost when the member ended.
    pub buffer: Option<Buffer>,
}

impl<K> Sender<K> {
    /// Returns the maximum size of a large message in the subgroup, in bytes. `None` if large
    /// messages are not allowed.
    #[must_use]
    pub fn large_max(&self) -> Option<usize> {
        Some(self.state.large.as_ref()?.bytes_max)
    }

    /// Returns memory for a large message of `bytes` bytes. It may contain stale bytes of an
    /// earlier message.
    ///
    /// # Errors
    /// Returns [`SendLargeError::NotAllowed`], [`SendLargeError::TooLarge`] or
    /// [`SendLargeError::Memory`].
    pub fn buffer(&self, bytes: usize) -> Result<Buffer, SendLargeError> {
        let send_queue = self.state.large.as_ref().ok_or(SendLargeError::NotAllowed)?;
        if bytes > send_queue.bytes_max {
            return Err(SendLargeError::TooLarge { bytes, limit: send_queue.bytes_max });
        }
        Ok(send_queue.buffer(bytes)?)
    }

    /// Sends the first `bytes` bytes of a [buffer](Sender::buffer) as one message, in the same
    /// order as all other messages. The bytes travel by block multicast, while smaller messages
    /// pass in their slots. The message, and therefore this node's later messages, are delivered
    /// once all its bytes have arrived at all members. Waits at most `timeout` for room, that is,
    /// until this node has fewer large messages in flight than the subgroup's `large_window`.
    ///
    /// The buffer is kept until every member has delivered the message. [`Sender::buffer`] then
    /// reuses it.
    ///
    /// ```no_run
    /// # use tramontane_runtime::group::Sender;
    /// # fn send(mut sender: Sender) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut buffer = sender.buffer(16 << 20)?;
    /// buffer[..16 << 20].fill(7);
    /// let receipt = sender.send_large(buffer, 16 << 20, std::time::Duration::from_secs(10))?;
    /// println!("{:?}", receipt.fate());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns [`LargeUnsent`]; in that case, nothing has been sent.
    pub fn send_large(
        &mut self,
        buffer: Buffer,
        bytes: usize,
        timeout: Duration,
    ) -> Result<Receipt<K>, LargeUnsent> {
        let refused = |why, buffer| Err(LargeUnsent { why, buffer: Some(buffer) });
        let Some(limit) = self.large_max() else {
            return refused(SendLargeError::NotAllowed, buffer);
        };
        let limit = limit.min(buffer.len());
        if bytes > limit {
            return refused(SendLargeError::TooLarge { bytes, limit }, buffer);
        }
        let mut held = Some(buffer);
        if let Some(ordinal) = self.try_large(&mut held, bytes) {
            return Ok(self.receipt(ordinal));
        }
        let (driver, state) = (self.driver.clone(), Arc::clone(&self.state));
        let sent = wait_driving(driver.as_deref(), &state.ending, timeout, || {
            self.try_large(&mut held, bytes)
        });
        match sent {
            Ok(ordinal) => Ok(self.receipt(ordinal)),
            Err(error) => Err(LargeUnsent { why: error.into(), buffer: held }),
        }
    }

    /// Sends the held message if there is room now.
    fn try_large(&mut self, held: &mut Option<Buffer>, bytes: usize) -> Option<Ordinal> {
        let state = Arc::clone(&self.state);
        let turn = state.large.as_ref()?.enter()?;
        let mut slot = self.try_reserve(DESCRIPTION_BYTES).ok()?;
        slot.payload().copy_from_slice(&describe(bytes));
        // Queued before the slot is committed, so that a member that ends without delivering the
        // message finds its bytes.
        let queued = QueuedBytes { ordinal: slot.ordinal().0, buffer: held.take()?, bytes };
        match turn.hand_over(queued) {
            Ok(()) => Some(slot.commit_large()),
            Err(QueuedBytes { buffer, .. }) => {
                *held = Some(buffer);
                None
            }
        }
    }
}
