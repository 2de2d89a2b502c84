//! The memory of one member: its own row, its copies of the peers' rows, and its regions.

use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{Region, ViewMemory, ViewRows};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Row, RowWriter};

use super::RegionMemory;
use crate::ffi::Pages;

/// The rows of a view at one member. Peers write to the copies while the fabric lives; the memory
/// itself lives as long as a clone of this does.
#[derive(Clone, Debug)]
pub struct Rows(Arc<Table>);

/// The memory itself.
#[derive(Debug)]
struct Table {
    own: Rank,
    members: Vec<NodeId>,
    pages: Vec<Arc<Pages>>,
    /// The same as rows, which live as long as the pages.
    rows: Vec<Row<'static>>,
    regions: Vec<(Region, Arc<Pages>)>,
}

impl Rows {
    /// Takes the memory, all zero. Pages are those of the system: each row has its own.
    pub(super) fn new(
        own: Rank,
        members: &[NodeId],
        row_bytes: &[usize],
        regions: &[RegionMemory],
    ) -> io::Result<Self> {
        let pages = row_bytes.iter().map(|bytes| Pages::new(*bytes).map(Arc::new));
        let pages = pages.collect::<io::Result<Vec<_>>>()?;
        let rows = pages.iter().map(|pages| {
            let row = pages.row();
            // SAFETY: mapped as long as the pages are there, beside which this row is kept; it is
            // shown for no longer than the table is borrowed.
            unsafe { Row::from_raw(row.base(), row.bytes()) }
        });
        let regions =
            regions.iter().map(|memory| Ok((memory.region, Arc::new(Pages::new(memory.bytes)?))));
        Ok(Self(Arc::new(Table {
            own,
            members: members.to_vec(),
            rows: rows.collect(),
            pages,
            regions: regions.collect::<io::Result<_>>()?,
        })))
    }

    /// The own memory of a region, if there is one.
    #[must_use]
    pub fn region(&self, region: Region) -> Option<RowWriter<'_>> {
        self.0.regions.iter().find(|(id, _)| *id == region).map(|(_, pages)| pages.writer())
    }

    pub(super) fn pages(&self, rank: Rank) -> &Arc<Pages> {
        &self.0.pages[rank.index()]
    }

    pub(super) fn region_pages(&self, region: Region) -> Option<&Arc<Pages>> {
        self.0.regions.iter().find(|(id, _)| *id == region).map(|(_, pages)| pages)
    }

    /// Whether nothing else has this memory.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    /// Whether a view's memory is this.
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
        self.0.pages[self.0.own.index()].writer()
    }

    fn rows(&self) -> &[Row<'_>] {
        &self.0.rows
    }
}
