//! One write, and the list of writes that one post takes.
//!
//! Requirement: FAB-1.

/// The most writes that the core puts into one list, whatever the fabric could take.
pub const WRITES_MAX: usize = 16;

/// The writes of one post.
pub type WriteList = heapless::Vec<Write, WRITES_MAX>;

/// A piece of registered memory. The table's rows are one; others carry their own protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Region(pub u16);

impl Region {
    /// The writer's own row, and the peers' copies of it.
    pub const ROW: Self = Self(0);
}

/// A place in a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Area {
    /// Which region.
    pub region: Region,
    /// Bytes from its start.
    pub offset: usize,
}

/// Names a posted list, for its completion. The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Token(pub u64);

/// Whether bytes may still be read after the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Kind {
    /// May be read from memory until the list is completed. A payload in it does not change until
    /// then; a cell in it may grow.
    Content,
    /// Is carried as it was at the call. Without that, hardware that reads late would ship a newer
    /// guard before the content that it speaks for.
    Guard,
}

/// One write: where from, where to, how much, and what kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Write {
    /// Where the bytes are, in the writer's memory.
    pub source: Area,
    /// Where they go, in the peer's.
    pub target: Area,
    /// How many bytes.
    pub length: usize,
    /// Content or guard.
    pub kind: Kind,
}

impl Write {
    /// A write from the own row to the same place in the peer's copy of it.
    #[must_use]
    pub const fn of_row(offset: usize, length: usize, kind: Kind) -> Self {
        let area = Area { region: Region::ROW, offset };
        Self { source: area, target: area, length, kind }
    }
}
