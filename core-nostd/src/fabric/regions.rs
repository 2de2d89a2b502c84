//! Assignment of regions to a member's block memories.
//!
//! # Invariants
//! - A region number belongs to one memory at a time. The number is free again once that memory has
//!   been dropped.
//! - Region 0 is the region of rows and is never assigned.
//!
//! Requirement: MEM-2.

use super::write::Region;

/// Maximum number of block memories that a member may have at a time.
pub const REGIONS_MAX: usize = 1024;

/// The member already has [`REGIONS_MAX`] block memories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct TooManyRegions;

impl core::fmt::Display for TooManyRegions {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(
            out,
            "this member already has {REGIONS_MAX} block memories; drop one before creating another"
        )
    }
}

impl core::error::Error for TooManyRegions {}

/// Maps regions to a member's block memories. `W` refers to a memory without keeping it alive, such
/// as a weak pointer if memory is shared.
#[derive(Debug)]
pub struct Regions<W> {
    /// Memory of each region, starting with region 1.
    slots: [Option<W>; REGIONS_MAX],
}

impl<W> Regions<W> {
    /// Creates an empty map.
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: [const { None }; REGIONS_MAX] }
    }

    /// Assigns the lowest free region to a memory. A region is also free if `is_gone` returns true
    /// for its previous memory.
    ///
    /// # Errors
    /// [`TooManyRegions`].
    pub fn take(
        &mut self,
        memory: W,
        is_gone: impl Fn(&W) -> bool,
    ) -> Result<Region, TooManyRegions> {
        let mut numbered = (1..).map(Region).zip(&mut self.slots);
        let free = numbered.find(|(_, slot)| slot.as_ref().is_none_or(&is_gone));
        let (region, slot) = free.ok_or(TooManyRegions)?;
        *slot = Some(memory);
        Ok(region)
    }

    /// Assigns the given region to a memory. Returns false if the region is taken or does not
    /// exist.
    pub fn take_this(&mut self, region: Region, memory: W, is_gone: impl Fn(&W) -> bool) -> bool {
        let index = usize::from(region.0).checked_sub(1);
        let Some(slot) = index.and_then(|index| self.slots.get_mut(index)) else { return false };
        let is_free = slot.as_ref().is_none_or(is_gone);
        if is_free {
            *slot = Some(memory);
        }
        is_free
    }

    /// Returns the reference to a region's memory, if the region has ever been assigned.
    #[must_use]
    pub fn get(&self, region: Region) -> Option<&W> {
        let slot = usize::from(region.0).checked_sub(1)?;
        self.slots.get(slot)?.as_ref()
    }
}

impl<W> Default for Regions<W> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Weak};

    #[test]
    fn region_number_is_reusable_after_memory_is_dropped() {
        let mut regions = Regions::<Weak<u8>>::new();
        let is_gone = |memory: &Weak<u8>| memory.strong_count() == 0;
        let memories: Vec<Arc<u8>> = (0..3).map(Arc::new).collect();
        for (memory, region) in memories.iter().zip(1..) {
            assert_eq!(regions.take(Arc::downgrade(memory), is_gone), Ok(Region(region)));
        }
        assert!(regions.get(Region::ROW).is_none() && regions.get(Region(4)).is_none());
        assert_eq!(regions.get(Region(2)).and_then(Weak::upgrade).as_deref(), Some(&1));
        let mut memories = memories;
        drop(memories.remove(1));
        assert!(regions.get(Region(2)).and_then(Weak::upgrade).is_none());
        assert_eq!(regions.take(Arc::downgrade(&memories[0]), is_gone), Ok(Region(2)));
        assert_eq!(regions.take(Arc::downgrade(&memories[0]), is_gone), Ok(Region(4)));
    }

    #[test]
    fn requested_region_is_assigned_only_once() {
        let mut regions = Regions::<u8>::new();
        assert!(regions.take_this(Region(2), 7, |_| false));
        assert!(!regions.take_this(Region(2), 8, |_| false) && regions.get(Region(2)) == Some(&7));
        assert_eq!(regions.take(0, |_| false), Ok(Region(1)));
        assert_eq!(regions.take(0, |_| false), Ok(Region(3)));
        assert!(!regions.take_this(Region::ROW, 0, |_| true));
        assert!(!regions.take_this(Region(u16::MAX), 0, |_| true));
        assert!(regions.take_this(Region(2), 9, |memory| *memory == 7));
    }

    #[test]
    fn number_of_regions_is_bounded() {
        let mut regions = Regions::<u8>::default();
        for region in 1..=REGIONS_MAX {
            let taken = regions.take(0, |_| false).map(|taken| usize::from(taken.0));
            assert_eq!(taken, Ok(region));
        }
        assert_eq!(regions.take(0, |_| false), Err(TooManyRegions));
        assert_eq!(regions.take(0, |_| true), Ok(Region(1)));
        assert!(regions.get(Region(u16::MAX)).is_none());
    }
}
