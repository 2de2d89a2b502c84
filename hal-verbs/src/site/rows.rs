//! The memory of one member: its own row, its copies of the peers' rows, and its process's regions.
//!
//! Each row is followed, in the same registration, by bytes that have no meaning. The first writes
//! to a peer go from these bytes to the same offset on the peer (`fabric::probe`).

use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{Region, ViewMemory, ViewRows};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::{Row, RowWriter};

use super::RegionMemory;
use crate::adapter::{PageSize, Pages};

/// Maximum payload of a packet in bytes.
pub(crate) const PROBE_BYTES_MAX: usize = 4096;

/// Returns the offset of the probe's bytes after a row; they never share a cache line with the
/// row's cells.
pub(crate) const fn probe_offset(row_bytes: usize) -> usize {
    row_bytes.next_multiple_of(CACHE_LINE)
}

/// The rows of a view on one member. Peers write to the copies while the fabric exists. The memory
/// itself exists until the last clone of this is dropped.
#[derive(Clone, Debug)]
pub struct Rows(Arc<RowMemory>);

/// The memory behind [`Rows`].
#[derive(Debug)]
struct RowMemory {
    own: Rank,
    members: Vec<NodeId>,
    pages: Vec<Arc<Pages>>,
    /// The pages as rows, which exist for as long as the pages.
    rows: Vec<Row<'static>>,
    regions: Vec<RegionMemory>,
}

impl Rows {
    /// Allocates zeroed memory. Each row has its own pages.
    pub(super) fn new(
        own: Rank,
        members: &[NodeId],
        row_bytes: &[usize],
        regions: &[RegionMemory],
        size: PageSize,
    ) -> io::Result<Self> {
        let with_probe = |bytes: usize| probe_offset(bytes).saturating_add(PROBE_BYTES_MAX);
        let pages =
            row_bytes.iter().map(|bytes| Pages::sized(with_probe(*bytes), size).map(Arc::new));
        let pages = pages.collect::<io::Result<Vec<_>>>()?;
        let rows = pages.iter().zip(row_bytes).map(|(pages, bytes)| {
            // SAFETY: the range is mapped for as long as the pages exist, and this row is stored
            // together with them. It is lent only while the table is borrowed, and is dropped
            // before the pages.
            unsafe { Row::from_raw(pages.base(), (*bytes).max(1)) }
        });
        Ok(Self(Arc::new(RowMemory {
            own,
            members: members.to_vec(),
            rows: rows.collect(),
            pages,
            regions: regions.to_vec(),
        })))
    }

    /// Returns this process's memory of a region, if there is one.
    #[must_use]
    pub fn region(&self, region: Region) -> Option<RowWriter<'_>> {
        self.region_pages(region).map(|pages| pages.writer())
    }

    /// Returns the size of a member's row, excluding the bytes that follow it.
    pub(super) fn row_bytes(&self, rank: Rank) -> usize {
        self.0.rows[rank.index()].bytes()
    }

    /// Returns the local copy of a peer's row, for a fabric that applies the peer's writes itself.
    pub(crate) fn copy(&self, peer: Rank) -> Option<RowWriter<'_>> {
        let (pages, row) = (self.0.pages.get(peer.index())?, self.0.rows.get(peer.index())?);
        (peer != self.0.own).then(|| pages.writer_of_first(row.bytes()))
    }

    pub(crate) fn pages(&self, rank: Rank) -> &Arc<Pages> {
        &self.0.pages[rank.index()]
    }

    pub(crate) fn region_pages(&self, region: Region) -> Option<&Arc<Pages>> {
        let mut regions = self.0.regions.iter();
        regions.find(|memory| memory.region() == region).map(RegionMemory::pages)
    }

    /// Returns whether this is the last handle to the memory.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Returns whether a view's memory is this memory.
    pub(crate) fn is(&self, memory: &ViewMemory<'_>) -> bool {
        let is_same = |(one, other): (&Row<'_>, &Row<'_>)| {
            (one.base(), one.bytes()) == (other.base(), other.bytes())
        };
        let own = &self.0.rows[self.0.own.index()];
        memory.own == self.0.own
            && memory.members == self.0.members
            && memory.rows.len() == self.0.rows.len()
            && is_same((&memory.row.reader(), own))
            && memory.rows.iter().zip(&self.0.rows).all(is_same)
    }
}

impl ViewRows for Rows {
    fn own(&self) -> Rank {
        self.0.own
    }

    fn members(&self) -> &[NodeId] {
        &self.0.members
    }

    fn row(&self) -> RowWriter<'_> {
        let own = &self.0.rows[self.0.own.index()];
        // SAFETY: the pages, which this handle keeps alive, are mapped and writable while they
        // exist.
        unsafe { RowWriter::from_raw(own.base(), own.bytes()) }
    }

    fn rows(&self) -> &[Row<'_>] {
        &self.0.rows
    }
}
