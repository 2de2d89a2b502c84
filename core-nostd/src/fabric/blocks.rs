//! Blocks: two-sided transfers of large pieces, used by block multicast.
//!
//! The receiver posts the destination of a block before the block arrives, for a few blocks at a
//! time. The sender attaches a 32-bit number to each block. The protocol must know whether the peer
//! is ready (RDM-4): a block that finds no posted receive may cost the connection.
//!
//! Two nodes share several *channels*, each with its own order. Several transfers can therefore
//! share a view, as each group in the paper has its own queue pairs.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.2: "a data packet to carry an integer immediate
//! value", "each node will wait to receive a ready_for_block message from its target", "RDMC posts
//! only a few receives".
//!
//! Requirement: FAB-4.

use super::seam::Fabric;
use super::write::{Area, Token};
use crate::ids::{Rank, ViewId};

/// A path for blocks between two nodes. Both ends use the same number for it.
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
    /// Number of channels. Channel numbers are below it.
    pub channels: u16,
    /// Most receives that may be posted for one peer on one channel.
    pub receives_max: usize,
    /// Most sends to one peer on one channel that may be outstanding.
    pub sends_max: usize,
    /// Largest block, in bytes.
    pub bytes_max: usize,
}

/// An event that a fabric reports from [`Blocks::poll_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockEvent {
    /// A block has left this node, so its memory may change. The event says nothing about other
    /// blocks (RDM-5).
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
        /// Token that was passed to the receive.
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
/// - A block that is longer than its receive, or that finds no receive, loses the peer (`PeerLost`)
///   but never overwrites other memory.
/// - Events wait until they are polled. If they cannot, the call returns `QueueFull`.
/// - No call blocks. Nothing more is reported about a peer after it was lost or cut.
/// - Blocks on different channels share the medium: no channel waits until another has nothing left
///   to send.
pub trait Blocks: Fabric {
    /// Returns the limits of this fabric; they are the same at every call.
    fn block_limits(&self) -> BlockLimits;

    /// Posts the destination of the next block from a peer: a range of local block memory.
    ///
    /// # Errors
    /// `QueueFull` if the maximum number of receives is already posted; `OutOfRange` if the channel
    /// does not exist or was closed; otherwise as [`Fabric::post`].
    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Sends a block from local block memory, which must not change until [`BlockEvent::Sent`].
    ///
    /// # Errors
    /// The same as for [`Blocks::post_receive`].
    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Closes a channel at this node, with all peers. Nothing more is reported of it, and the
    /// memory of its blocks may change. If a device writes on its own, a block in flight may still
    /// land in its receive, so such memory should be freed instead of being reused at once. A block
    /// that this node sent and a peer does not have yet arrives there unchanged or not at all. A
    /// block that still arrives here is dropped, and its sender is not lost. The channel is not
    /// used again in this view. Idempotent.
    fn close(&mut self, view: ViewId, channel: Channel);

    /// Returns the next block event, if any.
    fn poll_block(&mut self) -> Option<BlockEvent>;
}

impl<F: Blocks + ?Sized> Blocks for &mut F {
    fn block_limits(&self) -> BlockLimits {
        (**self).block_limits()
    }

    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), F::Error> {
        (**self).post_receive(from, into, length, token)
    }

    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), F::Error> {
        (**self).send(to, source, length, immediate, token)
    }

    fn close(&mut self, view: ViewId, channel: Channel) {
        (**self).close(view, channel);
    }

    fn poll_block(&mut self) -> Option<BlockEvent> {
        (**self).poll_block()
    }
}
