//! A write, and the list of writes that one post carries.
//!
//! Requirements: FAB-1, REL-1.

use crate::ids::Rank;
use crate::layout::MEMBERS_MAX;

/// Maximum number of writes that the core puts into one list, even if the fabric accepts more.
pub const WRITES_MAX: usize = 16;

/// The writes of one post.
pub type WriteList = heapless::Vec<Write, WRITES_MAX>;

/// A piece of registered memory. The rows of the shared state table form one region; other regions
/// have their own protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Region(pub u16);

impl Region {
    /// Region of the rows: the writer's own row, and the peers' copies of it.
    pub const ROW: Self = Self(0);

    /// The first of the regions that stand for copies of rows.
    const COPIES: u16 = 1 << 15;

    /// Returns the region of the copies of a member's row: as a source the local copy, and as a
    /// target the peer's copy. Only fabrics that promise [`RELAYS`](super::Promises::RELAYS) carry
    /// writes of it.
    #[must_use]
    pub const fn copy_of(owner: Rank) -> Self {
        Self(Self::COPIES | owner.0)
    }

    /// Returns the member whose row the copies of this region show, or `None` for other regions.
    #[must_use]
    pub const fn owner(self) -> Option<Rank> {
        if self.0 < Self::COPIES { None } else { Some(Rank(self.0 & !Self::COPIES)) }
    }
}

/// A position in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Area {
    /// The region.
    pub region: Region,
    /// Offset from the start of the region, in bytes.
    pub offset: usize,
}

/// Identifies a posted list in its completion. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token(pub u64);

/// Time at which the bytes of a write are read: during the call, or at any time until completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// The bytes may be read from memory until the list has completed. A payload among them must
    /// not change until then, but a cell may grow.
    Content,
    /// The write carries the bytes as they were at the call. Otherwise, hardware that reads late
    /// would send a newer guard before the content that it guards.
    Guard,
}

/// One write: source, target, length and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Write {
    /// Source in the writer's memory.
    pub source: Area,
    /// Target in the peer's memory.
    pub target: Area,
    /// Length in bytes.
    pub length: usize,
    /// Content or guard.
    pub kind: Kind,
}

impl Write {
    /// Creates a write from the local row to the same offset in the peer's copy.
    #[must_use]
    pub const fn of_row(offset: usize, length: usize, kind: Kind) -> Self {
        Self::within(Region::ROW, offset, length, kind)
    }

    /// Creates a write from a region to the same offset in the peer's region.
    #[must_use]
    pub(crate) const fn within(region: Region, offset: usize, length: usize, kind: Kind) -> Self {
        let area = Area { region, offset };
        Self { source: area, target: area, length, kind }
    }
}

// A rank leaves the bit that marks copies free.
const _: () = assert!(MEMBERS_MAX <= 1 << 15);
