//! The blocks that this process has offered to one peer and that have no answer yet.
//!
//! # Invariant
//! A send keeps its memory until it is answered, or until the peer or the view is given up. So a
//! peer that maps the memory late does not find that it has been given up.

use std::sync::{Arc, Weak};

use tramontane_core::fabric::{Channel, ErrorKind, Token};

use super::block_queues::{ENTRIES, Lane, OfferedBlock, SENDS};
use super::own_region::OwnRegion;

/// The error for data that no correct member sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// An offered block.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) channel: Channel,
    pub(super) token: Token,
    /// Held only to keep the memory alive.
    _memory: Arc<OwnRegion>,
}

/// The location of a block in local memory.
#[derive(Debug)]
pub(super) struct BlockSource {
    pub(super) memory: Arc<OwnRegion>,
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// The sends to one peer.
#[derive(Debug)]
pub(super) struct Outbox {
    /// The total number of entries posted in the local lane.
    posted: u64,
    /// The total number of answers seen in the peer's lane.
    seen: u64,
    /// By ticket.
    offered: Box<[Option<Offered>]>,
    /// Free tickets.
    free: Vec<u16>,
    /// Memory that the peer has.
    sent: Vec<(u64, Weak<OwnRegion>)>,
}

impl Outbox {
    pub(super) fn new() -> Self {
        let tickets = 0..u16::try_from(SENDS).unwrap_or(u16::MAX);
        Self {
            posted: 0,
            seen: 0,
            offered: tickets.clone().map(|_| None).collect(),
            free: tickets.collect(),
            sent: Vec::new(),
        }
    }

    /// Returns whether one more block can be offered. An impossible number in the peer's lane
    /// counts as no room until the lane is read.
    pub(super) fn has_room(&self, theirs: Lane<'_>) -> bool {
        let waiting = self.posted.checked_sub(theirs.taken());
        waiting.is_some_and(|waiting| waiting < ENTRIES) && !self.free.is_empty()
    }

    /// Returns whether the peer was sent the descriptor of that memory.
    pub(super) fn has_sent(&self, memory: &OwnRegion) -> bool {
        self.sent.iter().any(|(serial, _)| *serial == memory.serial)
    }

    /// Notes that the peer was sent the descriptor.
    pub(super) fn note_sent(&mut self, memory: &Arc<OwnRegion>) {
        self.sent.retain(|(_, memory)| memory.strong_count() > 0);
        self.sent.push((memory.serial, Arc::downgrade(memory)));
    }

    /// Returns the number of sends without an answer.
    pub(super) fn under_way(&self) -> usize {
        self.offered.len() - self.free.len()
    }

    /// Offers a block in the local lane, if there is room. `theirs` is the peer's lane.
    pub(super) fn offer(
        &mut self,
        (own, theirs): (Lane<'_>, Lane<'_>),
        channel: Channel,
        source: BlockSource,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let has_room = self.has_room(theirs);
        let Some(ticket) = self.free.pop_if(|_| has_room) else { return Err(ErrorKind::QueueFull) };
        let BlockSource { memory, offset, length } = source;
        let entry = OfferedBlock {
            memory: memory.serial,
            offset: offset as u64,
            length: length as u64,
            channel: channel.0,
            ticket,
            immediate,
        };
        self.offered[usize::from(ticket)] = Some(Offered { channel, token, _memory: memory });
        own.post(self.posted, &entry);
        self.posted += 1;
        Ok(())
    }

    /// Returns the next answer in the peer's lane, if any: the block that it is about, and whether
    /// the peer took it.
    pub(super) fn next_answer(
        &mut self,
        theirs: Lane<'_>,
    ) -> Result<Option<(Offered, bool)>, Nonsense> {
        if theirs.taken() > self.posted {
            return Err(Nonsense);
        }
        let waiting = theirs.settled().checked_sub(self.seen).ok_or(Nonsense)?;
        if waiting == 0 {
            return Ok(None);
        }
        let answer = theirs.answer(self.seen).filter(|_| waiting <= SENDS).ok_or(Nonsense)?;
        let offered = self
            .offered
            .get_mut(usize::from(answer.ticket))
            .and_then(Option::take)
            .ok_or(Nonsense)?;
        self.free.push(answer.ticket);
        self.seen += 1;
        Ok(Some((offered, answer.is_taken)))
    }

    /// Forgets the sends in flight. They get no result. Returns how many there were.
    pub(super) fn give_up(&mut self) -> usize {
        let count = self.under_way();
        self.offered.fill_with(|| None);
        self.free.clear();
        self.free.extend(0..u16::try_from(SENDS).unwrap_or(u16::MAX));
        count
    }
}
