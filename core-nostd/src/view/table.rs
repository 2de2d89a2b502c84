//! Where the view protocol reads and writes, and what it asks of its node: its two narrow
//! interfaces.
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

/// The view columns of all rows, as one member sees them.
///
/// An implementation keeps two promises: a reader that sees a published cell and then calls
/// [`Host::observe`] sees all that its owner published before, and a cell that is not there reads
/// as zero.
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

    /// Makes the memory of the next view ready; true once peers may write to it (VIE-11). Called
    /// again until it is true. If the view differs from the one asked for before, the earlier one
    /// will not come to be.
    fn prepare(&mut self, next: NextView<'_>) -> bool;

    /// Makes durable what this member is about to promise by its echo of a sealed list (DUR-6): the
    /// next view and the ballot of the list, and in each logged subgroup of this member all that it
    /// received up to the trim; true once all of that is. Called again until it is true. If the
    /// promise differs from the one asked for before, this member never echoes the earlier one: it
    /// takes the earlier one's place, and what a log holds beyond the new trim goes.
    ///
    /// # Errors
    /// That member changed what was received from it: what lies behind can never be durable here.
    fn promise(
        &mut self,
        _next: NextView<'_>,
        _ballot: Ballot,
        _trim: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        Ok(true)
    }

    /// Delivers a subgroup up to its trim; true once that is done. Called again until it is.
    ///
    /// # Errors
    /// That member changed what was received from it: what lies behind can never be delivered here.
    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved>;

    /// Called between seeing a guard in a peer's row, one of `Stance`, `Committed` and `Installed`,
    /// and reading what it guards (HAL-1). It does nothing where a [`Table`] keeps its first
    /// promise by itself.
    fn observe(&self) {}

    /// Stops traffic with a peer in both directions, and reads nothing more from its row (VIE-3).
    fn cut(&mut self, peer: Rank, cause: Cause);
}

/// The view columns in the rows of a layout.
#[derive(Debug)]
pub struct RowTable<'m> {
    /// The columns stand at the end of every row, so a row's length says where they begin.
    block: Option<ViewBlock>,
    checks: Checks,
    own: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    /// Counts publications, so that its owner knows whether there is something to post.
    version: u64,
    /// The same for heartbeats, of which there are many and which guard nothing.
    heartbeats: u64,
}

impl<'m> RowTable<'m> {
    /// The table over all rows in rank order, the own one included; each as long as the layout
    /// says. No cell of a row of another length would be where its owner has it.
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

    /// Where a column lies in a row of so many bytes. It costs the same in every view: it is
    /// computed several times a member in each check of the view.
    fn offset(&self, row_bytes: usize, column: ViewColumn) -> Option<usize> {
        let block = self.block.as_ref()?;
        row_bytes.checked_sub(block.bytes())?.checked_add(block.offset(column)?)
    }

    /// Where a column lies in the own row.
    pub(crate) fn own_offset(&self, column: ViewColumn) -> Option<usize> {
        self.offset(self.row.bytes(), column)
    }
}

impl<'m> RowTable<'m> {
    /// Whether every cell of a member's row passes its check. Always true where there are no
    /// checks.
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

    /// A cell of a member's row, so many bytes behind where the column begins.
    fn cell(&self, owner: Rank, column: ViewColumn, behind: usize) -> Option<Cell<'m>> {
        let row = self.row_of(owner)?;
        row.cell(self.offset(row.bytes(), column)?.checked_add(behind)?).ok()
    }

    /// What a column with checks says; nothing if it fails its check.
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
