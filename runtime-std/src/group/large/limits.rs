//! Bounds of large messages, and what stands in their slots.

use tramontane_core::rdmc::Algorithm;

/// The longest large message that a group file may allow, in bytes: 256 MiB. Memory for one is
/// made, and one is handed over, in the thread that keeps up the member's heartbeats, some tenth of
/// a second for so much. What is larger goes by `tramontane-copy`.
pub const LARGE_MAX: u64 = 256 << 20;

/// Large messages of one sender under way at a time, at most.
pub(crate) const WINDOW_MAX: u32 = 64;

/// Buffers of a member that large messages are in: so many may be asked for by the group file, of
/// the 1024 that a process can have. Over RDMA up to two of three of them are the device's for a
/// moment, when a view ends, and the next view has others.
pub(crate) const BUFFERS_MAX: usize = 600;

/// Buffers that are kept for what comes next.
pub(crate) const POOL_MAX: usize = 256;

/// How the blocks of a subgroup's large messages go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargeBlocks {
    /// Which member sends which block to which.
    pub algorithm: Algorithm,
    /// Bytes of every block but a message's last; at least one.
    pub bytes: usize,
}

/// Bytes of what stands in a large message's slot: its length.
pub(crate) const DESCRIPTION_BYTES: usize = 8;

/// What stands in the slot of a message of so many bytes.
pub(crate) fn describe(bytes: usize) -> [u8; DESCRIPTION_BYTES] {
    u64::try_from(bytes).unwrap_or(u64::MAX).to_le_bytes()
}
