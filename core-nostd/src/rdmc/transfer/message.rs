//! One message under way at one member.

use super::lengths::Lengths;
use crate::fabric::Area;
use crate::ids::{Block, Rank, Step, index_from_u32};
use crate::rdmc::Schedule;

/// Where messages are kept, and what becomes of them.
///
/// All areas are of the own block memory.
pub trait MessageMemory {
    /// A message begins of which at most `bytes` bytes will come: whole blocks. Where it goes;
    /// `None` if there is no room, which ends the group.
    fn incoming(&mut self, number: u64, bytes: usize) -> Option<Area>;

    /// Copies a piece of a block from the staging block to its place in the message; in rising
    /// order, 64 KiB at most.
    fn place(&mut self, from: Area, to: Area, length: usize);

    /// A message is whole, and has so many bytes. At this member its memory may change from now on;
    /// it says nothing of others (RDM-5). At the root: the same of what it sent.
    fn completed(&mut self, number: u64, bytes: usize);
}

/// A block that waits in the staging block for its place, and how much of it is there already.
#[derive(Clone, Copy, Debug)]
pub(super) struct Staged {
    pub(super) block: Block,
    pub(super) placed: usize,
}

/// What is to be done of a message, and with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    pub(super) schedule: Schedule,
    pub(super) area: Area,
    pub(super) lengths: Lengths,
    /// Blocks that did not come yet.
    pub(super) missing: u32,
    pub(super) staged: Option<Staged>,
    /// The step whose receive is looked at next.
    pub(super) receive: Step,
    /// The step whose send is looked at next, and which of its two.
    pub(super) send: (Step, usize),
    /// No sends and no receives from here on.
    pub(super) end: Step,
}

impl Message {
    /// A message that its root has.
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

    /// A message whose first block has come, in step `first`.
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

    /// Where a block belongs.
    pub(super) fn place_of(&self, block: Block, block_bytes: usize) -> Area {
        // Cannot saturate: the whole message's bytes were counted before it began.
        let inside = index_from_u32(block.0).saturating_mul(block_bytes);
        Area { offset: self.area.offset.saturating_add(inside), ..self.area }
    }

    /// Whether everything came and everything was handed to the fabric.
    pub(super) fn is_through(&self) -> bool {
        self.missing == 0 && self.staged.is_none() && self.send.0 >= self.end
    }

    /// How many steps the group's count goes up by: those of the schedule, and one for the first
    /// block of all.
    pub(super) fn counted(&self) -> u64 {
        self.schedule.steps().saturating_add(1)
    }
}
