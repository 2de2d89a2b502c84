//! An owner's messages to one peer about its regions in a view: the peer's rights, and how much of
//! the peer's posts the owner has taken.
//!
//! The lanes, one per member, follow the owner's row in the same memory:
//!
//! ```text
//! a line     rights, one word per region: odd while the peer may write; grows with each change
//! a line     denied, one word per region: the first list denied last, plus one; zero if none was
//! a line     taken: bytes of the peer's write queue that were applied or denied
//! ```
//!
//! # Invariants
//! - Only the owner writes to a lane; the peer reads it.
//! - `taken` is stored with release after what it covers: the applied bytes, and the words about
//!   denied lists.
//! - A right that is granted again has a new number. Lists posted under an earlier right are not
//!   applied under a later one, so no list is applied after one that has been denied.

use std::sync::atomic::{AtomicU64, Ordering};

use tramontane_core::ids::Rank;
use tramontane_core::layout::CACHE_LINE;

use super::map::Map;
use super::region_memory::{REGIONS_MAX, RegionIndex};

const DENIED_AT: usize = CACHE_LINE;
const TAKEN_AT: usize = 2 * CACHE_LINE;
const LANE_BYTES: usize = 3 * CACHE_LINE;

const _: () = assert!(REGIONS_MAX * 8 <= CACHE_LINE, "a word a region fits into a line");

/// Returns the size, in bytes, of a member's lanes in a group of `members` members.
pub(super) const fn bytes(members: usize) -> usize {
    members.saturating_mul(LANE_BYTES)
}

/// The number of a right, which is odd while the right exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Right(pub(super) u64);

impl Right {
    /// Returns whether the peer may write.
    #[inline]
    pub(super) const fn is_given(self) -> bool {
        self.0 % 2 == 1
    }

    /// Returns the next number: a right granted or revoked.
    pub(super) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

/// An owner's messages to one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionLane<'m> {
    map: &'m Map,
    at: usize,
}

impl<'m> RegionLane<'m> {
    /// Returns the lane for `peer`. The lanes start at offset `at` of the mapping, which must
    /// contain them all.
    #[inline]
    pub(super) fn new(map: &'m Map, at: usize, peer: Rank) -> Self {
        Self { map, at: at + peer.index() * LANE_BYTES }
    }

    /// Returns the peer's right to a region.
    #[inline]
    pub(super) fn right(self, region: RegionIndex) -> Right {
        Right(self.word(region.0 * 8).load(Ordering::Acquire))
    }

    /// Publishes the peer's right. Called by the owner.
    pub(super) fn set_right(self, region: RegionIndex, right: Right) {
        self.word(region.0 * 8).store(right.0, Ordering::Release);
    }

    /// Returns one more than the queue position of the first denied list, in the last denial of
    /// lists to a region.
    pub(super) fn denied(self, region: RegionIndex) -> u64 {
        self.word(DENIED_AT + region.0 * 8).load(Ordering::Relaxed)
    }

    /// Publishes that position, before [`set_taken`](Self::set_taken). Called by the owner.
    pub(super) fn set_denied(self, region: RegionIndex, place: u64) {
        self.word(DENIED_AT + region.0 * 8).store(place + 1, Ordering::Relaxed);
    }

    /// Returns the number of bytes that the owner has taken from the peer's queue.
    #[inline]
    pub(super) fn taken(self) -> u64 {
        self.word(TAKEN_AT).load(Ordering::Acquire)
    }

    /// Publishes that count. Called by the owner.
    pub(super) fn set_taken(self, bytes: u64) {
        self.word(TAKEN_AT).store(bytes, Ordering::Release);
    }

    #[inline]
    fn word(self, offset: usize) -> &'m AtomicU64 {
        self.map.cell(self.at + offset)
    }
}
