//! Where tests put their own in the place of shared memory: the atomics of the hand-off between
//! threads, replaced by loom's when its interleavings are searched; and the moments between two
//! accesses to rows, at which a simulated group has others go on.
//!
//! Requirement: COR-4.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(tramontane_interleave)]
pub(crate) use interleave::between_accesses;

/// A load of a cell of a row, or a store to one, is about to happen. Nothing, but where
/// interleavings of whole groups are searched.
#[cfg(not(tramontane_interleave))]
#[inline(always)]
pub(crate) const fn between_accesses() {}

#[cfg(tramontane_interleave)]
pub mod interleave;
