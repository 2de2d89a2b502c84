//! Measurement of stack use: paint the free stack, run, and see how much of the paint has been
//! overwritten.
//!
//! The result is measured in one run, and is not a bound.

use core::hint::black_box;

const PAINT: u64 = 0x5a5a_a5a5_5a5a_a5a5;

/// Number of bytes left unpainted: the painter's own frame, and the stack that it may use below.
const MARGIN: usize = 512;

unsafe extern "C" {
    /// First word of the stack's memory; every image's boot code defines it.
    static mut stack_bottom: u64;
}

/// Returns the number of words from the end of the stack's memory to the margin below the current
/// frame.
#[inline(never)]
fn free_words() -> usize {
    let here = 0_u64;
    let here = black_box(&raw const here) as usize;
    here.saturating_sub((&raw const stack_bottom) as usize).saturating_sub(MARGIN)
        / size_of::<u64>()
}

/// Paints the free part of the stack.
#[inline(never)]
pub fn paint() {
    let bottom = &raw mut stack_bottom;
    for word in 0..free_words() {
        // SAFETY: from the bottom up to well below the current frame, the stack's memory is unused.
        unsafe { bottom.add(word).write_volatile(PAINT) };
    }
}

/// Returns the maximum number of bytes by which the stack has grown below the caller's frame since
/// [`paint`].
#[inline(never)]
pub fn used() -> u64 {
    let bottom = &raw const stack_bottom;
    let free = free_words();
    let mut untouched = 0_usize;
    // SAFETY: as above, for reading.
    while untouched < free && unsafe { bottom.add(untouched).read_volatile() } == PAINT {
        untouched = untouched.wrapping_add(1);
    }
    let grown = free.wrapping_sub(untouched).wrapping_mul(size_of::<u64>());
    grown.wrapping_add(MARGIN) as u64
}
