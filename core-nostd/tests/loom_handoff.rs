//! Every interleaving of the hand-off from application threads to the step, under loom (SMC-2,
//! SMC-3).
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p tramontane-core --release --test loom_handoff`.
//!
//! A slot's payload is one of loom's cells, which reports any two accesses that nothing orders: a
//! message that is seen before it is built, or a slot that its second owner writes while the step
//! still reads it. Loom can explore fewer interleavings than there are without a word, so each test
//! asserts how many it went through; and a copy of the hand-off with a planted bug is run through
//! the same model, which must find it.
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

/// What the model asks of a hand-off: the core's own, or a copy with a bug.
trait HandsOff: Send + Sync + 'static {
    /// The first of at most so many positions, and how many; none if no slot is free.
    fn reserve(&self, most: u32) -> Option<(u64, u32)>;
    fn finish(&self, position: u64, outcome: Outcome);
    fn outcome(&self, position: u64) -> Option<Outcome>;
    fn set_limit(&self, limit: u64);
}

/// The core's hand-off with the memory that it is lent.
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
        self.handoff().finish(Position(position), self.slot(position), outcome);
    }

    fn outcome(&self, position: u64) -> Option<Outcome> {
        self.handoff().outcome(Position(position), self.slot(position))
    }

    fn set_limit(&self, limit: u64) {
        self.handoff().set_limit(Position(limit));
    }
}

/// What is wrong with the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    None,
    /// The ready flag does not publish the payload.
    RelaxedFlag,
    /// The limit does not say that the step is done with the slot.
    RelaxedLimit,
    /// Two threads may take one position.
    LoadThenStore,
    /// The limit comes one slot too early.
    EarlyLimit,
}

/// The hand-off as the core has it, but for the bug.
struct Copied {
    bug: Bug,
    reserved: AtomicU64,
    limit: AtomicU64,
    ready: Vec<AtomicU64>,
}

impl Copied {
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

impl HandsOff for Copied {
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

/// A ring of one member: two application threads and the step share it.
struct Ring<H> {
    handoff: H,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: the slots are what the model is about: loom itself reports an access that is not ordered.
unsafe impl<H: Sync> Sync for Ring<H> {}
// SAFETY: as above.
unsafe impl<H: Send> Send for Ring<H> {}

impl<H: HandsOff> Ring<H> {
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

    /// An application thread sends messages, at most so many at once; waits for a slot if there is
    /// none. Gives their positions.
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
                    // SAFETY: exclusive, as the model checks.
                    unsafe { *payload = message }
                });
                self.handoff.finish(position, outcome);
                sent.push(position);
            }
        }
        sent
    }

    /// The step takes one message, whenever it is ready, and frees its slot.
    fn take(&self, position: u64) -> (u64, Outcome) {
        let outcome = loop {
            match self.handoff.outcome(position) {
                Some(outcome) => break outcome,
                None => thread::yield_now(),
            }
        };
        let message = self.slot(position).with(|payload| {
            // SAFETY: nobody writes it now, as the model checks.
            unsafe { *payload }
        });
        self.handoff.set_limit(position + 1 + self.window());
        (message, outcome)
    }
}

/// What two threads send.
#[derive(Clone, Copy)]
struct Load {
    window: usize,
    /// Messages of each thread.
    counts: [u64; 2],
    /// The most that a thread reserves at once.
    most: u32,
    /// How often a thread is stopped between two of its operations; any number of times if not
    /// given.
    preemptions: Option<usize>,
}

/// One message of each thread, in a ring of so many slots.
const fn one_each(window: usize) -> Load {
    Load { window, counts: [1, 1], most: 1, preemptions: None }
}

/// Two threads send; the step takes it all. Gives the number of interleavings.
fn explore<H: HandsOff>(load: Load, make: impl Fn(usize) -> H + Send + Sync + 'static) -> usize {
    let explored = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&explored);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = load.preemptions;
    // Each look of a waiting thread is a branch.
    model.max_branches = 10_000;
    model.check(move || {
        counter.fetch_add(1, StdOrdering::Relaxed);
        let ring = Ring::new(make(load.window), load.window);
        let spawn = |count: u64, name: u64, outcome: Outcome| {
            let ring = Arc::clone(&ring);
            thread::spawn(move || ring.send(name..name + count, load.most, outcome))
        };
        let senders = [
            spawn(load.counts[0], 10, Outcome::Message),
            spawn(load.counts[1], 20, Outcome::Dropped),
        ];
        // Without this, loom may take the first load below as the only order there is.
        thread::yield_now();
        let all = load.counts.iter().sum();
        let taken: Vec<(u64, Outcome)> = (0..all).map(|position| ring.take(position)).collect();
        let [first, second] = senders.map(|sender| sender.join().expect("no panic"));
        check(&taken, &first, &second);
    });
    explored.load(StdOrdering::Relaxed)
}

/// Each position was given once, and what was taken there is what its owner built and how it ended.
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
fn two_threads_with_a_slot_each() {
    let explored = explore(one_each(2), Real::new);
    println!("two threads with a slot each: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

#[test]
fn two_threads_share_one_slot_that_is_used_again() {
    let explored = explore(one_each(1), Real::new);
    println!("two threads share one slot: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// The ring wraps while both threads send. There are too many interleavings for all.
#[test]
fn two_threads_go_round_a_ring_of_two() {
    let load = Load { window: 2, counts: [2, 1], most: 1, preemptions: Some(3) };
    let explored = explore(load, Real::new);
    println!("two threads go round a ring: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// The same with a sender that takes two slots at once, or one if there is no more.
#[test]
fn several_slots_are_reserved_at_once() {
    let load = Load { window: 2, counts: [2, 1], most: 2, preemptions: Some(3) };
    let explored = explore(load, Real::new);
    println!("several slots at once: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

/// The copy without a bug is a hand-off: what is found below is the bug's doing.
#[test]
fn the_copy_itself_is_sound() {
    let explored = explore(one_each(1), |window| Copied::new(window, Bug::None));
    assert!(explored > 1000, "only {explored}");
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_flag_that_does_not_publish_is_found() {
    explore(one_each(2), |window| Copied::new(window, Bug::RelaxedFlag));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_limit_that_does_not_free_is_found() {
    explore(one_each(1), |window| Copied::new(window, Bug::RelaxedLimit));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_limit_that_comes_early_is_found() {
    explore(one_each(1), |window| Copied::new(window, Bug::EarlyLimit));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn a_position_that_is_taken_twice_is_found() {
    explore(one_each(2), |window| Copied::new(window, Bug::LoadThenStore));
}

/// A reservation races with the end of its view: it is below what the close returned, or refused
/// (VIE-7).
#[test]
fn a_close_counts_every_reservation_or_refuses_it() {
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
