//! Building blocks of rows, and upper limits on sizes.
//!
//! Requirement: LAY-1.

/// Number of bytes that move together between caches, unless the layout sets another size
/// ([`with_line_size`](super::Layout::with_line_size)). Rings start on a boundary of such a line.
pub const CACHE_LINE: usize = 64;

/// Alignment of control blocks: two lines, because x86 prefetches lines in pairs so that traffic on
/// a neighbouring line would otherwise fetch the block's line too.
pub const BLOCK: usize = 128;

/// Alignment of slots (SMC-1): four small messages share a line.
pub const SLOT_ALIGN: usize = 16;

/// Size in bytes of a slot's header, which it has in addition to its payload: a 4-byte length and
/// the 8-byte counter at its end (SMC-6).
pub const SLOT_HEADER: usize = 12;

/// Size in bytes of a slot's header with checks: an 8-byte check, aligned to 8, precedes length and
/// counter.
pub const SLOT_HEADER_CHECKED: usize = 24;

/// Size in bytes of a block transfer channel in each row: one cache line, or more if the lines are
/// larger.
pub const CHANNEL_BYTES: usize = CACHE_LINE;

/// Maximum number of members in a group, and thus the bound of every loop over members.
pub const MEMBERS_MAX: usize = 1024;

/// Maximum number of subgroups in a group.
pub const SUBGROUPS_MAX: usize = 1024;

/// Maximum number of slots in one ring.
pub const WINDOW_MAX: u32 = 1 << 20;

/// Largest payload of a slot, in bytes. Larger messages use block multicast.
pub const MESSAGE_MAX: u32 = 1 << 28;

/// Largest row, in bytes: a quarter of the address space, so that no offset in it overflows.
pub const ROW_MAX: usize = usize::MAX >> 2;
