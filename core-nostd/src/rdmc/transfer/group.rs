//! One member's view of a block group: its state, the requests of its application, and one step.
//!
//! Requirements: RDM-4, RDM-5.

use super::cells::{Cells, Name};
use super::ending::Close;
use super::failure::{Cause, Failure};
use super::here::Here;
use super::lengths::{Lengths, blocks_min};
use super::message::{MessageMemory, MovingMessage, Staged};
use super::setup::{OpenError, Setup};
use crate::fabric::{Area, Blocks, Channel, ErrorKind, LossCause, ViewMemory, Way};
use crate::ids::{Rank, ViewId};
use crate::multicast::Unreadable;
use crate::rdmc::{Schedule, Shape};

/// Maximum number of bytes of a first block that are copied in one call; this takes a few
/// microseconds.
const PIECE_BYTES: usize = 1 << 16;

/// The report of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Progress {
    /// Number of posts of all kinds.
    pub posts: u32,
    /// Whether another step would do something now.
    pub has_more: bool,
}

impl Progress {
    /// Returns whether there is nothing more to do until something happens.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.posts == 0 && !self.has_more
    }
}

/// The end of a group as seen by one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Outcome {
    /// Every message has reached every member (RDM-6).
    Closed,
    /// A member failed. Messages that have been completed here are whole, but other members may
    /// lack them.
    Failed(Failure),
}

/// Reason why a message is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SendError {
    /// Only the first member of a group sends in it.
    NotRoot,
    /// The previous message has not been completed.
    Busy,
    /// The group is ending or has ended.
    Ended,
    /// The message has more blocks than the lent memory has bits for.
    TooLarge {
        /// Number of blocks in the message, saturated at the largest countable number.
        blocks: u32,
        /// Maximum number of blocks in a message.
        blocks_max: u32,
    },
}

impl core::fmt::Display for SendError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::NotRoot => out
                .write_str("only the first member of a group can send; open one group per sender"),
            Self::Busy => {
                out.write_str("the previous message has not completed; send again once it has")
            }
            Self::Ended => {
                out.write_str("the group has ended; open a new group of the remaining members")
            }
            Self::TooLarge { blocks, blocks_max } => {
                out.write_str("the message has ")?;
                core::fmt::Display::fmt(blocks, out)?;
                out.write_str(" blocks, but the group accepts at most ")?;
                core::fmt::Display::fmt(blocks_max, out)
            }
        }
    }
}

impl core::error::Error for SendError {}

/// Reason why a group is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum CloseError {
    /// Only the root can close the group; the other members learn of it.
    NotRoot = 1,
    /// The group has ended.
    Ended = 2,
}

impl core::fmt::Display for CloseError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NotRoot => "only the first member of a group can close it",
            Self::Ended => "the group has already ended; query its outcome",
        })
    }
}

impl core::error::Error for CloseError {}

/// The current activity of a member.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant)] // One of these in a group, and nowhere to put it aside.
pub(super) enum Stage {
    /// No message is in progress. A receiver may have posted its receive for the next one.
    Between { asked: bool },
    /// A message is in progress.
    Moving(MovingMessage),
    /// The group is over.
    Over(Outcome),
}

/// One member's part in a group. See the [module](super).
#[derive(Debug)]
pub struct BlockGroup<'m> {
    pub(super) setup: Setup<'m>,
    pub(super) memory: ViewMemory<'m>,
    pub(super) cells: Cells,
    /// Local index in the group, which is the schedule's rank.
    pub(super) own: Rank,
    pub(super) here: Here<'m>,
    pub(super) stage: Stage,
    /// Messages completed.
    pub(super) done: u64,
    /// Number of steps of the completed messages, as the `ready` cells count them.
    pub(super) base: u64,
    /// Number of receives that have been posted but not filled.
    pub(super) awaited: u16,
    /// Number of sends that have been posted but not completed.
    pub(super) in_flight: u16,
    /// Peer that has not been notified of the last receive yet.
    pub(super) owed: Option<Rank>,
    pub(super) close: Close,
    /// Number of members whose `failed` cells have been read in the current round.
    pub(super) read: usize,
    /// Number of members to which the failure has been posted.
    pub(super) posted: usize,
    /// Whether all members can be written to.
    pub(super) has_started: bool,
    /// Whether the channel has been closed.
    pub(super) is_closed: bool,
    /// Number of consecutive steps in which a cell of a member failed its check.
    pub(super) unreadable: Unreadable,
}

impl<'m> BlockGroup<'m> {
    /// Opens a member's part before anything is sent. `words` has one bit per block of the largest
    /// message: [`words_for`](super::words_for).
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open(
        setup: Setup<'m>,
        memory: &ViewMemory<'m>,
        fabric: &impl Blocks,
        words: &'m mut [u64],
    ) -> Result<Self, OpenError> {
        let own = setup.check(memory, fabric, words.len())?;
        let cells =
            Cells::new(setup.cells, memory.rows, setup.checks).map_err(|_| OpenError::Cells)?;
        Ok(Self {
            setup,
            memory: *memory,
            cells,
            own,
            here: Here::new(words),
            stage: Stage::Between { asked: false },
            done: 0,
            base: 0,
            awaited: 0,
            in_flight: 0,
            owed: None,
            close: Close::NotAsked,
            read: 0,
            posted: 0,
            has_started: false,
            is_closed: false,
            unreadable: Unreadable::NONE,
        })
    }

    /// Returns the group's channel in its view.
    #[must_use]
    pub const fn channel(&self) -> Channel {
        self.setup.channel
    }

    /// Returns the group's view at its fabric.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.setup.view
    }

    /// Returns the number of messages completed here.
    #[must_use]
    pub const fn completed(&self) -> u64 {
        self.done
    }

    /// Returns whether a message is in progress here.
    #[must_use]
    pub const fn is_moving(&self) -> bool {
        matches!(self.stage, Stage::Moving(_))
    }

    /// Returns the outcome of the group, or `None` if the group has not ended.
    #[must_use]
    pub const fn outcome(&self) -> Option<Outcome> {
        match self.stage {
            Stage::Over(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Sends a message from local block memory, which must not change until the message is
    /// [completed](MessageMemory::completed). The next steps post it.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&mut self, source: Area, bytes: usize) -> Result<(), SendError> {
        if self.own != Rank::ZERO {
            return Err(SendError::NotRoot);
        }
        match self.stage {
            Stage::Moving(_) => return Err(SendError::Busy),
            Stage::Over(_) => return Err(SendError::Ended),
            Stage::Between { .. } if self.close != Close::NotAsked => return Err(SendError::Ended),
            Stage::Between { .. } => {}
        }
        let (lengths, blocks) =
            Lengths::of(bytes, self.setup.block_bytes, blocks_min(self.setup.algorithm));
        let blocks_max = self.here.blocks_max();
        let schedule = self.schedule(blocks).filter(|_| blocks <= blocks_max);
        let schedule = schedule.ok_or(SendError::TooLarge { blocks, blocks_max })?;
        self.stage = Stage::Moving(MovingMessage::own(schedule, source, lengths));
        Ok(())
    }

    /// Closes the group once all sent messages have been completed and every member has confirmed
    /// that it has them. The [outcome](BlockGroup::outcome) at every member shows the result.
    ///
    /// # Errors
    /// [`CloseError`].
    pub fn close(&mut self) -> Result<(), CloseError> {
        if self.own != Rank::ZERO {
            return Err(CloseError::NotRoot);
        }
        if matches!(self.stage, Stage::Over(_)) {
            return Err(CloseError::Ended);
        }
        if self.close == Close::NotAsked {
            self.close = Close::Asked;
        }
        Ok(())
    }

    /// Reports a peer that the fabric has lost. A peer of another view, or a peer that is not a
    /// member of the group, changes nothing.
    pub fn lost(&mut self, view: ViewId, peer: Rank, cause: LossCause) {
        if view == self.setup.view && self.setup.members.contains(&peer) {
            self.fail(peer, Cause::Lost(cause));
        }
    }

    /// Posts what can be posted now, up to a bounded number of posts: see the [module](super).
    pub fn step<F: Blocks>(&mut self, fabric: &mut F, memory: &mut impl MessageMemory) -> Progress {
        let mut progress = Progress::default();
        self.check_cells(&mut progress);
        self.read_failures(&mut progress);
        if let Stage::Over(outcome) = self.stage {
            self.close_channel(fabric);
            if matches!(outcome, Outcome::Failed(_)) {
                self.post_failure(fabric, &mut progress);
            }
            return progress;
        }
        if !self.has_started(fabric) {
            return progress;
        }
        self.post_sends(fabric, &mut progress);
        self.post_receives(fabric, &mut progress);
        if progress.posts == 0 {
            // The copy waits until there is nothing else to do, and proceeds in pieces so that it
            // does not delay a relay.
            self.place_staged(memory);
        }
        self.finish(memory, &mut progress);
        self.advance_closing(fabric, &mut progress);
        let has_staged = matches!(self.stage, Stage::Moving(MovingMessage { staged: Some(_), .. }));
        progress.has_more |= has_staged || matches!(self.stage, Stage::Over(_));
        progress
    }

    /// Returns the group's schedule for `blocks` blocks.
    pub(super) fn schedule(&self, blocks: u32) -> Option<Schedule> {
        let members = u16::try_from(self.setup.members.len()).ok()?;
        Schedule::new(self.setup.algorithm, Shape::new(members, blocks)?).ok()
    }

    /// Returns the rank in the view of the member at an index in the group.
    pub(super) fn rank_of(&self, place: Rank) -> Option<Rank> {
        self.setup.members.get(place.index()).copied()
    }

    /// Returns the group's path to and from a member.
    pub(super) const fn way(&self, peer: Rank) -> Way {
        Way { view: self.setup.view, channel: self.setup.channel, peer }
    }

    /// Withdraws all posts, once. The group's memory belongs to its application again afterwards.
    fn close_channel<F: Blocks>(&mut self, fabric: &mut F) {
        if !self.is_closed {
            self.is_closed = true;
            fabric.close(self.setup.view, self.setup.channel);
        }
    }

    /// Returns a member's cell from the local copy of its row.
    pub(super) fn cell_of(&self, member: Rank, name: Name) -> u64 {
        self.memory.rows.get(member.index()).map_or(0, |row| self.cells.read(row, name))
    }

    /// Handles a refused post.
    pub(super) fn refused(&mut self, peer: Rank, kind: ErrorKind, progress: &mut Progress) {
        match kind {
            ErrorKind::QueueFull => progress.has_more = true,
            ErrorKind::PeerLost => self.fail(peer, Cause::Lost(LossCause::Unreachable)),
            // The peer suspects this member and denies its writes; this member's fabric is not at
            // fault.
            ErrorKind::Revoked => self.fail(peer, Cause::Lost(LossCause::Denied)),
            ErrorKind::OutOfRange | ErrorKind::Other | ErrorKind::WrongMemory => {
                self.fail(self.memory.own, Cause::Fabric);
            }
        }
    }

    /// Returns whether all members can be written to; nothing is posted before that (VIE-12).
    fn has_started<F: Blocks>(&mut self, fabric: &F) -> bool {
        let own = self.memory.own;
        let is_ready = |rank: &Rank| *rank == own || fabric.ready(self.setup.view, *rank);
        self.has_started = self.has_started || self.setup.members.iter().all(is_ready);
        self.has_started
    }

    /// Copies a piece of a first block from the staging block to its position in the message.
    fn place_staged(&mut self, memory: &mut impl MessageMemory) {
        let Stage::Moving(message) = &mut self.stage else { return };
        let Some(Staged { block, placed }) = message.staged else { return };
        let left = message.lengths.of_block(block).saturating_sub(placed);
        let length = left.min(PIECE_BYTES);
        let place = message.place_of(block, self.setup.block_bytes);
        let at = |area: Area| Area { offset: area.offset.saturating_add(placed), ..area };
        if length > 0 {
            memory.place(at(self.setup.staging), at(place), length);
        }
        let placed = placed.saturating_add(length);
        message.staged = if length == left { None } else { Some(Staged { block, placed }) };
    }

    /// Completes a message for which nothing is left to do.
    fn finish(&mut self, memory: &mut impl MessageMemory, progress: &mut Progress) {
        let Stage::Moving(message) = &self.stage else { return };
        if !message.is_through() || self.in_flight > 0 || self.owed.is_some() {
            return;
        }
        let (bytes, counted) = (message.lengths.total(), message.counted());
        let number = self.done;
        self.done = self.done.saturating_add(1);
        self.base = self.base.saturating_add(counted);
        self.stage = Stage::Between { asked: false };
        progress.has_more = true;
        memory.completed(number, bytes);
    }
}
