//! Blocks: two-sided transfers of large pieces, for block multicast.
//!
//! The receiver says where a block goes before it comes, and few blocks at a time; the sender says
//! with each block a number of 32 bits. Whether the peer is ready is for the protocol to know
//! (RDM-4): a block that finds no receive may cost the connection.
//!
//! Between two nodes there are several *channels*, each with an order of its own: so several
//! transfers share a view, as each group of the paper has queue pairs of its own.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.2: "a data packet to carry an integer immediate
//! value", "each node will wait to receive a ready_for_block message from its target", "RDMC posts
//! only a few receives".
//!
//! Requirement: FAB-4.

use super::seam::Fabric;
use super::write::{Area, Token};
use crate::ids::{Rank, ViewId};

/// One of the ways that blocks go between two nodes. Both ends number it alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Channel(pub u16);

/// A channel to a peer of a view, or from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Way {
    /// The view.
    pub view: ViewId,
    /// Which channel of it.
    pub channel: Channel,
    /// The other end.
    pub peer: Rank,
}

/// How much a fabric takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BlockLimits {
    /// Channels: their numbers are below this.
    pub channels: u16,
    /// Receives that may be posted for one peer on one channel.
    pub receives_max: usize,
    /// Sends to one peer on one channel that may be posted and not done.
    pub sends_max: usize,
    /// Bytes of one block.
    pub bytes_max: usize,
}

/// What a fabric reports from [`Blocks::poll_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockEvent {
    /// A block has left: its memory may change. It says nothing of others (RDM-5).
    Sent {
        /// The receiver, the view and the channel.
        way: Way,
        /// What it was sent with.
        token: Token,
    },
    /// A block has come, whole.
    Received {
        /// The sender, the view and the channel.
        way: Way,
        /// What its receive was posted with.
        token: Token,
        /// The sender's number.
        immediate: u32,
        /// How many bytes it has.
        length: usize,
    },
}

/// A fabric that carries blocks.
///
/// # What every implementation keeps
/// - On one channel, blocks from one peer go into the receives for it in the order in which either
///   were posted.
/// - A block longer than its receive, or sent without one, loses the peer (`PeerLost`), never
///   memory.
/// - Events wait until they are polled; if they cannot, the call is `QueueFull`.
/// - No call blocks, and after a peer is lost or cut nothing more is reported of it.
/// - What is sent on several channels shares the medium: no channel waits until another has nothing
///   to send.
pub trait Blocks: Fabric {
    /// How much it takes; the same at every call.
    fn block_limits(&self) -> BlockLimits;

    /// Says where the next block from a peer goes: a piece of the own block memory.
    ///
    /// # Errors
    /// `QueueFull` if as many as may be are posted already; `OutOfRange` if there is no such
    /// channel, or it was closed; else as [`Fabric::post`].
    fn post_receive(
        &mut self,
        from: Way,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Sends a block from the own block memory, which must not change until
    /// [`BlockEvent::Sent`].
    ///
    /// # Errors
    /// As [`Blocks::post_receive`].
    fn send(
        &mut self,
        to: Way,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Ends a channel at this node, with all peers: nothing more is reported of it, and the memory
    /// of its blocks may change. Where a device writes by itself, a block that is on its way may
    /// still land in its receive: such memory is better freed than used again at once. What this
    /// node sent and a peer does not have yet arrives there as it was, or not at all. What still
    /// arrives here is dropped, and loses no peer. The channel is not used again in this view.
    /// Idempotent.
    fn close(&mut self, view: ViewId, channel: Channel);

    /// The next thing that became of a block, if any.
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
