//! Limits of large messages, and the content of their slots.

use tramontane_core::rdmc::Algorithm;

/// The longest large message that a group file may allow, in bytes: 256 MiB. The thread that keeps
/// up the member's heartbeats also allocates the memory for a message and delivers it, which takes
/// about a tenth of a second at this size. `tramontane-copy` transfers anything larger.
pub const LARGE_MAX: u64 = 256 << 20;

/// The largest number of large messages of one sender in flight at a time.
pub(crate) const WINDOW_MAX: u32 = 64;

/// The most buffers for large messages that a group file may require of a member, out of the 1024
/// that a process can have. Over RDMA the device may still hold up to two thirds of them for a
/// moment when a view ends, while the next view has others.
pub(crate) const BUFFERS_MAX: usize = 600;

/// The number of buffers kept for reuse.
pub(crate) const POOL_MAX: usize = 256;

/// How the blocks of a subgroup's large messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeBlocks {
    /// The schedule: which member sends which block to which.
    pub algorithm: Algorithm,
    /// The size in bytes of every block except a message's last; at least one.
    pub bytes: usize,
}

/// The size in bytes of a large message's slot content: its length.
pub(crate) const DESCRIPTION_BYTES: usize = 8;

/// Returns the slot content of a message of `bytes` bytes.
pub(crate) fn describe(bytes: usize) -> [u8; DESCRIPTION_BYTES] {
    u64::try_from(bytes).unwrap_or(u64::MAX).to_le_bytes()
}
