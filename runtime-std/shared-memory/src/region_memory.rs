//! Regions: memory of a process that all its views show, and whose owner says who may write to it.
//!
//! A region is sealed memory, as block memory is: its owner maps it writable, and peers map it
//! read-only, once for each process and not for each view. Its descriptor goes to a peer before the
//! first row does, so a peer that is ready has shown all its regions.
//!
//! # Invariants
//! - A region has its number and its memory for the life of its process.
//! - Nobody but its owner stores into a region: what a peer may write, the owner applies
//!   (`write_queue`).

use std::sync::Arc;

use tramontane_core::fabric::{self, Region};
use tramontane_core::memory::{BlockPages as _, Row, RowWriter};

use super::header::{HEADER_BYTES, Header, Maker};
use super::map::Map;
use super::own_region::OwnRegion;

/// Regions that a process may have. Their numbers start at 1.
pub(super) const REGIONS_MAX: usize = 8;

/// Which of a process's regions: its place in lists of [`REGIONS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RegionIndex(pub(super) usize);

impl RegionIndex {
    /// None for the region of rows, and for one that no process can have.
    #[inline]
    pub(super) fn of(region: Region) -> Option<Self> {
        let index = usize::from(region.0).checked_sub(1)?;
        (index < REGIONS_MAX).then_some(Self(index))
    }

    /// The region.
    pub(super) fn region(self) -> Region {
        Region(u16::try_from(self.0 + 1).unwrap_or(u16::MAX))
    }

    /// All that there can be.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..REGIONS_MAX).map(Self)
    }
}

/// The own memory of a region, mapped as long as a clone of this is there.
#[derive(Clone, Debug)]
pub struct RegionMemory(pub(super) Arc<OwnRegion>);

impl fabric::RegionMemory for RegionMemory {
    #[inline]
    fn writer(&self) -> RowWriter<'_> {
        // SAFETY: mapped writable behind its header, from a page on, as long as the map lives,
        // which `self` keeps. This process writes it through core's types; peers only read.
        unsafe { RowWriter::from_raw(self.0.base(), self.0.bytes()) }
    }
}

/// The own regions, by place.
pub(super) type OwnRegions = [Option<RegionMemory>; REGIONS_MAX];

/// A peer's region, as this process reads it.
#[derive(Debug)]
pub(super) struct PeerRegion(Map);

impl PeerRegion {
    /// What a peer sent, mapped: its header and behind it at least nothing.
    pub(super) const fn new(map: Map) -> Self {
        Self(map)
    }

    /// Whether that process made it, as the memory of that number.
    pub(super) fn is_by(&self, maker: &Maker) -> bool {
        Header::new(&self.0).is_by(maker)
    }

    /// The bytes behind the header.
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

/// A peer's regions, by place.
pub(super) type PeerRegions = [Option<Arc<PeerRegion>>; REGIONS_MAX];
