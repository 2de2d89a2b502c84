//! Hooks for tests of shared memory. Loom's atomics replace the atomics of the hand-off between
//! threads when its interleavings are searched. The points between two accesses to rows let other
//! members of a simulated group run.
//!
//! Requirement: COR-4.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicU64, Ordering};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};

#[cfg(tramontane_interleave)]
pub(crate) use interleave::between_accesses;

/// Marks the point before each access to a cell of a row. The call does nothing except in searches
/// of the interleavings of whole groups.
#[cfg(not(tramontane_interleave))]
#[inline(always)]
pub(crate) const fn between_accesses() {}

#[cfg(tramontane_interleave)]
pub mod interleave;
