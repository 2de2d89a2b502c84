//! The application's callbacks for a group's messages.

use super::end::Ended;
use crate::block_transfer::buffer::Buffer;

/// One member's application in a group. It is called from the node's polling thread, one call at a
/// time, so a slow call delays all groups of the node.
pub trait Recipient: Send {
    /// Called when message number `message`, counted from 0, begins to arrive. Returns a buffer for
    /// it of at least `bytes` bytes, which is the maximum size of the message in whole blocks.
    /// Returning `None` ends the group for all members, with [`Cause::NoMemory`]. Not called at the
    /// root.
    ///
    /// [`Cause::NoMemory`]: tramontane_core::rdmc::transfer::Cause::NoMemory
    fn incoming(&mut self, message: u64, bytes: usize) -> Option<Buffer>;

    /// Called when a message of `bytes` bytes is complete at the start of its buffer. At the root,
    /// the buffer may be changed again from then on. Implies nothing about other members (RDM-5).
    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize);

    /// Called when the group has ended. No call follows it.
    fn ended(&mut self, ended: &Ended) {
        let _ = ended;
    }
}
