//! Building blocks of rows, and upper limits on sizes.
//!
//! Requirement: LAY-1.

/// Bytes that move together between caches, unless the layout sets another size
/// ([`with_line_size`](super::Layout::with_line_size)). Rings start on such a line.
pub const CACHE_LINE: usize = 64;

/// Alignment of control blocks: two lines, because x86 prefetches lines in pairs and traffic on a
/// neighbouring line would otherwise fetch ours too.
pub const BLOCK: usize = 128;

/// Alignment of slots (SMC-1): four small messages share a line.
pub const SLOT_ALIGN: usize = 16;

/// Bytes of a slot in addition to its payload: a 4-byte length and the 8-byte counter at its end
/// (SMC-6).
pub const SLOT_HEADER: usize = 12;

/// The same with checks: an 8-byte check precedes these, aligned to 8.
pub const SLOT_HEADER_CHECKED: usize = 24;

/// Bytes of a block transfer channel in each row: one cache line, or more if the lines are larger.
pub const CHANNEL_BYTES: usize = CACHE_LINE;

/// Most members of a group, and so the bound of every loop over them.
pub const MEMBERS_MAX: usize = 1024;

/// Most subgroups of a group.
pub const SUBGROUPS_MAX: usize = 1024;

/// Most slots of one ring.
pub const WINDOW_MAX: u32 = 1 << 20;

/// Largest payload of a slot, in bytes. Larger messages use block multicast.
pub const MESSAGE_MAX: u32 = 1 << 28;

/// Largest row, in bytes: a quarter of the address space, so that no offset in it overflows.
pub const ROW_MAX: usize = usize::MAX >> 2;
