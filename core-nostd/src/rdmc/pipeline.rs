//! The binomial pipeline for any number of members, in `ceil(log2 n) + k - 1` steps.
//!
//! The paper gives the rule for powers of two and leaves other numbers to the reader. Here, the
//! members beyond a power of two share corners of the hypercube, two per corner and never the
//! root's. Below twice a power of two there are always enough corners. To its neighbours, a shared
//! corner is one member. Inside it, in each step:
//! - one of the two members, the *outlet*, sends the block that the corner sends;
//! - the other, the *inlet*, receives the block that the corner receives, and gives the outlet one
//!   block that the outlet lacks.
//!
//! So each of the two sends at most once and receives at most once. Only the inlet has the block of
//! the previous step. If the corner has to send exactly that block, the two change roles; this
//! happens in the step after a step along a direction in which the corner's number has a one. Each
//! then lacks at most one of the other's blocks. The outlet lacks the one that arrived in the
//! previous step (the *fresh* one). The inlet lacks the one that arrived in the last step before it
//! became inlet (the *stale* one), which it receives when it is outlet again, or in one extra step
//! at the end. That extra step is the reason why the logarithm in the count is rounded up, not
//! down.
//!
//! The number of role changes before a step is a sum of ones in the corner's number, so no state is
//! needed. `fixtures/tests/block_multicast/schedules.rs` compares all this with a naive statement
//! of the rule for sets of blocks.
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

/// The two members of a corner in a step; both are the same if the corner has only one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    outlet: Rank,
    inlet: Rank,
}

impl Pipeline {
    pub(super) const fn new(shape: Shape) -> Self {
        Self { cube: Hypercube::new(shape), shape }
    }

    /// Returns the number of steps of the hypercube, plus one if members share corners.
    pub(super) fn steps(self) -> u64 {
        let shares = self.shape.members.get() > self.cube.corners();
        self.cube.steps().saturating_add(u64::from(shares))
    }

    /// Returns the number of steps until every member has the first block: `ceil(log2 n)`.
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

    /// Returns the block that a member receives as its `turn`-th, from zero. For the root, which
    /// has all blocks, this is the block of that number. After its first steps a member receives
    /// one block in every step, so only a few steps have to be examined.
    pub(super) fn arriving(self, rank: Rank, turn: Block) -> Option<Block> {
        if rank == Rank::ZERO {
            return Some(turn);
        }
        let settled = u64::from(self.cube.dimensions()).saturating_mul(2).saturating_add(2);
        let mut before = 0_u32;
        // bound: two per dimension of the cube, which has at most 16, plus two
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

    /// Returns the block that a member gives to the other member of its corner in a step. It is
    /// called for the inlet, and for the outlet only in the step after the last one of the cube:
    /// until then, the outlet sends for the corner.
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

    /// Returns the block that the corner received in the previous step.
    fn fresh(self, corner: Corner, step: Step) -> Option<Block> {
        self.cube.received(corner, Step(step.0.checked_sub(1)?))
    }

    /// Returns the block that the corner received in the last step before the roles changed. If
    /// they changed right before this step, the previous change counts.
    fn stale(self, corner: Corner, step: Step) -> Option<Block> {
        let fresh = step.0.checked_sub(1)?;
        let before = (1..=u64::from(self.cube.dimensions()))
            .filter_map(|back| fresh.checked_sub(back))
            .map(Step);
        let change = before.into_iter().find(|before| self.cube.is_far(corner, *before))?;
        self.cube.received(corner, change)
    }

    /// Returns a member's corner. Members beyond the corners share with ranks 1 and up.
    fn corner(self, rank: Rank) -> Corner {
        match rank.0.checked_sub(self.cube.corners()) {
            Some(beyond) => Corner(beyond.saturating_add(1)),
            None => Corner(rank.0),
        }
    }

    /// Returns the member that shares a corner with the member of the corner's number, if there is
    /// one.
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

    /// Returns whether the roles change right before a step.
    fn changes_before(self, corner: Corner, step: Step) -> bool {
        step.0.checked_sub(1).is_some_and(|before| self.cube.is_far(corner, Step(before)))
    }

    /// Returns whether an odd number of role changes came before a step. There was one for each
    /// earlier step in whose direction the corner's number has a one.
    #[allow(clippy::integer_division)] // The remainder is the step's direction.
    fn has_changed(self, corner: Corner, step: Step) -> bool {
        let rounds = step.0.checked_div(u64::from(self.cube.dimensions())).unwrap_or(0);
        let in_rounds = rounds & u64::from(corner.0.count_ones()) & 1;
        let begun = 1_u16.checked_shl(self.cube.direction(step)).unwrap_or(0).saturating_sub(1);
        let in_this = u64::from((corner.0 & begun).count_ones()) & 1;
        in_rounds != in_this
    }
}
