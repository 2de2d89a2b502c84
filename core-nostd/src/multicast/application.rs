//! The interface through which a node hands over messages.
//!
//! Requirements: DEL-1, ORD-2.

use super::batch::{Batch, Message};
use crate::ids::Time;

/// The receiver of messages: the application's end of a node.
///
/// Closures over a batch are applications; wrap a closure over a message in [`EachMessage`].
pub trait Application {
    /// Receives all messages of one subgroup that have become deliverable, in order (DEL-1).
    /// Payloads are lent until this call returns; no slot of the batch is reused before that.
    /// Messages left in the batch are skipped.
    fn deliver(&mut self, batch: &mut Batch<'_>);

    /// Shows the messages of a logged subgroup that were received but not delivered, up to the
    /// position where the view is about to be sealed, so that they can be made durable first
    /// (DUR-6). They are not delivered yet, and their order is not final. Either
    /// [`Application::deliver`] follows, or another batch is shown, which may be shorter or even
    /// empty. After the delivered messages, a log contains exactly the messages of the last batch
    /// shown. Payloads are lent until this call returns.
    #[cfg(feature = "durable")]
    fn append(&mut self, _batch: &mut Batch<'_>) {}

    /// Returns the current time after each upcall of a node whose membership may change. If the
    /// upcall was long, the node posts a heartbeat before the next one begins (VIE-2). `step` is
    /// the time that was passed to the step; returning it is sufficient if all upcalls of a step
    /// together take less than a heartbeat interval.
    fn now(&mut self, step: Time) -> Time {
        step
    }
}

impl<F: FnMut(&mut Batch<'_>)> Application for F {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        self(batch);
    }
}

/// An application that is called once per message (DEL-1).
///
/// ```
/// use tramontane_core::multicast::{EachMessage, Message};
/// let mut bytes = 0;
/// let application = EachMessage(|message: Message<'_>| bytes += message.payload.len());
/// # drop(application);
/// ```
#[derive(Debug)]
pub struct EachMessage<F>(pub F);

impl<F: FnMut(Message<'_>)> Application for EachMessage<F> {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        batch.for_each(&mut self.0);
    }
}
