//! Delivery into a queue, for an application that takes messages at its own pace.
//!
//! Messages are copied into buffers that are used again, so that nothing is allocated once each has
//! been as large as the largest message. A queue that is full holds back delivery, and with it the
//! group: that is what keeps memory bounded.

use std::time::Duration;

use thingbuf::mpsc::blocking::{self, Receiver};
use tramontane_core::ids::{NodeId, Place, SubgroupId};

use super::replica::{Messages, Replica};

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

/// Keeps the buffers of messages that were taken.
#[derive(Debug)]
struct Reuse;

impl thingbuf::Recycle<QueuedMessage> for Reuse {
    fn new_element(&self) -> QueuedMessage {
        QueuedMessage::default()
    }

    fn recycle(&self, message: &mut QueuedMessage) {
        message.payload.clear();
    }
}

/// The end that messages are taken from.
pub struct QueueEnd {
    receiver: Receiver<QueuedMessage, Reuse>,
}

/// A queue of at most `capacity` messages: the replica to start a member with, and the end to take
/// from. Where membership changes, a full queue must not last for as long as the group's failure
/// timeout: the others would remove this member.
#[must_use]
pub fn queue(capacity: usize) -> (impl Replica + 'static, QueueEnd) {
    let (sender, receiver) = blocking::with_recycle(capacity.max(1), Reuse);
    let replica = move |messages: &mut Messages<'_, '_>| {
        let subgroup = messages.subgroup();
        for message in messages {
            // Without a receiver the message counts as delivered.
            let Ok(mut slot) = sender.send_ref() else { return };
            slot.subgroup = subgroup;
            slot.place = message.place;
            slot.sender = message.sender;
            slot.payload.clear();
            slot.payload.extend_from_slice(message.payload);
        }
    };
    (replica, QueueEnd { receiver })
}

impl QueueEnd {
    /// Calls `with` on the next message, waiting for one at most `timeout`; nothing if none came,
    /// or if the member is gone.
    pub fn take<R>(&self, timeout: Duration, with: impl FnOnce(&QueuedMessage) -> R) -> Option<R> {
        let slot = self.receiver.recv_ref_timeout(timeout).ok()?;
        Some(with(&slot))
    }
}

impl std::fmt::Debug for QueueEnd {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("QueueEnd").finish_non_exhaustive()
    }
}
