//! All interleavings of a reader's threads, under loom: the delivering thread, and an application
//! thread that waits and takes samples. Built with `--cfg tramontane_interleave`; `.ci/full` runs
//! it.
//!
//! An application that misses a sample waits forever, which loom reports as a deadlock. Because
//! loom may silently explore fewer interleavings than there are, each search asserts how many it
//! explored. Mistakes that these searches have found are kept here as planted bugs.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::thread;

use super::super::conditions::{ReadCondition, ReaderStatusCondition};
use super::*;
use crate::reader::InstanceStates;
use crate::time::Timestamp;
use crate::topic::Payloads;
use crate::waitset::{Bell, Condition, GuardCondition, WaitSet};

/// Explores all interleavings, and asserts that there are at least `least`.
fn explore(least: usize, body: impl Fn() + Send + Sync + 'static) {
    let explored = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&explored);
    loom::model(move || {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    let explored = explored.load(std::sync::atomic::Ordering::Relaxed);
    println!("{explored} interleavings");
    assert!(explored >= least, "only {explored}");
}

fn reader(qos: ReaderQos) -> Arc<ReaderCore> {
    Arc::new(ReaderCore::new(SubscriptionHandle::default(), qos, INFINITE))
}

/// Delivers an arrival at time zero.
fn hand_over(reader: &ReaderCore, kind: Kind, ordinal: u64, expires: Timestamp) {
    let now = Now::default();
    let handle = InstanceHandle::KEYLESS;
    let info = SampleInfo::of_state(handle, PublicationHandle::default(), now.wall);
    let arrival = Arrival { kind, info: SampleInfo { ordinal, ..info }, expires };
    let mut payloads = Payloads::default();
    reader.deliver(&arrival, &mut IncomingValue::new(&[], &mut payloads), now);
    reader.flush();
}

fn deliver(reader: &ReaderCore, ordinal: u64) {
    hand_over(reader, Kind::Data, ordinal, Timestamp(i64::MAX));
}

type Select = fn(&ReaderCore) -> Vec<Selected>;

fn take(reader: &ReaderCore) -> Vec<Selected> {
    reader.select(&Selection::default(), true)
}

/// The planted bug: the status is cleared after the check.
fn take_and_clear_after(reader: &ReaderCore) -> Vec<Selected> {
    let selected = lock(&reader.cache).select(&Selection::default(), true, Now::read());
    lock(&reader.statuses).changed.remove(StatusMask::DATA_AVAILABLE);
    reader.room.notify_all();
    selected
}

/// Waits for a condition and takes samples, until all have been taken.
fn take_all(reader: &ReaderCore, condition: Arc<dyn Condition>, count: usize, select: Select) {
    let mut set = WaitSet::new();
    set.attach(condition);
    let mut taken = Vec::new();
    while taken.len() < count {
        assert_eq!(set.wait(INFINITE), [0]);
        taken.extend(select(reader).iter().map(|sample| sample.info.ordinal));
    }
    assert!(taken.is_sorted_by(|before, after| before < after), "{taken:?}");
}

fn statuses(select: Select) {
    explore(10_000, move || {
        let reader = reader(ReaderQos { history: History::KeepAll, ..ReaderQos::default() });
        let deliverer = {
            let reader = Arc::clone(&reader);
            thread::spawn(move || [1, 2].map(|ordinal| deliver(&reader, ordinal)))
        };
        thread::yield_now();
        let enabled = StatusMask::DATA_AVAILABLE;
        let condition = ReaderStatusCondition { reader: Arc::clone(&reader), enabled };
        take_all(&reader, Arc::new(condition), 2, select);
        deliverer.join().expect("no panic");
    })
}

#[test]
fn status_condition_misses_no_sample() {
    statuses(take);
}

#[test]
#[should_panic(expected = "deadlock")]
fn late_status_clear_is_detected() {
    statuses(take_and_clear_after);
}

/// The reader has room for one sample, so the delivering thread also waits for the application.
#[test]
fn full_reader_and_read_condition_miss_no_sample() {
    explore(50_000, || {
        let limits = crate::qos::ResourceLimits { max_samples: Some(1), ..Default::default() };
        let mut qos = ReaderQos { history: History::KeepAll, ..ReaderQos::default() };
        qos.resource_limits = limits;
        let reader = reader(qos);
        let deliverer = {
            let reader = Arc::clone(&reader);
            thread::spawn(move || [1, 2].map(|ordinal| deliver(&reader, ordinal)))
        };
        thread::yield_now();
        let selection = Selection::unread();
        let condition = ReadCondition { reader: Arc::clone(&reader), selection };
        take_all(&reader, Arc::new(condition), 2, take);
        deliverer.join().expect("no panic");
    });
}

/// An instance ends, and its sample has expired; meanwhile the application takes samples.
#[test]
fn instance_end_is_reported_once() {
    explore(20, || {
        let reader = reader(ReaderQos { history: History::KeepAll, ..ReaderQos::default() });
        hand_over(&reader, Kind::Data, 1, Timestamp(1));
        let deliverer = {
            let reader = Arc::clone(&reader);
            let kind = Kind::DisposeAndUnregister;
            thread::spawn(move || hand_over(&reader, kind, 2, Timestamp(i64::MAX)))
        };
        thread::yield_now();
        let mut told = take(&reader);
        deliverer.join().expect("no panic");
        told.extend(take(&reader));
        let states: Vec<_> = told.iter().map(|sample| sample.info.instance_state).collect();
        assert_eq!(states, [InstanceStates::NOT_ALIVE_DISPOSED]);
    });
}

#[test]
fn guard_condition_wakes_its_wait_set() {
    explore(30, || {
        let guard = GuardCondition::new();
        let setter = {
            let guard = Arc::clone(&guard);
            thread::spawn(move || guard.set_trigger_value(true))
        };
        thread::yield_now();
        let mut set = WaitSet::new();
        set.attach(guard);
        assert_eq!(set.wait(INFINITE), [0]);
        setter.join().expect("no panic");
    });
}

/// The planted bug: the value and the bells are just two flags, so each thread may see the other's
/// flag too late.
struct Flag {
    value: AtomicBool,
    bells: Bells,
}

impl Condition for Flag {
    fn trigger_value(&self) -> bool {
        self.value.load(Ordering::Acquire)
    }

    fn watch(&self, bell: &Arc<Bell>) {
        self.bells.add(bell);
    }
}

#[test]
#[should_panic(expected = "deadlock")]
fn unlocked_guard_condition_loses_a_wakeup() {
    explore(1, || {
        let flag = Arc::new(Flag { value: AtomicBool::new(false), bells: Bells::default() });
        let setter = {
            let flag = Arc::clone(&flag);
            thread::spawn(move || {
                flag.value.store(true, Ordering::Release);
                flag.bells.ring();
            })
        };
        thread::yield_now();
        let mut set = WaitSet::new();
        set.attach(flag);
        assert_eq!(set.wait(INFINITE), [0]);
        setter.join().expect("no panic");
    });
}
