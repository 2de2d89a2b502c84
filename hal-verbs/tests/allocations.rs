//! After the start, nothing is allocated: a counting allocator watches posts, polls, rings and
//! sleeps, and the steps of whole nodes. The device is a fake one, whose own allocations do not
//! count, or in the lab a real one (`hal-verbs/lab/run`; see `hal-verbs/README.md`).

mod group;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

use group::{GroupShape, VIEW};
use tramontane_core::fabric::{
    BlockStore as _, BlockUse, Blocks, Channel, ErrorKind, Event, Fabric, HostBlocks as _, Kind,
    Token, Way, Write,
};
use tramontane_core::ids::Rank;
use tramontane_verbs::{Limits, Verbs};

thread_local! {
    /// Number of this thread's allocations since it began to count; `None` while it does not count.
    static WATCHED: Cell<Option<u64>> = const { Cell::new(None) };
}

struct CountingAllocator;

fn note() {
    // A real device would not make the allocations of a fake device.
    if tramontane_verbs::fake::is_inside_call() {
        return;
    }
    // When a thread ends, its locals have been dropped and nothing is counted.
    let _ = WATCHED.try_with(|watched| watched.set(watched.get().map(|count| count + 1)));
}

// SAFETY: every call is passed to the system's allocator unchanged, and counting does not allocate.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        note();
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.realloc(memory, layout, bytes) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Returns the number of allocations that some work makes in this thread.
fn allocations(work: impl FnOnce()) -> u64 {
    WATCHED.set(Some(0));
    work();
    WATCHED.replace(None).unwrap_or(0)
}

fn post(fabric: &mut Verbs, to: Rank, token: Option<Token>, completed: &mut u64) {
    let list = [Write::of_row(1024, 4096, Kind::Content), Write::of_row(64, 24, Kind::Guard)];
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let posted = fabric.post(VIEW, to, &list, token);
        while let Some(event) = fabric.poll() {
            *completed += u64::from(matches!(event, Event::Completed(_)));
        }
        match posted {
            Ok(()) => return,
            Err(ErrorKind::QueueFull) if Instant::now() < until => {
                std::thread::sleep(Duration::from_micros(100));
            }
            Err(kind) => panic!("{kind}"),
        }
    }
}

#[test]
fn nothing_is_allocated_per_message() {
    for limits in [Limits::default(), Limits { inline_bytes_max: Some(0), ..Limits::default() }] {
        let mut joined =
            group::join_all(&GroupShape { members: 3, limits, ..GroupShape::default() });
        let [a, b, c] = &mut joined[..] else { panic!("three members") };
        let (a, others) = (&mut a.fabric, [&mut b.fabric, &mut c.fabric]);
        let mut completed = 0;
        let count = allocations(|| {
            let [b, c] = others;
            for round in 0..500_u64 {
                for to in [Rank(1), Rank(2)] {
                    post(a, to, (round % 5 == 0).then_some(Token(round)), &mut completed);
                }
                if round % 50 == 0 {
                    // Includes rings, sleeps and checks of the peers.
                    for fabric in [&mut *b, &mut *c] {
                        while fabric.poll().is_some() {}
                        if fabric.arm() {
                            a.wake(VIEW, Rank(1));
                            fabric.sleep(Duration::from_millis(2));
                        }
                        fabric.disarm();
                    }
                }
            }
        });
        assert!(completed > 100, "{completed} lists were reported");
        assert_eq!(count, 0, "allocations in 1000 lists");
    }
}

/// Sends blocks in both directions, after their channels have been used once.
#[test]
fn nothing_is_allocated_per_block() {
    const BYTES: usize = 5000;
    for limits in [Limits::default(), Limits { inline_bytes_max: Some(0), ..Limits::default() }] {
        let mut joined = group::join_all(&GroupShape {
            members: 2,
            limits,
            blocks: true,
            ..GroupShape::default()
        });
        let [a, b] = &mut joined[..] else { panic!("two members") };
        let mut fabrics = [&mut a.fabric, &mut b.fabric];
        let memories = fabrics
            .each_mut()
            .map(|fabric| fabric.block_store().memory(2 * BYTES, BlockUse::Both).expect("memory"));
        let mut received = 0;
        let mut exchange = |rounds: u16| {
            for round in 0..rounds {
                let way = |peer| Way { view: VIEW, channel: Channel(round % 3), peer: Rank(peer) };
                for (own, peer) in [(0, 1), (1, 0)] {
                    let (fabric, memory) = (&mut fabrics[own], &memories[own]);
                    fabric.post_receive(way(peer), memory.area(0), BYTES, Token(0)).expect("room");
                    fabric.send(way(peer), memory.area(BYTES), BYTES, 1, Token(0)).expect("room");
                }
                let until = Instant::now() + Duration::from_secs(20);
                let mut missing = 4;
                while missing > 0 && Instant::now() < until {
                    for fabric in &mut fabrics {
                        missing -= std::iter::from_fn(|| fabric.poll_block()).count();
                    }
                    std::thread::sleep(Duration::from_micros(50));
                }
                received += usize::from(missing == 0);
            }
        };
        exchange(3);
        assert_eq!(allocations(|| exchange(100)), 0, "allocations in 200 blocks");
        assert_eq!(received, 103);
    }
}

/// Whole nodes: three members, one of which sends, are stepped until everything has been delivered,
/// both with devices that keep the order of writes and with updates.
#[test]
fn verbs_step_does_not_allocate() {
    let by_updates = Limits { write_order: Some(false), ..Limits::default() };
    for limits in [Limits::default(), by_updates] {
        assert_steps_allocate_nothing(limits);
    }
}

fn assert_steps_allocate_nothing(limits: Limits) {
    const MESSAGES: u64 = 1000;
    group::nodes::with_nodes(3, limits, |seats| {
        let until = Instant::now() + Duration::from_secs(60);
        let mut sent = 0;
        let count = allocations(|| {
            while seats.iter().any(|seat| seat.delivered < MESSAGES) && Instant::now() < until {
                while sent < MESSAGES && seats[0].send(sent) {
                    sent += 1;
                }
                for seat in seats.iter_mut() {
                    seat.step();
                }
                // The device is emulated on the same processors, so this waits for it.
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        assert!(seats.iter().all(|seat| seat.delivered == MESSAGES), "all is delivered everywhere");
        assert_eq!(count, 0, "allocations in {MESSAGES} messages");
    });
}
