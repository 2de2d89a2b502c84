//! From a configuration to byte offsets, sizes and a digest, all in `const fn`: a partition
//! computes its memory at compile time, a host at start-up, and both get the same numbers.
//!
//! Each member owns one row. A row holds a header, then for each subgroup that its owner belongs to
//! a control block, and behind it, if the owner sends there, the ring:
//!
//! ```text
//! | header 128 | control of a subgroup | ring: w slots | control of the next | ...
//! ```
//!
//! Where membership may change (the feature `views`), the columns of the view protocol follow at
//! the end.
//!
//! Where block groups share the rows, their cells stand before the subgroups, at the same place in
//! every row (`channels`, with the feature `blocks`).
//!
//! In a subgroup that is logged (`durable`, with that feature), the control block has one more
//! cell.
//!
//! With checks, each cell and each slot carries its own (`checks`).
//!
//! Rows of different members differ in size: a row has no room for a ring that its owner does not
//! fill. Sources: Spindle II-B (the table), II-C (the slots); requirements SMC-1 and BAT-4.
//!
//! Requirement: LAY-1.

mod bounds;
#[cfg(feature = "blocks")]
mod channels;
mod checks;
mod configuration;
mod digest;
#[cfg(feature = "durable")]
mod durable;
mod health;
mod map;
mod processor;
#[cfg(feature = "views")]
mod views;

pub use bounds::StepBounds;
pub use configuration::{Delivery, Group, LayoutError, Subgroup};
#[cfg(feature = "tram")]
pub(crate) use digest::Digest;
pub use health::HeaderCell;
pub use map::{ControlCell, Layout, RingShape, StateSizes};
pub use processor::{ByteOrder, DigestMismatch, LineSize};
#[cfg(feature = "views")]
pub(crate) use views::FLAGS_PER_WORD;
#[cfg(feature = "views")]
pub use views::{JOINS_MAX, ViewBlock, ViewColumn};

/// Bytes that move between caches together, unless a layout says otherwise
/// ([`Layout::with_line_size`]). Rings start on such a line.
pub const CACHE_LINE: usize = 64;

/// What control blocks are aligned to: two lines, since x86 prefetches lines in pairs and a
/// neighbour's traffic would otherwise travel with ours.
pub const BLOCK: usize = 128;

/// Slots are laid on multiples of this (SMC-1), so that four small messages share a line.
pub const SLOT_ALIGN: usize = 16;

/// What a slot holds beside its payload: a length of 4 bytes and the counter of 8, at its end
/// (SMC-6).
pub const SLOT_HEADER: usize = 12;

/// The same with checks: before these, a check of 8 bytes on a multiple of 8.
pub const SLOT_HEADER_CHECKED: usize = 24;

/// What a channel of block transfers takes in each row, in bytes: one cache line, or more where
/// lines are larger.
pub const CHANNEL_BYTES: usize = CACHE_LINE;

/// The most members of a group, and so the bound of every loop over them.
pub const MEMBERS_MAX: usize = 1024;

/// The most subgroups of a group.
pub const SUBGROUPS_MAX: usize = 1024;

/// The most slots of one ring.
pub const WINDOW_MAX: u32 = 1 << 20;

/// The largest payload of a slot, in bytes. What is larger goes by block multicast.
pub const MESSAGE_MAX: u32 = 1 << 28;

/// The largest row, in bytes: a quarter of what can be addressed, so that no offset in it
/// overflows.
pub const ROW_MAX: usize = usize::MAX >> 2;
