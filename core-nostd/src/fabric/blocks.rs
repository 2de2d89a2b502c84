//! Blocks: two-sided transfers of large pieces, used by block multicast.
//!
//! The receiver posts the destination of each block before the block arrives, a few blocks ahead.
//! The sender attaches a 32-bit number to each block. The protocol must know whether the peer is
//! ready (RDM-4), because a block that finds no posted receive may break the connection.
//!
//! Two nodes share several *channels*, and each channel has an order of its own. Several transfers
//! can therefore share a view, just as each group in the paper has its own queue pairs.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.2: "a data packet to carry an integer immediate
//! value", "each node will wait to receive a ready_for_block message from its target", "RDMC posts
//! only a few receives".
//!
//! Requirement: FAB-4.

use super::seam::Fabric;
use super::write::{Area, Token};
use crate::ids::{Rank, ViewId};

/// A path for blocks between two nodes. Both ends use the same channel number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Channel(pub u16);

/// A channel to or from a peer of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Way {
    /// The view.
    pub view: ViewId,
    /// Channel within the view.
    pub channel: Channel,
    /// Peer at the other end.
    pub peer: Rank,
}

/// Limits of a fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BlockLimits {
    /// Number of channels. Channel numbers are below this number.
    pub channels: u16,
    /// Maximum number of receives that may be posted for one peer on one channel.
    pub receives_max: usize,
    /// Maximum number of outstanding sends to one peer on one channel.
    pub sends_max: usize,
    /// Largest block, in bytes.
    pub bytes_max: usize,
}

/// An event that a fabric reports from [`Blocks::poll_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockEvent {
    /// A block has left this node, so the memory that it was sent from may change. The event says
    /// nothing about other blocks (RDM-5).
    Sent {
        /// Receiver, view and channel.
        way: Way,
        /// Token that was passed to the send.
        token: Token,
    },
    /// A whole block has arrived.
    Received {
        /// Sender, view and channel.
        way: Way,
        /// Token that was passed when the receive was posted.
        token: Token,
        /// Number that the sender attached.
        immediate: u32,
        /// Block length in bytes.
        length: usize,
    },
}

/// A fabric that carries blocks.
///
/// # Requirements on implementations
/// - On one channel, blocks from one peer fill the receives for that peer. Both are matched in the
///   order in which they were posted.
/// - If a block is longer than its receive, or finds no receive, the peer is lost (`PeerLost`), but
///   no other memory is overwritten.
/// - Events are kept until they are polled. A call whose event could not be kept fails with
///   `QueueFull`.
/// - No call blocks. Nothing more is reported about a peer after it has been lost or cut.
/// - Channels share the medium: blocks on one channel do not wait until another channel has nothing
///   left to send.
pub trait Blocks: Fabric {
    /// Returns the limits of this fabric, which never change.
    fn block_limits(&self) -> BlockLimits;

    /// Posts the destination of the next block from a peer: a range of local block memory.
    ///
    /// # Errors
    /// Fails with `QueueFull` if the maximum number of receives has been posted, with `OutOfRange`
    /// if the channel does not exist or has been closed, and otherwise as [`Fabric::post`] does.
    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Sends a block from local block memory, which must not change until [`BlockEvent::Sent`] is
    /// reported.
    ///
    /// # Errors
    /// Fails as [`Blocks::post_receive`] does.
    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Closes a channel to all peers at this node. No more events are reported for the channel, and
    /// the memory of its blocks may change. If a device writes by itself, a block in flight may
    /// still land in its receive, so such memory should be freed rather than reused at once. A
    /// block that this node has sent and that a peer does not have yet arrives there unchanged or
    /// not at all. A block that still arrives at this node is dropped, and its sender is not lost.
    /// The channel is not used again in this view. Idempotent.
    fn close(&mut self, view: ViewId, channel: Channel);

    /// Returns the next block event, if any.
    fn poll_block(&mut self) -> Option<BlockEvent>;
}
