//! Delivery into a queue, for those who want to take messages at their own pace.
//!
//! Messages are copied into buffers that are used again, so that nothing is allocated once each has been as
//! large as the largest message. A queue that is full holds back delivery, and with it the group: that is
//! what keeps memory bounded.

use std::time::Duration;

use thingbuf::mpsc::blocking::{self, Receiver};
use tramontane_core::ids::{Place, Rank, SubgroupId};
use tramontane_core::multicast::{Application, Batch};

/// A delivered message, copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuedMessage {
    /// Which subgroup it belongs to.
    pub subgroup: SubgroupId,
    /// Its place in the delivery order.
    pub place: Place,
    /// Who sent it.
    pub rank: Rank,
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

/// A queue of at most `capacity` messages: the application to run a member with, and the end to take from.
#[must_use]
pub fn queue(capacity: usize) -> (impl Application + Send + 'static, QueueEnd) {
    let (sender, receiver) = blocking::with_recycle(capacity.max(1), Reuse);
    let application = move |batch: &mut Batch<'_>| {
        let subgroup = batch.subgroup();
        for message in batch {
            // Without a receiver nobody wants the message: it counts as delivered.
            let Ok(mut slot) = sender.send_ref() else { return };
            slot.subgroup = subgroup;
            slot.place = message.place;
            slot.rank = message.rank;
            slot.payload.clear();
            slot.payload.extend_from_slice(message.payload);
        }
    };
    (application, QueueEnd { receiver })
}

impl QueueEnd {
    /// Calls `with` on the next message, waiting for one at most `timeout`; nothing if none came, or if the
    /// member is gone.
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
