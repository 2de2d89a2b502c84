//! A thread that steps a node, helped by senders that find no free slot.
//!
//! Only the thread that has the turn steps the node. While senders step, the polling thread keeps
//! off their processor, and checks only occasionally. Two threads that step one node in turn cost
//! more than one thread, because all of the node's state moves between processors with each turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_core::fabric::HostFabric;
use tramontane_core::fabric::LocalBell as _;
use tramontane_core::turn::Turn;

use super::ending::Ending;
use super::idle::Idle;
use super::stepping::Leading;
use super::steps::Done as _;
use super::steps::{Steps, sleep, step};
use super::waiting::{DriveOrRing, KEEP_OFF};
use crate::member::Stopped;

/// The maximum sleep of the polling thread.
const SLEEP_MAX: Duration = Duration::from_millis(200);

/// The state shared by the polling thread, the senders and the handle.
struct Common<S: Steps> {
    steps: Turn<S>,
    bell: <S::Fabric as HostFabric>::Bell,
    ending: Arc<Ending>,
    closing: AtomicBool,
    /// The number of steps made by senders.
    drives: AtomicU64,
    /// Whether another thread wants the turn for a moment, but has not got it.
    wanted: AtomicBool,
    leading: Leading,
}

/// The values that a handle reads, taken between two steps.
#[derive(Clone, Copy, Debug)]
struct Seen {
    is_settled: bool,
    writes: u64,
}

/// The interface of a poller that its handle needs, whatever is being stepped.
trait Control: Send + Sync {
    fn close(&self);
    fn leave(&self);
    /// Returns `None` while another thread has the turn.
    fn see(&self) -> Option<Seen>;
}

/// A running poller. Dropping it closes it without waiting for messages in flight.
pub(crate) struct Poller {
    control: Arc<dyn Control>,
    driver: Arc<dyn DriveOrRing>,
    ending: Arc<Ending>,
    thread: Option<JoinHandle<()>>,
}

impl Poller {
    /// Starts the thread. `ending` ends the stepped node.
    pub(crate) fn start<S: Steps + 'static>(
        mut steps: S,
        ending: &Arc<Ending>,
    ) -> std::io::Result<Self> {
        let common = Arc::new(Common {
            bell: steps.fabric().local_bell(),
            ending: Arc::clone(ending),
            closing: AtomicBool::new(false),
            drives: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            leading: Leading::default(),
            steps: Turn::new(steps),
        });
        let poller = Arc::clone(&common);
        let thread = std::thread::Builder::new()
            .name("tramontane-poll".into())
            .spawn(move || poller.poll())?;
        let ending = Arc::clone(ending);
        Ok(Self {
            control: Arc::<Common<S>>::clone(&common),
            driver: common,
            ending,
            thread: Some(thread),
        })
    }

    /// Returns the driver for senders.
    pub(crate) fn driver(&self) -> &Arc<dyn DriveOrRing> {
        &self.driver
    }

    /// Returns the reason why the node ended, or `None` if it is running.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.ending.stopped()
    }

    /// Waits until nothing is in flight, for at most `timeout`. Returns whether that was achieved.
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
        self.control.see().is_some_and(|seen| seen.is_settled)
    }

    /// Returns the number of writes posted so far. Waits for the turn, which takes at most one step
    /// and one upcall.
    pub(crate) fn writes(&self) -> u64 {
        loop {
            if let Some(seen) = self.control.see() {
                return seen.writes;
            }
            std::thread::sleep(KEEP_OFF / 4);
        }
    }

    /// Ends the thread and leaves the group. Returns the reason why it ended, which is
    /// [`Stopped::Closed`] if this call ended it.
    pub(crate) fn close(mut self) -> Stopped {
        self.end();
        self.stopped().unwrap_or(Stopped::Closed)
    }

    fn end(&mut self) {
        self.control.close();
        if let Some(thread) = self.thread.take() {
            // The thread catches panics of the application, and does not panic itself.
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

impl<S: Steps> Common<S> {
    /// Runs the polling thread.
    fn poll(&self) {
        let mut drives = 0;
        let mut idle = Idle::new(Duration::from_millis(1));
        if let Some(steps) = self.steps.take() {
            idle = Idle::new(steps.idle_time());
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
            match self.steps.take().map(|mut steps| Ok(!step(&mut *steps)?.is_idle())) {
                Some(Ok(true)) => {
                    idle.reset();
                    continue;
                }
                Some(Ok(false)) | None => {}
                Some(Err(Ended)) => break,
            }
            // The thread pauses without the turn, because the pause takes as long as the operating
            // system lets other threads run.
            if idle.pause() {
                let Some(mut steps) = self.steps.take() else { continue };
                // The turn is kept during the sleep: a thread that wants the turn rings, and tries
                // again.
                if self.sleep(&mut steps).is_err() {
                    break;
                }
                idle.reset();
            }
        }
    }

    /// Sleeps until something arrives, another thread wants the turn, or the member closes. A timer
    /// wakeup that finds no work does not start another period of polling.
    fn sleep(&self, steps: &mut S) -> Result<(), Ended> {
        while !self.closing.load(Ordering::Relaxed) {
            let slept = sleep(steps, SLEEP_MAX)?;
            if slept.was_rung || !slept.done.is_idle() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The node has ended. Its [`Ending`] has the reason.
struct Ended;

impl From<Stopped> for Ended {
    fn from(_: Stopped) -> Self {
        Self
    }
}

impl<S: Steps> DriveOrRing for Common<S> {
    fn drive(&self) -> bool {
        let Some(mut steps) = self.steps.take() else {
            self.bell.ring_if_asleep();
            return false;
        };
        self.drives.fetch_add(1, Ordering::Relaxed);
        step(&mut *steps).is_ok_and(|done| !done.is_idle())
    }

    fn ring(&self) {
        self.bell.ring_if_asleep();
    }

    fn leading(&self) -> &Leading {
        &self.leading
    }
}

impl<S: Steps> Control for Common<S> {
    fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.ending.stop(Stopped::Closed);
        self.bell.ring_if_asleep();
    }

    /// Removes this member's files, whatever the reason for its end. Senders that still exist keep
    /// the member's memory mapped, and nothing else would remove the files.
    fn leave(&self) {
        loop {
            if let Some(mut steps) = self.steps.take() {
                // A sender that steps it afterwards finds that it has ended.
                steps.clock().read_at_next_step();
                steps.leave();
                return;
            }
            // A sender that steps returns the turn after its step.
            std::thread::yield_now();
        }
    }

    fn see(&self) -> Option<Seen> {
        let Some(steps) = self.steps.take() else {
            // The flag is noticed both by a sleeping poller, which is woken, and by one that is
            // polling.
            self.wanted.store(true, Ordering::Relaxed);
            self.bell.ring_if_asleep();
            return None;
        };
        Some(Seen { is_settled: steps.is_settled(), writes: steps.writes() })
    }
}
