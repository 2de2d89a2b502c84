//! Where the view protocol reads and writes, and what it asks of its node: its two narrow seams.

use super::{Cause, NextView};
use crate::ids::{Frontier, Rank, SubgroupId};
use crate::layout::{Layout, ViewColumn};
use crate::memory::{Row, RowWriter};
use crate::multicast::Misbehaved;

/// The view columns of all rows, as one member sees them.
///
/// An implementation keeps two promises: a reader that sees a published cell sees all that its owner
/// published before, and a cell that is not there reads as zero.
pub trait Table {
    /// A cell of a member's row; of the own row, what was last published.
    fn load(&self, owner: Rank, column: ViewColumn) -> u64;

    /// Publishes a cell of the own row.
    fn publish(&mut self, column: ViewColumn, value: u64);
}

/// What the view protocol needs of the rest of its node.
pub trait Host {
    /// How far everything of a subgroup is here. After [`Host::wedge`] this does not change.
    fn received(&self, subgroup: SubgroupId) -> Frontier;

    /// How far a subgroup was delivered here.
    fn delivered(&self, subgroup: SubgroupId) -> Frontier;

    /// Receives nothing more of this view, in any subgroup (VIE-6).
    fn wedge(&mut self);

    /// Makes the memory of the next view ready; true once peers may write to it (VIE-11). Called again until
    /// it is true. If the view differs from the one asked for before, the earlier one is not to be.
    fn prepare(&mut self, next: NextView<'_>) -> bool;

    /// Delivers a subgroup up to its trim; true once that is done. Called again until it is.
    ///
    /// # Errors
    /// That member changed what was received from it: what lies behind can never be delivered here.
    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved>;

    /// Stops traffic with a peer in both directions, and reads nothing more from its row (VIE-3).
    fn cut(&mut self, peer: Rank, cause: Cause);
}

/// The view columns in the rows of a layout.
#[derive(Clone, Copy, Debug)]
pub struct RowTable<'m> {
    layout: Layout<'m>,
    own: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    /// Counts publications, so that its owner knows whether there is something to post.
    version: u64,
    /// The same for heartbeats, which are many and speak for nothing.
    heartbeats: u64,
}

impl<'m> RowTable<'m> {
    /// The table over all rows in rank order, the own one included.
    #[must_use]
    pub const fn new(layout: Layout<'m>, own: Rank, rows: &'m [Row<'m>], row: RowWriter<'m>) -> Self {
        Self { layout, own, rows, row, version: 0, heartbeats: 0 }
    }

    /// How many cells were published through this table, heartbeats apart.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// How many heartbeats were.
    #[must_use]
    pub const fn heartbeats(&self) -> u64 {
        self.heartbeats
    }
}

impl Table for RowTable<'_> {
    fn load(&self, owner: Rank, column: ViewColumn) -> u64 {
        let row =
            if owner == self.own { Some(self.row.reader()) } else { self.rows.get(owner.index()).copied() };
        let cell = row.zip(self.layout.view_offset(owner, column)).and_then(|(row, at)| row.cell(at).ok());
        cell.map_or(0, |cell| cell.load())
    }

    fn publish(&mut self, column: ViewColumn, value: u64) {
        let cell = self.layout.view_offset(self.own, column).and_then(|at| self.row.cell(at).ok());
        if let Some(cell) = cell {
            cell.publish(value);
            let count =
                if column == ViewColumn::Heartbeat { &mut self.heartbeats } else { &mut self.version };
            *count = count.saturating_add(1);
        }
    }
}
