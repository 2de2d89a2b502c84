//! Semihosting: the debugger, which is QEMU here, prints for the image and terminates it.

use core::arch::asm;
use core::ptr::from_ref;
use tramontane_bare_workload::Console;

const WRITE_BYTE: usize = 0x03;
const EXIT_EXTENDED: usize = 0x20;
/// `ADP_Stopped_ApplicationExit`: the program ended by itself.
const APPLICATION_EXIT: usize = 0x20026;

/// Requests one operation from the debugger.
///
/// # Safety
/// `block` must point to the arguments that the operation expects, until the call returns.
unsafe fn call(operation: usize, block: *const ()) {
    // SAFETY: the caller vouches for the block; the debugger changes only the result register.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("hlt #0xf000", inout("x0") operation => _, in("x1") block, options(nostack));
    }
    // SAFETY: as above; in supervisor mode the call also overwrites the link register.
    #[cfg(target_arch = "arm")]
    unsafe {
        asm!("svc #0x123456", inout("r0") operation => _, in("r1") block, out("lr") _,
            options(nostack));
    }
}

/// The debugger's console.
pub struct Host;

impl Console for Host {
    fn put(&mut self, byte: u8) {
        // SAFETY: the operation reads one byte, which exists.
        unsafe { call(WRITE_BYTE, from_ref(&byte).cast()) }
    }
}

/// Exits QEMU with this status.
pub fn exit(status: usize) -> ! {
    let block = [APPLICATION_EXIT, status];
    loop {
        // SAFETY: the operation reads two words, which exist.
        unsafe { call(EXIT_EXTENDED, from_ref(&block).cast()) }
    }
}
