//! Lines that are asked for before they are written: a hint to the processor, and the only
//! assembly of the core. Without the feature `prefetch` there is none.
//!
//! Requirement: SMC-3.

use super::OwnRing;
use crate::ids::{Slot, index_from_u32};
use crate::layout::CACHE_LINE;

/// Bytes of the next message whose lines are asked for ahead: about as many lines as a processor
/// fetches at once.
const ASKED_AHEAD: usize = 1024;

impl OwnRing<'_> {
    /// Asks for a slot's lines to be written soon: the slot's end, and of a message of `length`
    /// bytes the first [`ASKED_AHEAD`].
    ///
    /// Peers have read these lines, so the first store to each waits until their processors let go
    /// of it. Asked for while the message before is built, they are here when they are needed: at 1
    /// KB that is worth a fifth of the rate (`docs/lab-notes/small-messages.md`). A hint: it
    /// changes nothing that can be read.
    #[inline]
    pub(crate) fn ask_ahead(&self, slot: Slot, length: u32) {
        let end = self.ring.slot_end(slot);
        let start = end.wrapping_sub(self.ring.stride);
        let bytes = index_from_u32(length.min(self.ring.capacity)).min(ASKED_AHEAD);
        self.ask_for_line(end.wrapping_sub(8));
        let mut at = 0;
        // bound: a line a turn, of ASKED_AHEAD bytes at most
        while at < bytes {
            self.ask_for_line(start.wrapping_add(at));
            at = at.wrapping_add(CACHE_LINE);
        }
    }

    #[inline]
    fn ask_for_line(&self, offset: usize) {
        // SAFETY: callers give offsets inside the ring.
        let line = unsafe { self.ring.base.add(offset) };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch touches no register and no memory that a program can see.
        unsafe {
            core::arch::asm!("prefetchw [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) line.as_ptr(), options(nostack, preserves_flags));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = line;
    }
}
