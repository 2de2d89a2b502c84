//! Delivery into a queue, for an application that takes messages at its own pace.
//!
//! Messages are copied into reused buffers, so nothing is allocated once each buffer has grown to
//! the size of the largest message. A full queue holds back delivery, and therefore the whole
//! group, so that memory stays bounded.

use std::sync::mpsc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use tramontane_core::ids::{NodeId, Place, SubgroupId};

use super::application::Application;
use super::messages::Messages;

/// A delivered message, copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedMessage {
    /// The subgroup that the message belongs to.
    pub subgroup: SubgroupId,
    /// The message's place in the delivery order.
    pub place: Place,
    /// The node that sent the message.
    pub sender: NodeId,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// The end of the queue that messages are taken from.
pub struct QueueEnd {
    messages: Receiver<QueuedMessage>,
    /// Returns the buffers of taken messages to the application.
    used: SyncSender<Vec<u8>>,
}

/// Creates a queue of at most `capacity` messages. Returns the application to start a member with,
/// and the end to take messages from. If membership can change, the queue must not stay full for as
/// long as the group's failure timeout, or the other members remove this one.
#[must_use]
pub fn queue(capacity: usize) -> (impl Application + 'static, QueueEnd) {
    let capacity = capacity.max(1);
    let (queue, messages) = mpsc::sync_channel(capacity);
    // Each end holds one buffer in addition to the queued ones.
    let (used, unused) = mpsc::sync_channel::<Vec<u8>>(capacity + 2);
    let application = move |messages: &mut Messages<'_, '_>| {
        let subgroup = messages.subgroup();
        for message in messages {
            let mut payload = unused.try_recv().unwrap_or_default();
            payload.clear();
            payload.extend_from_slice(message.payload);
            let (place, sender) = (message.place, message.sender);
            // If the receiver has been dropped, the message counts as delivered.
            let Ok(()) = queue.send(QueuedMessage { subgroup, place, sender, payload }) else {
                return;
            };
        }
    };
    (application, QueueEnd { messages, used })
}

impl QueueEnd {
    /// Waits up to `timeout` for the next message, and calls `with` on it. Returns `None` if no
    /// message arrived or the member has ended.
    pub fn take<R>(&self, timeout: Duration, with: impl FnOnce(&QueuedMessage) -> R) -> Option<R> {
        let message = self.messages.recv_timeout(timeout).ok()?;
        let result = with(&message);
        // If the application has been dropped, the buffer is no longer needed.
        let _ = self.used.try_send(message.payload);
        Some(result)
    }
}

impl std::fmt::Debug for QueueEnd {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("QueueEnd").finish_non_exhaustive()
    }
}
