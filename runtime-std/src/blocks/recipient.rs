//! The application's callbacks for a group's messages.

use super::end::Ended;
use crate::block_transfer::buffer::Buffer;

/// One member's application in one group. Called from the node's polling thread, one call at a
/// time: a slow call delays all groups of the node.
pub trait Recipient: Send {
    /// Called when message number `message`, counted from 0, of at most `bytes` bytes in whole
    /// blocks begins to arrive. Returns a buffer of at least that size for it. `None` ends the
    /// group for all members, with [`Cause::NoMemory`]. Not called at the root.
    ///
    /// [`Cause::NoMemory`]: tramontane_core::rdmc::transfer::Cause::NoMemory
    fn incoming(&mut self, message: u64, bytes: usize) -> Option<Buffer>;

    /// Called when a message of `bytes` bytes is whole, at the start of its buffer. At the root,
    /// the buffer may be changed again. Says nothing about other members (RDM-5).
    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize);

    /// Called when the group is over. No call follows it.
    fn ended(&mut self, ended: &Ended) {
        let _ = ended;
    }
}
