//! The levels reached by a member's own messages in a subgroup, and the threads and tasks that wait
//! for these levels, or for a free slot.
//!
//! # Invariants
//! - Counts only rise. All messages with ordinals below a count have reached the count's level.
//! - A waiter is woken once the count is beyond its message, or the member has ended. The thread
//!   that drives the member checks for new waiters at each step, not only when a count has changed.
//!   So a waiter that has just missed a change of the count is woken at the next step, for which it
//!   rings.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::level::Count;

/// The number of counts, excluding [`Count::Accepted`].
const COUNTED: usize = 4;

/// The key of a waiter: the number of its message, and its own number.
pub(crate) type WaiterKey = (u64, u64);

/// The waiters of a subgroup, by level and message.
#[derive(Debug, Default)]
struct Waiters {
    by_count: [BTreeMap<WaiterKey, Waker>; COUNTED],
    /// Tasks that wait for a free slot.
    slots: BTreeMap<u64, Waker>,
    next: u64,
}

impl Waiters {
    /// Publishes the number of waiters, for threads that do not hold the lock.
    fn count_in(&self, waiting: &AtomicUsize) {
        waiting.store(self.by_count.iter().map(BTreeMap::len).sum(), Ordering::Relaxed);
    }
}

/// The counts of one subgroup.
#[derive(Debug, Default)]
pub(crate) struct ReceiptCounts {
    reached: [AtomicU64; COUNTED],
    /// Set once no count rises any longer.
    has_ended: AtomicBool,
    /// The total number of waits so far, and the number of pending ones.
    waits: AtomicU64,
    waiting: AtomicUsize,
    /// The number of tasks that wait for a free slot.
    slots_awaited: AtomicUsize,
    waiters: Mutex<Waiters>,
}

/// Returns the index of a count, or `None` for a level that is not counted.
const fn index(count: Count) -> Option<usize> {
    match count {
        Count::Accepted => None,
        Count::Delivered => Some(0),
        Count::Here => Some(1),
        Count::Majority => Some(2),
        Count::Everywhere => Some(3),
    }
}

impl ReceiptCounts {
    /// Returns the count. All messages with lower ordinals have reached the level.
    pub(crate) fn get(&self, count: Count) -> u64 {
        index(count)
            .and_then(|index| self.reached.get(index))
            .map_or(u64::MAX, |reached| reached.load(Ordering::Acquire))
    }

    /// Raises a count. Called only by the thread that drives the member. Returns whether the count
    /// has changed.
    pub(crate) fn raise(&self, count: Count, ordinal: u64) -> bool {
        let moved = self.get(count) < ordinal;
        if let Some(reached) = index(count).and_then(|index| self.reached.get(index))
            && moved
        {
            reached.store(ordinal, Ordering::Release);
        }
        moved
    }

    /// Returns whether the counts are final.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Returns the number of waits so far.
    #[inline]
    pub(crate) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Returns whether there are waiters.
    #[inline]
    pub(crate) fn are_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the waiters whose messages have reached their level.
    #[cold]
    pub(crate) fn wake(&self) {
        let mut woken = Vec::new();
        let mut waiters = self.waiters();
        for (waiting, reached) in waiters.by_count.iter_mut().zip(&self.reached) {
            let reached = reached.load(Ordering::Acquire);
            let is_over = self.has_ended();
            while let Some(first) = waiting.first_entry() {
                if first.key().0 >= reached && !is_over {
                    break;
                }
                woken.push(first.remove());
            }
        }
        waiters.count_in(&self.waiting);
        drop(waiters);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Ends the counts because the member has ended. No count rises any longer, and all waiters are
    /// woken.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.wake();
        self.wake_for_slots();
    }

    /// Registers a waker, which is called when a slot may be free or the member ends. `before` is
    /// the key that an earlier call returned for the same wait. Afterwards, the caller must ring.
    pub(crate) fn wait_for_slot(&self, before: Option<u64>, waker: &Waker) -> u64 {
        let mut waiters = self.waiters();
        let key = before.unwrap_or(waiters.next);
        waiters.next = waiters.next.max(key.saturating_add(1));
        let replaced = waiters.slots.insert(key, waker.clone());
        self.slots_awaited.store(waiters.slots.len(), Ordering::Relaxed);
        drop(waiters);
        drop(replaced);
        self.waits.fetch_add(1, Ordering::SeqCst);
        key
    }

    /// Returns whether a wait for a slot has not ended yet.
    pub(crate) fn is_awaiting_slot(&self, key: u64) -> bool {
        self.waiters().slots.contains_key(&key)
    }

    /// Removes a wait for a slot that has been given up.
    pub(crate) fn forget_slot(&self, key: u64) {
        let mut waiters = self.waiters();
        let removed = waiters.slots.remove(&key);
        self.slots_awaited.store(waiters.slots.len(), Ordering::Relaxed);
        drop(waiters);
        drop(removed);
    }

    /// Returns whether a task waits for a free slot.
    #[inline]
    pub(crate) fn are_slots_awaited(&self) -> bool {
        self.slots_awaited.load(Ordering::Relaxed) > 0
    }

    /// Wakes all tasks that wait for a free slot.
    #[cold]
    pub(crate) fn wake_for_slots(&self) {
        let mut waiters = self.waiters();
        let woken = std::mem::take(&mut waiters.slots);
        self.slots_awaited.store(0, Ordering::Relaxed);
        drop(waiters);
        woken.into_values().for_each(Waker::wake);
    }

    /// Registers a waker, which is called when a message reaches a level or the member ends.
    /// `before` is the key that an earlier call returned for the same wait. Afterwards, the caller
    /// must check once more, and ring.
    pub(crate) fn wait(
        &self,
        count: Count,
        ordinal: u64,
        before: Option<WaiterKey>,
        waker: &Waker,
    ) -> Option<WaiterKey> {
        let mut waiters = self.waiters();
        let number = before.map_or(waiters.next, |(_, number)| number);
        waiters.next = waiters.next.max(number.saturating_add(1));
        let key = (ordinal, number);
        waiters.by_count.get_mut(index(count)?)?.insert(key, waker.clone());
        waiters.count_in(&self.waiting);
        self.waits.fetch_add(1, Ordering::SeqCst);
        Some(key)
    }

    /// Removes a wait that has been given up.
    pub(crate) fn forget(&self, count: Count, key: WaiterKey) {
        let waiting = index(count);
        let mut waiters = self.waiters();
        let removed = waiting.and_then(|index| waiters.by_count.get_mut(index)?.remove(&key));
        waiters.count_in(&self.waiting);
        drop(waiters);
        // Dropping a waker may run its owner's code, so this is not done under the lock.
        drop(removed);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap as Model;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize as Calls;
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;

    /// A waker that counts the calls to it.
    #[derive(Default)]
    struct Called(Calls);

    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[derive(Clone, Debug)]
    enum Deed {
        Wait { level: usize, ordinal: u64 },
        Again { which: usize },
        Forget { which: usize },
        Raise { level: usize, ordinal: u64 },
    }

    const LEVELS: [Count; COUNTED] =
        [Count::Delivered, Count::Here, Count::Majority, Count::Everywhere];

    fn deed() -> impl Strategy<Value = Deed> {
        prop_oneof![
            (0..COUNTED, 0_u64..20).prop_map(|(level, ordinal)| Deed::Wait { level, ordinal }),
            (0_usize..20).prop_map(|which| Deed::Again { which }),
            (0_usize..20).prop_map(|which| Deed::Forget { which }),
            (0..COUNTED, 0_u64..25).prop_map(|(level, ordinal)| Deed::Raise { level, ordinal }),
        ]
    }

    /// A wait of the model: its level, its waker, and the number of calls to that waker when the
    /// wait began.
    type ModelWait = (usize, Arc<Called>, usize);

    #[test]
    fn tasks_that_wait_for_slots_are_woken_once() {
        let counts = ReceiptCounts::default();
        let called = [(); 3].map(|()| Arc::new(Called::default()));
        let wakers = called.clone().map(Waker::from);
        let calls = || called.each_ref().map(|called| called.0.load(Ordering::SeqCst));
        let keys = wakers.each_ref().map(|waker| counts.wait_for_slot(None, waker));
        assert_eq!(counts.wait_for_slot(Some(keys[0]), &wakers[0]), keys[0], "the same wait");
        counts.forget_slot(keys[1]);
        assert!(counts.are_slots_awaited() && counts.is_awaiting_slot(keys[2]));
        counts.wake_for_slots();
        assert!(!counts.are_slots_awaited() && !counts.is_awaiting_slot(keys[2]));
        assert_eq!(calls(), [1, 0, 1]);
        counts.wait_for_slot(None, &wakers[1]);
        counts.end();
        assert_eq!(calls(), [1, 1, 1]);
    }

    proptest! {
        /// Compares the counts with a model that checks every waiter each time. A waiter is called
        /// once after it began to wait if its message has reached its level, and is otherwise never
        /// called.
        #[test]
        fn receipt_waiters_wake_once_at_their_level(
            deeds in prop::collection::vec(deed(), 0..80),
        ) {
            let counts = ReceiptCounts::default();
            let mut reached = [0; COUNTED];
            let mut waits: Model<WaiterKey, ModelWait> = Model::new();
            for deed in deeds {
                match deed {
                    Deed::Wait { level, ordinal } => {
                        let called = Arc::<Called>::default();
                        let waker = Waker::from(Arc::clone(&called));
                        let key = counts.wait(LEVELS[level], ordinal, None, &waker);
                        waits.insert(key.expect("it is counted"), (level, called, 0));
                        // The driving thread notices that a wait has begun.
                        counts.wake();
                    }
                    Deed::Again { which } => {
                        let Some((key, wait)) = waits.iter_mut().nth(which) else { continue };
                        let (level, called, before) = wait;
                        *before = called.0.load(Ordering::SeqCst);
                        let waker = Waker::from(Arc::clone(called));
                        let again = counts.wait(LEVELS[*level], key.0, Some(*key), &waker);
                        prop_assert_eq!(again, Some(*key));
                        counts.wake();
                    }
                    Deed::Forget { which } => {
                        let Some(key) = waits.keys().nth(which).copied() else { continue };
                        let (level, called, _) = waits.remove(&key).expect("it waits");
                        counts.forget(LEVELS[level], key);
                        prop_assert_eq!(Arc::strong_count(&called), 1, "its waker is gone");
                    }
                    Deed::Raise { level, ordinal } => {
                        let moved = counts.raise(LEVELS[level], ordinal);
                        prop_assert_eq!(moved, ordinal > reached[level]);
                        reached[level] = reached[level].max(ordinal);
                        if counts.are_awaited() {
                            counts.wake();
                        }
                    }
                }
                for (key, (level, called, before)) in &waits {
                    let calls = called.0.load(Ordering::SeqCst) - before;
                    prop_assert_eq!(calls, usize::from(key.0 < reached[*level]), "{:?}", key);
                }
            }
            counts.end();
            prop_assert!(!counts.are_awaited());
            for (_, called, before) in waits.values() {
                prop_assert_eq!(called.0.load(Ordering::SeqCst) - before, 1);
            }
        }
    }

    /// A waiter that has missed a change by the driving thread is woken at the next step.
    #[test]
    fn thread_does_not_wait_for_reached_level() {
        let counts = ReceiptCounts::default();
        std::thread::scope(|scope| {
            for offset in 0..3 {
                let counts = &counts;
                scope.spawn(move || {
                    for ordinal in (offset..3_000).step_by(3) {
                        let waker = Waker::from(Arc::new(UnparkThread(std::thread::current())));
                        let mut key = None;
                        while counts.get(Count::Here) <= ordinal {
                            key = counts.wait(Count::Here, ordinal, key, &waker);
                            if counts.get(Count::Here) <= ordinal {
                                std::thread::park();
                            }
                        }
                        key.into_iter().for_each(|key| counts.forget(Count::Here, key));
                    }
                });
            }
            let mut seen = 0;
            for ordinal in 0..=3_000 {
                counts.raise(Count::Here, ordinal);
                if counts.are_awaited() {
                    counts.wake();
                }
                let waits = counts.waits();
                if waits != seen {
                    seen = waits;
                    counts.wake();
                }
                std::thread::yield_now();
            }
            while counts.are_awaited() || seen != counts.waits() {
                seen = counts.waits();
                counts.wake();
                std::thread::yield_now();
            }
        });
    }

    struct UnparkThread(std::thread::Thread);

    impl Wake for UnparkThread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
}
