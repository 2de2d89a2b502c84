//! The fabric over reliable connections, one a peer.
//!
//! A write of the core becomes one RDMA write from the registered own row into the peer's copy of
//! it. All of a list go to the device with one doorbell, unsignalled but for every so many-th;
//! short ones and guards go inline. See [`crate`] for what is promised.
//!
//! | module | what it holds |
//! |---|---|
//! | `link` | one connection: queue pair, credits, memory at both ends |
//! | `collect` | what completions and notices make of this member |
//! | `rest` | sleep |
//! | `arrive` | peers that come one by one |
//! | `end` | lost, cut and retired |
//! | `permissions`, `reconnect` | regions, and their connections made anew |
//! | `blocks`, `block_memory` | blocks, and the memory that they go from and into |
//! | `peer` | where a peer and the view are in their lives |
//! | `crate::protocol` | credits; rings over a network, and why none is lost; names |
//!
//! # Invariants
//! - Nothing is allocated, and no lock is taken, from the start to the end of a view, but for a
//!   channel's state at its first block with a peer.
//! - No call waits: a full queue is refused, an empty one is left alone. [`Verbs::sleep`] and
//!   [`Verbs::leave`] wait, and no longer than they were told to.
//! - What a peer sends is a notice of a known kind or breaks the connection to that peer.
//! - Completions are taken only by `poll`, `wake`, `arm`, `retire`, [`Verbs::collect`], `sleep` and
//!   `leave`, so room in a queue does not come and go between two posts.

mod arrive;
mod block_memory;
mod blocks;
mod collect;
mod end;
mod link;
mod peer;
mod permissions;
mod reconnect;
mod rest;

use std::collections::VecDeque;
use std::sync::Arc;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, LossCause, Token, ViewMemory, ViewRows as _,
    WRITES_MAX, Write,
};
use tramontane_core::ids::{Rank, ViewId};

pub use block_memory::{BlockMemory, BlockStore, NoBlockMemory};
pub(crate) use blocks::block_limits;
pub use end::Loss;
use link::Behind;
pub(crate) use link::{FarEnd, GUARD_BYTES_MAX, Link, LinkParts, Purpose, message_memory_bytes};
use peer::{Life, Peer, Stage};
pub(crate) use permissions::RegionLink;

use crate::ffi::{
    Completion, CompletionQueue, Context, MemoryRegion, SendBuffers, device_read_barrier,
};
use crate::protocol::{Counters, Notice};
use crate::site::{Handshake, Rows};

/// Lists that somebody waits for: under way, or done and not polled. Beyond it, a post with a token
/// is refused for now.
const TOKENS_MAX: usize = 1024;

/// Receives for notices on a row's connection: more than can be under way at once.
pub(crate) const NOTICES_MAX: u32 = 16;

/// The fabric of one member in one view, over the memory and the connections that [`Site::view`]
/// made.
///
/// [`Site::view`]: crate::Site::view
pub struct Verbs {
    // First, so that no queue pair outlives the memory it writes to.
    links: Vec<Link>,
    /// By rank, the index of the connection to the peer's copy of the own row; none for the own
    /// rank.
    rows_to: Vec<Option<usize>>,
    regions: Vec<RegionLink>,
    blocks: blocks::BlockTraffic,
    permissions: permissions::PermissionQueue,
    /// Copies of the peers' rows, registered for each alone, and the memory of regions.
    registered: Vec<MemoryRegion>,
    rows: Rows,
    handshake: Handshake,
    view: ViewId,
    peers: Vec<Peer>,
    capabilities: Capabilities,
    life: Life,
    completions: Arc<CompletionQueue>,
    batch: Box<[Completion; crate::ffi::BATCH]>,
    buffers: SendBuffers,
    done: VecDeque<Token>,
    /// Tokens of lists that are under way.
    waiting: usize,
    /// Readiness and losses that `poll` has not told yet.
    untold: usize,
    /// A peer rang.
    rung: bool,
    /// Room came for a post that was refused.
    retry_due: bool,
    /// This member sleeps or is about to.
    armed: bool,
    counters: Counters,
    context: Arc<Context>,
}

const fn assert_send<T: Send>() {}
// A polling thread takes it along.
const _: () = assert_send::<Verbs>();

/// What a fabric is made from.
pub(crate) struct Parts {
    pub(crate) view: ViewId,
    pub(crate) links: Vec<Link>,
    pub(crate) regions: Vec<RegionLink>,
    pub(crate) registered: Vec<MemoryRegion>,
    pub(crate) rows: Rows,
    pub(crate) handshake: Handshake,
    pub(crate) block_store: BlockStore,
    pub(crate) capabilities: Capabilities,
    pub(crate) completions: Arc<CompletionQueue>,
    pub(crate) context: Arc<Context>,
}

impl Verbs {
    pub(crate) fn new(parts: Parts) -> Self {
        let members = parts.rows.members().len();
        let mut rows_to = vec![None; members];
        for (index, link) in parts.links.iter().enumerate() {
            if link.purpose == Purpose::Row {
                rows_to[link.peer.index()] = Some(index);
            }
        }
        let blocks =
            blocks::BlockTraffic::new(parts.view, &parts.links, members, parts.block_store);
        Self {
            permissions: permissions::PermissionQueue::new(parts.links.len()),
            blocks,
            rows_to,
            links: parts.links,
            regions: parts.regions,
            registered: parts.registered,
            rows: parts.rows,
            handshake: parts.handshake,
            view: parts.view,
            peers: (0..members).map(|_| Peer::new()).collect(),
            capabilities: parts.capabilities,
            life: Life::Fresh,
            completions: parts.completions,
            batch: Box::new([Completion::default(); crate::ffi::BATCH]),
            buffers: SendBuffers::new(),
            done: VecDeque::with_capacity(TOKENS_MAX),
            waiting: 0,
            untold: 0,
            rung: false,
            retry_due: false,
            armed: false,
            counters: Counters::default(),
            context: parts.context,
        }
    }

    /// What was done so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rows that this fabric writes from and that its peers write to.
    #[must_use]
    pub const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Why a peer counts as lost, if it does.
    #[must_use]
    pub fn loss_of(&self, peer: Rank) -> Option<&Loss> {
        self.peers.get(peer.index())?.loss.as_ref()
    }

    /// Requests that are under way, as far as is known: of those that nobody asked to hear of, some
    /// are done.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.links.iter().map(|link| link.queue.in_flight()).sum()
    }

    /// The connection to a peer that may be posted to.
    #[inline]
    fn target(&self, view: ViewId, to: Rank) -> Result<usize, ErrorKind> {
        if self.life != Life::Open(view) {
            return Err(ErrorKind::Other);
        }
        let link = self.rows_to.get(to.index()).copied().flatten().ok_or(ErrorKind::OutOfRange)?;
        match self.peers[to.index()].stage {
            Stage::Live => Ok(link),
            Stage::Awaited | Stage::Tried => Err(ErrorKind::QueueFull),
            // A peer that cut this member off reported it, so it need not be dead.
            Stage::Lost if self.is_denied(to) => Err(ErrorKind::Revoked),
            Stage::Departed | Stage::Cut | Stage::Lost => Err(ErrorKind::PeerLost),
        }
    }

    fn is_denied(&self, peer: Rank) -> bool {
        self.loss_of(peer).is_some_and(|loss| loss.cause == LossCause::Denied)
    }

    /// Whether a peer has ended the view at its side. What is still posted to it is passed over: it
    /// is not dead, and a member that leaves has to post to the end (VIE-9).
    fn has_departed(&self, view: ViewId, peer: Rank) -> bool {
        self.life == Life::Open(view)
            && self.peers.get(peer.index()).is_some_and(|peer| peer.stage == Stage::Departed)
    }

    fn post_row(
        &mut self,
        link: usize,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Self { links, peers, buffers, counters, .. } = self;
        let (link, peer) = (&mut links[link], &mut peers[to.index()]);
        let bytes_max = self.capabilities.write_bytes_max;
        if writes.len() > WRITES_MAX || !writes.iter().all(|write| link.fits(write, bytes_max)) {
            return Err(ErrorKind::OutOfRange);
        }
        let rings = peer.doorbell.rings_with_post();
        let requests = writes.len() + usize::from(rings);
        let has_place = token.is_none() || self.done.len() + self.waiting < TOKENS_MAX;
        if !has_place || !link.queue.has_room(requests) {
            counters.refused += 1;
            peer.refused = true;
            return Err(ErrorKind::QueueFull);
        }
        let behind = if rings { Behind::Notice(Notice::Ring.encode()) } else { Behind::Nothing };
        let posted = link.post_writes(buffers, writes, behind, token, counters)?;
        counters.lists += 1;
        if posted {
            peer.doorbell.posted();
            self.waiting += usize::from(token.is_some());
        } else {
            self.done.extend(token);
        }
        Ok(())
    }

    /// What is news about the peers: rarely anything.
    #[cold]
    fn tell(&mut self) -> Option<Event> {
        let (Life::Open(view) | Life::Retiring(view)) = self.life else { return None };
        for (rank, peer) in (0..).map(Rank).zip(&mut self.peers) {
            if std::mem::take(&mut peer.ready_untold) {
                self.untold -= 1;
                return Some(Event::Ready { view, peer: rank });
            }
            if std::mem::take(&mut peer.loss_untold) {
                self.untold -= 1;
                let cause = peer.loss.as_ref().map_or(LossCause::Unreachable, |loss| loss.cause);
                return Some(Event::PeerLost { view, peer: rank, cause });
            }
        }
        None
    }

    /// What was found and not told yet.
    #[inline]
    fn next_event(&mut self) -> Option<Event> {
        if let Some(token) = self.done.pop_front() {
            return Some(Event::Completed(token));
        }
        if self.untold > 0 {
            return self.tell();
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
    /// [`ErrorKind::Other`] if the view is open; [`ErrorKind::WrongMemory`] if this is not the view
    /// and the memory that were made with the fabric, or the view has ended.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if matches!(self.life, Life::Open(open) if open == view) {
            return Err(ErrorKind::Other);
        }
        if self.life != Life::Fresh || view != self.view || !self.rows.is(memory) {
            return Err(ErrorKind::WrongMemory);
        }
        self.life = Life::Open(view);
        for (peer, link) in self.peers.iter_mut().zip(&self.rows_to) {
            if link.is_some() && peer.stage == Stage::Live {
                peer.ready_untold = true;
                self.untold += 1;
            }
            // Found before anybody could be told.
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
            Err(_) if self.has_departed(view, to) => {
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
        self.take_batch();
        self.next_event()
    }

    /// A few may be on their way to a peer and not answered; one beyond them goes out when an
    /// answer is taken, by the next `wake` or `poll`. So a member that rings must go on stepping.
    fn wake(&mut self, view: ViewId, to: Rank) {
        if let Ok(link) = self.target(view, to) {
            // Answers to earlier ones may wait here.
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

impl std::fmt::Debug for Verbs {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Verbs")
            .field("view", &self.view)
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}
