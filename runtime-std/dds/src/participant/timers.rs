//! The thread that notices what did not happen in time: deadlines and leases.
//!
//! It sleeps until something may be due, or forever if no policy has a time.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::Shared;
use crate::sync::{Condvar, Mutex, lock, wait_while};
use crate::time::Now;

/// The longest sleep, after which it checks whether the participant still exists.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// The shortest sleep: shorter periods are counted, but not every one is waited for.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// The signal that wakes the thread.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// Signals that something may be due earlier than before.
    pub(super) fn ring(&self) {
        *lock(&self.rung) = true;
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration) {
        let rung = lock(&self.rung);
        *wait_while(&self.changed, rung, timeout, |rung| !*rung) = false;
    }
}

/// Starts the thread. It ends once only the thread holds the shared state.
pub(super) fn start(shared: &Arc<Shared>) -> std::io::Result<JoinHandle<()>> {
    let watched: Weak<Shared> = Arc::downgrade(shared);
    std::thread::Builder::new().name("tramontane-dds".into()).spawn(move || {
        while let Some(shared) = watched.upgrade() {
            let now = Now::read();
            let pause = match shared.tick(now) {
                Some(due) => due.saturating_sub(Now::read().elapsed).clamp(SLEEP_MIN, SLEEP_MAX),
                None => SLEEP_MAX,
            };
            shared.alarm.wait(pause);
        }
    })
}
