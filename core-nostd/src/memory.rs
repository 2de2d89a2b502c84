//! Lent memory, accessed as cells, slots and payloads. This module contains the core's only
//! `unsafe` code.
//!
//! A row is a range of bytes that its owner writes and all members read concurrently, possibly from
//! other processes. Two rules make that sound, and the rest of the core follows them:
//!
//! 1. A *cell* is 8 bytes, aligned to 8, and is accessed only by atomic operations.
//! 2. A *payload* is written while its slot's counter says that the slot has no message, and is
//!    read after an acquire load of the counter has shown that it has one. The counter is stored
//!    with release ordering. A slot is reused once all members' delivered frontiers are past it
//!    (SMC-2); the slot's owner reads these frontiers with acquire ordering.
//!
//! Rows need only rule 1: [`Row`] and [`RowWriter`] can be copied and used by any code, and each of
//! their accesses is atomic, 8 bytes at a time. Only a node creates slices of payloads, and the
//! caller that opens a node promises rule 2 ([`NodeMemory::new`]).
//!
//! A peer that breaks rule 2 can change bytes while they are read, but it cannot move a read: every
//! offset and length comes from the reader's own layout, and every value from a peer is first
//! compared with that layout.
//!
//! Accessors are total: a slot or a length that is out of range is brought into range, so safety
//! never depends on a caller. This is tested in each file, in simulated runs with torn writes, and
//! by `.ci/miri`.
//!
//! | file | contents |
//! |---|---|
//! | `line` | a cache line of cells |
//! | `row` | a row and its cells: rule 1 |
//! | `ring` | a ring and its slots: rule 2 |
//! | `lending` | the memory that a node is opened on |
//! | `walk` | the slots of a ring, one after the other |
//! | `prefetch` | prefetching of lines before they are written (feature `prefetch`) |
//!
//! Requirement: MEM-1.

#[cfg(feature = "blocks")]
mod blocks;
mod lending;
mod line;
#[cfg(feature = "prefetch")]
mod prefetch;
mod ring;
mod row;
mod walk;

#[cfg(feature = "blocks")]
pub use blocks::{BlockMemory, BlockPages, OutOfBlock};
pub use lending::NodeMemory;
pub use line::{Line, OutOfRow};
pub use ring::{OwnRing, Ring, RingPlace};
pub use row::{Cell, OwnCell, Row, RowWriter};
pub(crate) use walk::{HERE, OwnWalk, RingWalk};
