//! Three members of a group on a bare 64-bit or 32-bit ARM machine: no operating system and no
//! heap.

#![no_std]
#![no_main]

#[cfg(target_arch = "aarch64")]
#[path = "boot_aarch64.rs"]
mod boot;
#[cfg(target_arch = "arm")]
#[path = "boot_armv7a.rs"]
mod boot;
mod machine;

use core::panic::PanicInfo;
use tramontane_bare_workload as workload;

/// Size in bytes of the stack on which everything in the image runs.
const STACK_BYTES: usize = 256 * 1024;

const PASSED: usize = 33;
const FAILED: usize = 35;
const FAULTED: usize = 37;

#[cfg(target_arch = "aarch64")]
const MACHINE: &str = "aarch64";
#[cfg(target_arch = "arm")]
const MACHINE: &str = "armv7a";

/// Entry point that the boot code calls.
#[unsafe(no_mangle)]
extern "C" fn start() -> ! {
    let passed = workload::run(MACHINE, &mut machine::Host);
    machine::exit(if passed { PASSED } else { FAILED })
}

/// Entry point of every exception; none is expected.
#[unsafe(no_mangle)]
extern "C" fn fault() -> ! {
    machine::exit(FAULTED)
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
