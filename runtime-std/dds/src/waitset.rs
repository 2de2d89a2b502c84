//! Conditions, and wait sets made of them.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, lock, wait_while};

/// A condition that is true or false.
pub trait Condition: Send + Sync {
    /// Returns whether the condition is currently true.
    fn trigger_value(&self) -> bool;

    /// Registers a bell, which is rung whenever the condition may have become true.
    #[doc(hidden)]
    fn watch(&self, bell: &Arc<Bell>);
}

/// The signal that wakes a wait set.
#[doc(hidden)]
#[derive(Debug, Default)]
pub struct Bell {
    rung: Mutex<u64>,
    changed: Condvar,
}

impl Bell {
    fn ring(&self) {
        *lock(&self.rung) += 1;
        self.changed.notify_all();
    }
}

/// The bells that an entity rings.
#[derive(Debug, Default)]
pub(crate) struct Bells {
    any: AtomicBool,
    bells: Mutex<Vec<Weak<Bell>>>,
}

impl Bells {
    pub(crate) fn add(&self, bell: &Arc<Bell>) {
        lock(&self.bells).push(Arc::downgrade(bell));
        self.any.store(true, Ordering::Release);
    }

    /// Rings the bells. The call costs one load if there is no waiter.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.any.load(Ordering::Acquire) {
            self.ring_all();
        }
    }

    #[cold]
    fn ring_all(&self) {
        let mut bells = lock(&self.bells);
        bells.retain(|bell| bell.upgrade().map(|bell| bell.ring()).is_some());
        self.any.store(!bells.is_empty(), Ordering::Release);
    }
}

/// A condition that the application sets.
#[derive(Debug, Default)]
pub struct GuardCondition {
    /// The value is under a lock, so that a thread that attaches the condition either sees the new
    /// value or is seen by the thread that sets it.
    value: Mutex<bool>,
    bells: Bells,
}

impl GuardCondition {
    /// Creates a condition that is false.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Sets the condition's value.
    pub fn set_trigger_value(&self, value: bool) {
        *lock(&self.value) = value;
        if value {
            self.bells.ring();
        }
    }
}

impl Condition for GuardCondition {
    fn trigger_value(&self) -> bool {
        *lock(&self.value)
    }

    fn watch(&self, bell: &Arc<Bell>) {
        self.bells.add(bell);
    }
}

/// A set of conditions, for waiting until one of them is true.
///
/// ```
/// use std::time::Duration;
/// use tramontane_dds::{Condition, GuardCondition, WaitSet};
///
/// let stop = GuardCondition::new();
/// let mut set = WaitSet::new();
/// set.attach(stop.clone());
/// assert!(set.wait(Duration::from_millis(1)).is_empty());
/// stop.set_trigger_value(true);
/// assert_eq!(set.wait(Duration::from_secs(1)).len(), 1);
/// ```
#[derive(Default)]
pub struct WaitSet {
    bell: Arc<Bell>,
    conditions: Vec<Arc<dyn Condition>>,
}

impl WaitSet {
    /// Creates an empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition to the set, and returns its index among the attached conditions.
    pub fn attach(&mut self, condition: Arc<dyn Condition>) -> usize {
        condition.watch(&self.bell);
        self.conditions.push(condition);
        self.conditions.len() - 1
    }

    /// Waits until a condition is true, for at most `timeout`. Returns the indices of all true
    /// conditions, or none after a timeout.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> Vec<usize> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let before = *lock(&self.bell.rung);
            let active: Vec<usize> = self
                .conditions
                .iter()
                .enumerate()
                .filter(|(_, condition)| condition.trigger_value())
                .map(|(place, _)| place)
                .collect();
            let left = until
                .map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if !active.is_empty() || left.is_zero() {
                return active;
            }
            let rung = lock(&self.bell.rung);
            // A ring between the check and the locking is not missed.
            drop(wait_while(&self.bell.changed, rung, left, |rung| *rung == before));
        }
    }
}

impl std::fmt::Debug for WaitSet {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("WaitSet").field("conditions", &self.conditions.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_ends_on_condition_or_timeout() {
        let (one, other) = (GuardCondition::new(), GuardCondition::new());
        let mut set = WaitSet::new();
        set.attach(Arc::<GuardCondition>::clone(&one));
        let place = set.attach(Arc::<GuardCondition>::clone(&other));
        assert!(set.wait(Duration::ZERO).is_empty());
        let setter = std::thread::spawn(move || other.set_trigger_value(true));
        assert_eq!(set.wait(Duration::from_secs(60)), [place]);
        setter.join().expect("it sets");
    }
}
