//! One member of a group in this process.
//!
//! Two ways to drive it:
//! - by the caller: [`Member::step`] in the caller's own loop, with [`Idle`] to wait between steps;
//! - by a polling thread: [`Member::spawn`], with [`Sender`]s for any number of application
//!   threads.
//!
//! # Invariants
//! - Nothing is allocated after the start on the path of a message.
//! - One thread steps at a time; nobody waits for its turn.
//! - After an upcall panicked, or a peer was lost, nothing is stepped any more (DEL-2).

mod lent;
mod polled;
mod sender;
mod stop;
mod unsendable;

pub use crate::poll::Idle;
pub use lent::{FIXED_VIEW, Memory, Settings};
pub use polled::Polled;
pub use sender::{Run, Sender, Slot};
pub use stop::Stopped;
pub use unsendable::SendError;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::fabric::HostFabric;
use tramontane_core::ids::{Rank, SubgroupId, Time};
use tramontane_core::layout::Layout;
use tramontane_core::multicast::Application;
use tramontane_core::node::{Frontiers, OpenError, Progress};

use lent::NodeCell;
pub(crate) use lent::{OutboxCell, PrivateState, Shared};

/// Steps between two looks at the clock: reading it costs as much as an idle step.
const STEPS_PER_CLOCK: u32 = 64;

/// A member that its caller drives.
pub struct Member<F: HostFabric> {
    // Dropped first: it reads the memory that `shared` keeps.
    node: NodeCell,
    fabric: F,
    shared: Arc<Shared>,
    origin: Instant,
    now: Time,
    until_clock: u32,
    polled: Duration,
    next_check: Time,
    /// The subgroup of which a held reservation was told.
    overdue: Option<SubgroupId>,
    writes: u64,
}

impl<F: HostFabric> Member<F> {
    /// Opens a member on memory that a fabric has made ready: all peers are there.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        layout: &Layout<'_>,
        own: Rank,
        memory: Memory,
        fabric: F,
        settings: &Settings,
    ) -> Result<Self, OpenError> {
        let idle_time = fabric.idle_time();
        let shared = Arc::new(Shared::new(layout, own, memory, Arc::default())?);
        let node = lent::open(layout, own, &shared, settings.options, fabric.capabilities())?;
        Ok(Self {
            node,
            fabric,
            shared,
            origin: Instant::now(),
            now: Time::ZERO,
            until_clock: 0,
            polled: settings.idle_time.unwrap_or(idle_time),
            next_check: Time::ZERO,
            overdue: None,
            writes: 0,
        })
    }

    /// Does what there is to do now; never blocks. Messages arrive in `application`.
    ///
    /// # Errors
    /// [`Stopped`]: this member is no longer part of the group, now and at every later call.
    #[inline]
    pub fn step<A: Application>(&mut self, application: &mut A) -> Result<Progress, Stopped> {
        if self.until_clock == 0 {
            self.look_at_clock()?;
        }
        self.until_clock -= 1;
        let (now, fabric) = (self.now, &mut self.fabric);
        let stepped = catch_unwind(AssertUnwindSafe(|| {
            self.node.with_dependent_mut(|_, node| node.step(now, fabric, application))
        }));
        match stepped {
            Ok(Ok(progress)) if progress.lost.is_none() => {
                self.writes += u64::from(progress.writes);
                if progress.overdue != self.overdue {
                    self.tell_overdue(progress.overdue);
                }
                Ok(progress)
            }
            Ok(Ok(progress)) => Err(self.lost(&progress)),
            Ok(Err(error)) => Err(self.shared.ending().stop(Stopped::Broken(error))),
            Err(payload) => Err(self.shared.ending().stop(Stopped::panicked(payload.as_ref()))),
        }
    }

    /// Says once that a reservation holds back the messages behind it, and once that it ended
    /// (SMC-3).
    #[cold]
    fn tell_overdue(&mut self, overdue: Option<SubgroupId>) {
        match overdue {
            Some(subgroup) => {
                tracing::warn!(%subgroup, "a reservation is held, and later messages wait for it")
            }
            None => tracing::info!("the held reservation ended"),
        }
        self.overdue = overdue;
    }

    #[cold]
    fn lost(&self, progress: &Progress) -> Stopped {
        match progress.lost {
            Some((rank, cause)) => {
                let node = self.shared.node_at(rank);
                tracing::warn!(%rank, ?node, %cause, "a peer is lost");
                self.shared.ending().stop(Stopped::PeerLost { rank, node, cause })
            }
            None => Stopped::Closed,
        }
    }

    #[cold]
    fn look_at_clock(&mut self) -> Result<(), Stopped> {
        if let Some(stopped) = self.shared.ending().stopped() {
            return Err(stopped);
        }
        self.until_clock = STEPS_PER_CLOCK;
        let elapsed = self.origin.elapsed();
        self.now = Time(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        if self.now >= self.next_check {
            self.fabric.check_peers();
            self.next_check = self.now.after(CHECK_PEERS_NS);
        }
        Ok(())
    }

    /// A handle to send in a subgroup, if this member does. Any thread may have one; while the
    /// caller drives, a send waits for the caller's steps.
    #[must_use]
    pub fn sender(&self, subgroup: SubgroupId) -> Option<Sender> {
        Sender::new(&self.shared, subgroup, None)
    }

    /// The own frontiers in a subgroup.
    #[must_use]
    pub fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        self.node.with_dependent(|_, node| node.frontiers(subgroup))
    }

    /// Whether nothing is under way here: all that was seen is delivered, and all that was sent was
    /// delivered everywhere.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.node.with_dependent(|_, node| node.is_settled())
    }

    /// Writes posted so far: what a group that rests must not do.
    #[must_use]
    pub const fn writes(&self) -> u64 {
        self.writes
    }

    /// The fabric below, for what only it can tell.
    pub fn fabric(&mut self) -> &mut F {
        &mut self.fabric
    }

    /// Sleeps until a peer or a local thread rings, at most `timeout`, unless there is work
    /// already; then steps once.
    ///
    /// # Errors
    /// As [`Member::step`].
    pub fn sleep<A: Application>(
        &mut self,
        application: &mut A,
        timeout: Duration,
    ) -> Result<Slept, Stopped> {
        let timeout = timeout.min(Duration::from_nanos(CHECK_PEERS_NS));
        let mut rung = true;
        self.until_clock = 0;
        if self.fabric.arm() {
            let progress = self.step(application)?;
            if !progress.is_idle() {
                self.fabric.disarm();
                return Ok(Slept { rung: false, progress });
            }
            rung = self.fabric.sleep(timeout);
        }
        self.fabric.disarm();
        self.until_clock = 0;
        Ok(Slept { rung, progress: self.step(application)? })
    }

    /// Starts a thread that drives this member and hands messages to `application`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn spawn<A>(self, application: A) -> std::io::Result<Polled>
    where
        F: Send + 'static,
        A: Application + Send + 'static,
    {
        Polled::start(self, application)
    }

    /// How its caller waits between steps that find nothing.
    #[must_use]
    pub fn idle(&self) -> Idle {
        Idle::new(self.polled)
    }

    /// Leaves the group on purpose. What is under way is not waited for.
    pub fn leave(mut self) {
        self.fabric.leave();
        self.shared.ending().stop(Stopped::Closed);
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug)]
pub struct Slept {
    /// Somebody rang.
    pub rung: bool,
    /// What the step beside it did.
    pub progress: Progress,
}

impl Slept {
    /// Whether the time ran out with nothing to do.
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        !self.rung && self.progress.is_idle()
    }
}

/// How long a lost process may go unnoticed; also the longest sleep.
const CHECK_PEERS_NS: u64 = 200_000_000;

impl<F: HostFabric> std::fmt::Debug for Member<F> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Member").field("now", &self.now).finish_non_exhaustive()
    }
}
