//! The two devices that the image uses: the first serial port, and QEMU's exit device.

use core::arch::asm;
use tramontane_bare_workload::Console;

const SERIAL: u16 = 0x3f8;
const EXIT: u16 = 0xf4;

/// The first serial port. QEMU's serial port accepts bytes without any setup or waiting.
pub struct Serial;

impl Console for Serial {
    fn put(&mut self, byte: u8) {
        // SAFETY: a write to an I/O port of the emulated PC, which touches no memory.
        unsafe {
            asm!("out dx, al", in("dx") SERIAL, in("al") byte, options(nomem, nostack, preserves_flags));
        }
    }
}

/// Exits QEMU with the status `2 * code + 1`.
pub fn exit(code: u32) -> ! {
    // SAFETY: as above; QEMU ends here. On a machine without the device, the processor stops.
    unsafe {
        asm!("out dx, eax", in("dx") EXIT, in("eax") code, options(nomem, nostack, preserves_flags));
        loop {
            asm!("cli", "hlt", options(nomem, nostack));
        }
    }
}
