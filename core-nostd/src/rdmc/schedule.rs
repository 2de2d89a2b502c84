//! The schedule, independent of its algorithm.
//!
//! Requirements: RDM-1, RDM-2.

use core::num::NonZeroU16;

use super::shape::{Hop, Shape};
use super::{chain, hybrid::Racks, interleaved, pipeline::Pipeline, sequential, tree};
use crate::ids::{Rank, Step};

/// Maximum number of steps from the first step of a member's part to its first block: two
/// successive pipelines take at most 16 steps each for their first block.
const STEPS_TO_FIRST_MAX: u64 = 34;

/// The way in which a message travels from the root, rank 0, to all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Algorithm {
    /// The root sends everything to each member in turn.
    Sequential,
    /// The root sends each block to each member in turn before it sends the next block.
    Interleaved,
    /// Each member passes the blocks to the next member.
    Chain,
    /// A binomial tree of whole messages.
    Tree,
    /// A binomial pipeline of blocks, for any number of members.
    Pipeline,
    /// A pipeline among the first members of the racks, and another in each rack.
    Hybrid {
        /// Number of racks. Members are distributed over the racks in rank order, as evenly as
        /// possible.
        racks: NonZeroU16,
    },
}

/// Reason why a schedule does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ScheduleError {
    /// There are more racks than members, so some would be empty.
    EmptyRack = 1,
}

/// The sender, the receiver and the block of every transfer in each step.
///
/// ```
/// use tramontane_core::ids::{Block, Rank, Step};
/// use tramontane_core::rdmc::{Algorithm, Hop, Schedule, Shape};
/// let shape = Shape::new(8, 5).unwrap();
/// let schedule = Schedule::new(Algorithm::Pipeline, shape).unwrap();
/// assert_eq!(schedule.steps(), 7);
/// let first = Hop { peer: Rank(1), block: Block(0) };
/// assert_eq!(schedule.sent(Rank(0), Step(0)), [Some(first), None]);
/// assert_eq!(schedule.received(Rank(1), Step(0)), Some(Hop { peer: Rank(0), block: Block(0) }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    algorithm: Algorithm,
    shape: Shape,
}

impl Schedule {
    /// Creates the schedule of an algorithm.
    ///
    /// # Errors
    /// [`ScheduleError`].
    pub const fn new(algorithm: Algorithm, shape: Shape) -> Result<Self, ScheduleError> {
        if let Algorithm::Hybrid { racks } = algorithm
            && racks.get() > shape.members.get()
        {
            return Err(ScheduleError::EmptyRack);
        }
        Ok(Self { algorithm, shape })
    }

    /// Returns the algorithm.
    #[must_use]
    pub const fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the number of members and blocks.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the number of steps. It is below 2^48, because ranks have 16 bits and blocks 32.
    #[must_use]
    pub fn steps(&self) -> u64 {
        let shape = self.shape;
        match self.algorithm {
            Algorithm::Sequential => sequential::steps(shape),
            Algorithm::Interleaved => interleaved::steps(shape),
            Algorithm::Chain => chain::steps(shape),
            Algorithm::Tree => tree::steps(shape),
            Algorithm::Pipeline => Pipeline::new(shape).steps(),
            Algorithm::Hybrid { racks } => Racks::new(shape, racks).steps(),
        }
    }

    /// Returns the hops that a member sends in a step. Only the first member of a rack ever sends
    /// twice: across racks, then within its own rack. Returns no hops for a rank that is not a
    /// member, or after the last step.
    #[must_use]
    pub fn sent(&self, rank: Rank, step: Step) -> [Option<Hop>; 2] {
        let shape = self.shape;
        if rank.0 >= shape.members.get() {
            return [None, None];
        }
        match self.algorithm {
            Algorithm::Sequential => [sequential::sent(shape, rank, step), None],
            Algorithm::Interleaved => [interleaved::sent(shape, rank, step), None],
            Algorithm::Chain => [chain::sent(shape, rank, step), None],
            Algorithm::Tree => [tree::sent(shape, rank, step), None],
            Algorithm::Pipeline => [Pipeline::new(shape).sent(rank, step), None],
            Algorithm::Hybrid { racks } => Racks::new(shape, racks).sent(rank, step),
        }
    }

    /// Returns the hop that a member receives in a step.
    #[must_use]
    pub fn received(&self, rank: Rank, step: Step) -> Option<Hop> {
        let shape = self.shape;
        if rank.0 >= shape.members.get() {
            return None;
        }
        match self.algorithm {
            Algorithm::Sequential => sequential::received(shape, rank, step),
            Algorithm::Interleaved => interleaved::received(shape, rank, step),
            Algorithm::Chain => chain::received(shape, rank, step),
            Algorithm::Tree => tree::received(shape, rank, step),
            Algorithm::Pipeline => Pipeline::new(shape).received(rank, step),
            Algorithm::Hybrid { racks } => Racks::new(shape, racks).received(rank, step),
        }
    }

    /// Returns the range of steps of a member's part: the member neither sends nor receives before
    /// the first of these steps, nor from the second one onwards.
    ///
    /// The range may still contain idle steps. Steps outside it need not be examined.
    #[must_use]
    pub fn part(&self, rank: Rank) -> (Step, Step) {
        let end = self.steps();
        let blocks = u64::from(self.shape.blocks.get());
        let place = u64::from(rank.0);
        let (from, to) = match self.algorithm {
            _ if rank == Rank::ZERO => (0, end),
            Algorithm::Sequential => {
                let from = place.saturating_sub(1).saturating_mul(blocks);
                (from, from.saturating_add(blocks))
            }
            Algorithm::Interleaved => interleaved::part(self.shape, rank),
            Algorithm::Chain => (place.saturating_sub(1), place.saturating_add(blocks)),
            Algorithm::Tree => (u64::from(rank.0.ilog2()).saturating_mul(blocks), end),
            Algorithm::Pipeline | Algorithm::Hybrid { .. } => (0, end),
        };
        (Step(from.min(end)), Step(to.min(end)))
    }

    /// Returns the step of a member's first block and its sender; `None` for the root.
    ///
    /// The sender does not depend on the number of blocks, if there are at least two. A member can
    /// therefore wait for a message about which it knows nothing yet (RDM-4).
    /// `fixtures/tests/block_multicast/schedules.rs` verifies this for every algorithm.
    #[must_use]
    pub fn first_received(&self, rank: Rank) -> Option<(Step, Hop)> {
        let (Step(from), _) = self.part(rank);
        (from..from.saturating_add(STEPS_TO_FIRST_MAX))
            .find_map(|step| self.received(rank, Step(step)).map(|hop| (Step(step), hop)))
    }

    /// Returns whether the block that a member receives in that step is its first.
    pub(super) fn is_first(&self, rank: Rank, step: Step) -> bool {
        let (Step(from), _) = self.part(rank);
        step.0.saturating_sub(from) < STEPS_TO_FIRST_MAX
            && self.first_received(rank).is_some_and(|(first, _)| first == step)
    }
}
