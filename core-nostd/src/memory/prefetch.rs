//! Prefetching of lines before they are written: a hint to the processor, and the core's only
//! assembly. Without the feature `prefetch` there is none.
//!
//! Requirement: SMC-3.

use super::ring::OwnRing;
use crate::ids::{Slot, index_from_u32};
use crate::layout::CACHE_LINE;

/// Number of bytes of the next message to prefetch: about as many lines as a processor fetches at
/// once.
const ASKED_AHEAD: usize = 1024;

impl OwnRing<'_> {
    /// Prefetches a slot's lines for writing: the end of the slot, and the first [`ASKED_AHEAD`]
    /// bytes of a message of `length` bytes.
    ///
    /// Peers have read these lines, so the first store to each waits until their processors release
    /// it. Lines that are requested while the previous message is being built arrive in time; at 1
    /// KB this increases the rate by a fifth (`docs/lab-notes/small-messages.md`). A prefetch is a
    /// hint and changes nothing that can be read.
    #[inline]
    pub(crate) fn ask_ahead(&self, slot: Slot, length: u32) {
        let (start, bytes, counter) = self.asked_ahead(slot, length);
        self.ask_for_line(counter);
        let mut at = 0;
        // bound: one line per turn, at most ASKED_AHEAD bytes
        while at < bytes {
            self.ask_for_line(start.wrapping_add(at));
            at = at.wrapping_add(CACHE_LINE);
        }
    }

    /// Returns offsets in the ring and a length: the start of the slot's payload, the number of its
    /// bytes to prefetch, and the offset of its counter.
    #[inline]
    fn asked_ahead(&self, slot: Slot, length: u32) -> (usize, usize, usize) {
        let end = self.ring.slot_end(slot);
        let length = length.min(self.ring.capacity);
        let bytes = index_from_u32(length).min(ASKED_AHEAD);
        (end.wrapping_sub(self.ring.extent(length)), bytes, end.wrapping_sub(8))
    }

    #[inline]
    fn ask_for_line(&self, offset: usize) {
        // SAFETY: callers pass offsets inside the ring.
        let line = unsafe { self.ring.base.add(offset) };
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a prefetch changes no register and no memory that a program can see.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Checks;
    use crate::layout::{RingShape, SLOT_HEADER};
    use crate::memory::{Line, RowWriter};

    #[test]
    fn ring_prefetches_only_lines_of_the_slot() {
        let memory = [const { Line::new() }; 96];
        let writer = RowWriter::from_lines(&memory);
        for (stride, capacity) in [(16, 1), (1040, 1024), (1536, 1500)] {
            let shape = RingShape { offset: 64, stride, slots: 3, capacity, checks: Checks::Off };
            let ring = writer.ring(&shape).expect("it fits");
            for (byte, slot) in [(1, Slot(0)), (2, Slot(1)), (3, Slot(2))] {
                ring.payload_mut(slot, capacity).fill(byte);
                ring.counter(slot).publish(u64::from(byte));
            }
            // Slots and lengths out of range are first brought into range.
            for slot in [0, 1, 2, 3, u32::MAX] {
                let first =
                    if slot < 3 { usize::try_from(slot).expect("small") * stride } else { 0 };
                for length in [0, 1, capacity, u32::MAX] {
                    let (start, bytes, counter) = ring.asked_ahead(Slot(slot), length);
                    assert_eq!(counter, first + stride - 8);
                    assert!(start >= first && start + bytes <= first + stride - SLOT_HEADER);
                    ring.ask_ahead(Slot(slot), length);
                }
            }
            for (byte, slot) in [(1, Slot(0)), (2, Slot(1)), (3, Slot(2))] {
                assert!(ring.reader().payload(slot, capacity).iter().all(|&one| one == byte));
                assert_eq!(ring.counter(slot).load(), u64::from(byte));
            }
        }
    }
}
