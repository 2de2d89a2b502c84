//! Two nested pipelines: one among the first members of the racks, and one within each rack (RDMC
//! 4.3, "Hybrid Algorithms").
//!
//! The paper repeats the whole dissemination within the rack. Here, however, the blocks of the
//! upper pipeline are passed on at once. A leader receives `k` blocks, one per step, in at most
//! `ceil(log2 racks) + k - 1` steps, so it has its `i`-th block after at most
//! `ceil(log2 racks) + i` steps. Its own rack's pipeline begins `ceil(log2 racks)` steps later and
//! needs an `i`-th block exactly then; it takes the blocks in the order in which the leader
//! receives them. A link between racks carries only the blocks of the upper pipeline.
//!
//! Requirement: RDM-2.

use core::num::{NonZeroU16, NonZeroU32};

use super::pipeline::Pipeline;
use super::shape::{Hop, Shape};
use crate::ids::{Rank, Step};

#[derive(Clone, Copy, Debug)]
pub(super) struct Racks {
    /// Number of members of a rack. The first `longer` racks have one more.
    each: u16,
    longer: u16,
    upper: Pipeline,
    blocks: NonZeroU32,
}

/// A rack: its number, its first rank, and its number of members.
#[derive(Clone, Copy, Debug)]
struct Rack {
    number: u16,
    first: u16,
    members: NonZeroU16,
}

impl Racks {
    /// Distributes the members over the racks. There are no more racks than members.
    #[allow(clippy::integer_division)] // The remainder is the other half of the answer.
    pub(super) fn new(shape: Shape, racks: NonZeroU16) -> Self {
        let members = shape.members.get();
        let upper = Pipeline::new(Shape { members: racks, blocks: shape.blocks });
        Self { each: members / racks, longer: members % racks, upper, blocks: shape.blocks }
    }

    /// The largest rack is the last to finish, and the first rack is one of the largest.
    pub(super) fn steps(self) -> u64 {
        let largest = self.lower(self.rack(0));
        let lower = largest.steps();
        if lower == 0 { self.upper.steps() } else { lower.saturating_add(self.lead()) }
    }

    pub(super) fn sent(self, rank: Rank, step: Step) -> [Option<Hop>; 2] {
        let rack = self.rack_of(rank);
        let across = if rank.0 == rack.first {
            self.upper.sent(Rank(rack.number), step).map(|hop| self.between_leaders(hop))
        } else {
            None
        };
        let inside =
            self.lower_step(step).and_then(|step| self.lower(rack).sent(rack.inside(rank), step));
        [across, inside.and_then(|hop| self.in_rack(rack, hop))]
    }

    pub(super) fn received(self, rank: Rank, step: Step) -> Option<Hop> {
        let rack = self.rack_of(rank);
        if rank.0 == rack.first {
            return self
                .upper
                .received(Rank(rack.number), step)
                .map(|hop| self.between_leaders(hop));
        }
        let hop = self.lower(rack).received(rack.inside(rank), self.lower_step(step)?)?;
        self.in_rack(rack, hop)
    }

    /// Returns the number of steps by which the racks' pipelines begin after the upper pipeline.
    fn lead(self) -> u64 {
        u64::from(self.upper.steps_of_one_block())
    }

    fn lower_step(self, step: Step) -> Option<Step> {
        step.0.checked_sub(self.lead()).map(Step)
    }

    fn lower(self, rack: Rack) -> Pipeline {
        Pipeline::new(Shape { members: rack.members, blocks: self.blocks })
    }

    fn between_leaders(self, hop: Hop) -> Hop {
        Hop { peer: Rank(self.rack(hop.peer.0).first), block: hop.block }
    }

    /// Converts a hop of a rack's own pipeline, whose blocks are numbered in the order in which the
    /// leader receives them.
    fn in_rack(self, rack: Rack, hop: Hop) -> Option<Hop> {
        let block = self.upper.arriving(Rank(rack.number), hop.block)?;
        Some(Hop { peer: Rank(hop.peer.0.saturating_add(rack.first)), block })
    }

    fn rack(self, number: u16) -> Rack {
        let first = number.saturating_mul(self.each).saturating_add(number.min(self.longer));
        let members = self.each.saturating_add(u16::from(number < self.longer));
        Rack { number, first, members: NonZeroU16::new(members).unwrap_or(NonZeroU16::MIN) }
    }

    #[allow(clippy::integer_division)] // Whole racks are what is counted.
    fn rack_of(self, rank: Rank) -> Rack {
        let each = NonZeroU16::new(self.each).unwrap_or(NonZeroU16::MIN);
        let in_longer = self.each.saturating_add(1).saturating_mul(self.longer);
        let number = match rank.0.checked_sub(in_longer) {
            Some(beyond) => self.longer.saturating_add(beyond / each),
            None => rank.0 / each.saturating_add(1),
        };
        self.rack(number)
    }
}

impl Rack {
    /// Returns a member's rank in its rack.
    fn inside(self, rank: Rank) -> Rank {
        Rank(rank.0.saturating_sub(self.first))
    }
}
