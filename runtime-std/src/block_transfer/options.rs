//! The options of block transfers, and the best ones for each fabric.

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use crate::carrier::Carrier;

/// The default block size in bytes. RDMC found 1 MB to be best for large messages (5.2.1).
pub const BLOCK_BYTES_DEFAULT: usize = 1 << 20;

/// For shared memory: the maximum size, in bytes, of messages that are sent in small blocks.
const SMALL_BYTES: usize = 4 << 20;

/// For shared memory: the block size of small messages, chosen so that each of several processors
/// has a block to copy.
const SMALL_BLOCK_BYTES: usize = 256 << 10;

/// For shared memory: the block size of larger messages. It is large enough that the fixed cost of
/// a block is small compared with its copy, and small enough that the block stays in a cache until
/// the last receiver has copied it.
const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// For shared memory: as many receives as the fabric accepts, and two sends for each of eight
/// receivers. The polling thread often yields its processor, and should find work when it runs
/// again.
const SHARED_WINDOW: Window = Window { receives: 16, sends: 16 };

/// For TCP: small enough to fill a pipeline quickly over a slow link, and large enough to hide the
/// cost of a block over a fast one.
const TCP_BLOCK_BYTES: usize = 128 << 10;

/// For TCP: a notice waits for everything queued on its connection, which takes the time of several
/// blocks, and a sender without a notice leaves its port idle. A send completes when the kernel has
/// accepted it. So two sends keep the port busy, but with more sends a later block would share the
/// port with an earlier one.
const TCP_WINDOW: Window = Window { receives: 8, sends: 2 };

/// The settings for sending a group's messages. They must be the same at all members.
#[derive(Clone, Copy, Debug)]
pub struct GroupOptions {
    /// The schedule, which says which member sends which block to which member.
    pub algorithm: Algorithm,
    /// The size in bytes of every block except the last of a message.
    pub block_bytes: usize,
    /// The maximum message size in bytes. Each block of such a message costs one bit of memory.
    pub message_max: usize,
    /// The maximum number of transfers in flight.
    pub window: Window,
}

impl Default for GroupOptions {
    /// Returns a pipeline of blocks of 1 MiB, for messages of up to 4 GiB.
    /// [`for_fabric`](Self::for_fabric) chooses the best options for a fabric.
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Pipeline,
            block_bytes: BLOCK_BYTES_DEFAULT,
            message_max: 1 << 32,
            window: Window::default(),
        }
    }
}

impl GroupOptions {
    /// Returns the best options for a fabric, for messages of up to `message_max` bytes.
    ///
    /// Over shared memory, every receiver copies for itself, directly from a member that has the
    /// block, so the root's sends cost the root nothing. Each block is offered to all receivers at
    /// once, and all copy it while it is in a cache that they share. Over the other fabrics, the
    /// root's port is the bottleneck, so a pipeline is used, which uses the ports of all members. A
    /// pipeline is also the better choice over shared memory if several roots send at the same
    /// time. Over TCP, its blocks are small and many receives are posted, because notices from a
    /// peer arrive late. `docs/lab-notes/slow-links.md` has the figures.
    #[must_use]
    pub fn for_fabric(carrier: Carrier, message_max: usize) -> Self {
        let usual = Self { message_max, ..Self::default() };
        match carrier {
            Carrier::SharedMemory => Self {
                algorithm: Algorithm::Interleaved,
                block_bytes: if message_max > SMALL_BYTES {
                    LARGE_BLOCK_BYTES
                } else {
                    SMALL_BLOCK_BYTES
                },
                window: SHARED_WINDOW,
                ..usual
            },
            Carrier::Tcp => Self { block_bytes: TCP_BLOCK_BYTES, window: TCP_WINDOW, ..usual },
            Carrier::Verbs => usual,
        }
    }

    pub(crate) fn blocks_max(&self) -> u32 {
        let blocks = self.message_max.div_ceil(self.block_bytes.max(1));
        // A message sent in a pipeline has at least two blocks.
        u32::try_from(blocks).unwrap_or(u32::MAX).max(2)
    }
}
