//! A logger for `defmt`: its bytes go to QEMU's debug port, which writes them to a file.

use core::arch::asm;
use core::cell::UnsafeCell;

/// QEMU's `-debugcon`.
const DEBUG: u16 = 0xe9;

struct Single(UnsafeCell<defmt::Encoder>);

// SAFETY: the image has one processor, and no interrupt is ever taken.
unsafe impl Sync for Single {}

static ENCODER: Single = Single(UnsafeCell::new(defmt::Encoder::new()));

fn put(bytes: &[u8]) {
    for byte in bytes {
        // SAFETY: a write to an I/O port of the emulated PC, which touches no memory.
        unsafe {
            asm!(
                "out dx, al",
                in("dx") DEBUG,
                in("al") *byte,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

#[defmt::global_logger]
struct Log;

// SAFETY: there is one processor without interrupts, so nothing runs between `acquire` and
// `release`, and the macros of `defmt` do not nest them.
unsafe impl defmt::Logger for Log {
    fn acquire() {
        // SAFETY: as above, nothing else uses the encoder.
        unsafe { (*ENCODER.0.get()).start_frame(put) }
    }

    unsafe fn flush() {}

    unsafe fn release() {
        // SAFETY: as above.
        unsafe { (*ENCODER.0.get()).end_frame(put) }
    }

    unsafe fn write(bytes: &[u8]) {
        // SAFETY: as above.
        unsafe { (*ENCODER.0.get()).write(bytes, put) }
    }
}
