//! Every interleaving of the hand-off from application threads to the step, explored with loom
//! (SMC-2, SMC-3).
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tramontane-core --release --test loom_handoff`.
//!
//! A slot's payload is a loom cell, which reports any two accesses that are not ordered: a message
//! that is read before it is built, or a slot that its second owner writes while the step still
//! reads it. Loom can silently explore fewer interleavings than exist, so each test asserts the
//! number explored. A copy of the hand-off with a planted bug goes through the same model, which
//! must find the bug.
#![cfg(loom)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as StdOrdering};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use tramontane_core::ids::{Position, Slot};
use tramontane_core::smc::{HandOff, HandOffCells, Outcome, ReadyFlag, Refusal};

/// The operations that the model needs from a hand-off: the core's hand-off, or a copy with a bug.
trait HandsOff: Send + Sync + 'static {
    /// Reserves up to `most` slots. Returns the first position and the count; the count is 0 if no
    /// slot is free.
    fn reserve(&self, most: u32) -> Option<(u64, u32)>;
    fn finish(&self, position: u64, outcome: Outcome);
    fn outcome(&self, position: u64) -> Option<Outcome>;
    fn set_limit(&self, limit: u64);
}

/// The core's hand-off and the memory lent to it.
struct Real {
    cells: HandOffCells,
    ready: Vec<ReadyFlag>,
}

impl Real {
    fn new(window: usize) -> Self {
        Self { cells: HandOffCells::new(), ready: (0..window).map(|_| ReadyFlag::new()).collect() }
    }

    fn handoff(&self) -> HandOff<'_> {
        HandOff::new(&self.cells, &self.ready).expect("a window")
    }

    fn slot(&self, position: u64) -> Slot {
        self.handoff().slot_of(Position(position))
    }
}

impl HandsOff for Real {
    fn reserve(&self, most: u32) -> Option<(u64, u32)> {
        match self.handoff().reserve(most) {
            Ok((position, count)) => Some((position.0, count)),
            Err(Refusal::Full) => None,
            Err(Refusal::Contended) => panic!("two threads are not that many"),
        }
    }

    fn finish(&self, position: u64, outcome: Outcome) {
        let flag = self.handoff().flag(self.slot(position)).expect("a slot");
        flag.set(Position(position), outcome);
    }

    fn outcome(&self, position: u64) -> Option<Outcome> {
        self.handoff().outcome(Position(position), self.slot(position))
    }

    fn set_limit(&self, limit: u64) {
        self.handoff().set_limit(Position(limit));
    }
}

/// The bug planted in the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// The ready flag does not publish the payload.
    RelaxedFlag,
    /// The limit does not order the step's reads of the slot before its reuse.
    RelaxedLimit,
    /// Two threads may reserve the same position.
    LoadThenStore,
    /// The limit is raised one slot too early.
    EarlyLimit,
}

/// A copy of the core's hand-off, except for the bug.
struct CopiedHandOff {
    bug: Bug,
    reserved: AtomicU64,
    limit: AtomicU64,
    ready: Vec<AtomicU64>,
}

impl CopiedHandOff {
    fn new(window: usize, bug: Bug) -> Self {
        let ready = (0..window).map(|_| AtomicU64::new(0)).collect();
        Self { bug, reserved: AtomicU64::new(0), limit: AtomicU64::new(0), ready }
    }

    fn order(&self, relaxed_by: Bug, otherwise: Ordering) -> Ordering {
        if self.bug == relaxed_by { Ordering::Relaxed } else { otherwise }
    }

    fn flag(&self, position: u64) -> &AtomicU64 {
        let window = u64::try_from(self.ready.len()).expect("a small window");
        &self.ready[usize::try_from(position % window).expect("a small window")]
    }
}

impl HandsOff for CopiedHandOff {
    fn reserve(&self, most: u32) -> Option<(u64, u32)> {
        let mut position = self.reserved.load(Ordering::Relaxed);
        loop {
            let free = self.limit.load(Ordering::Acquire).saturating_sub(position);
            let count = free.min(u64::from(most));
            if count == 0 {
                return None;
            }
            let taken = (position, u32::try_from(count).expect("a small count"));
            let (next, relaxed) = (position + count, Ordering::Relaxed);
            if self.bug == Bug::LoadThenStore {
                self.reserved.store(next, Ordering::Relaxed);
                return Some(taken);
            }
            match self.reserved.compare_exchange_weak(position, next, relaxed, relaxed) {
                Ok(_) => return Some(taken),
                Err(current) => position = current,
            }
        }
    }

    fn finish(&self, position: u64, outcome: Outcome) {
        let stamp = 2 * position + if outcome == Outcome::Message { 1 } else { 2 };
        self.flag(position).store(stamp, self.order(Bug::RelaxedFlag, Ordering::Release));
    }

    fn outcome(&self, position: u64) -> Option<Outcome> {
        let flag = self.flag(position).load(Ordering::Acquire);
        match flag.checked_sub(2 * position) {
            Some(1) => Some(Outcome::Message),
            Some(2) => Some(Outcome::Dropped),
            _ => None,
        }
    }

    fn set_limit(&self, limit: u64) {
        let early = u64::from(self.bug == Bug::EarlyLimit);
        self.limit.store(limit + early, self.order(Bug::RelaxedLimit, Ordering::Release));
    }
}

/// The ring of one member, shared by two application threads and the step.
struct LoomRing<H> {
    handoff: H,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: the model checks accesses to the slots: loom itself reports any access that is not
// ordered.
unsafe impl<H: Sync> Sync for LoomRing<H> {}
// SAFETY: as above.
unsafe impl<H: Send> Send for LoomRing<H> {}

impl<H: HandsOff> LoomRing<H> {
    fn new(handoff: H, window: usize) -> Arc<Self> {
        let ring = Self { handoff, slots: (0..window).map(|_| UnsafeCell::new(0)).collect() };
        ring.handoff.set_limit(ring.window());
        Arc::new(ring)
    }

    fn window(&self) -> u64 {
        u64::try_from(self.slots.len()).expect("a small window")
    }

    fn slot(&self, position: u64) -> &UnsafeCell<u64> {
        &self.slots[usize::try_from(position % self.window()).expect("a small window")]
    }

    /// Sends messages from an application thread, at most `most` at a time, waiting while no slot
    /// is free. Returns their positions.
    fn send(&self, messages: std::ops::Range<u64>, most: u32, outcome: Outcome) -> Vec<u64> {
        let mut sent = Vec::new();
        let mut left = messages;
        while !left.is_empty() {
            let rest = u32::try_from(left.end - left.start).expect("a few messages");
            let Some((first, count)) = self.handoff.reserve(most.min(rest)) else {
                thread::yield_now();
                continue;
            };
            for position in (first..).take(usize::try_from(count).expect("a small count")) {
                let message = left.next().expect("no more than was asked for");
                self.slot(position).with_mut(|payload| {
                    // SAFETY: access is exclusive, as the model checks.
                    unsafe { *payload = message }
                });
                self.handoff.finish(position, outcome);
                sent.push(position);
            }
        }
        sent
    }

    /// Waits until a message is ready, takes it, and frees its slot.
    fn take(&self, position: u64) -> (u64, Outcome) {
        let outcome = loop {
            match self.handoff.outcome(position) {
                Some(outcome) => break outcome,
                None => thread::yield_now(),
            }
        };
        let message = self.slot(position).with(|payload| {
            // SAFETY: no thread writes to it now, as the model checks.
            unsafe { *payload }
        });
        self.handoff.set_limit(position + 1 + self.window());
        (message, outcome)
    }
}

/// The messages that two threads send, and how they send them.
#[derive(Clone, Copy)]
struct ThreadLoad {
    window: usize,
    /// Number of messages of each thread.
    counts: [u64; 2],
    /// Maximum number of slots that a thread reserves at once.
    most: u32,
    /// Maximum number of preemptions of a thread; `None` for no limit.
    preemptions: Option<usize>,
}

/// Returns a load with one message per thread, in a ring of `window` slots.
const fn one_each(window: usize) -> ThreadLoad {
    ThreadLoad { window, counts: [1, 1], most: 1, preemptions: None }
}

/// Runs two sending threads and a step that takes all messages. Returns the number of
/// interleavings.
fn explore<H: HandsOff>(
    load: ThreadLoad,
    make: impl Fn(usize) -> H + Send + Sync + 'static,
) -> usize {
    let explored = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&explored);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = load.preemptions;
    // Each check by a waiting thread is a branch.
    model.max_branches = 10_000;
    model.check(move || {
        counter.fetch_add(1, StdOrdering::Relaxed);
        let ring = LoomRing::new(make(load.window), load.window);
        let spawn = |count: u64, name: u64, outcome: Outcome| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.send(name..name + count, load.most, outcome))
        };
        let senders = [
            spawn(load.counts[0], 10, Outcome::Message),
            spawn(load.counts[1], 20, Outcome::Dropped),
        ];
        // Without this, loom may assume that the first load below always comes first.
        thread::yield_now();
        let all = load.counts.iter().sum();
        let taken: Vec<(u64, Outcome)> = (0..all).map(|position| ring.take(position)).collect();
        let [first, second] = senders.map(|sender| sender.join().expect("no panic"));
        check(&taken, &first, &second);
    });
    explored.load(StdOrdering::Relaxed)
}

/// Asserts that each position was reserved once, and that the message and outcome taken at each
/// position are those of its owner.
fn check(taken: &[(u64, Outcome)], first: &[u64], second: &[u64]) {
    let mut positions: Vec<u64> = first.iter().chain(second).copied().collect();
    positions.sort_unstable();
    assert!(
        positions.iter().zip(0..).all(|(position, expected)| *position == expected),
        "position twice"
    );
    let expected = |name: u64, outcome: Outcome, positions: &[u64]| {
        for (message, position) in (name..).zip(positions) {
            let taken = taken[usize::try_from(*position).expect("a small position")];
            assert_eq!(taken, (message, outcome), "at {position}");
        }
    };
    expected(10, Outcome::Message, first);
    expected(20, Outcome::Dropped, second);
}

#[test]
fn two_threads_send_through_separate_slots() {
    let explored = explore(one_each(2), Real::new);
    println!("two threads with a slot each: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

#[test]
fn two_threads_send_through_one_shared_slot() {
    let explored = explore(one_each(1), Real::new);
    println!("two threads share one slot: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// The ring wraps while both threads send. There are too many interleavings to explore them all.
#[test]
fn two_threads_send_beyond_the_rings_end() {
    let load = ThreadLoad { window: 2, counts: [2, 1], most: 1, preemptions: Some(3) };
    let explored = explore(load, Real::new);
    println!("two threads go round a ring: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// One sender takes two slots at once if both are free, or otherwise one.
#[test]
fn one_thread_reserves_several_slots_at_once() {
    let load = ThreadLoad { window: 2, counts: [2, 1], most: 2, preemptions: Some(3) };
    let explored = explore(load, Real::new);
    println!("several slots at once: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// The copy without a bug is correct, so the failures below come from the planted bugs.
#[test]
fn handoff_copy_without_a_bug_passes() {
    let explored = explore(one_each(1), |window| CopiedHandOff::new(window, Bug::None));
    assert!(explored > 1000, "only {explored}");
}

#[test]
#[should_panic(expected = "Causality violation")]
fn relaxed_ready_flag_is_detected() {
    explore(one_each(2), |window| CopiedHandOff::new(window, Bug::RelaxedFlag));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn relaxed_limit_store_is_detected() {
    explore(one_each(1), |window| CopiedHandOff::new(window, Bug::RelaxedLimit));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn limit_raised_too_early_is_detected() {
    explore(one_each(1), |window| CopiedHandOff::new(window, Bug::EarlyLimit));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn position_reserved_twice_is_detected() {
    explore(one_each(2), |window| CopiedHandOff::new(window, Bug::LoadThenStore));
}

/// A reservation races with the end of its view: either its position is below the count that the
/// close returned, or it is refused (VIE-7).
#[test]
fn close_counts_or_refuses_each_reservation() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    loom::model(move || {
        counter.fetch_add(1, StdOrdering::Relaxed);
        let real = Arc::new(Real::new(4));
        real.set_limit(4);
        let threads = [(); 2].map(|()| {
            let real = Arc::clone(&real);
            thread::spawn(move || [real.reserve(1), real.reserve(1)])
        });
        let end = real.handoff().close().0;
        let mut taken: Vec<u64> = Vec::new();
        for thread in threads {
            let [first, second] = thread.join().expect("it ends");
            assert!(first.is_some() || second.is_none(), "refused, and then not");
            taken.extend([first, second].into_iter().flatten().map(|(position, _)| position));
        }
        taken.sort_unstable();
        assert_eq!(taken, (0..end).collect::<Vec<_>>(), "each counted once, none lost");
        assert!(real.reserve(1).is_none(), "closed for good");
        assert_eq!(real.handoff().reserved().0, end);
    });
    assert!(runs.load(StdOrdering::Relaxed) > 100);
}
