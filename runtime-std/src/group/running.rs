//! The handle of a running member.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_mesh::Door;

use super::membership::Membership;
use super::outgoing::{Gate, Sender, Unsent};
use super::request::{Request, Requests};
use super::status::{Board, GroupStatus};
use crate::member::Stopped;
use crate::poll::Poller;

/// How often a wait looks.
const LOOK_PAUSE: Duration = Duration::from_millis(1);

/// A member that runs. Dropping it is to go without a word: the others find out by themselves, and remove it.
pub struct Running {
    pub(super) poller: Poller,
    pub(super) membership: Arc<Membership>,
    pub(super) gates: Vec<Arc<Gate>>,
    pub(super) requests: Requests,
    pub(super) board: Board,
    pub(super) unsent: Arc<Mutex<Vec<Unsent>>>,
    // Dropped last: visitors find an ended member, and no closed door.
    pub(super) _door: Door,
}

impl Running {
    /// A handle to send in a subgroup, if this node sends in it. Any thread may have one.
    #[must_use]
    pub fn sender(&self, subgroup: SubgroupId) -> Option<Sender> {
        let gate = self.gates.iter().find(|gate| gate.subgroup() == subgroup)?;
        Some(Sender::new(gate, self.poller.driver()))
    }

    /// The subgroup of that name.
    #[must_use]
    pub fn subgroup(&self, name: &str) -> Option<SubgroupId> {
        self.membership.description.subgroup(name)
    }

    /// How things stand, as of a heartbeat ago at most.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        self.board.status().unwrap_or_default()
    }

    /// The same for other threads, and for after the end.
    #[must_use]
    pub fn board(&self) -> Board {
        self.board.clone()
    }

    /// Why this member is no longer part of its group, if it is not.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.poller.stopped()
    }

    /// Waits until all that was sent here is delivered everywhere and all that was seen is delivered here, at most
    /// `timeout`. True if it is.
    #[must_use]
    pub fn settle(&self, timeout: Duration) -> bool {
        self.poller.settle(timeout)
    }

    /// Writes posted so far, heartbeats left out.
    #[must_use]
    pub fn writes(&self) -> u64 {
        self.poller.look().writes
    }

    /// Asks the group to go on without this member (VIE-9). It delivers until the others have installed the view without
    /// it, and is then [`Stopped::Left`].
    pub fn ask_to_leave(&self) {
        self.requests.ask(Request::Leave);
    }

    /// Leaves the group, once what it sent is delivered, and waits at most `timeout` until it has. Gives back what this
    /// member had committed and not delivered (VIE-7): what was committed while it was leaving.
    ///
    /// # Errors
    /// Why it ended, if not by the leave; [`Stopped::Closed`] if the time was up, and it went without a word.
    pub fn leave(self, timeout: Duration) -> Result<Vec<Unsent>, Stopped> {
        let started = Instant::now();
        // Others may send without end: then it leaves with something under way.
        let _ = self.settle(timeout / 4);
        self.ask_to_leave();
        while self.stopped().is_none() && started.elapsed() < timeout {
            std::thread::sleep(LOOK_PAUSE);
        }
        match self.close() {
            (Stopped::Left, unsent) => Ok(unsent),
            (stopped, _) => Err(stopped),
        }
    }

    /// Ends this member without a word, and says why it ended: [`Stopped::Closed`] if by this. Gives back what it had
    /// committed and not delivered.
    pub fn close(self) -> (Stopped, Vec<Unsent>) {
        let Self { poller, unsent, .. } = self;
        let stopped = poller.close().err().unwrap_or(Stopped::Closed);
        let unsent = std::mem::take(&mut *unsent.lock().unwrap_or_else(PoisonError::into_inner));
        (stopped, unsent)
    }
}

impl std::fmt::Debug for Running {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Running").field("stopped", &self.stopped()).finish_non_exhaustive()
    }
}
