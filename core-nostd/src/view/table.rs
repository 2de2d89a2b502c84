//! The two narrow interfaces of the view protocol: the table that it reads and writes, and the node
//! whose services it requests.
//!
//! Requirements: FLT-2, VIE-1, VIE-2.

use super::cells::Ballot;
use super::checked;
use super::state::{Cause, NextView};
use crate::check::Checks;
use crate::ids::{Frontier, Rank, SubgroupId};
use crate::layout::{Layout, ViewBlock, ViewColumn};
use crate::memory::{Cell, Row, RowWriter};
use crate::multicast::Misbehaved;

/// The view columns of all rows, as seen by one member.
///
/// An implementation keeps two promises. First, a reader that sees a published cell and then calls
/// [`Host::observe`] sees everything that the cell's owner published before. Second, a cell that
/// does not exist reads as zero.
pub trait Table {
    /// Loads a cell of a member's row; for the local row, returns the last published value.
    fn load(&self, owner: Rank, column: ViewColumn) -> u64;

    /// Publishes a cell of the local row.
    fn publish(&mut self, column: ViewColumn, value: u64);
}

/// The services that the view protocol needs from the rest of its node.
pub trait Host {
    /// Returns the received frontier of a subgroup. The frontier does not change after
    /// [`Host::wedge`].
    fn received(&self, subgroup: SubgroupId) -> Frontier;

    /// Returns the delivered frontier of a subgroup.
    fn delivered(&self, subgroup: SubgroupId) -> Frontier;

    /// Stops receiving in this view, in all subgroups (VIE-6).
    fn wedge(&mut self);

    /// Prepares the memory of the next view, and returns true once peers may write to it (VIE-11).
    /// The call is repeated until it returns true. If the view differs from that of the previous
    /// request, the earlier view will never be installed.
    fn prepare(&mut self, next: NextView<'_>) -> bool;

    /// Makes durable what this member is about to promise by its echo of a sealed list (DUR-6): the
    /// next view and the list's ballot, and in each of its logged subgroups all messages received
    /// up to the trim. Returns true once all of this is durable; the call is repeated until then.
    /// If the promise differs from the previous request, this member never echoes the earlier one:
    /// the new one replaces it, and log records beyond the new trim are removed.
    ///
    /// # Errors
    /// Returns the member that changed messages after they were received from it. Later messages
    /// can never become durable here.
    fn promise(
        &mut self,
        _next: NextView<'_>,
        _ballot: Ballot,
        _trim: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        Ok(true)
    }

    /// Delivers a subgroup up to its trim, and returns true once that is done. The call is repeated
    /// until then.
    ///
    /// # Errors
    /// Returns the member that changed messages after they were received from it. Later messages
    /// can never be delivered here.
    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved>;

    /// Called after a guard in a peer's row (`Stance`, `Committed` or `Installed`) has been
    /// observed, and before the data that it guards is read (HAL-1). It does nothing if a [`Table`]
    /// keeps its first promise without this call.
    fn observe(&self) {}

    /// Stops traffic with a peer in both directions, and reads nothing more from its row (VIE-3).
    fn cut(&mut self, peer: Rank, cause: Cause);
}

/// The view columns in the rows of a layout.
#[derive(Debug)]
pub struct RowTable<'m> {
    /// Columns at the end of every row; the length of a row therefore determines where they begin.
    block: Option<ViewBlock>,
    checks: Checks,
    own: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    /// Number of publications, from which the table's owner knows whether there is something to
    /// post.
    version: u64,
    /// Number of heartbeats, counted separately because they are frequent and guard nothing.
    heartbeats: u64,
}

impl<'m> RowTable<'m> {
    /// Creates the table over all rows in rank order, including the local row. Each row must be as
    /// long as the layout says; otherwise its cells would not be where its owner has them.
    #[must_use]
    pub const fn new(
        layout: &Layout<'_>,
        own: Rank,
        rows: &'m [Row<'m>],
        row: RowWriter<'m>,
    ) -> Self {
        let (block, checks) = (layout.view_block(), layout.checks());
        Self { block, checks, own, rows, row, version: 0, heartbeats: 0 }
    }

    /// Returns the number of publications through this table, excluding heartbeats.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the number of published heartbeats.
    #[must_use]
    pub const fn heartbeats(&self) -> u64 {
        self.heartbeats
    }

    /// Returns the offset of a column in a row of `row_bytes` bytes. The cost is the same in every
    /// view; the offset is computed several times per member in each check of the view.
    fn offset(&self, row_bytes: usize, column: ViewColumn) -> Option<usize> {
        let block = self.block.as_ref()?;
        row_bytes.checked_sub(block.bytes())?.checked_add(block.offset(column)?)
    }

    /// Returns the offset of a column in the local row.
    pub(crate) fn own_offset(&self, column: ViewColumn) -> Option<usize> {
        self.offset(self.row.bytes(), column)
    }
}

impl<'m> RowTable<'m> {
    /// Returns whether every cell of a member's row passes its check. Always true if checks are
    /// off.
    pub(crate) fn is_readable(&self, owner: Rank) -> bool {
        if !self.checks.is_on() {
            return true;
        }
        self.row_of(owner).is_none_or(|row| {
            let bytes = self.block.as_ref().map_or(0, ViewBlock::bytes);
            // bound: the cells of the block
            (row.bytes().saturating_sub(bytes)..row.bytes())
                .step_by(8)
                .all(|at| row.cell(at).is_ok_and(|cell| self.checks.unseal(cell.load()).is_some()))
        })
    }

    fn row_of(&self, owner: Rank) -> Option<Row<'m>> {
        if owner == self.own {
            return Some(self.row.reader());
        }
        self.rows.get(owner.index()).copied()
    }

    /// Returns a cell of a member's row, `behind` bytes after the start of the column.
    fn cell(&self, owner: Rank, column: ViewColumn, behind: usize) -> Option<Cell<'m>> {
        let row = self.row_of(owner)?;
        row.cell(self.offset(row.bytes(), column)?.checked_add(behind)?).ok()
    }

    /// Returns the value of a column with checks, or `None` if the column fails its check.
    fn load_checked(&self, owner: Rank, column: ViewColumn) -> Option<u64> {
        let read = |behind| match self.cell(owner, column, behind) {
            Some(cell) if owner == self.own => Some(self.checks.own(cell.load())),
            Some(cell) => self.checks.unseal(cell.load()),
            None => Some(0),
        };
        match column {
            ViewColumn::Suspicions(_) => Some(checked::joined([read(0)?, read(8)?])),
            _ => Some(checked::unpack(column, read(0)?)),
        }
    }

    fn publish_checked(&self, column: ViewColumn, value: u64) -> Option<()> {
        let publish = |behind, value| {
            let at = self.own_offset(column)?.checked_add(behind)?;
            let cell = self.row.cell(at).ok()?;
            let sealed = self.checks.seal(value);
            if cell.load() != sealed {
                cell.publish(sealed);
            }
            Some(())
        };
        match column {
            ViewColumn::Suspicions(_) => {
                let [low, high] = checked::halves(value);
                publish(0, low)?;
                publish(8, high)
            }
            _ => publish(0, checked::pack(column, value)),
        }
    }

    fn publish_plain(&self, column: ViewColumn, value: u64) -> Option<()> {
        self.row.cell(self.own_offset(column)?).ok()?.publish(value);
        Some(())
    }
}

impl Table for RowTable<'_> {
    fn load(&self, owner: Rank, column: ViewColumn) -> u64 {
        if self.checks.is_on() {
            return self.load_checked(owner, column).unwrap_or_else(|| checked::unreadable(column));
        }
        self.cell(owner, column, 0).map_or(0, |cell| cell.load())
    }

    fn publish(&mut self, column: ViewColumn, value: u64) {
        let published = match self.checks {
            Checks::Off => self.publish_plain(column, value),
            Checks::On => self.publish_checked(column, value),
        };
        if published.is_some() {
            let count = if column == ViewColumn::Heartbeat {
                &mut self.heartbeats
            } else {
                &mut self.version
            };
            *count = count.saturating_add(1);
        }
    }
}
