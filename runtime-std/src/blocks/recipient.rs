//! What an application is told of a group's messages.

use super::end::Ended;
use crate::block_transfer::buffer::Buffer;

/// One member's application in one group. Called from the node's polling thread, one call at a
/// time: who takes long holds up all groups of the node.
pub trait Recipient: Send {
    /// A message of at most `bytes` bytes, in whole blocks, begins; messages count from 0. Returns
    /// a buffer of at least that size for it. `None` ends the group for all members, with
    /// [`Cause::NoMemory`]. It is not called at the root.
    ///
    /// [`Cause::NoMemory`]: tramontane_core::rdmc::transfer::Cause::NoMemory
    fn incoming(&mut self, message: u64, bytes: usize) -> Option<Buffer>;

    /// A message of `bytes` bytes is whole, at the start of its buffer. At the root: what was sent
    /// may change again. It says nothing of other members (RDM-5).
    fn completed(&mut self, message: u64, buffer: Buffer, bytes: usize);

    /// The group is over. Nothing is told after this.
    fn ended(&mut self, ended: &Ended) {
        let _ = ended;
    }
}
