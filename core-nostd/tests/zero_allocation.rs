//! The core never allocates: a counting allocator watches a group from the first step after its
//! nodes are opened.
//!
//! The build proves more, because the core links into an image that has no heap. This test gives a
//! number: the same code, on a host, over many laps of the ring and both kinds of delivery.

#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::expect_used)]

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::{OneMemory, send, with_group};
use tramontane_core::ids::Time;
use tramontane_core::layout::Delivery;
use tramontane_core::multicast::Batch;
use tramontane_core::node::Node;
use tramontane_core::smc::Outbox;

thread_local! {
    /// Allocations of this thread since it began to watch; `None` while it does not watch. The
    /// count is per thread because the test harness has threads of its own.
    static WATCHED: Cell<Option<u64>> = const { Cell::new(None) };
}

struct Counting;

/// Counts an allocation if this thread watches.
fn note() {
    // When a thread ends, its locals are destroyed, and it no longer watches.
    let _ = WATCHED.try_with(|watched| watched.set(watched.get().map(|count| count + 1)));
}

// SAFETY: all calls are forwarded to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note();
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(block, layout, bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the number of allocations that `work` makes.
fn allocations(work: impl FnOnce()) -> u64 {
    WATCHED.set(Some(0));
    work();
    WATCHED.replace(None).expect("this thread watches")
}

/// Number of messages that each member sends in a run: several laps of its ring.
const MESSAGES: u64 = 400;

/// Sends and steps until all members have delivered everything. Returns the number of messages that
/// each delivered.
fn run(nodes: &mut [Node<'_>], outboxes: &[Option<Outbox<'_>>]) -> [u64; 3] {
    let mut sent = [0_u64; 3];
    let mut delivered = [0_u64; 3];
    // Far more turns than a run takes, so that a stalled group ends the test.
    for _ in 0..100_000 {
        for (sent, outbox) in sent.iter_mut().zip(outboxes.iter().flatten()) {
            while *sent < MESSAGES && send(outbox, &sent.to_le_bytes()).is_ok() {
                *sent += 1;
            }
        }
        for (delivered, node) in delivered.iter_mut().zip(nodes.iter_mut()) {
            let mut deliver = |batch: &mut Batch<'_>| *delivered += batch.map(|_| 1).sum::<u64>();
            node.step(Time(0), &mut OneMemory, &mut deliver).expect("it steps");
        }
        if delivered.iter().all(|count| *count == 3 * MESSAGES) {
            break;
        }
    }
    delivered
}

fn assert_allocates_nothing(delivery: Delivery) {
    with_group(3, &[0, 1, 2], (8, 16), delivery, |nodes, outboxes| {
        let mut delivered = [0; 3];
        let count = allocations(|| delivered = run(nodes, outboxes));
        assert_eq!(delivered, [3 * MESSAGES; 3]);
        assert_eq!(count, 0, "allocations while sending, stepping and delivering");
    });
}

#[test]
fn ordered_multicast_allocates_nothing_after_open() {
    assert_allocates_nothing(Delivery::Ordered);
}

#[test]
fn unordered_multicast_allocates_nothing_after_open() {
    assert_allocates_nothing(Delivery::Unordered);
}

/// A count of zero means something only if the counter works.
#[test]
fn allocation_counter_counts_an_allocation() {
    let count = allocations(|| drop(std::hint::black_box(Box::new(7_u64))));
    assert_eq!(count, 1);
}
