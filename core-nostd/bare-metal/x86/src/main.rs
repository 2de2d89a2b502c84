//! Three members of a group on a bare x86 machine: no operating system, no C library, no heap.
//!
//! The image is built with the host target's own `core`, so that nothing must be downloaded.

#![no_std]
#![no_main]

mod boot;
mod libc;
#[cfg(feature = "defmt")]
mod log;
mod machine;

use core::panic::PanicInfo;
use tramontane_bare_workload as workload;

/// Size in bytes of the stack on which everything in the image runs.
const STACK_BYTES: usize = 256 * 1024;

/// QEMU's status is 33 for a success and 35 for a failure, which QEMU itself never uses.
const PASSED: u32 = 16;
const FAILED: u32 = 17;

/// Entry point that the boot code calls.
#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    let mut serial = machine::Serial;
    #[cfg(feature = "defmt")]
    workload::log::say();
    let passed = workload::run("x86", &mut serial);
    machine::exit(if passed { PASSED } else { FAILED })
}

/// This links only if it is unreachable, because the function that it calls does not exist.
#[panic_handler]
fn panic(_: &PanicInfo) -> ! {
    unsafe extern "C" {
        fn a_panic_is_reachable() -> !;
    }
    // SAFETY: an image with this call does not link, so the call is never made.
    unsafe { a_panic_is_reachable() }
}
