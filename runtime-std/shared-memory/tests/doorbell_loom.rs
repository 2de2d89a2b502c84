//! Explores every interleaving of the doorbell's protocol under loom: no wakeup is lost.
//!
//! A lost wakeup leaves the sleeper waiting forever, which loom reports as a deadlock. Loom may
//! silently explore fewer interleavings than exist. So each test also asserts the number of
//! interleavings explored, and two tests plant a bug (a missing fence) and expect it to be found.

use std::sync::atomic::{AtomicUsize, Ordering as StdOrdering};
use std::time::Duration;

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;
use tramontane_shared_memory::doorbell::{AWAKE, Doorbell, Machine};

/// The ends that use a fence.
#[derive(Clone, Copy)]
struct Fences {
    ringer: bool,
    sleeper: bool,
}

const BOTH: Fences = Fences { ringer: true, sleeper: true };

/// A model of the kernel's futex, which compares and sleeps under one lock that a wake also takes.
/// There are no timeouts.
struct FutexModel {
    queue: Mutex<()>,
    condition: Condvar,
    fences: Fences,
}

impl Machine for FutexModel {
    type Word = AtomicU32;

    fn load(&self, word: &AtomicU32) -> u32 {
        word.load(Ordering::Relaxed)
    }

    fn swap(&self, word: &AtomicU32, value: u32) -> u32 {
        word.swap(value, Ordering::SeqCst)
    }

    fn exchange(&self, word: &AtomicU32, from: u32, to: u32) -> bool {
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn ringer_fence(&self) {
        if self.fences.ringer {
            fence(Ordering::SeqCst);
        }
    }

    fn sleeper_fence(&self) -> bool {
        if self.fences.sleeper {
            fence(Ordering::SeqCst);
        }
        true
    }

    fn wait(&self, word: &AtomicU32, value: u32, _timeout: Duration) {
        let held = self.queue.lock().expect("the lock");
        if word.load(Ordering::SeqCst) == value {
            drop(self.condition.wait(held).expect("the lock"));
        }
    }

    fn wake(&self, _word: &AtomicU32) {
        let _held = self.queue.lock().expect("the lock");
        self.condition.notify_one();
    }
}

struct SharedDoorbell {
    machine: FutexModel,
    word: AtomicU32,
    data: Vec<AtomicU32>,
}

impl SharedDoorbell {
    fn new(ringers: usize, fences: Fences) -> Arc<Self> {
        let machine = FutexModel { queue: Mutex::new(()), condition: Condvar::new(), fences };
        let data = (0..ringers).map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self { machine, word: AtomicU32::new(AWAKE), data })
    }

    fn bell(&self) -> Doorbell<'_, FutexModel> {
        Doorbell::new(&self.machine, &self.word)
    }

    /// Publishes, then rings, as a post does.
    fn publish(&self, ringer: usize, value: u32) {
        self.data[ringer].store(value, Ordering::Release);
        self.bell().ring_if_asleep();
    }

    /// Sleeps until all data is at `value`, as a poller does.
    fn await_all(&self, value: u32) {
        let here = || self.data.iter().all(|data| data.load(Ordering::Acquire) == value);
        while !here() {
            if self.bell().arm() && !here() {
                self.bell().sleep(Duration::MAX);
            }
            self.bell().disarm();
            self.bell().take();
        }
    }
}

/// Explores a model and returns the number of interleavings. `preemptions` limits how often a
/// thread is interrupted while it could continue; `None` explores everything.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) -> usize {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    let explored = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&explored);
    builder.check(move || {
        counter.fetch_add(1, StdOrdering::Relaxed);
        model();
    });
    explored.load(StdOrdering::Relaxed)
}

fn one_sleeper(ringers: usize, rounds: u32, fences: Fences, preemptions: Option<usize>) -> usize {
    explore(preemptions, move || {
        let shared = SharedDoorbell::new(ringers, fences);
        let threads: Vec<_> = (0..ringers)
            .map(|ringer| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || (1..=rounds).for_each(|value| shared.publish(ringer, value)))
            })
            .collect();
        // Otherwise, loom may consider only one order of the first load below.
        thread::yield_now();
        shared.await_all(rounds);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    })
}

#[test]
fn doorbell_wakes_sleeper_for_one_ringer_twice() {
    let explored = one_sleeper(1, 2, BOTH, None);
    println!("one ringer, twice: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

#[test]
fn doorbell_wakes_sleeper_for_two_ringers() {
    // The test also passes without the bound, in one minute and 1.8 million interleavings.
    let explored = one_sleeper(2, 1, BOTH, Some(4));
    println!("two ringers: {explored} interleavings");
    assert!(explored > 1000, "only {explored}");
}

#[test]
fn doorbell_ring_without_data_is_not_missed() {
    let explored = explore(None, || {
        let shared = SharedDoorbell::new(0, BOTH);
        let ringer = Arc::clone(&shared);
        let thread = thread::spawn(move || ringer.bell().ring());
        thread::yield_now();
        while !shared.bell().take() {
            if shared.bell().arm() {
                shared.bell().sleep(Duration::MAX);
            }
            shared.bell().disarm();
        }
        thread.join().expect("no panic");
    });
    println!("a ring without data: {explored} interleavings");
    assert!(explored > 5, "only {explored}");
}

/// The model is detailed enough to show a lost wakeup, and each of the two fences is needed.
#[test]
#[should_panic(expected = "deadlock")]
fn doorbell_without_ringers_fence_loses_wakeup() {
    one_sleeper(1, 1, Fences { ringer: false, ..BOTH }, None);
}

#[test]
#[should_panic(expected = "deadlock")]
fn doorbell_without_sleepers_fence_loses_wakeup() {
    one_sleeper(1, 1, Fences { sleeper: false, ..BOTH }, None);
}
