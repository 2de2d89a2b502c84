//! How messages go in blocks, and what suits which fabric.

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use crate::carrier::Carrier;

/// Bytes of a block where nothing else is said: RDMC found 1 MB best for large messages (5.2.1).
pub const BLOCK_BYTES_DEFAULT: usize = 1 << 20;

/// Over shared memory: messages up to here go in small blocks.
const SMALL_BYTES: usize = 4 << 20;

/// Over shared memory, of small messages: so that there is one for each of several processors.
const SMALL_BLOCK_BYTES: usize = 256 << 10;

/// Over shared memory, of larger ones: so much that what a block costs beside its copy does not
/// show, and so little that it stays in a cache until the last receiver has it.
const LARGE_BLOCK_BYTES: usize = 1 << 20;

/// Over shared memory: as many receives as its fabric takes, and two sends for each of eight
/// receivers. Whoever polls gives the processor away in between, and there should be something to
/// do when it has it again.
const SHARED_WINDOW: Window = Window { receives: 16, sends: 16 };

/// Over TCP: so little that a pipeline fills quickly over a slow link, and so much that what a
/// block costs beside its bytes hardly shows over a fast one.
const TCP_BLOCK_BYTES: usize = 128 << 10;

/// Over TCP: a notice waits behind whatever its way has queued, some blocks' time, and a sender
/// without a notice leaves its port idle. Sends are done when the kernel has them: two keep it
/// busy, and with more a later block shares the port with an earlier one.
const TCP_WINDOW: Window = Window { receives: 8, sends: 2 };

/// How a group's messages go. The same at all members.
#[derive(Clone, Copy, Debug)]
pub struct GroupOptions {
    /// Who sends which block to whom.
    pub algorithm: Algorithm,
    /// Bytes of every block but a message's last.
    pub block_bytes: usize,
    /// Bytes of the largest message; it costs a bit of memory a block.
    pub message_max: usize,
    /// How much is under way at a time.
    pub window: Window,
}

impl Default for GroupOptions {
    /// A pipeline of blocks of 1 MiB, for messages of up to 4 GiB. [`for_fabric`](Self::for_fabric)
    /// says what suits which fabric.
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
    /// What suits a fabric, for messages of up to `message_max` bytes.
    ///
    /// Over shared memory every receiver copies for itself, straight from whoever has a block, so a
    /// root's sends cost it nothing: each block is offered to all at once, and all copy it while it
    /// is in a cache that they share. Everywhere else the root's port is what limits, and a
    /// pipeline uses everybody's. So it does where several roots send at the same time: then it is
    /// the better choice over shared memory too. Over TCP its blocks are small, and many receives
    /// are posted: what a peer has to say comes late there. `docs/lab-notes/slow-links.md` has the
    /// figures.
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
        // A pipeline's messages have two at least.
        u32::try_from(blocks).unwrap_or(u32::MAX).max(2)
    }
}
