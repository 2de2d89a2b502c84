//! A client that follows a subgroup. Like a joining node, it receives the application's state at a
//! position, and then everything that members receive after that position. A client that comes from
//! another member resumes at its old position if this member knows everything since then.
//!
//! # Invariants
//! - Queued data is bounded, as for a subscriber, and at most [`STATES_MAX`] states are sent at a
//!   time. Each state is read by its own thread, so a slow state delays no other client.
//! - A notice is sent immediately before the message whose sequence position it has.

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

/// The maximum number of states sent at a time.
const STATES_MAX: usize = 8;

/// The maximum number of parts of a state that have been read but not sent.
const PARTS_MAX: usize = 2;

/// One follower.
pub(crate) struct Follower {
    subgroup: SubgroupId,
    feed: Arc<Feed>,
    stage: FollowerStage,
    /// The turn to send a state, held until the state has been read.
    turn: Option<StateTurn>,
    /// The sequence position that the follower receives next.
    next: u64,
    /// The number of the notice that the follower receives next.
    notice: u64,
    stall: Stall,
}

/// A part of a state. An empty part marks the end.
type StatePart = io::Result<Vec<u8>>;

/// The stages of a follower.
enum FollowerStage {
    /// The follower comes from another member, and has compared the orders.
    Comes,
    /// The follower needs a state, and waits for its turn.
    Queues,
    /// The follower waits until the driving thread takes a state.
    Waits,
    /// The state is being sent as its parts arrive.
    Sends(Position, Receiver<StatePart>),
    Follows,
}

/// One of the [`STATES_MAX`] turns to send a state.
struct StateTurn(Arc<AtomicUsize>);

impl StateTurn {
    fn take(under_way: &Arc<AtomicUsize>) -> Option<Self> {
        // Only one thread takes turns; other threads only return them.
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
    /// Creates a follower, which either continues from a position in this member's order or
    /// receives the state first.
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

    /// Returns how long the client has received nothing.
    pub(crate) fn stalled_for(&self, now: Instant) -> Duration {
        self.stall.lasts(now)
    }

    /// Returns the next bytes to be sent, if there are any. `ask` wakes the driving thread so that
    /// it takes a state.
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
            // The application's state already belongs to the next era.
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

    /// Returns the position at which the follower resumes, if everything since then is known here.
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

    /// Starts a thread that reads the state. The thread ends with the state or with the follower.
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
        // Another member may still be able to start such a thread.
        started.map(|_| parts).map_err(|_| Cut::Refused(ClientRefusal::NotNow))
    }

    /// Returns the next part of the state, if it is available. After the last part, returns the
    /// position after which messages follow.
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
            // The thread panicked in the application, and has already reported the panic.
            Err(TryRecvError::Disconnected) => Err(Cut::Refused(ClientRefusal::NotNow)),
        }
    }

    /// Starts to follow at a position, and returns the reply that announces it.
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

    /// Returns the next notice or messages.
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

/// Reads a state part by part until it is no longer wanted. The last part is empty.
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
