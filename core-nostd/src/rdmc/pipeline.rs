//! The binomial pipeline for any number of members, in `ceil(log2 n) + k - 1` steps.
//!
//! The paper gives the rule for powers of two and leaves the rest to the reader. Here the members
//! beyond a power of two share corners of the hypercube, two in one, never the root's: below twice
//! a power of two there are always enough. To its neighbours such a corner is one member; inside,
//! in each step
//! - one of the two, the *outlet*, sends what the corner sends;
//! - the other, the *inlet*, receives what the corner receives, and gives the outlet one block that
//!   it lacks.
//!
//! So each sends at most once and receives at most once. Of the two only the inlet has the block of
//! the last step, so they change roles where the corner has to send just that: it is so in the step
//! after one along a direction in which the corner's number has a one. Each then lacks at most one
//! block of the other's: the outlet the one that came in the last step (the *fresh* one), and the
//! inlet the one that came in the last step before it became inlet (the *stale* one), which it gets
//! when it is outlet again, or in one step more after the last. That step is why the count has the
//! logarithm rounded up, and not down.
//!
//! How many changes there were before a step is a sum of ones in the corner's number, so nothing is
//! remembered. `fixtures/tests/block_multicast/schedules.rs` holds all this against a naive
//! statement of the rule for sets of blocks.
//!
//! Requirement: RDM-2.

use super::hypercube::{Corner, Hypercube};
use super::shape::{Hop, Shape};
use crate::ids::{Block, Rank, Step};

#[derive(Clone, Copy, Debug)]
pub(super) struct Pipeline {
    cube: Hypercube,
    shape: Shape,
}

/// The two members of a corner in a step; the same one twice where there is only one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    outlet: Rank,
    inlet: Rank,
}

impl Pipeline {
    pub(super) const fn new(shape: Shape) -> Self {
        Self { cube: Hypercube::new(shape), shape }
    }

    /// The hypercube's steps, and one more if members share corners.
    pub(super) fn steps(self) -> u64 {
        let shares = self.shape.members.get() > self.cube.corners();
        self.cube.steps().saturating_add(u64::from(shares))
    }

    /// Steps until every member has the first block: `ceil(log2 n)`.
    pub(super) fn steps_of_one_block(self) -> u32 {
        let shares = self.shape.members.get() > self.cube.corners();
        self.cube.dimensions().saturating_add(u32::from(shares))
    }

    pub(super) fn sent(self, rank: Rank, step: Step) -> Option<Hop> {
        let corner = self.corner(rank);
        let pair = self.pair(corner, step);
        if rank == pair.outlet && step.0 < self.cube.steps() {
            let block = self.cube.sent(corner, step)?;
            let peer = self.pair(self.cube.across(corner, step), step).inlet;
            return Some(Hop { peer, block });
        }
        self.given(corner, rank, step)
    }

    pub(super) fn received(self, rank: Rank, step: Step) -> Option<Hop> {
        let corner = self.corner(rank);
        let pair = self.pair(corner, step);
        if rank == pair.inlet && step.0 < self.cube.steps() {
            let block = self.cube.received(corner, step)?;
            let peer = self.pair(self.cube.across(corner, step), step).outlet;
            return Some(Hop { peer, block });
        }
        let other = if rank == pair.inlet { pair.outlet } else { pair.inlet };
        let hop = self.given(corner, other, step)?;
        Some(Hop { peer: other, block: hop.block })
    }

    /// The block that a member receives as its `turn`-th, from zero; of the root, which has all,
    /// just that block. After its first steps a member receives one in every step, so few have to
    /// be looked at.
    pub(super) fn arriving(self, rank: Rank, turn: Block) -> Option<Block> {
        if rank == Rank::ZERO {
            return Some(turn);
        }
        let settled = u64::from(self.cube.dimensions()).saturating_mul(2).saturating_add(2);
        let mut before = 0_u32;
        // bound: two for each dimension of the cube, of which there are at most 16, and two more
        for step in 0..settled {
            let Some(hop) = self.received(rank, Step(step)) else { continue };
            if before == turn.0 {
                return Some(hop.block);
            }
            before = before.saturating_add(1);
        }
        let later = u64::from(turn.0.checked_sub(before)?);
        self.received(rank, Step(settled.saturating_add(later))).map(|hop| hop.block)
    }

    /// What a member gives the other of its corner in a step. Asked of the inlet, and of the outlet
    /// in the step after the last of the cube alone: before, the outlet sends for the corner.
    fn given(self, corner: Corner, rank: Rank, step: Step) -> Option<Hop> {
        let pair = self.pair(corner, step);
        let changed = self.changes_before(corner, step);
        let block = if pair.outlet == pair.inlet || step.0 >= self.steps() {
            None
        } else if (rank == pair.inlet) == changed {
            self.stale(corner, step)
        } else {
            self.fresh(corner, step)
        };
        let peer = if rank == pair.inlet { pair.outlet } else { pair.inlet };
        block.map(|block| Hop { peer, block })
    }

    /// The block that the corner received in the last step.
    fn fresh(self, corner: Corner, step: Step) -> Option<Block> {
        self.cube.received(corner, Step(step.0.checked_sub(1)?))
    }

    /// The block that the corner received in the last step before the roles changed; of a change
    /// right before this step, the one before that.
    fn stale(self, corner: Corner, step: Step) -> Option<Block> {
        let fresh = step.0.checked_sub(1)?;
        let before = (1..=u64::from(self.cube.dimensions()))
            .filter_map(|back| fresh.checked_sub(back))
            .map(Step);
        let change = before.into_iter().find(|before| self.cube.is_far(corner, *before))?;
        self.cube.received(corner, change)
    }

    /// Where a member is. Those beyond the corners share with ranks 1 and up.
    fn corner(self, rank: Rank) -> Corner {
        match rank.0.checked_sub(self.cube.corners()) {
            Some(beyond) => Corner(beyond.saturating_add(1)),
            None => Corner(rank.0),
        }
    }

    /// The member that shares a corner with the member of its own number, if there is one.
    fn second(self, corner: Corner) -> Option<Rank> {
        let beyond = corner.0.checked_sub(1)?;
        let rank = self.cube.corners().checked_add(beyond)?;
        (rank < self.shape.members.get()).then_some(Rank(rank))
    }

    fn pair(self, corner: Corner, step: Step) -> Pair {
        let first = Rank(corner.0);
        match self.second(corner) {
            None => Pair { outlet: first, inlet: first },
            Some(second) if self.has_changed(corner, step) => Pair { outlet: second, inlet: first },
            Some(second) => Pair { outlet: first, inlet: second },
        }
    }

    /// Whether roles change right before a step.
    fn changes_before(self, corner: Corner, step: Step) -> bool {
        step.0.checked_sub(1).is_some_and(|before| self.cube.is_far(corner, Step(before)))
    }

    /// Whether an odd number of changes came before a step: as many as the corner's number has ones
    /// in the directions of the steps before.
    #[allow(clippy::integer_division)] // The remainder is the step's direction.
    fn has_changed(self, corner: Corner, step: Step) -> bool {
        let rounds = step.0.checked_div(u64::from(self.cube.dimensions())).unwrap_or(0);
        let in_rounds = rounds & u64::from(corner.0.count_ones()) & 1;
        let begun = 1_u16.checked_shl(self.cube.direction(step)).unwrap_or(0).saturating_sub(1);
        let in_this = u64::from((corner.0 & begun).count_ones()) & 1;
        in_rounds != in_this
    }
}
