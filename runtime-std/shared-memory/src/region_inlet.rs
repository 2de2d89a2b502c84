//! What one peer of a view may write to the own regions, and what it has posted to them.
//!
//! # Invariants
//! - A list is applied only under the right by which it was posted, if that is still there.
//! - A right that is taken back has ended in the own memory before its owner's call returns. Lists
//!   are applied by that same owner's polls, so none is under way then.

use super::region_lanes::{RegionLane, Right};
use super::region_memory::{OwnRegions, REGIONS_MAX, RegionIndex};
use super::write_queue::{Nonsense, QueueReader};

/// One peer's way into the own regions.
#[derive(Debug, Default)]
pub(super) struct Inlet {
    rights: [Right; REGIONS_MAX],
    /// By which right the lists were posted that were denied last.
    denied: [Right; REGIONS_MAX],
    queue: Option<QueueReader>,
}

impl Inlet {
    /// Whether the peer may write.
    pub(super) fn is_given(&self, region: RegionIndex) -> bool {
        self.rights[region.0].is_given()
    }

    /// Gives the right, or takes it back. True if it was not so before.
    pub(super) fn set(&mut self, lane: RegionLane<'_>, region: RegionIndex, given: bool) -> bool {
        let right = &mut self.rights[region.0];
        let is_new = right.is_given() != given;
        if is_new {
            *right = right.next();
            lane.set_right(region, *right);
        }
        is_new
    }

    /// Ends all rights, and takes nothing more.
    pub(super) fn end(&mut self, lane: RegionLane<'_>) {
        for region in RegionIndex::all() {
            self.set(lane, region, false);
        }
        self.queue = None;
    }

    /// Whether the peer has a right, and its queue has not come.
    pub(super) fn awaits_queue(&self) -> bool {
        self.queue.is_none() && self.rights.iter().any(|right| right.is_given())
    }

    /// Takes the queue that the peer sent.
    pub(super) fn take_queue(&mut self, queue: QueueReader) {
        self.queue = Some(queue);
    }

    /// Whether there is a queue.
    pub(super) const fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Applies or denies what was posted, as far as it is there now: not more than a queue holds.
    /// True if there was something, and the peer is to hear of it.
    #[inline]
    pub(super) fn apply(
        &mut self,
        lane: RegionLane<'_>,
        own: &OwnRegions,
    ) -> Result<bool, Nonsense> {
        let Self { rights, denied, queue: Some(queue) } = self else { return Ok(false) };
        let posted = queue.posted()?;
        if posted == queue.taken() {
            return Ok(false);
        }
        while let Some(list) = queue.next(posted)? {
            let index = usize::from(list.region);
            let right = rights.get(index).copied().ok_or(Nonsense)?;
            if right.is_given() && list.right == right {
                queue.apply(&list, own)?;
            } else if denied[index] != list.right {
                denied[index] = list.right;
                lane.set_denied(RegionIndex(index), list.start);
            }
        }
        lane.set_taken(queue.taken());
        Ok(true)
    }
}
