//! A thread that drives a member, helped by senders that find no free slot.
//!
//! Whoever has the turn steps. While senders drive, the polling thread keeps off their processor and looks
//! in only now and then: two threads that step one node in turn cost more than one, since all of its state
//! moves between processors with each turn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_core::turn::Turn;

use crate::host::LocalBell;
use crate::member::{Idle, SendError, Stopped};

/// Tries between two looks at the clock.
const TRIES_PER_CLOCK: u32 = 64;

/// How long the polling thread keeps off while senders drive.
const KEEP_OFF: Duration = Duration::from_micros(200);

/// The longest sleep of the polling thread: it must still see that peers are alive.
const SLEEP_MAX: Duration = Duration::from_millis(200);

/// What a polling thread drives.
pub(crate) trait Driven: Send + 'static {
    /// The bell that wakes it.
    type Bell: LocalBell;

    /// A bell for other threads.
    fn bell(&self) -> Self::Bell;

    /// How it waits between steps that find nothing.
    fn idle(&self) -> Idle;

    /// Does what there is to do now; true if that was something.
    fn step(&mut self) -> Result<bool, Stopped>;

    /// Sleeps until something comes, at most `timeout`; false if nothing came and nothing was done.
    fn sleep(&mut self, timeout: Duration) -> Result<bool, Stopped>;

    /// What can be seen between two steps.
    fn look(&self) -> Look;

    /// Tells the peers that this member goes.
    fn leave(&mut self);
}

/// Steps a node, or rings for it, on behalf of a sender.
pub(crate) trait Drive: Send + Sync {
    /// Steps once, if it is nobody's turn. True if this call did something.
    fn drive(&self) -> bool;

    /// Wakes the polling thread if it sleeps.
    fn ring(&self);
}

/// After so long without any progress a sender that waits gives its processor away: somebody is slow, or gone.
const WAIT_PATIENCE: Duration = Duration::from_millis(1);

/// Tries until it works, at most `timeout`, driving the node meanwhile where that is possible.
pub(crate) fn wait_driving<R>(
    driver: Option<&dyn Drive>,
    ending: &Ending,
    timeout: Duration,
    mut attempt: impl FnMut() -> Option<R>,
) -> Result<R, SendError> {
    let start = Instant::now();
    let mut idle = Idle::new(WAIT_PATIENCE);
    let mut tries = 0_u32;
    loop {
        tries = tries.wrapping_add(1);
        let drove = driver.is_some_and(|driver| driver.drive());
        if let Some(done) = attempt() {
            return Ok(done);
        }
        if let Some(stopped) = ending.stopped() {
            return Err(stopped.into());
        }
        let mut is_stuck = false;
        if drove {
            idle.reset();
        } else if idle.pause() {
            is_stuck = true;
            std::thread::sleep(KEEP_OFF.min(timeout));
        }
        if (is_stuck || tries.is_multiple_of(TRIES_PER_CLOCK)) && start.elapsed() >= timeout {
            return Err(SendError::TimedOut(timeout));
        }
    }
}

/// What can be seen of a member between two steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) is_settled: bool,
    pub(crate) writes: u64,
}

/// Why a member is no longer part of its group: the first reason counts.
#[derive(Debug, Default)]
pub(crate) struct Ending(OnceLock<Stopped>);

impl Ending {
    /// Ends the member for the first of the reasons given, and returns that one.
    pub(crate) fn stop(&self, why: Stopped) -> Stopped {
        self.0.get_or_init(|| why).clone()
    }

    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.0.get().cloned()
    }
}

/// What the polling thread, the senders and the handle share.
struct Common<D: Driven> {
    driven: Turn<D>,
    bell: D::Bell,
    ending: Arc<Ending>,
    closing: AtomicBool,
    /// Steps that senders did.
    drives: AtomicU64,
    /// Somebody wants the turn for a moment, and did not get it.
    wanted: AtomicBool,
}

/// What the handle needs, whatever is driven.
trait Control: Send + Sync {
    fn close(&self);
    fn leave(&self);
    /// Nothing while somebody else has the turn.
    fn look(&self) -> Option<Look>;
}

/// A running poller. Dropping it closes it without waiting for what is under way.
pub(crate) struct Poller {
    control: Arc<dyn Control>,
    driver: Arc<dyn Drive>,
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    /// Starts the thread. What is driven ends with `ending`.
    pub(crate) fn start<D: Driven>(driven: D, ending: &Arc<Ending>) -> std::io::Result<Self> {
        let common = Arc::new(Common {
            bell: driven.bell(),
            ending: Arc::clone(ending),
            closing: AtomicBool::new(false),
            drives: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            driven: Turn::new(driven),
        });
        let poller = Arc::clone(&common);
        let thread = std::thread::Builder::new()
            .name("tramontane-poll".into())
            .spawn(move || poller.poll())?;
        let ending = Arc::clone(ending);
        Ok(Self {
            control: Arc::<Common<D>>::clone(&common),
            driver: common,
            ending,
            thread: Some(thread),
        })
    }

    /// For senders.
    pub(crate) fn driver(&self) -> &Arc<dyn Drive> {
        &self.driver
    }

    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.ending.stopped()
    }

    /// Waits until nothing is under way, at most `timeout`. True if so.
    pub(crate) fn settle(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        while start.elapsed() < timeout && self.stopped().is_none() {
            if self.is_settled() {
                return true;
            }
            std::thread::sleep(KEEP_OFF / 4);
        }
        self.is_settled()
    }

    fn is_settled(&self) -> bool {
        self.control.look().is_some_and(|look| look.is_settled)
    }

    /// Waits for the turn, at most a step and an upcall, and looks.
    pub(crate) fn look(&self) -> Look {
        loop {
            if let Some(look) = self.control.look() {
                return look;
            }
            std::thread::sleep(KEEP_OFF / 4);
        }
    }

    /// Ends the thread and leaves the group; says why it had stopped before, if it had.
    pub(crate) fn close(mut self) -> Result<(), Stopped> {
        let before = self.stopped();
        self.end();
        match before {
            None | Some(Stopped::Closed) => Ok(()),
            Some(stopped) => Err(stopped),
        }
    }

    fn end(&mut self) {
        self.control.close();
        if let Some(thread) = self.thread.take() {
            // The thread catches what the application throws; it has nothing else to panic with.
            let _ = thread.join();
            self.control.leave();
        }
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        self.end();
    }
}

impl<D: Driven> Common<D> {
    /// The polling thread.
    fn poll(&self) {
        let mut drives = 0;
        let mut idle = Idle::new(Duration::from_millis(1));
        if let Some(driven) = self.driven.take() {
            idle = driven.idle();
        }
        while !self.closing.load(Ordering::Relaxed) {
            let now_drives = self.drives.load(Ordering::Relaxed);
            if now_drives != drives {
                drives = now_drives;
                idle.reset();
                std::thread::sleep(KEEP_OFF);
                continue;
            }
            if self.wanted.load(Ordering::Relaxed) {
                self.wanted.store(false, Ordering::Relaxed);
                std::thread::sleep(KEEP_OFF);
                continue;
            }
            match self.driven.take().map(|mut driven| driven.step()) {
                Some(Ok(true)) => {
                    idle.reset();
                    continue;
                }
                Some(Ok(false)) | None => {}
                Some(Err(_)) => break,
            }
            // Without the turn: it takes as long as the operating system lets others run.
            if idle.pause() {
                let Some(mut driven) = self.driven.take() else { continue };
                // The turn is kept while asleep: whoever wants it rings, and tries again.
                if self.sleep(&mut driven).is_err() {
                    break;
                }
                idle.reset();
            }
        }
    }

    /// Sleeps until something comes, somebody wants the turn, or the member closes; a timer's wake-up that
    /// finds nothing is no reason to poll for a while again.
    fn sleep(&self, driven: &mut D) -> Result<(), Stopped> {
        while !self.closing.load(Ordering::Relaxed) {
            if driven.sleep(SLEEP_MAX)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<D: Driven> Drive for Common<D> {
    fn drive(&self) -> bool {
        let Some(mut driven) = self.driven.take() else {
            self.bell.ring_if_asleep();
            return false;
        };
        self.drives.fetch_add(1, Ordering::Relaxed);
        driven.step().unwrap_or(false)
    }

    fn ring(&self) {
        self.bell.ring_if_asleep();
    }
}

impl<D: Driven> Control for Common<D> {
    fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ending.stop(Stopped::Closed);
        self.bell.ring_if_asleep();
    }

    /// Removes this member's files, whatever it stopped for: senders that live on keep its memory mapped, and
    /// what is mapped is not cleared away.
    fn leave(&self) {
        loop {
            if let Some(mut driven) = self.driven.take() {
                driven.leave();
                return;
            }
            // A sender that drives gives the turn back after its step.
            std::thread::yield_now();
        }
    }

    fn look(&self) -> Option<Look> {
        let Some(driven) = self.driven.take() else {
            // Seen by a poller that is rung, and by one that polls.
            self.wanted.store(true, Ordering::Relaxed);
            self.bell.ring_if_asleep();
            return None;
        };
        Some(driven.look())
    }
}
