//! If the system provides no memory, the program ends with status 4 and a one-line message, whereas
//! the standard library would abort it.
//!
//! An allocator cannot know whether its caller can do without the memory (as with `try_reserve`) or
//! will abort. If a small allocation fails, the program ends at once, because nothing works without
//! such memory. The failure of a large one is left to the caller; if that aborts, the abort signal
//! ends the program in the same way. The C library does not use this allocator, and aborts if it
//! lacks memory for a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

use crate::exit::{Status, program};

/// Size, in bytes, from which a failed allocation is left to the caller.
const LARGE: usize = 1 << 16;

const LINE: &[u8] = b": out of memory; free some, or raise the limit of memory \
    (ulimit -v; memory.max of the cgroup)\n";

/// Size, in bytes, of the memory by which the C library grows, at least.
const GROWTH: usize = 1 << 20;

/// Whether a large allocation has failed. If so, that failure is the cause of an abort.
static IS_MISSING: AtomicBool = AtomicBool::new(false);

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The system's allocator.
struct Allocator;

// SAFETY: the system's allocator does all the work, and fulfils the contract.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the same contract.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller fulfils the same contract.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller fulfils the same contract.
        checked(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn checked(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        is_missing(bytes);
    }
    memory
}

#[cold]
fn is_missing(bytes: usize) {
    if bytes < LARGE {
        end();
    }
    IS_MISSING.store(true, Ordering::Relaxed);
}

/// Ends the program without allocating, in a way that is safe in a signal handler: no destructor
/// runs.
fn end() {
    // If standard error fails, there is nowhere else to write.
    let _ = rustix::io::write(rustix::stdio::stderr(), program().as_bytes());
    let _ = rustix::io::write(rustix::stdio::stderr(), LINE);
    signal_hook::low_level::exit(Status::Resources.code().into());
}

/// Makes an abort for lack of memory end the program with a one-line message.
pub(crate) fn watch() -> io::Result<()> {
    let aborted = || {
        if IS_MISSING.load(Ordering::Relaxed) || is_exhausted() {
            end();
        }
    };
    // SAFETY: the handler takes no lock, and only calls `mmap`, `munmap`, `write` and `_exit`.
    unsafe { signal_hook::low_level::register(signal_hook::consts::SIGABRT, aborted) }.map(drop)
}

/// Returns whether the system provides no more memory to the C library.
fn is_exhausted() -> bool {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the system chooses the place of the mapping, which nothing else uses.
    match unsafe { mmap_anonymous(std::ptr::null_mut(), GROWTH, access, MapFlags::PRIVATE) } {
        Ok(memory) => {
            // SAFETY: this is the whole mapping, and nothing refers to it.
            let _ = unsafe { munmap(memory, GROWTH) };
            false
        }
        Err(_) => true,
    }
}
