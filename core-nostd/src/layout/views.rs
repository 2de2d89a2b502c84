//! The columns of the view protocol: their offsets in a row and their sizes.
//!
//! A row has these columns only if its group was laid out with [`Layout::with_views`]. They follow
//! everything else, so a fixed membership is laid out as if they did not exist.
//!
//! ```text
//! | heartbeat leaving join - | stance committed installed - | suspicions | entries | wedged, trim per subgroup |
//! ```
//!
//! The three cells in the middle are guards; they are adjacent so that one write carries them. All
//! other cells are either content guarded by `stance` or need no order.
//!
//! Requirements: LAY-1, LAY-3.

use super::configuration::{Group, LayoutError};
use super::limits::BLOCK;
use super::map::Layout;
use super::processor::LineSize;
use crate::check::Checks;
use crate::ids::{Rank, SubgroupId, index_from_u16};

/// Maximum number of joins in one view change. Further joins wait for the next view (VIE-5).
pub const JOINS_MAX: usize = 16;

/// Number of flags in one cell.
pub(crate) const FLAGS_PER_WORD: usize = 64;

/// A column of the view protocol. Every cell only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ViewColumn {
    /// Count that grows as long as the row's owner is alive (VIE-2).
    Heartbeat,
    /// Nonzero once the row's owner wants to leave (VIE-9).
    Leaving,
    /// Node that the row's owner asks the group to admit, or for which it has withdrawn that
    /// request (VIE-10).
    JoinRequest,
    /// The row owner's promise and acceptance: the guard of the proposals and the trims (VIE-4,
    /// VIE-5).
    Stance,
    /// Commitments that the row's owner knows of.
    Committed,
    /// Newest view that the row's owner has installed, plus one.
    Installed,
    /// Flags of 64 suspected members; word `w` covers ranks `64 * w` to `64 * w + 63`.
    Suspicions(u16),
    /// One proposed change with its proposer.
    Entry(u16),
    /// Final received frontier of the row's owner in a subgroup, plus one; zero until the owner has
    /// wedged (VIE-6).
    Wedged(SubgroupId),
    /// Ragged trim: the position at which the view ends in a subgroup, plus one; zero until the
    /// trim is set (VIE-6).
    Trim(SubgroupId),
}

/// The area that the view protocol occupies in each row, for a given number of members and
/// subgroups.
///
/// ```
/// use tramontane_core::layout::{ViewBlock, ViewColumn};
/// let block = ViewBlock::new(16, 4);
/// assert_eq!(block.entries(), 16 + 2 * 16 + 1);
/// assert_eq!(block.bytes(), 640);
/// assert_eq!(block.offset(ViewColumn::Heartbeat), Some(0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ViewBlock {
    members: usize,
    subgroups: usize,
    checks: Checks,
    line: LineSize,
}

impl ViewBlock {
    /// Creates the block for a view with `members` members and `subgroups` subgroups.
    #[must_use]
    pub const fn new(members: usize, subgroups: usize) -> Self {
        Self { members, subgroups, checks: Checks::Off, line: LineSize::Bytes64 }
    }

    /// Sets whether cells carry checks. If they do, a word of suspicions takes two cells of 32
    /// flags each.
    #[must_use]
    pub const fn with_checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// Sets the cache line size.
    #[must_use]
    pub const fn with_line_size(self, line: LineSize) -> Self {
        Self { line, ..self }
    }

    /// Returns the number of bytes before the first suspicion word: one cache line.
    const fn head(&self) -> usize {
        self.line.bytes()
    }

    /// Returns the size in bytes of a word of suspicions.
    const fn word_bytes(&self) -> usize {
        if self.checks.is_on() { 16 } else { 8 }
    }

    /// Returns the number of suspicion words.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.members.div_ceil(FLAGS_PER_WORD)
    }

    /// Returns the number of proposals that a row holds: each member is removed or leaves once,
    /// each join may be withdrawn, and one entry seals.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.members.saturating_add(2 * JOINS_MAX + 1)
    }

    /// Returns the size in bytes of the whole block: a multiple of [`BLOCK`], and at most `8*n +
    /// 16*m + n/8 + 536` for `n` members and `m` subgroups.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        super::map::round_up(self.subgroup_offset(self.subgroups), BLOCK)
    }

    /// Returns the offset of a column, in bytes from the start of the block, or `None` if the view
    /// has no such column.
    #[must_use]
    pub const fn offset(&self, column: ViewColumn) -> Option<usize> {
        match column {
            ViewColumn::Heartbeat => Some(0),
            ViewColumn::Leaving => Some(8),
            ViewColumn::JoinRequest => Some(16),
            ViewColumn::Stance => Some(32),
            ViewColumn::Committed => Some(40),
            ViewColumn::Installed => Some(48),
            ViewColumn::Suspicions(word) => {
                cell_of(self.head(), index_from_u16(word), self.words(), self.word_bytes())
            }
            ViewColumn::Entry(index) => {
                cell_of(self.entry_offset(), index_from_u16(index), self.entries(), 8)
            }
            ViewColumn::Wedged(subgroup) => {
                cell_of(self.subgroup_offset(0), subgroup.index(), self.subgroups, 16)
            }
            ViewColumn::Trim(subgroup) => cell_of(
                self.subgroup_offset(0).saturating_add(8),
                subgroup.index(),
                self.subgroups,
                16,
            ),
        }
    }

    const fn entry_offset(&self) -> usize {
        self.head().saturating_add(self.words().saturating_mul(self.word_bytes()))
    }

    const fn subgroup_offset(&self, subgroup: usize) -> usize {
        let entries = self.entries().saturating_mul(8);
        self.entry_offset().saturating_add(entries).saturating_add(subgroup.saturating_mul(16))
    }
}

impl<'c> Layout<'c> {
    /// Checks and lays out a group as [`Layout::new`] does, and adds the columns of the view
    /// protocol, so that the membership may change.
    ///
    /// # Errors
    /// Fails as [`Layout::new`] does.
    pub const fn with_views(group: Group<'c>) -> Result<Self, LayoutError> {
        match Self::new(group) {
            Ok(fixed) => {
                let view_columns = ViewBlock::new(fixed.members(), group.subgroups.len()).bytes();
                Self { view_columns, ..fixed }.measured()
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the same layout with the size of its columns recomputed, if it has any.
    pub(super) const fn with_measured_columns(self) -> Self {
        match self.view_block() {
            Some(block) => Self { view_columns: block.bytes(), ..self },
            None => self,
        }
    }

    /// Returns the view protocol's block in each row, if the membership may change.
    #[must_use]
    pub const fn view_block(&self) -> Option<ViewBlock> {
        if self.view_columns > 0 {
            let block = ViewBlock::new(self.members(), self.group.subgroups.len());
            Some(block.with_checks(self.checks).with_line_size(self.line))
        } else {
            None
        }
    }

    /// Returns the offset of a column of the view protocol in a member's row, if the group has it.
    #[must_use]
    pub const fn view_offset(&self, owner: Rank, column: ViewColumn) -> Option<usize> {
        let Some(block) = self.view_block() else {
            return None;
        };
        match block.offset(column) {
            Some(offset) => Some(self.multicast_bytes(owner).saturating_add(offset)),
            None => None,
        }
    }
}

/// Returns the offset of cell `index` of `count` cells that are `stride` bytes apart.
const fn cell_of(start: usize, index: usize, count: usize, stride: usize) -> Option<usize> {
    if index < count { Some(start.saturating_add(index.saturating_mul(stride))) } else { None }
}
