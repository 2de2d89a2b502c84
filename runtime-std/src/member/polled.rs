//! A member that a polling thread drives, helped by senders that find no free slot.
//!
//! Whoever has the turn steps. While senders drive, the polling thread keeps off their processor and looks
//! in only now and then: two threads that step one node in turn cost more than one, since all of its state
//! moves between processors with each turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_core::multicast::Application;
use tramontane_core::node::Progress;
use tramontane_core::turn::Turn;

use super::lent::Shared;
use super::sender::{Drive, Sender};
use super::{Idle, Member, Stopped};
use crate::host::{HostFabric, LocalBell};

/// How long the polling thread keeps off while senders drive.
const KEEP_OFF: Duration = Duration::from_micros(200);

/// The longest sleep of the polling thread: it must still see that peers are alive.
const SLEEP_MAX: Duration = Duration::from_millis(200);

/// What is stepped, by whoever has the turn.
struct Engine<F: HostFabric, A> {
    member: Member<F>,
    application: A,
}

/// What the polling thread, the senders and the handle share.
struct Common<F: HostFabric, A> {
    engine: Turn<Engine<F, A>>,
    bell: F::Bell,
    shared: Arc<Shared>,
    closing: AtomicBool,
    /// Steps that senders did.
    driven: AtomicU64,
    /// Somebody wants the turn for a moment, and did not get it.
    wanted: AtomicBool,
}

/// A running member. Dropping it closes it without waiting for what is under way.
pub struct Polled {
    common: Arc<dyn Control>,
    driver: Arc<dyn Drive>,
    thread: Option<JoinHandle<()>>,
}

/// What the handle needs, whatever the fabric and the application.
trait Control: Send + Sync {
    fn shared(&self) -> &Arc<Shared>;
    fn close(&self);
    fn leave(&self);
    /// Nothing while somebody else has the turn.
    fn look(&self) -> Option<Look>;
}

/// What can be seen of a member between two steps.
#[derive(Clone, Copy)]
struct Look {
    is_settled: bool,
    writes: u64,
}

impl Polled {
    pub(super) fn start<F, A>(member: Member<F>, application: A) -> std::io::Result<Self>
    where
        F: HostFabric + Send + 'static,
        A: Application + Send + 'static,
    {
        let common = Arc::new(Common {
            bell: member.fabric.local_bell(),
            shared: Arc::clone(&member.shared),
            closing: AtomicBool::new(false),
            driven: AtomicU64::new(0),
            wanted: AtomicBool::new(false),
            engine: Turn::new(Engine { member, application }),
        });
        let poller = Arc::clone(&common);
        let thread =
            std::thread::Builder::new().name("tramontane-poll".into()).spawn(move || poller.poll())?;
        Ok(Self { common: Arc::<Common<F, A>>::clone(&common), driver: common, thread: Some(thread) })
    }

    /// A handle to send in a subgroup, if this member does. Any thread may have one.
    #[must_use]
    pub fn sender(&self, subgroup: SubgroupId) -> Option<Sender> {
        Sender::new(self.common.shared(), subgroup, Some(Arc::clone(&self.driver)))
    }

    /// Why this member is no longer part of its group, if it is not.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.common.shared().stopped()
    }

    /// Waits until all that was sent here is delivered everywhere and all that was seen is delivered here,
    /// at most `timeout`. True if it is.
    #[must_use]
    pub fn settle(&self, timeout: Duration) -> bool {
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
        self.common.look().is_some_and(|look| look.is_settled)
    }

    /// Writes posted so far: what a group that rests must not do. Waits for the turn, at most a step and an
    /// upcall.
    #[must_use]
    pub fn writes(&self) -> u64 {
        loop {
            if let Some(look) = self.common.look() {
                return look.writes;
            }
            std::thread::sleep(KEEP_OFF / 4);
        }
    }

    /// Ends the polling thread and leaves the group. What is under way is not waited for; see
    /// [`Polled::settle`].
    ///
    /// # Errors
    /// Why the member had stopped before, if it had.
    pub fn close(mut self) -> Result<(), Stopped> {
        let before = self.stopped();
        self.end();
        match before {
            None | Some(Stopped::Closed) => Ok(()),
            Some(stopped) => Err(stopped),
        }
    }

    fn end(&mut self) {
        self.common.close();
        if let Some(thread) = self.thread.take() {
            // The thread catches what the application throws; it has nothing else to panic with.
            let _ = thread.join();
            self.common.leave();
        }
    }
}

impl Drop for Polled {
    fn drop(&mut self) {
        self.end();
    }
}

impl std::fmt::Debug for Polled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Polled").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}

impl<F: HostFabric, A: Application> Engine<F, A> {
    fn step(&mut self) -> Result<Progress, Stopped> {
        self.member.step(&mut self.application)
    }
}

impl<F: HostFabric, A: Application> Common<F, A> {
    /// The polling thread.
    fn poll(&self) {
        let mut driven = 0;
        let mut idle = Idle::new(Duration::from_millis(1));
        if let Some(engine) = self.engine.take() {
            idle = engine.member.idle();
        }
        while !self.closing.load(Ordering::Relaxed) {
            let now_driven = self.driven.load(Ordering::Relaxed);
            if now_driven != driven {
                driven = now_driven;
                idle.reset();
                std::thread::sleep(KEEP_OFF);
                continue;
            }
            if self.wanted.load(Ordering::Relaxed) {
                self.wanted.store(false, Ordering::Relaxed);
                std::thread::sleep(KEEP_OFF);
                continue;
            }
            match self.engine.take().map(|mut engine| engine.step()) {
                Some(Ok(progress)) if !progress.is_idle() => {
                    idle.reset();
                    continue;
                }
                Some(Ok(_)) | None => {}
                Some(Err(_)) => break,
            }
            // Without the turn: it takes as long as the operating system lets others run.
            if idle.pause() {
                let Some(mut engine) = self.engine.take() else { continue };
                let Engine { member, application } = &mut *engine;
                // The turn is kept while asleep: whoever wants it rings, and tries again.
                if self.sleep(member, application).is_err() {
                    break;
                }
                idle.reset();
            }
        }
    }
}

impl<F: HostFabric, A: Application> Common<F, A> {
    /// Sleeps until something comes, somebody wants the turn, or the member closes; a timer's wake-up that
    /// finds nothing is no reason to poll for a while again.
    fn sleep(&self, member: &mut Member<F>, application: &mut A) -> Result<(), Stopped> {
        while !self.closing.load(Ordering::Relaxed) {
            if !member.sleep(application, SLEEP_MAX)?.is_idle() {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl<F, A> Drive for Common<F, A>
where
    F: HostFabric + Send,
    A: Application + Send,
{
    fn drive(&self) -> bool {
        let Some(mut engine) = self.engine.take() else {
            self.bell.ring_if_asleep();
            return false;
        };
        self.driven.fetch_add(1, Ordering::Relaxed);
        let Engine { member, application } = &mut *engine;
        member.step(application).is_ok_and(|progress| !progress.is_idle())
    }

    fn ring(&self) {
        self.bell.ring_if_asleep();
    }
}

impl<F, A> Control for Common<F, A>
where
    F: HostFabric + Send,
    A: Application + Send,
{
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.shared.stop(Stopped::Closed);
        self.bell.ring_if_asleep();
    }

    /// Removes this member's files, whatever it stopped for: senders that live on keep its memory mapped, and
    /// what is mapped is not cleared away.
    fn leave(&self) {
        loop {
            if let Some(mut engine) = self.engine.take() {
                engine.member.fabric.leave();
                return;
            }
            // A sender that drives gives the turn back after its step.
            std::thread::yield_now();
        }
    }

    fn look(&self) -> Option<Look> {
        let Some(engine) = self.engine.take() else {
            // Seen by a poller that is rung, and by one that polls.
            self.wanted.store(true, Ordering::Relaxed);
            self.bell.ring_if_asleep();
            return None;
        };
        Some(Look { is_settled: engine.member.is_settled(), writes: engine.member.writes() })
    }
}
