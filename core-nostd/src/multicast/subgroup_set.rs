//! A set of a node's subgroups in one word, for loops that visit few of many subgroups.
//!
//! Requirement: BAT-5.

use crate::ids::index_from_u32;

/// A set of subgroups, by their indices in the node's list. Those whose indices differ by a
/// multiple of 64 are in it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SubgroupSet(u64);

impl SubgroupSet {
    /// No subgroup.
    pub(crate) const NONE: Self = Self(0);

    /// Every subgroup.
    pub(crate) const ALL: Self = Self(u64::MAX);

    /// Returns the set whose subgroups have the bits that are one: bit `index mod 64`.
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the set of one subgroup.
    pub(crate) const fn only(index: usize) -> Self {
        Self(1_u64 << (index % 64))
    }

    /// Returns the first subgroup of the set from `index` on. An empty set returns a larger index.
    #[inline]
    pub(crate) fn next(self, index: usize) -> usize {
        let from_index = self.0.rotate_right(u32::try_from(index % 64).unwrap_or(0));
        index.saturating_add(index_from_u32(from_index.trailing_zeros()))
    }

    /// Returns the set of the subgroups in one of the two sets.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set of all other subgroups.
    pub(crate) const fn others(self) -> Self {
        Self(!self.0)
    }

    /// Returns whether the set contains no subgroup.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
