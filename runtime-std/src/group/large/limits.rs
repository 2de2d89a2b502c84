//! Limits of large messages, and the content of their slots.

use tramontane_core::rdmc::Algorithm;

/// The maximum size of a large message that a group file may allow, in bytes: 256 MiB. The thread
/// that sends the member's heartbeats also allocates the memory for a message and delivers it,
/// which takes about a tenth of a second at this size. For anything larger, use `tramontane-copy`.
pub const LARGE_MAX: u64 = 256 << 20;

/// The maximum number of large messages per sender in flight.
pub(crate) const WINDOW_MAX: u32 = 64;

/// The maximum number of buffers for large messages that a group file may require of a member, out
/// of the 1024 that a process can have. Over RDMA, the device may still briefly hold up to two
/// thirds of them when a view ends, while the next view already uses others.
pub(crate) const BUFFERS_MAX: usize = 600;

/// The number of buffers kept for reuse.
pub(crate) const POOL_MAX: usize = 256;

/// The schedule and the block size for a subgroup's large messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeBlocks {
    /// The schedule, which says which member sends which block to which member.
    pub algorithm: Algorithm,
    /// The size in bytes of every block except the last of a message; at least one.
    pub bytes: usize,
}

/// The size in bytes of the slot content for a large message, which is the message's length.
pub(crate) const DESCRIPTION_BYTES: usize = 8;

/// Returns the slot content for a message of `bytes` bytes.
pub(crate) fn describe(bytes: usize) -> [u8; DESCRIPTION_BYTES] {
    u64::try_from(bytes).unwrap_or(u64::MAX).to_le_bytes()
}
