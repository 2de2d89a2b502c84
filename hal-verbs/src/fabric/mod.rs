//! The fabric over reliable connections, one per peer.
//!
//! A write of the core becomes one RDMA write from the registered local row into the peer's copy of
//! it. All writes of a list go to the device with one doorbell, and only every n-th request is
//! signalled. Short writes and guards are sent inline. See [`crate`] for the promises.
//!
//! | module | subject |
//! |---|---|
//! | `link` | one connection: queue pair, credits, memory at both ends |
//! | `collect` | processing of completions and notices |
//! | `device_events` | device events |
//! | `rest` | sleep |
//! | `arrive`, `probe` | arrival of peers, and the first writes to each |
//! | `built` | results of workers for this view |
//! | `end`, `loss`, `reason` | lost, cut and retired peers; reasons why a peer is unreachable |
//! | `region_link`, `permissions`, `rights` | regions, and the keys to them |
//! | `reconnect` | re-establishing regions' connections |
//! | `blocks`, `block_traffic`, `block_memory` | blocks and their memory |
//! | `peer` | states of a peer and of the view |
//! | `updates`, `region_updates` | rows and regions if devices keep no order between writes |
//! | `crate::protocol` | credits; rings over a network, and the proof that none is lost; names |
//!
//! # Invariants
//! - Once a view's connections are up, and until one of them ends, nothing is allocated and no lock
//!   is taken, except for a channel's state at its first block with a peer.
//! - No call waits: a post to a full queue is refused, and an empty queue is not waited on.
//!   [`Verbs::sleep`] and [`Verbs::leave`] do wait, within their time limit.
//! - A message from a peer that is not a notice of a known kind breaks the connection to that peer.
//! - Completions are processed only by `poll`, `wake`, `arm`, `retire`, [`Verbs::collect`],
//!   `sleep` and `leave`. So the room in a queue does not change between two posts.

mod arrive;
mod block_memory;
mod block_traffic;
mod blocks;
mod built;
mod collect;
mod device_events;
mod end;
mod link;
mod loss;
mod peer;
mod permissions;
mod probe;
mod reason;
mod reconnect;
mod region_link;
mod region_updates;
mod rest;
mod rights;
mod updates;

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, LossCause, Region, Token, ViewMemory, ViewRows as _,
    WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};

pub use block_memory::{BlockMemory, BlockStore, NoBlockMemory};
pub(crate) use block_traffic::{BlockExchange, block_limits};
use link::Behind;
pub(crate) use link::{
    FarEnd, FarRing, GUARD_BYTES_MAX, Link, MESSAGE_MEMORY_BYTES, NearEnd, NearParts, OtherMemory,
    Purpose, Staging, Updates,
};
pub use loss::Loss;
use peer::{Life, Peer, PeerStage};
pub use reason::LossReason;
pub(crate) use region_link::{OwnRegion, REGION_ACCESS, RegionLink};

use crate::adapter::{
    BATCH, Completion, CompletionQueue, Context, MemoryRegion, SendBuffers, device_read_barrier,
};
use crate::commands::{Commands, Job, JobQueue};
use crate::protocol::blocks::MESSAGES_MAX;
use crate::protocol::{Counters, Notice};
use crate::settings::WriteOrder;
use crate::site::{Builder, Handshake, JoinError, NOTICES_MAX, Rows, ViewCost, ViewObjects};

/// Maximum number of lists with a token that are in flight, or complete but not polled. Beyond this
/// number, a post with a token is refused for now.
const TOKENS_MAX: usize = 1024;

/// The fabric of one member in one view, over the memory and the connections that [`Site::view`]
/// creates.
///
/// [`Site::view`]: crate::Site::view
pub struct Verbs {
    // This field is the first, so that no queue pair outlives the memory to which it writes.
    links: Vec<Link>,
    /// The index of the connection to each peer's copy of the local row, by rank; `None` for this
    /// member's rank.
    rows_to: Vec<Option<usize>>,
    regions: Vec<RegionLink>,
    /// This member's regions, by number.
    own_regions: Vec<OwnRegion>,
    blocks: block_traffic::BlockTraffic,
    permissions: region_link::PermissionQueue,
    /// Copies of the peers' rows, by rank, each registered for its peer only.
    copies: Vec<Option<MemoryRegion>>,
    /// Rings in these copies, each registered for the peer that passes on messages to it.
    relayed: Vec<MemoryRegion>,
    builder: Arc<Builder>,
    commands: Commands,
    /// The objects that all connections share, once they have been created.
    shared: Option<Arc<ViewObjects>>,
    /// The reason why an object could not be created, until it has been reported.
    failure: Option<JoinError>,
    /// Number of lost peers whose row's connection may still accept their writes.
    unsealed: usize,
    handshake: Handshake,
    view: ViewId,
    peers: Vec<Peer>,
    capabilities: Capabilities,
    life: Life,
    completions: Option<CompletionQueue>,
    batch: Box<[Completion; BATCH]>,
    buffers: SendBuffers,
    done: VecDeque<Token>,
    /// Number of tokens of lists in flight.
    waiting: usize,
    /// Whether a request has been flushed for a reason that is not known yet: see [`Peer`].
    has_flushed: bool,
    /// Readiness and losses that `poll` has not reported yet.
    untold: usize,
    /// Whether a peer has rung this member.
    rung: bool,
    /// Whether room has become free for a post that was refused.
    retry_due: bool,
    /// Whether this member sleeps or is about to sleep.
    armed: bool,
    /// Whether lists are sent as updates because devices keep no order between writes.
    goes_by_updates: bool,
    /// Number of batches of completions that all receives for updates can fill; zero without
    /// updates.
    update_batches: usize,
    counters: Counters,
    /// Whether the cost of the view has been logged.
    is_cost_told: bool,
}

const fn assert_send<T: Send>() {}
// The fabric is moved to the polling thread.
const _: () = assert_send::<Verbs>();

/// The components from which a fabric is created.
pub(crate) struct Parts {
    pub(crate) view: ViewId,
    pub(crate) links: Vec<Link>,
    pub(crate) regions: Vec<RegionLink>,
    pub(crate) builder: Builder,
    /// The queue of the workers that run the fabric's commands.
    pub(crate) place: JobQueue,
    pub(crate) handshake: Handshake,
    pub(crate) block_store: BlockStore,
    pub(crate) capabilities: Capabilities,
    pub(crate) write_order: WriteOrder,
    pub(crate) context: Context,
}

impl Verbs {
    /// Creates a fabric, and starts to create its objects.
    pub(crate) fn new(parts: Parts) -> Self {
        let members = parts.builder.rows().members().len();
        let goes_by_updates = parts.write_order == WriteOrder::ByUpdates;
        let receives = members * usize::try_from(MESSAGES_MAX + NOTICES_MAX).unwrap_or(0);
        let mut rows_to = vec![None; members];
        for (index, link) in parts.links.iter().enumerate() {
            if link.purpose == Purpose::Row {
                rows_to[link.peer.index()] = Some(index);
            }
        }
        let blocks =
            block_traffic::BlockTraffic::new(parts.view, &parts.links, members, parts.block_store);
        let mut made = Self {
            permissions: region_link::PermissionQueue::new(parts.links.len()),
            blocks,
            rows_to,
            links: parts.links,
            regions: parts.regions,
            own_regions: Vec::new(),
            copies: (0..members).map(|_| None).collect(),
            relayed: Vec::new(),
            builder: Arc::new(parts.builder),
            commands: Commands::new(parts.place),
            shared: None,
            failure: None,
            unsealed: 0,
            handshake: parts.handshake,
            view: parts.view,
            peers: (0..members).map(|_| Peer::new()).collect(),
            capabilities: parts.capabilities,
            life: Life::Fresh,
            completions: None,
            batch: Box::new([Completion::default(); BATCH]),
            buffers: SendBuffers::new(&parts.context),
            done: VecDeque::with_capacity(TOKENS_MAX),
            waiting: 0,
            has_flushed: false,
            untold: 0,
            rung: false,
            retry_due: false,
            armed: false,
            goes_by_updates,
            update_batches: if goes_by_updates { receives.div_ceil(BATCH) } else { 0 },
            counters: Counters::default(),
            is_cost_told: false,
        };
        made.commands.hand_in(Job::Start(Arc::clone(&made.builder)));
        made.take_built();
        made
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the objects that have been created for the view so far.
    #[must_use]
    pub fn cost(&self) -> ViewCost {
        self.builder.cost()
    }

    /// Returns the rows from which this fabric writes and to which its peers write.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        self.builder.rows()
    }

    /// Returns the reason why a peer counts as lost, or `None` if it does not.
    #[must_use]
    pub fn loss_of(&self, peer: Rank) -> Option<&Loss> {
        self.peers.get(peer.index())?.loss.as_ref()
    }

    /// Returns whether a peer counts as lost, and `poll` has yet to report this.
    pub(crate) fn has_untold_loss(&self, peer: Rank) -> bool {
        self.peers.get(peer.index()).is_some_and(|peer| peer.loss_untold)
    }

    /// Returns the number of requests that are not known to be complete. Unsignalled requests may
    /// be complete without being known to be.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.links.iter().map(|link| link.queue.in_flight()).sum()
    }

    /// Returns the connection to a peer that may be posted to.
    #[inline]
    fn target(&self, view: ViewId, to: Rank) -> Result<usize, ErrorKind> {
        if self.life != Life::Open(view) {
            return Err(ErrorKind::Other);
        }
        let link = self.rows_to.get(to.index()).copied().flatten().ok_or(ErrorKind::OutOfRange)?;
        match self.peers[to.index()].stage {
            PeerStage::Live => Ok(link),
            PeerStage::Awaited | PeerStage::Tried | PeerStage::SmallPassed => {
                Err(ErrorKind::QueueFull)
            }
            // The peer has reported that it cut this member off, so it need not be dead.
            PeerStage::Lost if self.is_denied(to) => Err(ErrorKind::Revoked),
            PeerStage::Departed | PeerStage::Cut | PeerStage::Lost => Err(ErrorKind::PeerLost),
        }
    }

    fn is_denied(&self, peer: Rank) -> bool {
        self.loss_of(peer).is_some_and(|loss| loss.cause == LossCause::Denied)
    }

    /// Returns whether a peer has ended the view. Posts to it are dropped: it is not dead, and a
    /// leaving member has to post until the end (VIE-9).
    fn has_departed(&self, view: ViewId, peer: Rank) -> bool {
        self.life == Life::Open(view)
            && self.peers.get(peer.index()).is_some_and(|peer| peer.stage == PeerStage::Departed)
    }

    fn post_row(
        &mut self,
        link: usize,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Self { links, peers, copies, buffers, counters, .. } = self;
        let (link, peer) = (&mut links[link], &mut peers[to.index()]);
        let bytes_max = self.capabilities.write_bytes_max;
        if writes.len() > WRITES_MAX || !writes.iter().all(|write| link.fits(write, bytes_max)) {
            return Err(ErrorKind::OutOfRange);
        }
        let rings = peer.doorbell.rings_with_post();
        let behind = if rings { Behind::Notice(Notice::Ring.encode()) } else { Behind::Nothing };
        let has_place = token.is_none() || self.done.len() + self.waiting < TOKENS_MAX;
        let posted = if !has_place {
            Err(ErrorKind::QueueFull)
        } else if self.goes_by_updates {
            link.post_list_as_update(buffers, (writes, copies), behind, token, counters)
        } else if link.queue.has_room(writes.len() + usize::from(rings)) {
            link.post_writes(buffers, (writes, copies), behind, token, counters)
        } else {
            Err(ErrorKind::QueueFull)
        };
        self.account(to, posted, token).map(drop)
    }

    /// Counts a list that was posted, dropped or refused. Returns whether it was posted.
    #[inline]
    fn account(
        &mut self,
        to: Rank,
        posted: Result<bool, ErrorKind>,
        token: Option<Token>,
    ) -> Result<bool, ErrorKind> {
        let peer = &mut self.peers[to.index()];
        match posted {
            Ok(true) => {
                peer.doorbell.posted();
                self.waiting += usize::from(token.is_some());
            }
            Ok(false) => self.done.extend(token),
            Err(kind) => {
                if kind == ErrorKind::QueueFull {
                    self.counters.refused += 1;
                    peer.refused = true;
                }
                return Err(kind);
            }
        }
        self.counters.lists += 1;
        posted
    }

    /// Returns the next news about a peer, which is rare. A loss is reported once nothing more from
    /// the peer can land, so that cutting it takes no further device command.
    #[cold]
    fn tell(&mut self) -> Option<Event> {
        let (Life::Open(view) | Life::Retiring(view)) = self.life else { return None };
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            let row = self.rows_to.get(rank.index()).copied().flatten();
            let is_sealed = row.is_none_or(|row| self.links[row].near().is_none());
            if std::mem::take(&mut peer.ready_untold) {
                self.untold -= 1;
                return Some(Event::Ready { view, peer: rank });
            }
            if is_sealed && std::mem::take(&mut peer.loss_untold) {
                self.untold -= 1;
                let cause = peer.loss.as_ref().map_or(LossCause::Unreachable, |loss| loss.cause);
                return Some(Event::PeerLost { view, peer: rank, cause });
            }
        }
        None
    }

    /// Returns the next event that has been found but not reported.
    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        if let Some(token) = self.done.pop_front() {
            return Some(Event::Completed(token));
        }
        if self.untold > 0 {
            let told = self.tell();
            if told.is_some() {
                return told;
            }
        }
        std::mem::take(&mut self.rung).then_some(Event::Woken)
    }
}

impl Fabric for Verbs {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// # Errors
    /// Fails with [`ErrorKind::Other`] if the view is open; and with [`ErrorKind::WrongMemory`] if
    /// the view or the memory is not the one created with the fabric, or if the view has ended.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if matches!(self.life, Life::Open(open) if open == view) {
            return Err(ErrorKind::Other);
        }
        if self.life != Life::Fresh || view != self.view || !self.rows().is(memory) {
            return Err(ErrorKind::WrongMemory);
        }
        self.life = Life::Open(view);
        for (peer, link) in self.peers.iter_mut().zip(&self.rows_to) {
            if link.is_some() && peer.stage == PeerStage::Live {
                peer.ready_untold = true;
                self.untold += 1;
            }
            // The loss was found before `open`, when it could not be reported.
            self.untold += usize::from(peer.loss_untold);
        }
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.target(view, peer).is_ok() || self.has_departed(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        self.cut_peer(view, peer);
    }

    fn retire(&mut self, view: ViewId) -> bool {
        self.retire_view(view)
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let row = match self.target(view, to) {
            Ok(row) => row,
            Err(_) if goes_to_row(writes) && self.has_departed(view, to) => {
                self.done.extend(token);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let link = self.link_for(row, to, writes);
        if link != row {
            return self.post_region(link, to, writes, token);
        }
        let posted = self.post_row(row, to, writes, token);
        if posted == Err(ErrorKind::PeerLost) {
            self.fail_post(row);
        }
        posted
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        if self.take_batch() == BATCH {
            self.take_updates_that_came();
        }
        self.next_event()
    }

    /// At most a few rings to each peer may be unanswered. A further ring is sent when an answer is
    /// processed, by the next `wake` or `poll`. So a member that rings must keep stepping.
    fn wake(&mut self, view: ViewId, to: Rank) {
        if let Ok(link) = self.target(view, to) {
            // Answers to earlier rings may be waiting in the completion queue.
            self.take_batch();
            self.peers[to.index()].doorbell.wake();
            self.send_notices(link);
        }
    }

    fn arm(&mut self) -> bool {
        self.arm_for_sleep()
    }

    fn disarm(&mut self) {
        self.armed = false;
    }

    #[inline]
    fn observe_barrier(&self) {
        device_read_barrier();
    }
}

/// Returns whether a list targets the peer's copies of rows.
fn goes_to_row(writes: &[Write]) -> bool {
    let is_row = |region: Region| region == Region::ROW || region.owner().is_some();
    writes.first().is_none_or(|write| is_row(write.target.region))
}

impl std::fmt::Debug for Verbs {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Verbs")
            .field("view", &self.view)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}
