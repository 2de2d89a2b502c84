//! The channels of groups, and the moves of a node to higher group numbers. The supply of numbers
//! is unlimited, but that of channels is not.
//!
//! Numbers are divided into *generations* of [`CHANNELS`](super::numbers::CHANNELS) each. A
//! generation has its own view at the fabric, with fresh rows, and a group's channel is its
//! position in that view. So a channel is never used twice in one view, as [`Blocks::close`]
//! requires, and is free again in the next view. A node has one or two open generations: the
//! newest, and the previous one until a further one is wanted.
//!
//! # How a node goes on
//! A node advances when a group of a later generation is created on it, or when a peer announces
//! that it is advancing. The announcement is a cell of each node in every view, its *wish*. The
//! node then
//! 1. publishes its own wish in the newest view, and posts it to all peers;
//! 2. waits until all peers that have not been lost are ready in the newest view;
//! 3. waits until all its groups of the oldest generation have ended, accepts no new ones, waits
//!    until everything that it has posted in that generation has left, and then retires that view;
//! 4. opens the next generation.
//!
//! # Why nothing of an old group is taken for a new one's
//! - Two groups share a channel only in different views. Cells, blocks and notices carry their
//!   view; a fabric accepts nothing for a view that has ended, and never stores one view's write in
//!   another view's memory. The fabric's contract requires this, and every fabric is tested for it.
//!   This holds for everything in flight when the older group ended, even if that group failed.
//! - Every node learns how a group ended, even if a peer has advanced. A group's final posts are
//!   made before it counts as ended, and step 3 waits until they have left, in order, before the
//!   view ends. The peer still has the memory that they write to, because by step 2 it was ready in
//!   that view.
//! - By step 2, no node is more than one view ahead of another live node, which is the limit that
//!   fabrics support.
//! - If one node advances, all nodes do, because each posts its wish to all peers before it opens
//!   the next view. A node that fails in between has announced it either to no peer, or to a peer
//!   that announces it to the others.
//!
//! # What it costs
//! A group that stays open keeps its generation open. No node can then advance beyond the end of
//! the following generation: the creation of a group beyond it waits until the open group has
//! ended.

use std::collections::BTreeMap;
use std::sync::Arc;

use tramontane_core::fabric::ViewRows as _;
use tramontane_core::fabric::{
    Blocks, Channel, ErrorKind, HostFabric, Kind, LossCause, Token, ViewPlan, Write,
};
use tramontane_core::ids::{Rank, ViewId};

use super::numbers::{WISH, channel_of, generation_of, layout_of};
use super::part::GroupTransfer;
use crate::block_transfer::transfer::TransferView;
use crate::group::FIRST_VIEW;
use crate::member::{Memory, Stopped};

/// The groups of one generation.
struct Generation {
    number: u64,
    table: Arc<TransferView>,
    /// Groups that have not ended, by channel. This is a map, because each idle step visits all
    /// groups, and a table with an entry for every channel would be scanned in full.
    parts: BTreeMap<u16, Box<GroupTransfer>>,
    /// The write that carries the wish to a peer.
    wish: Write,
}

impl Generation {
    fn new(number: u64, table: TransferView) -> Self {
        let layout = layout_of(&table.members).ok();
        // The rows have this layout, which contains the cell; with any other layout, no row has the
        // cell.
        let wish = layout.and_then(|layout| layout.channel_offset(WISH)).unwrap_or(usize::MAX);
        let wish = Write::of_row(wish, 8, Kind::Guard);
        Self { number, table: Arc::new(table), parts: BTreeMap::new(), wish }
    }

    fn view(&self) -> ViewId {
        self.table.view
    }

    fn peers(&self) -> impl Iterator<Item = Rank> + use<> {
        let own = self.table.own;
        (0..).map(Rank).take(self.table.members.len()).filter(move |rank| *rank != own)
    }

    /// Returns whether any peer has announced that it is advancing beyond this generation.
    fn is_next_wished(&self) -> bool {
        let offset = self.wish.source.offset;
        let memory = self.table.memory();
        self.peers().any(|rank| {
            let row = memory.rows.get(rank.index());
            row.and_then(|row| row.cell(offset).ok()).is_some_and(|cell| cell.load() != 0)
        })
    }

    fn publish_wish(&self) {
        if let Ok(cell) = self.table.memory().row.cell(self.wish.source.offset) {
            cell.publish(1);
        }
    }
}

/// The result of asking whether a group can have a given number now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The number's generation is open.
    Open,
    /// The number's generation is next to open, when this node advances.
    Next,
    /// The number's generation has ended.
    Passed,
    /// The number's generation is too far ahead.
    TooFar,
}

/// The progress of the posts to one peer in the view that is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    NotPosted,
    Posted,
    Done,
}

/// All groups of a node.
pub(super) struct Generations {
    /// The generation before the newest, while it is still open.
    oldest: Option<Generation>,
    newest: Generation,
    /// The highest generation that has been requested, to which this node should advance.
    wanted: u64,
    /// Whether the wish has been posted to each peer in the newest view, by rank.
    told: Vec<bool>,
    /// The progress of the last posts to each peer, by rank. It is set once the oldest view is
    /// about to end.
    flushes: Option<Vec<Flush>>,
    /// The causes of the peers' losses, by rank.
    losses: Vec<Option<LossCause>>,
}

impl Generations {
    /// Starts with the first generation, whose view is open at all nodes.
    pub(super) fn new(table: TransferView) -> Self {
        let count = table.members.len();
        Self {
            oldest: None,
            newest: Generation::new(0, table),
            wanted: 0,
            told: vec![false; count],
            flushes: None,
            losses: vec![None; count],
        }
    }

    fn each(&self) -> impl Iterator<Item = &Generation> {
        self.oldest.iter().chain(std::iter::once(&self.newest))
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut Generation> {
        self.oldest.iter_mut().chain(std::iter::once(&mut self.newest))
    }

    /// Returns all groups that have not ended.
    pub(super) fn parts(&self) -> impl Iterator<Item = &GroupTransfer> {
        self.each().flat_map(|generation| generation.parts.values().map(|part| &**part))
    }

    /// Returns all groups that have not ended, mutably.
    pub(super) fn parts_mut<'p>(&'p mut self) -> impl Iterator<Item = &'p mut GroupTransfer> {
        let parts =
            |generation: &'p mut Generation| generation.parts.values_mut().map(|part| &mut **part);
        self.each_mut().flat_map(parts)
    }

    /// Returns whether a group can have this number now.
    pub(super) fn reach(&self, number: u64) -> Reach {
        let (generation, newest) = (generation_of(number), self.newest.number);
        let is_kept = |oldest: &Generation| oldest.number == generation && self.flushes.is_none();
        if generation == newest || self.oldest.as_ref().is_some_and(is_kept) {
            Reach::Open
        } else if generation < newest {
            Reach::Passed
        } else if generation - newest <= 2 {
            Reach::Next
        } else {
            Reach::TooFar
        }
    }

    /// Requests the generation of a group number that is not yet open.
    pub(super) fn want(&mut self, number: u64) {
        self.wanted = self.wanted.max(generation_of(number));
    }

    fn of_number(&mut self, number: u64) -> Option<&mut Generation> {
        self.each_mut().find(|known| known.number == generation_of(number))
    }

    /// Returns the table and channel for a group number.
    pub(super) fn place(&mut self, number: u64) -> Option<(Arc<TransferView>, Channel)> {
        let generation = self.of_number(number)?;
        Some((Arc::clone(&generation.table), channel_of(number)))
    }

    /// Stores the group with a number whose generation is open.
    pub(super) fn keep(&mut self, number: u64, part: Box<GroupTransfer>) {
        if let Some(generation) = self.of_number(number) {
            generation.parts.insert(channel_of(number).0, part);
        }
    }

    /// Returns the group with a number.
    pub(super) fn part(&mut self, number: u64) -> Option<&mut GroupTransfer> {
        let generation = self.of_number(number)?;
        generation.parts.get_mut(&channel_of(number).0).map(|part| &mut **part)
    }

    /// Removes a group that has ended.
    pub(super) fn remove(&mut self, number: u64) {
        if let Some(generation) = self.of_number(number) {
            generation.parts.remove(&channel_of(number).0);
        }
    }

    /// Returns the group on a channel in a view.
    pub(super) fn part_at(&mut self, view: ViewId, channel: Channel) -> Option<&mut GroupTransfer> {
        let generation = self.each_mut().find(|known| known.view() == view)?;
        generation.parts.get_mut(&channel.0).map(|part| &mut **part)
    }

    /// Informs a new group of the peers that are already lost, because no fabric reports them
    /// again.
    pub(super) fn tell_losses(&self, part: &mut GroupTransfer) {
        for (rank, cause) in (0..).map(Rank).zip(&self.losses) {
            if let Some(cause) = cause {
                part.lost(rank, *cause);
            }
        }
    }

    /// Records the loss of a peer, in all generations.
    pub(super) fn lost(&mut self, peer: Rank, cause: LossCause) {
        if let Some(loss) = self.losses.get_mut(peer.index()) {
            loss.get_or_insert(cause);
        }
        self.parts_mut().for_each(|part| part.lost(peer, cause));
    }

    /// Records that the posts to a peer in the ending view have left.
    pub(super) fn completed(&mut self, token: Token) {
        let flushes = self.flushes.iter_mut().flatten().enumerate();
        let mut of_token = flushes.filter(|(rank, _)| *rank as u64 == token.0);
        if let Some((_, flush)) = of_token.next() {
            *flush = Flush::Done;
        }
    }

    /// Advances towards the next generation, if one is wanted, as far as is possible now. Returns
    /// whether anything was done.
    pub(super) fn advance<F>(&mut self, fabric: &mut F) -> Result<bool, Stopped>
    where
        F: HostFabric<Rows = Memory> + Blocks<Error = ErrorKind>,
    {
        let newest = self.newest.number;
        if self.wanted <= newest && self.newest.is_next_wished() {
            self.wanted = newest + 1;
        }
        if self.wanted <= newest {
            return Ok(false);
        }
        if !self.tell_wish(fabric) || !self.is_ready(fabric) || !self.end_oldest(fabric) {
            return Ok(false);
        }
        self.open_next(fabric)?;
        Ok(true)
    }

    fn is_lost(&self, peer: Rank) -> bool {
        self.losses.get(peer.index()).is_none_or(Option::is_some)
    }

    /// Announces in the newest view that this node is advancing. Returns whether the announcement
    /// has been posted to all peers.
    fn tell_wish<F: Blocks<Error = ErrorKind>>(&mut self, fabric: &mut F) -> bool {
        let Self { newest, told, losses, .. } = self;
        newest.publish_wish();
        let (view, wish) = (newest.view(), newest.wish);
        for peer in newest.peers() {
            let (Some(is_told), Some(None)) =
                (told.get_mut(peer.index()), losses.get(peer.index()))
            else {
                continue;
            };
            // A peer that accepts no posts has been lost, and its loss is reported separately.
            *is_told =
                *is_told || fabric.post(view, peer, &[wish], None) != Err(ErrorKind::QueueFull);
        }
        newest.peers().all(|peer| self.is_lost(peer) || self.told[peer.index()])
    }

    /// Returns whether all live peers have opened the newest view.
    fn is_ready<F: Blocks<Error = ErrorKind>>(&self, fabric: &F) -> bool {
        let view = self.newest.view();
        self.newest.peers().all(|peer| self.is_lost(peer) || fabric.ready(view, peer))
    }

    /// Ends the oldest generation, if there is one. Returns true once only the newest is left.
    fn end_oldest<F: Blocks<Error = ErrorKind>>(&mut self, fabric: &mut F) -> bool {
        let Some(oldest) = &self.oldest else { return true };
        if !oldest.parts.is_empty() {
            return false;
        }
        let (view, wish) = (oldest.view(), oldest.wish);
        let count = self.losses.len();
        let flushes = self.flushes.get_or_insert_with(|| vec![Flush::NotPosted; count]);
        let mut is_flushed = true;
        for peer in oldest.peers() {
            let Some(flush) = flushes.get_mut(peer.index()) else { continue };
            if self.losses.get(peer.index()).is_none_or(Option::is_some) {
                *flush = Flush::Done;
            }
            if *flush == Flush::NotPosted {
                let token = Token(u64::from(peer.0));
                *flush = match fabric.post(view, peer, &[wish], Some(token)) {
                    Ok(()) => Flush::Posted,
                    Err(ErrorKind::QueueFull) => Flush::NotPosted,
                    Err(_) => Flush::Done,
                };
            }
            is_flushed &= *flush == Flush::Done;
        }
        if !is_flushed || !fabric.retire(view) {
            return false;
        }
        (self.oldest, self.flushes) = (None, None);
        true
    }

    fn open_next<F>(&mut self, fabric: &mut F) -> Result<(), Stopped>
    where
        F: HostFabric<Rows = Memory> + Blocks<Error = ErrorKind>,
    {
        let number = self.newest.number + 1;
        let (own, members) = (self.newest.table.own, self.newest.table.members.clone());
        let view = ViewId(FIRST_VIEW.0 + number);
        let layout = layout_of(&members).map_err(|error| Stopped::NoMemory(error.to_string()))?;
        let memory = fabric.rows(&ViewPlan::of_layout(view, own, &layout));
        let memory = memory.map_err(|error| Stopped::NoMemory(error.to_string()))?;
        fabric.open(view, &memory.memory()).map_err(|error| Stopped::Fabric(error.to_string()))?;
        tracing::debug!(number, "the node moves to the next generation of groups");
        let next = Generation::new(number, TransferView::new(view, own, members, memory));
        self.oldest = Some(std::mem::replace(&mut self.newest, next));
        self.told.fill(false);
        Ok(())
    }
}
