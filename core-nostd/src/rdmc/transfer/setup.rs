//! The description of a group. It is the same at every member except for the memory, and is checked
//! before anything is posted.
//!
//! Requirement: RDM-5.

use crate::check::Checks;
use crate::fabric::{Area, Blocks, Channel, Promises, Token, ViewMemory};
use crate::ids::{Rank, Step, ViewId, index_from_u16, u16_from_index};
use crate::rdmc::{Algorithm, Schedule, ScheduleError, Shape};

/// Step in the token of a first block, whose real step is not known yet. Schedules have fewer steps
/// than this.
pub(super) const FIRST: Step = Step(u64::MAX);

pub(super) const fn token(step: Step) -> Token {
    Token(step.0)
}

pub(super) const fn step_of(token: Token) -> Step {
    Step(token.0)
}

/// Limits on outstanding receives and sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Window {
    /// Maximum number of receives that have been posted but not filled. With one, the port is idle
    /// until its notice arrives; with three, an early block may delay one that is not early
    /// (`docs/lab-notes/slow-links.md`).
    pub receives: u16,
    /// Maximum number of sends that have been posted but not completed. Two keep the port busy;
    /// with more, a block of a later step may share the port with a block of an earlier step.
    pub sends: u16,
}

impl Default for Window {
    /// Returns a window of two receives and two sends.
    fn default() -> Self {
        Self { receives: 2, sends: 2 }
    }
}

/// One member's description of a group.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'m> {
    /// View that the group belongs to, as the fabric knows it.
    pub view: ViewId,
    /// Channel of the group in the view; no other group uses it.
    pub channel: Channel,
    /// Members' ranks in the view, in the schedule's order: the first is the root.
    pub members: &'m [Rank],
    /// Algorithm of the schedule.
    pub algorithm: Algorithm,
    /// Size in bytes of every block except a message's last.
    pub block_bytes: usize,
    /// Offset of the group's cells in every row, a multiple of a cache line.
    pub cells: usize,
    /// Destination of a message's first block: `block_bytes` of local block memory that nothing
    /// else uses.
    pub staging: Area,
    /// Limits on outstanding receives and sends.
    pub window: Window,
    /// Whether the cells carry checks, as in the view's layout.
    pub checks: Checks,
}

/// Reason why a group cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum OpenError {
    /// The list of members is empty or too long, lists a member twice, or contains a rank that is
    /// not in the view.
    Members = 1,
    /// This node is not on the list.
    NotMember = 2,
    /// The algorithm does not fit the members.
    Schedule = 3,
    /// The block size is zero, or larger than the fabric accepts.
    BlockBytes = 4,
    /// A window is zero, or larger than the fabric accepts for one peer.
    Window = 5,
    /// The cells are outside a row, or not aligned to a cache line.
    Cells = 6,
    /// No memory was lent for the blocks of a message.
    NoWords = 7,
    /// The fabric does not promise order between writes: an old notice could replace a newer one.
    Unordered = 8,
    /// The fabric has no such channel.
    Channel = 9,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::Members => "the group's members must be members of the view, each once",
            Self::NotMember => "this node is not in the group's list of members",
            Self::Schedule => "there must not be more racks than members",
            Self::BlockBytes => {
                "a block must have at least one byte, and no more than the fabric accepts"
            }
            Self::Window => "a window must be at least one, and no more than the fabric accepts",
            Self::Cells => "the group's cells must begin on a cache line and be inside every row",
            Self::NoWords => "no word was lent for the blocks of a message; lend at least one",
            Self::Unordered => {
                "block groups need a fabric that keeps the order of writes to one peer"
            }
            Self::Channel => "the fabric has fewer channels; number the groups from zero",
        })
    }
}

impl core::error::Error for OpenError {}

impl Setup<'_> {
    /// Checks the description and returns the local index in the group.
    pub(super) fn check(
        &self,
        memory: &ViewMemory<'_>,
        fabric: &impl Blocks,
        words: usize,
    ) -> Result<Rank, OpenError> {
        let count = u16_from_index(self.members.len()).ok_or(OpenError::Members)?;
        let known = memory.members.len().min(memory.rows.len());
        let mut rest = self.members;
        // bound: the members
        while let [rank, later @ ..] = rest {
            if rank.index() >= known || later.contains(rank) {
                return Err(OpenError::Members);
            }
            rest = later;
        }
        let shape = Shape::new(count, 1).ok_or(OpenError::Members)?;
        match Schedule::new(self.algorithm, shape) {
            Ok(_) => {}
            Err(ScheduleError::EmptyRack) => return Err(OpenError::Schedule),
        }
        let limits = fabric.block_limits();
        if self.channel.0 >= limits.channels {
            return Err(OpenError::Channel);
        }
        if self.block_bytes == 0 || self.block_bytes > limits.bytes_max {
            return Err(OpenError::BlockBytes);
        }
        let Window { receives, sends } = self.window;
        let fits = |window: u16, most: usize| window > 0 && index_from_u16(window) <= most;
        if !fits(receives, limits.receives_max) || !fits(sends, limits.sends_max) {
            return Err(OpenError::Window);
        }
        if words == 0 {
            return Err(OpenError::NoWords);
        }
        if !fabric.capabilities().promises.contains(Promises::WRITE_ORDER) {
            return Err(OpenError::Unordered);
        }
        let place =
            self.members.iter().position(|rank| *rank == memory.own).and_then(u16_from_index);
        place.map(Rank).ok_or(OpenError::NotMember)
    }
}
