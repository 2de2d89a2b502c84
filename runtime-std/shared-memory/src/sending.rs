//! What this process has offered to one peer and has no answer for.
//!
//! # Invariant
//! A send keeps its memory until it is answered, or the peer or the view is given up: so a peer
//! that maps it late does not find it given up.

use std::sync::{Arc, Weak};

use tramontane_core::fabric::{Channel, ErrorKind, Token};

use super::block_queues::{ENTRIES, Entry, Lane, SENDS};
use super::own_region::OwnRegion;

/// A peer said what no correct member can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// A block that is offered.
#[derive(Debug)]
pub(super) struct Offered {
    pub(super) channel: Channel,
    pub(super) token: Token,
    /// Kept, not looked at.
    _memory: Arc<OwnRegion>,
}

/// Where a block is, in the own memory.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) memory: Arc<OwnRegion>,
    pub(super) offset: usize,
    pub(super) length: usize,
}

/// The sends to one peer.
#[derive(Debug)]
pub(super) struct Outbox {
    /// Entries that were ever posted in the own lane.
    posted: u64,
    /// Answers that were ever seen in the peer's.
    seen: u64,
    /// By ticket.
    offered: Box<[Option<Offered>]>,
    /// Tickets that are free.
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

    /// Whether one more block can be offered. What a peer says that cannot be is no room, until it
    /// is looked at.
    pub(super) fn has_room(&self, theirs: Lane<'_>) -> bool {
        let waiting = self.posted.checked_sub(theirs.taken());
        waiting.is_some_and(|waiting| waiting < ENTRIES) && !self.free.is_empty()
    }

    /// Whether the peer was sent the descriptor of that memory.
    pub(super) fn has_sent(&self, memory: &OwnRegion) -> bool {
        self.sent.iter().any(|(serial, _)| *serial == memory.serial)
    }

    /// Remembers that it was.
    pub(super) fn note_sent(&mut self, memory: &Arc<OwnRegion>) {
        self.sent.retain(|(_, memory)| memory.strong_count() > 0);
        self.sent.push((memory.serial, Arc::downgrade(memory)));
    }

    /// Sends without an answer.
    pub(super) fn under_way(&self) -> usize {
        self.offered.len() - self.free.len()
    }

    /// Offers a block in the own lane, if there is room. `theirs` is the peer's lane.
    pub(super) fn offer(
        &mut self,
        (own, theirs): (Lane<'_>, Lane<'_>),
        channel: Channel,
        source: Source,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let has_room = self.has_room(theirs);
        let Some(ticket) = self.free.pop_if(|_| has_room) else { return Err(ErrorKind::QueueFull) };
        let Source { memory, offset, length } = source;
        let entry = Entry {
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

    /// The next answer in the peer's lane, if any: what it is about, and whether the peer took it.
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

    /// Forgets what is under way: nothing more comes of it. How many there were.
    pub(super) fn give_up(&mut self) -> usize {
        let count = self.under_way();
        self.offered.fill_with(|| None);
        self.free.clear();
        self.free.extend(0..u16::try_from(SENDS).unwrap_or(u16::MAX));
        count
    }
}
