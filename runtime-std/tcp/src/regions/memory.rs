//! The memory of a process's regions: ordinary memory that is part of every view of the process.
//!
//! # Invariants
//! - The bytes are stored, and read for sending, only by the thread that has the member's turn.
//!   This includes a peer's writes. Any thread may load cells.

use std::ptr::NonNull;
use std::sync::Arc;

use tramontane_core::fabric::{self, Area, Region};
use tramontane_core::memory::{OutOfRow, Row, RowWriter};

use crate::memory::{NoRows, checked};
use crate::zeroed::ZeroedLines;

/// The maximum number of regions per process.
pub(crate) const REGIONS_MAX: usize = 32;

/// The local memory of a region, initially zero.
#[derive(Clone, Debug)]
pub struct RegionMemory(Arc<ZeroedLines>);

impl fabric::RegionMemory for RegionMemory {
    fn writer(&self) -> RowWriter<'_> {
        RowWriter::from_lines(&self.0)
    }
}

impl RegionMemory {
    fn row(&self) -> Row<'_> {
        Row::from_lines(&self.0)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.row().bytes()
    }

    /// Returns the address of a range.
    pub(crate) fn address(&self, offset: usize, length: usize) -> Result<NonNull<u8>, OutOfRow> {
        checked(Some(&self.row()), offset, length)
    }

    /// Returns bytes to be sent.
    pub(crate) fn content(&self, offset: usize, length: usize) -> Result<&[u8], OutOfRow> {
        let base = self.address(offset, length)?;
        // SAFETY: in range by the check; nobody stores there in the meantime, by the invariant of
        // this module.
        Ok(unsafe { std::slice::from_raw_parts(base.as_ptr(), length) })
    }

    /// Stores received bytes.
    pub(crate) fn store(&self, offset: usize, bytes: &[u8]) -> Result<(), OutOfRow> {
        RowWriter::from_lines(&self.0).apply(offset, bytes)
    }
}

/// The regions of this process. All its connections share the list, which is complete before the
/// first view.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnRegions(Arc<Vec<(Region, RegionMemory)>>);

impl OwnRegions {
    /// Allocates the memory of another region.
    pub(crate) fn make(&mut self, region: Region, bytes: usize) -> Result<RegionMemory, NoRows> {
        if region == Region::ROW || self.get(region).is_some() {
            return Err(NoRows::NoSuchRegion { region: region.0 });
        }
        if self.0.len() == REGIONS_MAX {
            return Err(NoRows::TooManyRegions);
        }
        let memory = RegionMemory(Arc::new(ZeroedLines::new(bytes)?));
        Arc::make_mut(&mut self.0).push((region, memory.clone()));
        Ok(memory)
    }

    pub(crate) fn get(&self, region: Region) -> Option<&RegionMemory> {
        self.0.iter().find(|(of, _)| *of == region).map(|(_, memory)| memory)
    }

    /// Returns the memory of an area of `length` bytes, if it is inside a region.
    pub(crate) fn area(&self, area: Area, length: usize) -> Option<&RegionMemory> {
        self.get(area.region).filter(|memory| memory.address(area.offset, length).is_ok())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(Region, RegionMemory)> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn region_numbers_are_unique_and_sizes_bounded() {
        let mut own = OwnRegions::default();
        for region in (1..).map(Region).take(REGIONS_MAX) {
            assert!(own.make(region, 100).is_ok_and(|memory| memory.bytes() == 128));
            assert_eq!(own.make(region, 8).err(), Some(NoRows::NoSuchRegion { region: region.0 }));
        }
        assert_eq!(own.make(Region::ROW, 8).err(), Some(NoRows::NoSuchRegion { region: 0 }));
        assert_eq!(own.make(Region(99), 8).err(), Some(NoRows::TooManyRegions));
        let too_much = OwnRegions::default().make(Region(1), usize::MAX).err();
        assert_eq!(too_much, Some(NoRows::TooMuch { bytes: usize::MAX }));
    }

    #[test]
    fn region_stores_only_inside_its_bounds() {
        let mut own = OwnRegions::default();
        let memory = own.make(Region(3), 128).expect("memory");
        memory.store(8, &[7; 16]).expect("inside");
        assert_eq!(memory.content(4, 8), Ok(&[0, 0, 0, 0, 7, 7, 7, 7][..]));
        let area = |offset| Area { region: Region(3), offset };
        assert!(own.area(area(120), 8).is_some() && own.area(area(128), 0).is_some());
        for (offset, length) in [(121, 8), (129, 0), (usize::MAX, 2), (0, usize::MAX)] {
            assert!(own.area(area(offset), length).is_none(), "{offset} {length}");
            assert!(memory.content(offset, length).is_err());
        }
        assert!(memory.store(121, &[1; 8]).is_err());
        assert!(own.area(Area { region: Region(4), offset: 0 }, 0).is_none());
    }
}
