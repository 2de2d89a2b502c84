//! Delivery into a queue, for an application that takes messages at its own pace.
//!
//! Messages are copied into buffers that are used again, so that nothing is allocated once each has
//! been as large as the largest message. A queue that is full holds back delivery, and with it the
//! group: that is what keeps memory bounded.

use std::sync::mpsc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use tramontane_core::ids::{NodeId, Place, SubgroupId};

use super::messages::Messages;
use super::replica::Replica;

/// A delivered message, copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Which subgroup it belongs to.
    pub subgroup: SubgroupId,
    /// Its place in the delivery order.
    pub place: Place,
    /// The node that sent it.
    pub sender: NodeId,
    /// The bytes.
    pub payload: Vec<u8>,
}

/// The end that messages are taken from.
pub struct QueueEnd {
    messages: Receiver<QueuedMessage>,
    /// The buffers of messages that were taken go back to the replica.
    used: SyncSender<Vec<u8>>,
}

/// A queue of at most `capacity` messages: the replica to start a member with, and the end to take
/// from. Where membership changes, a full queue must not last for as long as the group's failure
/// timeout: the others would remove this member.
#[must_use]
pub fn queue(capacity: usize) -> (impl Replica + 'static, QueueEnd) {
    let capacity = capacity.max(1);
    let (queue, messages) = mpsc::sync_channel(capacity);
    // Besides those that are queued, each end has one in its hands.
    let (used, unused) = mpsc::sync_channel::<Vec<u8>>(capacity + 2);
    let replica = move |messages: &mut Messages<'_, '_>| {
        let subgroup = messages.subgroup();
        for message in messages {
            let mut payload = unused.try_recv().unwrap_or_default();
            payload.clear();
            payload.extend_from_slice(message.payload);
            let (place, sender) = (message.place, message.sender);
            // Without a receiver the message counts as delivered.
            let Ok(()) = queue.send(QueuedMessage { subgroup, place, sender, payload }) else {
                return;
            };
        }
    };
    (replica, QueueEnd { messages, used })
}

impl QueueEnd {
    /// Calls `with` on the next message, waiting for one at most `timeout`; nothing if none came,
    /// or if the member is gone.
    pub fn take<R>(&self, timeout: Duration, with: impl FnOnce(&QueuedMessage) -> R) -> Option<R> {
        let message = self.messages.recv_timeout(timeout).ok()?;
        let result = with(&message);
        // Without a replica nobody needs the buffer.
        let _ = self.used.try_send(message.payload);
        Some(result)
    }
}

impl std::fmt::Debug for QueueEnd {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("QueueEnd").finish_non_exhaustive()
    }
}
