//! One message in progress at one member.

use super::lengths::Lengths;
use crate::fabric::Area;
use crate::ids::{Block, Rank, Step, index_from_u32};
use crate::rdmc::Schedule;

/// The memory for messages, and the reports about them.
///
/// All areas are in local block memory.
pub trait MessageMemory {
    /// Returns the destination of a message that begins, or `None` if there is no room, which ends
    /// the group. At most `bytes` bytes will arrive, in whole blocks.
    fn incoming(&mut self, number: u64, bytes: usize) -> Option<Area>;

    /// Copies a piece of a block, at most 64 KiB, from the staging block to its position in the
    /// message. Pieces come in ascending order.
    fn place(&mut self, from: Area, to: Area, length: usize);

    /// Reports that a message of `bytes` bytes is complete. At this member its memory may change
    /// from then on; the report says nothing about other members (RDM-5). At the root, it concerns
    /// a message that the root sent.
    fn completed(&mut self, number: u64, bytes: usize);
}

/// A first block that is being copied from the staging block into its message, and the number of
/// bytes copied so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) block: Block,
    pub(super) placed: usize,
}

/// The remaining work on a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct MovingMessage {
    pub(super) schedule: Schedule,
    pub(super) area: Area,
    pub(super) lengths: Lengths,
    /// Number of blocks that have not arrived.
    pub(super) missing: u32,
    pub(super) staged: Option<Staged>,
    /// Step whose receive is examined next.
    pub(super) receive: Step,
    /// Next send to examine: its step, and its index among the two sends of that step.
    pub(super) send: (Step, usize),
    /// Step after the last send or receive.
    pub(super) end: Step,
}

impl MovingMessage {
    /// Creates a message at its root.
    pub(super) fn own(schedule: Schedule, area: Area, lengths: Lengths) -> Self {
        let (start, end) = schedule.part(Rank::ZERO);
        Self {
            schedule,
            area,
            lengths,
            missing: 0,
            staged: None,
            receive: end,
            send: (start, 0),
            end,
        }
    }

    /// Creates a message whose first block has arrived, in step `first`.
    pub(super) fn incoming(
        schedule: Schedule,
        area: Area,
        lengths: Lengths,
        own: Rank,
        (first, block): (Step, Block),
    ) -> Self {
        let (start, end) = schedule.part(own);
        let missing = schedule.shape().last_block();
        let (receive, staged) = (first.next(), Some(Staged { block, placed: 0 }));
        Self { schedule, area, lengths, missing, staged, receive, send: (start, 0), end }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.schedule.shape().blocks.get()
    }

    /// Returns the destination of a block.
    pub(super) fn place_of(&self, block: Block, block_bytes: usize) -> Area {
        // The sum cannot saturate: the size of the whole message was checked before it began.
        let inside = index_from_u32(block.0).saturating_mul(block_bytes);
        Area { offset: self.area.offset.saturating_add(inside), ..self.area }
    }

    /// Returns whether every block has arrived and everything has been handed to the fabric.
    pub(super) fn is_through(&self) -> bool {
        self.missing == 0 && self.staged.is_none() && self.send.0 >= self.end
    }

    /// Returns the number of steps that the message adds to the group's count: those of the
    /// schedule, plus one for the receive of the first block.
    pub(super) fn counted(&self) -> u64 {
        self.schedule.steps().saturating_add(1)
    }
}
