//! Regions: memory of a process that is part of all its views. Its owner decides who may write to
//! it.
//!
//! Like block memory, a region is sealed memory: its owner maps it writable, and peers map it
//! read-only, once per process rather than once per view. A peer receives its descriptor before the
//! first row, so a peer that is ready has provided all its regions.
//!
//! # Invariants
//! - A region keeps its number and its memory as long as its process runs.
//! - Only its owner stores into a region. The owner applies the writes of peers that have the right
//!   to write (`write_queue`).

use std::sync::Arc;

use tramontane_core::fabric::{self, Region};
use tramontane_core::memory::{BlockPages as _, Row, RowWriter};

use super::header::{HEADER_BYTES, Header, Maker};
use super::map::Map;
use super::own_region::OwnRegion;

/// The maximum number of regions per process. Their numbers start at 1.
pub(super) const REGIONS_MAX: usize = 8;

/// The index of a region in lists of [`REGIONS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionIndex(pub(super) usize);

impl RegionIndex {
    /// Returns `None` for the region of rows, and for an invalid number.
    #[inline]
    pub(super) fn of(region: Region) -> Option<Self> {
        let index = usize::from(region.0).checked_sub(1)?;
        (index < REGIONS_MAX).then_some(Self(index))
    }

    /// The region.
    pub(super) fn region(self) -> Region {
        Region(u16::try_from(self.0 + 1).unwrap_or(u16::MAX))
    }

    /// Returns all possible indices.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..REGIONS_MAX).map(Self)
    }
}

/// The local memory of a region, mapped as long as a clone of this exists.
#[derive(Clone, Debug)]
pub struct SharedRegionMemory(pub(super) Arc<OwnRegion>);

impl fabric::RegionMemory for SharedRegionMemory {
    #[inline]
    fn writer(&self) -> RowWriter<'_> {
        // SAFETY: mapped writable after its header, from a page on, as long as the map lives, which
        // `self` keeps. This process writes it through core's types; peers only read.
        unsafe { RowWriter::from_raw(self.0.base(), self.0.bytes()) }
    }
}

/// The local regions, by index.
pub(super) type OwnRegions = [Option<SharedRegionMemory>; REGIONS_MAX];

/// A peer's region, as this process reads it.
#[derive(Debug)]
pub(super) struct PeerRegion(Map);

impl PeerRegion {
    /// Wraps the mapping of memory received from a peer. It contains at least the header.
    pub(super) const fn new(map: Map) -> Self {
        Self(map)
    }

    /// Returns whether that process created the region with that number.
    pub(super) fn is_by(&self, maker: &Maker) -> bool {
        Header::new(&self.0).is_by(maker)
    }

    /// Returns the bytes after the header.
    #[inline]
    pub(super) fn row(&self) -> Row<'_> {
        // SAFETY: header and content are mapped in one piece as long as the map lives, which `self`
        // keeps; the content starts on a page. Its owner writes it through core's types.
        unsafe { Row::from_raw(self.0.base().add(HEADER_BYTES), self.bytes()) }
    }

    /// How many.
    #[inline]
    pub(super) const fn bytes(&self) -> usize {
        self.0.bytes() - HEADER_BYTES
    }
}

/// A peer's regions, by index.
pub(super) type PeerRegions = [Option<Arc<PeerRegion>>; REGIONS_MAX];
