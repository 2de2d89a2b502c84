//! Counts a test program's requests to the system's allocator. The allocator belongs to the whole
//! program, so each of these tests is a separate program.

// Each test program uses only some of these functions.
#![allow(dead_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static ALL: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with counters.
struct Counting;

// SAFETY: all calls go to the system's allocator; counting touches none of its memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALL.fetch_add(1, Ordering::Relaxed);
        OF_THREAD.set(OF_THREAD.get() + 1);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations by all threads so far.
pub fn of_all_threads() -> u64 {
    ALL.load(Ordering::Relaxed)
}

/// Returns the number of allocations by this thread so far. The test harness has other threads.
pub fn of_this_thread() -> u64 {
    OF_THREAD.get()
}
