//! The paper's trees for eight groups of shards, by name.

use clap::ValueEnum;

/// The trees of TRAM, section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tree {
    /// Each group has up to two children
    Base,
    /// All groups are children of the first
    Breadth,
    /// Each group is the child of the previous one
    Depth,
}

impl Tree {
    /// Returns the parent of each of eight groups, by index.
    #[must_use]
    pub const fn parents(self) -> [Option<usize>; 8] {
        match self {
            Self::Base => [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2), Some(3)],
            Self::Breadth => [None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(0), Some(0)],
            Self::Depth => [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5), Some(6)],
        }
    }
}
