//! The memory of one member: its own row, its copies of the peers' rows, and its regions.

use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{Region, ViewMemory};
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::memory::{Row, RowWriter};

use super::RegionMemory;
use crate::ffi::Pages;

/// The rows of a group at one member. Peers write to the copies while the fabric lives; the memory itself lives
/// as long as this does.
#[derive(Debug)]
pub struct Rows {
    own: Rank,
    members: Vec<NodeId>,
    rows: Vec<Arc<Pages>>,
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
        let rows = row_bytes.iter().map(|bytes| Pages::new(*bytes).map(Arc::new));
        let regions =
            regions.iter().map(|memory| Ok((memory.region, Arc::new(Pages::new(memory.bytes)?))));
        Ok(Self {
            own,
            members: members.to_vec(),
            rows: rows.collect::<io::Result<_>>()?,
            regions: regions.collect::<io::Result<_>>()?,
        })
    }

    /// This member's rank.
    #[must_use]
    pub const fn own(&self) -> Rank {
        self.own
    }

    /// The members' node ids, in rank order.
    #[must_use]
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// This member's own row, to be written.
    #[must_use]
    pub fn row(&self) -> RowWriter<'_> {
        self.rows[self.own.index()].writer()
    }

    /// All rows in rank order, to be read: the own one, and the copies that peers write to.
    #[must_use]
    pub fn rows(&self) -> Vec<Row<'_>> {
        self.rows.iter().map(|pages| pages.row()).collect()
    }

    /// The own memory of a region, if there is one.
    #[must_use]
    pub fn region(&self, region: Region) -> Option<RowWriter<'_>> {
        self.regions.iter().find(|(id, _)| *id == region).map(|(_, pages)| pages.writer())
    }

    pub(super) fn pages(&self, rank: Rank) -> &Arc<Pages> {
        &self.rows[rank.index()]
    }

    pub(super) fn region_pages(&self, region: Region) -> Option<&Arc<Pages>> {
        self.regions.iter().find(|(id, _)| *id == region).map(|(_, pages)| pages)
    }

    /// Whether a view's memory is this.
    pub(crate) fn is(&self, memory: &ViewMemory<'_>) -> bool {
        let same = |row: &Row<'_>, pages: &Arc<Pages>| {
            (row.base(), row.bytes()) == (pages.row().base(), pages.row().bytes())
        };
        let own = &self.rows[self.own.index()];
        memory.rows.len() == self.rows.len()
            && same(&memory.row.reader(), own)
            && memory.rows.iter().zip(&self.rows).all(|(row, pages)| same(row, pages))
    }
}
