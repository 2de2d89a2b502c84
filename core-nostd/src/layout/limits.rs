//! What rows are made of, and how large anything in them may be.
//!
//! Requirement: LAY-1.

/// Bytes that move between caches together, unless a layout says otherwise
/// ([`with_line_size`](super::Layout::with_line_size)). Rings start on such a line.
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
