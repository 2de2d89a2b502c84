//! What a node hands messages to.
//!
//! Requirements: DEL-1, ORD-2.

use super::batch::{Batch, Message};
use crate::ids::Time;

/// What receives messages: the application's end of a node.
///
/// Closures over a batch are applications; wrap one over a message in [`EachMessage`].
pub trait Application {
    /// Takes everything that became deliverable in one subgroup, in order (DEL-1). Payloads are
    /// lent until the return; no slot of the batch is reused before. What is not taken from the
    /// batch is skipped.
    fn deliver(&mut self, batch: &mut Batch<'_>);

    /// Shows what was received and not delivered of a logged subgroup, up to the place where the
    /// view is about to be sealed, so that it can be made durable first (DUR-6). It counts as
    /// neither delivered nor ordered yet: [`Application::deliver`] comes later, or it never comes
    /// and another batch is shown, perhaps a shorter one, even one of nothing. Behind what was
    /// delivered, a log holds the messages of the last batch that was shown and no others. Payloads
    /// are lent until the return.
    #[cfg(feature = "durable")]
    fn append(&mut self, _batch: &mut Batch<'_>) {}

    /// The time now, asked for after each upcall of a node whose membership may change: if the
    /// upcall was long, the node posts a heartbeat before the next upcall begins (VIE-2). `step` is
    /// the time that the step was given, and the answer where all upcalls of a step take less than
    /// a heartbeat together.
    fn now(&mut self, step: Time) -> Time {
        step
    }
}

impl<F: FnMut(&mut Batch<'_>)> Application for F {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        self(batch);
    }
}

/// An application that is called once a message (DEL-1).
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
        // bound: the messages of the batch: one window for each sender
        for message in batch {
            (self.0)(message);
        }
    }
}
