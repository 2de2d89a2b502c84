//! What the owner of regions says to one peer in a view: which rights it has, and how far what it
//! posted has been taken.
//!
//! A lane stands behind the owner's row, in the memory of the row, one for each member:
//!
//! ```text
//! a line     rights, a word a region: odd while the peer may write; grows with each change
//! a line     denied, a word a region: behind the first list that was denied last; zero if none was
//! a line     taken: bytes of the peer's write queue that were applied or denied
//! ```
//!
//! # Invariants
//! - The owner alone writes; the peer reads.
//! - `taken` is stored with release behind what it speaks for: the bytes that were applied, and the
//!   words about what was denied.
//! - A right that is given again has another number. What was posted by an earlier one is not
//!   applied by the later, so no list lands behind one that was denied.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::ids::Rank;
use tramontane_core::layout::CACHE_LINE;

use super::map::Map;
use super::region_memory::{REGIONS_MAX, RegionIndex};

const DENIED_AT: usize = CACHE_LINE;
const TAKEN_AT: usize = 2 * CACHE_LINE;
const LANE_BYTES: usize = 3 * CACHE_LINE;

const _: () = assert!(REGIONS_MAX * 8 <= CACHE_LINE, "a word a region fits into a line");

/// What the lanes of a member take in a group of so many members, in bytes.
pub(super) const fn bytes(members: usize) -> usize {
    members.saturating_mul(LANE_BYTES)
}

/// The number of a right: odd while it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Right(pub(super) u64);

impl Right {
    /// Whether the peer may write.
    #[inline]
    pub(super) const fn is_given(self) -> bool {
        self.0 % 2 == 1
    }

    /// What comes after it: a right given, or taken back.
    pub(super) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// What an owner says to one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionLane<'m> {
    map: &'m Map,
    at: usize,
}

impl<'m> RegionLane<'m> {
    /// The lane for a peer, of lanes that start at an offset of the mapping, all of which is in it.
    #[inline]
    pub(super) fn new(map: &'m Map, at: usize, peer: Rank) -> Self {
        Self { map, at: at + peer.index() * LANE_BYTES }
    }

    /// The peer's right to a region.
    #[inline]
    pub(super) fn right(self, region: RegionIndex) -> Right {
        Right(self.word(region.0 * 8).load(Ordering::Acquire))
    }

    /// Says it. For the owner.
    pub(super) fn set_right(self, region: RegionIndex, right: Right) {
        self.word(region.0 * 8).store(right.0, Ordering::Release);
    }

    /// Where the peer's queue held the first list to a region that was denied last, and one more.
    pub(super) fn denied(self, region: RegionIndex) -> u64 {
        self.word(DENIED_AT + region.0 * 8).load(Ordering::Relaxed)
    }

    /// Says it, before [`set_taken`](Self::set_taken). For the owner.
    pub(super) fn set_denied(self, region: RegionIndex, place: u64) {
        self.word(DENIED_AT + region.0 * 8).store(place + 1, Ordering::Relaxed);
    }

    /// How much of the peer's queue the owner has taken.
    #[inline]
    pub(super) fn taken(self) -> u64 {
        self.word(TAKEN_AT).load(Ordering::Acquire)
    }

    /// Says it. For the owner.
    pub(super) fn set_taken(self, bytes: u64) {
        self.word(TAKEN_AT).store(bytes, Ordering::Release);
    }

    #[inline]
    fn word(self, offset: usize) -> &'m AtomicU64 {
        self.map.cell(self.at + offset)
    }
}
