//! The single lock on a network's hardware, and the progress of the network's time.

use std::cell::Cell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::counts::CommandKind;
use super::hardware::Hardware;

/// The source of a network's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The test advances virtual time with [`Network::run_until`]; nothing happens between calls.
    ///
    /// [`Network::run_until`]: super::Network::run_until
    Virtual,
    /// The machine's clock. Each call first carries out the events that are due; a thread of the
    /// network does so for threads that sleep.
    Real,
}

/// Maximum delay in waking a sleeping thread.
const SLACK: Duration = Duration::from_micros(50);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Returns whether this thread is in a call of a fake device. Allocations inside such a call would
/// not happen with a real device.
#[must_use]
pub fn is_inside_call() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(false)
}

/// Marks this thread as inside a call as long as the value exists.
struct Inside(bool);

impl Inside {
    fn new() -> Self {
        Self(INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(false))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(self.0));
    }
}

#[derive(Debug)]
struct Locked {
    hardware: Hardware,
    /// The time at which the network's sleeping thread wakes. The far future means never.
    looks_at: u64,
    is_over: bool,
}

#[derive(Debug)]
struct SharedClock {
    locked: Mutex<Locked>,
    sooner: Condvar,
    clock: Clock,
    started: Instant,
}

/// The hardware of a network, shared by all its objects. Dropping the last of them ends the
/// network's thread.
#[derive(Debug)]
pub(super) struct Core {
    shared: Arc<SharedClock>,
}

impl Core {
    pub(super) fn new(seed: u64, clock: Clock) -> Arc<Self> {
        let locked = Locked { hardware: Hardware::new(seed), looks_at: 0, is_over: false };
        let shared = Arc::new(SharedClock {
            locked: Mutex::new(locked),
            sooner: Condvar::new(),
            clock,
            started: Instant::now(),
        });
        if clock == Clock::Real {
            let shared = Arc::clone(&shared);
            let named = std::thread::Builder::new().name("fake verbs network".into());
            named.spawn(move || shared.go_on()).expect("a thread");
        }
        Arc::new(Self { shared })
    }

    /// Calls `action` with the hardware in its current state.
    pub(super) fn with<R>(&self, action: impl FnOnce(&mut Hardware) -> R) -> R {
        let _inside = Inside::new();
        let mut locked = self.shared.lock();
        if self.shared.clock == Clock::Real {
            locked.hardware.run_until(self.shared.now());
        }
        let result = action(&mut locked.hardware);
        if self.shared.clock == Clock::Real {
            locked.hardware.run_until(self.shared.now());
            let next = locked.hardware.agenda.next_at();
            if next.is_some_and(|next| next.saturating_add(slack_ns()) < locked.looks_at) {
                self.shared.sooner.notify_one();
            }
        }
        result
    }

    /// Runs a command to the kernel: it is counted, and in real time, it takes as long as
    /// configured.
    pub(super) fn command<R>(
        &self,
        context: u64,
        kind: CommandKind,
        action: impl FnOnce(&mut Hardware) -> R,
    ) -> R {
        let _inside = Inside::new();
        let cost = self.with(|hardware| hardware.command(context, kind));
        if self.shared.clock == Clock::Real && cost > 0 {
            std::thread::sleep(Duration::from_nanos(cost));
        }
        self.with(action)
    }

    pub(super) fn is_virtual(&self) -> bool {
        self.shared.clock == Clock::Virtual
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.sooner.notify_one();
    }
}

impl SharedClock {
    fn lock(&self) -> MutexGuard<'_, Locked> {
        // If a test panics elsewhere, it reports that itself.
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Carries out due events until the network has no owner left.
    fn go_on(&self) {
        let mut locked = self.lock();
        while !locked.is_over {
            let now = self.now();
            locked.hardware.run_until(now);
            let next = locked.hardware.agenda.next_at();
            locked.looks_at = next.unwrap_or(u64::MAX);
            let wait = Duration::from_nanos(locked.looks_at.saturating_sub(now)).max(SLACK);
            let waited = self.sooner.wait_timeout(locked, wait);
            locked = waited.unwrap_or_else(PoisonError::into_inner).0;
            locked.looks_at = 0;
        }
    }
}

fn slack_ns() -> u64 {
    u64::try_from(SLACK.as_nanos()).unwrap_or(0)
}
