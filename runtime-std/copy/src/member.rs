//! This process in the group of a copy: it sends notices, and tracks the state that all members
//! share.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;

use super::group::{CHUNKS_AHEAD, DATA, Job, ORDER};
use super::ledger::{Decision, Ledger};
use super::messages::Notice;
use tramontane_local::exit::{Failure, Status};
use tramontane_runtime::blocks::Buffer;
use tramontane_runtime::group::{self, Application, MemberState, Messages, Running, ViewChanged};
use tramontane_runtime::member::{SendError, Stopped};

/// Interval between checks whether a wait must end.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Time for which a member that is ending waits until the others know its result and it knows the
/// result of the copy. It does not wait longer for a stopped member.
const LAST_NOTICES: Duration = Duration::from_secs(5);

/// The ledger, and a signal to threads that wait for changes.
#[derive(Debug)]
pub(super) struct Watched {
    ledger: Mutex<Ledger>,
    changed: Condvar,
}

impl Watched {
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Ledger)) {
        change(&mut self.ledger());
        self.changed.notify_all();
    }

    /// Waits briefly until the change number differs from `seen`.
    pub(super) fn wait(&self, seen: u64) {
        let ledger = self.ledger();
        let waited =
            self.changed.wait_timeout_while(ledger, LOOK_PAUSE, |ledger| ledger.changes() == seen);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A chunk: a buffer, and the number of bytes in it that belong to the chunk.
pub(super) type Chunk = (Buffer, usize);

/// Chunks on their way to the thread that unpacks them. They are not copied, so that the upcall
/// does not wait for a disk.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The channel for chunks, in order; `None` once the sender has sent more than is permitted.
    chunks: Option<Sender<Chunk>>,
    /// Buffers whose content has been read.
    free: Receiver<Buffer>,
    /// Number of chunks held.
    kept: u64,
}

impl Arrivals {
    pub(super) const fn new(chunks: Sender<Chunk>, free: Receiver<Buffer>) -> Self {
        Self { chunks: Some(chunks), free, kept: 0 }
    }

    /// Keeps a chunk, and returns a buffer whose content has been read.
    fn exchange(&mut self, buffer: Buffer, bytes: usize) -> Option<Buffer> {
        let free = self.free.try_recv().ok();
        if free.is_none() && self.kept == CHUNKS_AHEAD {
            // A correct sender waits until a chunk has been taken.
            self.chunks = None;
        }
        let Some(chunks) = &self.chunks else { return Some(buffer) };
        self.kept += u64::from(free.is_none());
        // A receiver that has failed takes no more chunks.
        let _ = chunks.send((buffer, bytes));
        free
    }
}

/// The application of the group's member.
struct Deliveries {
    watched: Arc<Watched>,
    /// `None` on the sending member.
    arrivals: Option<Arrivals>,
}

impl Application for Deliveries {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        if messages.subgroup() == DATA {
            // The chunks arrive with their buffers.
            return messages.for_each(drop);
        }
        for message in messages {
            if let Ok(notice) = serde_json::from_slice(message.payload) {
                self.watched.change(|ledger| ledger.apply(message.sender.get(), notice));
            } else {
                tracing::warn!(node = %message.sender, "a malformed notice");
            }
        }
    }

    fn exchange_large(&mut self, _: SubgroupId, buffer: Buffer, bytes: usize) -> Option<Buffer> {
        match &mut self.arrivals {
            Some(arrivals) => arrivals.exchange(buffer, bytes),
            None => Some(buffer),
        }
    }

    fn view_changed(&mut self, change: &ViewChanged<'_>) {
        if !change.gone.is_empty() {
            let gone: Vec<u32> = change.gone.iter().map(|node| node.get()).collect();
            self.watched.change(|ledger| ledger.lost(&gone));
        }
    }
}

/// A member of a copy.
pub(super) struct CopyMember {
    running: Running,
    watched: Arc<Watched>,
    own: u32,
}

impl CopyMember {
    /// Becomes a member once all others have joined. Setting `cancel` ends the wait for them.
    pub(super) fn start(
        job: &mut Job,
        arrivals: Option<Arrivals>,
        cancel: &AtomicBool,
    ) -> Result<Self, Failure> {
        let ledger = Ledger::new(job.sender, job.receivers(), job.silence());
        let watched = Arc::new(Watched { ledger: Mutex::new(ledger), changed: Condvar::default() });
        let deliveries = Deliveries { watched: Arc::clone(&watched), arrivals };
        let running = job.start(deliveries, cancel)?;
        Ok(Self { running, watched, own: job.own() })
    }

    /// Returns the state that all members share.
    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.watched.ledger()
    }

    /// Returns the shared state for another thread.
    pub(super) fn watched(&self) -> Arc<Watched> {
        Arc::clone(&self.watched)
    }

    /// Returns the group's sender for the archive. Only the sending member has it.
    pub(super) fn data(&self) -> Result<group::Sender, Failure> {
        let sender = self.running.sender_of(DATA);
        sender.ok_or_else(|| Failure::other("no data is sent here", "report this"))
    }

    /// Returns the decision, if there is one.
    pub(super) fn decision(&self) -> Option<Decision> {
        self.ledger().decision().cloned()
    }

    /// Fails if the copy has been called off, or if this member is out of its group, because
    /// nothing is decided there any longer.
    pub(super) fn check(&self) -> Result<(), Failure> {
        // The order matters: a decision that precedes this member's end still counts.
        let stopped = self.running.stopped();
        match (self.decision(), stopped) {
            (Some(Decision::Off(failure)), _) => Err(failure),
            (Some(Decision::Commit(_)), _) | (None, None) => Ok(()),
            (None, Some(stopped)) => Err(self.out(&stopped)),
        }
    }

    /// Returns why this member is no longer in its group, or `None` if it is.
    pub(super) fn stopped(&self) -> Option<Failure> {
        Some(self.out(&self.running.stopped()?))
    }

    fn out(&self, stopped: &Stopped) -> Failure {
        let Stopped::Halted { by, .. } = stopped else { return stopped.clone().into() };
        if let Some(node) = by {
            let what =
                format_args!("node {node} declared this node dead, and continued without it");
            let advice = "check whether this node or its network was stopped, and copy again";
            return Failure::peer_lost(what, advice);
        }
        self.ledger().failure_of_loss(&self.suspected())
    }

    /// Returns the members that a halted member considered dead, including the most recent ones.
    fn suspected(&self) -> Vec<u32> {
        let until = Instant::now() + LAST_NOTICES;
        loop {
            let status = self.running.status();
            if status.state == MemberState::Halted || Instant::now() >= until {
                return status.suspected;
            }
            std::thread::sleep(LOOK_PAUSE / 10);
        }
    }

    /// Sends a notice, waiting for room while `go_on` succeeds. A member that is no longer in its
    /// group sends nothing.
    pub(super) fn announce(
        &self,
        notice: &Notice,
        mut go_on: impl FnMut() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let report = |error: &dyn std::fmt::Display| Failure::other(error, "please report this");
        let bytes = serde_json::to_vec(notice).map_err(|error| report(&error))?;
        let sender = self.running.sender_of(ORDER);
        let mut sender = sender.ok_or_else(|| report(&"this member has no sender"))?;
        loop {
            match sender.send(&bytes, LOOK_PAUSE) {
                Ok(_) | Err(SendError::Stopped(_)) => return Ok(()),
                Err(SendError::TimedOut(_)) => go_on()?,
                Err(error) => return Err(report(&error)),
            }
        }
    }

    /// Sends a notice if there is room for it now, and returns whether it was sent.
    pub(super) fn try_announce(&self, notice: &Notice) -> bool {
        let full = || Err(Failure::silent(Status::Other));
        self.announce(notice, full).is_ok()
    }

    /// Waits, while `go_on` succeeds, until `is_so` holds for the shared state or this member is no
    /// longer in its group.
    pub(super) fn wait_until(
        &self,
        is_so: impl Fn(&Ledger) -> bool,
        mut go_on: impl FnMut(&Ledger) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        loop {
            let is_stopped = self.running.stopped().is_some();
            let seen = {
                let ledger = self.ledger();
                if is_so(&ledger) || is_stopped {
                    return Ok(());
                }
                go_on(&ledger)?;
                ledger.changes()
            };
            self.watched.wait(seen);
        }
    }

    /// Reports this member's own failure to the others, and waits for the decision.
    pub(super) fn call_off(&self, failure: &Failure) {
        let check = until_last_notices();
        if self.announce(&Notice::failed(failure), &check).is_ok() {
            let _ = self.wait_until(|ledger| ledger.decision().is_some(), |_| check());
        }
    }

    /// Waits until all others know how the copy ended, then ends. Without this member, the others
    /// might lack the majority that they need to learn the result.
    pub(super) fn finish(self) {
        let check = until_last_notices();
        if self.announce(&Notice::Finished, &check).is_ok() {
            let own = self.own;
            let _ = self.wait_until(|ledger| ledger.are_others_finished(own), |_| check());
        }
        let _ = self.running.close();
    }
}

/// Returns a check that fails once the others have had time for their last notices.
pub(super) fn until_last_notices() -> impl Fn() -> Result<(), Failure> {
    let until = Instant::now() + LAST_NOTICES;
    move || if Instant::now() < until { Ok(()) } else { Err(Failure::silent(Status::PeerLost)) }
}
