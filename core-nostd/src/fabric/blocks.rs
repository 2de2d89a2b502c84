//! Blocks: two-sided transfers of large pieces, for block multicast.
//!
//! The receiver says where a block goes before it comes, and few blocks at a time; the sender says with each
//! block a number of 32 bits. Whether the peer is ready is for the protocol to know (RDM-4): a block that
//! finds no receive may cost the connection.
//!
//! Source: RDMC (Behrens et al., DSN 2018), 4.2: "a data packet to carry an integer immediate value", "each
//! node will wait to receive a ready_for_block message from its target", "RDMC posts only a few receives".

use super::{Area, Fabric, Token};
use crate::ids::{Rank, ViewId};

/// How much a fabric takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct BlockLimits {
    /// Receives that may be posted for one peer.
    pub receives_max: usize,
    /// Bytes of one block.
    pub bytes_max: usize,
}

/// What a fabric reports from [`Blocks::poll_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum BlockEvent {
    /// A block has left: its memory may change. It says nothing of others (RDM-5).
    Sent {
        /// To whom.
        peer: Rank,
        /// What it was sent with.
        token: Token,
    },
    /// A block has come, whole.
    Received {
        /// From whom.
        peer: Rank,
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
/// - Blocks from one peer go into the receives for it in the order in which either were posted.
/// - A block longer than its receive, or sent without one, loses the peer (`PeerLost`), never memory.
/// - Events wait for whoever polls late; if they cannot, the call is `QueueFull`.
/// - No call blocks, and after a peer is lost or cut nothing more is reported of it.
pub trait Blocks: Fabric {
    /// How much it takes; the same at every call.
    fn block_limits(&self) -> BlockLimits;

    /// Says where the next block from a peer goes: a piece of the own block memory.
    ///
    /// # Errors
    /// `QueueFull` if as many as may be are posted already; else as [`Fabric::post`].
    fn post_receive(
        &mut self,
        view: ViewId,
        from: Rank,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// Sends a block from the own block memory, which must not change until
    /// [`BlockEvent::Sent`].
    ///
    /// # Errors
    /// As [`Fabric::post`].
    fn send(
        &mut self,
        view: ViewId,
        to: Rank,
        source: Area,
        length: usize,
        immediate: u32,
        token: Token,
    ) -> Result<(), Self::Error>;

    /// The next thing that became of a block, if any.
    fn poll_block(&mut self) -> Option<BlockEvent>;
}
