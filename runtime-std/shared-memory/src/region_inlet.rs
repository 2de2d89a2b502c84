//! One peer's rights to the local regions in a view, and the lists that it has posted to them.
//!
//! # Invariants
//! - A list is applied only under the right by which it was posted, and only as long as that right
//!   exists.
//! - A right is revoked in local memory before its owner's call returns. Lists are applied by the
//!   same owner's polls, so none is being applied at that moment.

use super::region_lanes::{RegionLane, Right};
use super::region_memory::{OwnRegions, REGIONS_MAX, RegionIndex};
use super::write_queue::{Nonsense, QueueReader};

/// One peer's access to the local regions.
#[derive(Debug, Default)]
pub(super) struct Inlet {
    rights: [Right; REGIONS_MAX],
    /// The rights of the lists that were last denied, by region.
    denied: [Right; REGIONS_MAX],
    queue: Option<QueueReader>,
}

impl Inlet {
    /// Returns whether the peer may write to a region.
    pub(super) fn is_given(&self, region: RegionIndex) -> bool {
        self.rights[region.0].is_given()
    }

    /// Grants or revokes the right. Returns true if that changed it.
    pub(super) fn set(&mut self, lane: RegionLane<'_>, region: RegionIndex, given: bool) -> bool {
        let right = &mut self.rights[region.0];
        let is_new = right.is_given() != given;
        if is_new {
            *right = right.next();
            lane.set_right(region, *right);
        }
        is_new
    }

    /// Revokes all rights, and takes nothing more.
    pub(super) fn end(&mut self, lane: RegionLane<'_>) {
        for region in RegionIndex::all() {
            self.set(lane, region, false);
        }
        self.queue = None;
    }

    /// Returns whether the peer has a right, but its queue has not arrived yet.
    pub(super) fn awaits_queue(&self) -> bool {
        self.queue.is_none() && self.rights.iter().any(|right| right.is_given())
    }

    /// Takes the queue that the peer sent.
    pub(super) fn take_queue(&mut self, queue: QueueReader) {
        self.queue = Some(queue);
    }

    /// Returns whether there is a queue.
    pub(super) const fn has_queue(&self) -> bool {
        self.queue.is_some()
    }

    /// Applies or denies the lists that have been posted so far, which are at most one full queue.
    /// Returns true if there were any, so that the peer must be notified.
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
