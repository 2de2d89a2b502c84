//! A client that follows a subgroup, at the member that it is at: it takes over the application's
//! state at a position, as a joiner does, and is told all that members are told from there on. One
//! that comes from another member goes on where it was, if this member knows all since then.
//!
//! # Invariants
//! - What waits for it is bounded, as for a subscriber; and of states that are being sent there are
//!   [`STATES_MAX`] at most. Each is read by a thread of its own: nobody else waits where an
//!   application's state comes slowly.
//! - It is told a notice before the message whose place it has, and after the one before that.

use std::io;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use tramontane_control::client_messages::{Bytes, ClientRefusal, ClientReply, Position, encode};
use tramontane_core::ids::SubgroupId;

use super::cut::Cut;
use super::stall::Stall;
use crate::group::clients::order::feed::{Feed, SubgroupFeed};
use crate::group::clients::order::history::earlier;
use crate::group::clients::order::notices::Gone;
use crate::group::clients::order::retained::{CHUNK_BYTES, Known};

/// The most states that are being sent at a time.
const STATES_MAX: usize = 8;

/// Parts of a state that were read and not sent.
const PARTS_MAX: usize = 2;

/// One follower.
pub(crate) struct Follower {
    subgroup: SubgroupId,
    feed: Arc<Feed>,
    stage: FollowerStage,
    /// Until the state is being read.
    turn: Option<StateTurn>,
    /// The place that it gets next.
    next: u64,
    /// The number of the notice that it is told next.
    notice: u64,
    stall: Stall,
}

/// A part of a state; an empty one ends it.
type StatePart = io::Result<Vec<u8>>;

/// How far it is.
enum FollowerStage {
    /// It comes from another member, and has told orders apart.
    Comes,
    /// It needs a state, and waits for its turn.
    Queues,
    /// The driving thread takes one for it.
    Waits,
    /// It is being sent, as these parts come.
    Sends(Position, Receiver<StatePart>),
    Follows,
}

/// A place among the states that are being sent.
struct StateTurn(Arc<AtomicUsize>);

impl StateTurn {
    fn take(under_way: &Arc<AtomicUsize>) -> Option<Self> {
        // One thread takes turns, and others give them back.
        let is_free = under_way.load(Ordering::Relaxed) < STATES_MAX;
        is_free.then(|| {
            under_way.fetch_add(1, Ordering::Relaxed);
            Self(Arc::clone(under_way))
        })
    }
}

impl Drop for StateTurn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Follower {
    /// One that was at a place of this member's order; or takes over the state first.
    pub(crate) fn new(subgroup: SubgroupId, from: Option<u64>, feed: &Arc<Feed>) -> Self {
        let stage = if from.is_some() { FollowerStage::Comes } else { FollowerStage::Queues };
        let next = from.unwrap_or_default();
        let (feed, stall) = (Arc::clone(feed), Stall::default());
        Self { subgroup, feed, stage, turn: None, next, notice: 0, stall }
    }

    pub(crate) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    pub(crate) const fn stall(&mut self) -> &mut Stall {
        &mut self.stall
    }

    /// For how long it has taken nothing.
    pub(crate) fn stalled_for(&self, now: Instant) -> Duration {
        self.stall.lasts(now)
    }

    /// What it is to be sent next, as bytes, if there is something. `ask` wakes the driving thread.
    pub(crate) fn take(&mut self, ask: impl FnOnce()) -> Result<Option<Vec<u8>>, Cut> {
        if matches!(self.stage, FollowerStage::Comes) {
            if let Some(position) = self.arrived() {
                return Ok(Some(self.begin(position, false)));
            }
            self.stage = FollowerStage::Queues;
        }
        if matches!(self.stage, FollowerStage::Queues | FollowerStage::Waits)
            && !self.feed.standing(self.subgroup).is_open
        {
            // The application's state is of what comes next.
            return Err(Cut::Refused(ClientRefusal::NotHere));
        }
        match &mut self.stage {
            FollowerStage::Follows => self.follow(),
            FollowerStage::Comes | FollowerStage::Queues => {
                if let Some(turn) = StateTurn::take(self.feed.states_under_way())
                    && self.feed.want_state(self.subgroup)
                {
                    (self.stage, self.turn) = (FollowerStage::Waits, Some(turn));
                    ask();
                }
                Ok(None)
            }
            FollowerStage::Waits => {
                let Some((position, state)) = self.feed.take_state(self.subgroup) else {
                    return Ok(None);
                };
                let parts = self.read_state(state)?;
                self.stage = FollowerStage::Sends(position, parts);
                self.send_state()
            }
            FollowerStage::Sends(..) => self.send_state(),
        }
    }

    /// Where it goes on, if all that came since then is known here.
    fn arrived(&self) -> Option<Position> {
        let told = self.feed.lock();
        let of = told.subgroups.get(&self.subgroup)?;
        match of.retained.known_at(self.next) {
            Known::At(position) if self.next >= of.retained.first() => {
                of.notices.are_complete_from(self.next).then_some(position)
            }
            _ => None,
        }
    }

    /// Reads the state in a thread, which ends with it, or with the follower.
    fn read_state(&mut self, state: Box<dyn Read + Send>) -> Result<Receiver<StatePart>, Cut> {
        let (sender, parts) = sync_channel(PARTS_MAX);
        let (feed, turn) = (Arc::clone(&self.feed), self.turn.take());
        let reads = move || {
            let _turn = turn;
            for_each_part(state, |part| {
                let is_wanted = sender.send(part).is_ok();
                feed.wake();
                is_wanted
            });
        };
        let started = std::thread::Builder::new().name("tramontane-state".into()).spawn(reads);
        // Another member may have a thread left.
        started.map(|_| parts).map_err(|_| Cut::Refused(ClientRefusal::NotNow))
    }

    /// The next part of the state, if it is there; behind the last one, where it goes on.
    fn send_state(&mut self) -> Result<Option<Vec<u8>>, Cut> {
        let FollowerStage::Sends(position, parts) = &self.stage else { return Ok(None) };
        let position = *position;
        match parts.try_recv() {
            Err(TryRecvError::Empty) => Ok(None),
            Ok(Ok(part)) if part.is_empty() => Ok(Some(self.begin(position, true))),
            Ok(Ok(part)) => Ok(Some(encode(&ClientReply::State(Bytes(&part))))),
            Ok(Err(error)) => {
                tracing::warn!(%error, "the application's state cannot be read for a client");
                Err(Cut::Refused(ClientRefusal::NotNow))
            }
            // Its thread has panicked in the application, and said so.
            Err(TryRecvError::Disconnected) => Err(Cut::Refused(ClientRefusal::NotNow)),
        }
    }

    /// Where it goes on.
    fn begin(&mut self, position: Position, has_state: bool) -> Vec<u8> {
        let told = self.feed.lock();
        let (view, mut before) = (told.view_number(), Vec::new());
        if let Some(of) = told.subgroups.get(&self.subgroup) {
            self.notice = of.notices.first_from(position.place);
            before = earlier(of, position.place);
        }
        (self.stage, self.turn, self.next) = (FollowerStage::Follows, None, position.place);
        encode(&ClientReply::Following { position, earlier: before, view, has_state })
    }

    /// What comes next of notices and messages.
    fn follow(&mut self) -> Result<Option<Vec<u8>>, Cut> {
        let feed = Arc::clone(&self.feed);
        let told = feed.lock();
        let Some(of) = told.subgroups.get(&self.subgroup) else { return Ok(None) };
        self.next_of(of).map_err(|Gone| Cut::Refused(ClientRefusal::TooSlow))
    }

    fn next_of(&mut self, of: &SubgroupFeed) -> Result<Option<Vec<u8>>, Gone> {
        let next = self.next;
        let mut to = of.retained.end();
        if let Some((place, notice)) = of.notices.get(self.notice)? {
            if *place <= next {
                self.notice = self.notice.saturating_add(1);
                return Ok(Some(encode(&notice.reply())));
            }
            to = to.min(*place);
        }
        if next < of.retained.first() {
            return Err(Gone);
        }
        let messages = of.retained.from(next, to, CHUNK_BYTES);
        let Some(last) = messages.last() else { return Ok(None) };
        self.next = last.place.saturating_add(1);
        Ok(Some(encode(&ClientReply::Messages(messages))))
    }
}

/// Reads a state part by part, the last of which is empty, until it is wanted no more.
fn for_each_part(mut state: Box<dyn Read + Send>, mut take: impl FnMut(StatePart) -> bool) {
    loop {
        let mut part = vec![0; CHUNK_BYTES];
        let read = state.read(&mut part).map(|bytes| {
            part.truncate(bytes);
            part
        });
        let is_over = read.as_ref().map_or(true, Vec::is_empty);
        if !take(read) || is_over {
            return;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if matches!(self.stage, FollowerStage::Waits) {
            self.feed.forgo_state(self.subgroup);
        }
    }
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Follower").field("next", &self.next).finish_non_exhaustive()
    }
}
