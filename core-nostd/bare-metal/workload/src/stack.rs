//! How much stack a run took: paint what is free, run, and see how far the paint is gone.

use core::hint::black_box;

const PAINT: u64 = 0x5a5a_a5a5_5a5a_a5a5;

/// Left alone below the painter's own frame, which may reach a little below its last variable.
const MARGIN: usize = 1024;

unsafe extern "C" {
    /// The first word of the stack's memory; every image's boot code names it.
    static mut stack_bottom: u64;
}

/// Words from the end of the stack's memory to somewhat below the present end of the stack.
#[inline(never)]
fn free_words() -> usize {
    let here = 0_u64;
    let here = black_box(&raw const here) as usize;
    here.saturating_sub((&raw const stack_bottom) as usize).saturating_sub(MARGIN) / size_of::<u64>()
}

/// Paints the free part of the stack.
pub fn paint() {
    let bottom = &raw mut stack_bottom;
    for word in 0..free_words() {
        // SAFETY: from the bottom up to well below the present frame, the stack's memory is unused.
        unsafe { bottom.add(word).write_volatile(PAINT) };
    }
}

/// The most bytes that the stack has grown by since [`paint`], not counting its margin.
pub fn used() -> u64 {
    let bottom = &raw const stack_bottom;
    let free = free_words();
    let mut untouched = 0_usize;
    // SAFETY: as above, for reading.
    while untouched < free && unsafe { bottom.add(untouched).read_volatile() } == PAINT {
        untouched = untouched.wrapping_add(1);
    }
    (free.wrapping_sub(untouched) as u64).wrapping_mul(8)
}
