//! Incoming traffic from one peer: the receives posted for it, and the blocks being copied.
//!
//! # Invariants
//! - The blocks of a channel are copied one at a time into its receives, both in posting order.
//! - Nothing is copied before every number of the entry has been checked against the mapping and
//!   the receive.
//! - A block is answered once none of its bytes is being read any longer. It is reported only if
//!   the sender had ended neither the channel nor the lane when the last byte had been read.

use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use tramontane_core::fabric::{Channel, REGIONS_MAX, Token};
use tramontane_core::ids::ViewId;
use tramontane_core::memory::BlockPages as _;

use super::block_memory::PeerRegion;
use super::block_queues::{BlockQueues, CHANNELS, ENTRIES, Lane, OfferedBlock, QueueAnswer};
use super::copying::{PIECE_BYTES, Stores, copy};
use super::own_region::OwnRegion;
use super::peer::Peer;
use super::residence::Residence;
use super::sending::Nonsense;

/// Largest number of receives posted for one peer on one channel.
pub(super) const RECEIVES_MAX: usize = 16;

/// A posted receive.
#[derive(Debug)]
pub(super) struct Receive {
    pub(super) memory: Arc<OwnRegion>,
    pub(super) offset: usize,
    pub(super) length: usize,
    pub(super) token: Token,
}

/// An offered block that has been matched with its receive.
#[derive(Debug)]
struct Arriving {
    memory: Arc<PeerRegion>,
    offset: u64,
    length: usize,
    immediate: u32,
    ticket: u16,
}

/// A received block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) token: Token,
    pub(super) immediate: u32,
    pub(super) length: usize,
}

/// One channel from the peer.
#[derive(Debug)]
struct Inlet {
    receives: VecDeque<Receive>,
    /// The blocks for the first receives, in order.
    arriving: VecDeque<Arriving>,
    /// The number of bytes of the first block that have been copied.
    copied: usize,
}

impl Inlet {
    fn new() -> Self {
        let place = || VecDeque::with_capacity(RECEIVES_MAX);
        Self { receives: place(), arriving: VecDeque::with_capacity(RECEIVES_MAX), copied: 0 }
    }
}

/// The reason why a peer's next entry is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryFault {
    /// There is no receive for the block.
    Unawaited,
    /// The entry's numbers are invalid, or its memory is missing.
    Nonsense,
}

impl From<Nonsense> for EntryFault {
    fn from(_: Nonsense) -> Self {
        Self::Nonsense
    }
}

/// The lanes in both directions between two members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends<'m> {
    pub(super) own_queues: BlockQueues<'m>,
    pub(super) their_queues: BlockQueues<'m>,
    /// The local lane for the peer.
    pub(super) own: Lane<'m>,
    /// The peer's lane for this member.
    pub(super) theirs: Lane<'m>,
}

impl Ends<'_> {
    /// Returns whether nothing more may be taken from a channel.
    fn is_closed(&self, channel: Channel) -> bool {
        self.theirs.is_ended()
            || self.their_queues.is_closed(channel)
            || self.own_queues.is_closed(channel)
    }
}

/// The incoming traffic from one peer.
#[derive(Debug)]
pub(super) struct Inbox {
    /// The total number of entries taken from the peer's lane.
    taken: u64,
    /// The total number of answers given.
    settled: u64,
    /// Indexed by channel; `None` if the channel was never used.
    inlets: Vec<Option<Box<Inlet>>>,
    /// The peer's memories from which blocks have been sent.
    regions: Vec<Arc<PeerRegion>>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        let inlets = std::iter::repeat_with(|| None).take(usize::from(CHANNELS)).collect();
        Self { taken: 0, settled: 0, inlets, regions: Vec::new() }
    }

    /// Returns whether a channel has an inlet. Creating one is the only allocation on a channel's
    /// path.
    pub(super) fn has_inlet(&self, channel: Channel) -> bool {
        self.inlets.get(usize::from(channel.0)).is_some_and(Option::is_some)
    }

    /// Adds a receive. Returns false if the permitted number has been reached.
    pub(super) fn post(&mut self, channel: Channel, receive: Receive) -> bool {
        let Some(place) = self.inlets.get_mut(usize::from(channel.0)) else { return false };
        let inlet = place.get_or_insert_with(|| Box::new(Inlet::new()));
        let has_room = inlet.receives.len() < RECEIVES_MAX;
        if has_room {
            inlet.receives.push_back(receive);
        }
        has_room
    }

    /// Takes the next entry from the peer's lane, if there is one. Returns the channel if a copy
    /// must begin on it and it was idle.
    pub(super) fn take_in(
        &mut self,
        ends: &Ends<'_>,
        within: (&Residence, ViewId),
        peer: &Peer,
    ) -> Result<TakenIn, EntryFault> {
        if ends.theirs.is_ended() {
            return Ok(TakenIn::Nothing);
        }
        let waiting = ends.theirs.posted().checked_sub(self.taken).ok_or(EntryFault::Nonsense)?;
        if waiting == 0 {
            return Ok(TakenIn::Nothing);
        }
        if waiting > ENTRIES {
            return Err(EntryFault::Nonsense);
        }
        let entry = ends.theirs.entry(self.taken);
        self.taken += 1;
        ends.own.set_taken(self.taken);
        let channel = Channel(entry.channel);
        if ends.is_closed(channel) {
            self.answer(ends.own, entry.ticket, true);
            return Ok(TakenIn::Dropped);
        }
        self.match_receive(entry, within, peer).inspect_err(|fault| {
            if *fault == EntryFault::Unawaited {
                ends.own
                    .settle(self.settled, QueueAnswer { ticket: entry.ticket, is_taken: false });
            }
        })
    }

    /// Assigns an entry to its receive.
    fn match_receive(
        &mut self,
        entry: OfferedBlock,
        within: (&Residence, ViewId),
        peer: &Peer,
    ) -> Result<TakenIn, EntryFault> {
        let Self { inlets, regions, .. } = self;
        let place = inlets.get_mut(usize::from(entry.channel)).ok_or(EntryFault::Nonsense)?;
        let inlet = place.as_deref_mut().ok_or(EntryFault::Unawaited)?;
        let receive = inlet.receives.get(inlet.arriving.len()).ok_or(EntryFault::Unawaited)?;
        let length = usize::try_from(entry.length).map_err(|_| EntryFault::Unawaited)?;
        if length > receive.length {
            return Err(EntryFault::Unawaited);
        }
        let memory =
            find_region(regions, entry.memory, within, peer).ok_or(EntryFault::Nonsense)?;
        memory.at(entry.offset, length).map_err(|_| EntryFault::Nonsense)?;
        let OfferedBlock { offset, ticket, immediate, .. } = entry;
        inlet.arriving.push_back(Arriving { memory, offset, length, immediate, ticket });
        Ok(if inlet.arriving.len() == 1 {
            TakenIn::First(Channel(entry.channel))
        } else {
            TakenIn::Another
        })
    }

    /// Copies one piece of the first block of a channel.
    pub(super) fn copy_piece(&mut self, ends: &Ends<'_>, channel: Channel) -> Copied {
        let Some(inlet) =
            self.inlets.get_mut(usize::from(channel.0)).and_then(Option::as_deref_mut)
        else {
            return Copied::Idle;
        };
        let (Some(receive), Some(block)) = (inlet.receives.front(), inlet.arriving.front()) else {
            return Copied::Idle;
        };
        let mut is_closed = ends.is_closed(channel);
        if !is_closed {
            let bytes = (block.length - inlet.copied).min(PIECE_BYTES);
            copy_from(block, receive, inlet.copied, bytes);
            inlet.copied += bytes;
            if inlet.copied < block.length {
                return Copied::Part;
            }
            // The bytes have been read before this, and the two marks are loaded after it.
            fence(Ordering::Acquire);
            is_closed = ends.is_closed(channel);
        }
        let received =
            Received { token: receive.token, immediate: block.immediate, length: block.length };
        let ticket = block.ticket;
        inlet.copied = 0;
        inlet.receives.pop_front();
        inlet.arriving.pop_front();
        let has_more = !inlet.arriving.is_empty();
        self.answer(ends.own, ticket, true);
        Copied::Whole { received: (!is_closed).then_some(received), has_more }
    }

    fn answer(&mut self, own: Lane<'_>, ticket: u16, is_taken: bool) {
        own.settle(self.settled, QueueAnswer { ticket, is_taken });
        self.settled += 1;
    }

    /// Ends a channel. Returns the number of receives that it had.
    pub(super) fn close(&mut self, own: Lane<'_>, channel: Channel) -> usize {
        let Some(inlet) = self.inlets.get_mut(usize::from(channel.0)).and_then(Option::take) else {
            return 0;
        };
        // Nobody is copying at this point, so the sender's memory is free.
        for block in &inlet.arriving {
            self.answer(own, block.ticket, true);
        }
        inlet.receives.len()
    }

    /// Forgets everything in flight. Returns the number of receives that there were.
    pub(super) fn give_up(&mut self) -> usize {
        let receives = self.inlets.iter().flatten().map(|inlet| inlet.receives.len()).sum();
        self.inlets.fill_with(|| None);
        self.regions.clear();
        receives
    }
}

/// The result of reading a peer's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenIn {
    /// There is no new entry.
    Nothing,
    /// A copy must begin on this channel.
    First(Channel),
    /// The entry waits for another entry on its channel.
    Another,
    /// The entry's channel is closed, so it was answered.
    Dropped,
}

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// There is nothing to copy on that channel.
    Idle,
    /// Part of the same block remains.
    Part,
    /// The block is complete.
    Whole {
        /// The received block; `None` if its channel is closed.
        received: Option<Received>,
        /// Whether another block is waiting.
        has_more: bool,
    },
}

/// Finds a peer's memory, which is mapped at its first block and remembered from then on.
fn find_region(
    regions: &mut Vec<Arc<PeerRegion>>,
    serial: u64,
    (residence, view): (&Residence, ViewId),
    peer: &Peer,
) -> Option<Arc<PeerRegion>> {
    if let Some(known) = regions.iter().find(|region| region.serial == serial) {
        return Some(Arc::clone(known));
    }
    // Memory that has been given up is unmapped when another memory arrives, because it may be in
    // use until then.
    regions.retain(|region| !region.is_over() || Arc::strong_count(region) > 1);
    if regions.len() >= 2 * REGIONS_MAX {
        return None;
    }
    // The memory was sent before its first block was offered.
    residence.receive();
    let region = Arc::new(PeerRegion::new(serial, peer.take_block(view, serial)?));
    regions.push(Arc::clone(&region));
    Some(region)
}

fn copy_from(block: &Arriving, receive: &Receive, done: usize, bytes: usize) {
    let source = block.memory.at(block.offset, block.length);
    let target = receive.memory.at(receive.offset, receive.length);
    let (Ok(source), Ok(target)) = (source, target) else { return };
    let at = |base: NonNull<u8>| {
        // SAFETY: the offset is at most the length of the block, and both ranges have that length,
        // as was checked when it was matched.
        unsafe { base.add(done) }
    };
    let stores = Stores::into_memory(receive.memory.bytes(), block.length);
    // SAFETY: both ranges were checked; one is a peer's file and the other is memory of this
    // process. By the contract of `post_receive`, nobody accesses the target.
    unsafe { copy(at(source), at(target), bytes, stores) };
}
