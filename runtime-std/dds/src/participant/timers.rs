//! The thread that notices what has not happened in time: missed deadlines and leases.
//!
//! The thread sleeps until something may be due, or indefinitely if no policy sets a time.

use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use super::shared::ParticipantState;
use crate::sync::{Condvar, Mutex, lock, wait_while};
use crate::time::Now;

/// Maximum sleep. After it, the thread checks whether the participant still exists.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Minimum sleep. Shorter periods are counted, but the thread does not wake for each of them.
const SLEEP_MIN: Duration = Duration::from_millis(1);

/// The signal that wakes the thread.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// Wakes the thread, because something may be due earlier than before.
    pub(super) fn ring(&self) {
        *lock(&self.rung) = true;
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Duration) {
        let rung = lock(&self.rung);
        *wait_while(&self.changed, rung, timeout, |rung| !*rung) = false;
    }
}

/// Starts the thread. The thread ends once it is the only holder of the shared state.
pub(super) fn start(shared: &Arc<ParticipantState>) -> std::io::Result<JoinHandle<()>> {
    let watched: Weak<ParticipantState> = Arc::downgrade(shared);
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
