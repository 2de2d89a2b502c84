//! The blocks exchanged in one open view between this member and each other member.
//!
//! # Invariants
//! - A peer's channel is in the list of copies once, as long as there is something to copy on it.
//!   Pieces are copied in turn, so no channel or peer waits until another one has nothing left to
//!   send.
//! - The capacity for events is never smaller than the number of possible events: posted receives,
//!   sends without an answer, and events that have not been taken yet.

use std::collections::VecDeque;

use tramontane_core::fabric::{BlockEvent, Channel, ErrorKind, LossCause, Token, Way};
use tramontane_core::ids::{Rank, ViewId};

use super::block_queues::{CHANNELS, ENTRIES};
use super::mappings::ViewMappings;
use super::own_region::Range;
use super::peer::Peer;
use super::receiving::{Copied, Ends, Inbox, Receive, TakenIn};
use super::sending::{BlockSource, Outbox};

/// The maximum number of posted receives, sends without an answer, and waiting events in one view.
const BLOCKS_MAX: usize = 4096;

/// The traffic in blocks between this member and one other.
#[derive(Debug)]
struct Between {
    inbox: Inbox,
    outbox: Outbox,
}

/// The blocks exchanged in one view.
#[derive(Debug)]
pub(super) struct Exchange {
    view: ViewId,
    own: Rank,
    /// By rank.
    between: Vec<Between>,
    /// Channels with something to copy, in turn.
    copies: VecDeque<(Rank, Channel)>,
    /// The number of inlets ever created. The list of copies has room for all of them.
    inlets: usize,
    events: VecDeque<BlockEvent>,
    /// The number of receives and sends in flight.
    under_way: usize,
}

impl Exchange {
    /// Creates the blocks of a view, if its rows have block queues.
    pub(super) fn new(view: ViewId, membership: &ViewMappings) -> Option<Self> {
        membership.queues(membership.own())?;
        let place = |_| Between { inbox: Inbox::new(), outbox: Outbox::new() };
        Some(Self {
            view,
            own: membership.own(),
            between: membership.ids().iter().map(place).collect(),
            copies: VecDeque::new(),
            inlets: 0,
            events: VecDeque::with_capacity(BLOCKS_MAX),
            under_way: 0,
        })
    }

    /// Returns whether there is something to report or to copy.
    pub(super) fn has_work(&self) -> bool {
        !self.events.is_empty() || !self.copies.is_empty()
    }

    pub(super) fn next_event(&mut self) -> Option<BlockEvent> {
        self.events.pop_front()
    }

    /// Posts a receive for a peer that is present.
    pub(super) fn post_receive(
        &mut self,
        membership: &ViewMappings,
        (from, channel): (Rank, Channel),
        into: Range,
        token: Token,
    ) -> Result<(), ErrorKind> {
        self.check(membership, channel)?;
        let between = self.between.get_mut(from.index()).ok_or(ErrorKind::OutOfRange)?;
        if !between.inbox.has_inlet(channel) {
            self.inlets += 1;
            self.copies.reserve(self.inlets);
        }
        let Range { memory, offset, length } = into;
        if !between.inbox.post(channel, Receive { memory, offset, length, token }) {
            return Err(ErrorKind::QueueFull);
        }
        self.under_way += 1;
        Ok(())
    }

    /// Offers a block to a peer that is present; the caller rings. The peer receives the memory's
    /// descriptor before it sees the block.
    pub(super) fn send(
        &mut self,
        membership: &ViewMappings,
        (to, channel, peer): (Rank, Channel, &Peer),
        from: Range,
        immediate: u32,
        token: Token,
    ) -> Result<(), ErrorKind> {
        self.check(membership, channel)?;
        let ends = ends(membership, to).ok_or(ErrorKind::OutOfRange)?;
        let between = self.between.get_mut(to.index()).ok_or(ErrorKind::OutOfRange)?;
        let Range { memory, offset, length } = from;
        if between.outbox.has_room(ends.theirs) && !between.outbox.has_sent(&memory) {
            // The queue to the peer is full, or this process may not send any more descriptors for
            // now.
            if memory.send_to(membership.residence(), peer, self.view) != Ok(true) {
                return Err(ErrorKind::QueueFull);
            }
            between.outbox.note_sent(&memory);
        }
        let source = BlockSource { memory, offset, length };
        between.outbox.offer((ends.own, ends.theirs), channel, source, immediate, token)?;
        self.under_way += 1;
        Ok(())
    }

    /// Checks that a channel may be used, and that there is room for one more event.
    fn check(&self, membership: &ViewMappings, channel: Channel) -> Result<(), ErrorKind> {
        let is_closed = membership.queues(self.own).is_none_or(|queues| queues.is_closed(channel));
        if channel.0 >= CHANNELS || is_closed {
            return Err(ErrorKind::OutOfRange);
        }
        if self.under_way + self.events.len() >= BLOCKS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        Ok(())
    }

    /// Reads a peer's messages: the entries that it has taken, and those that it offers. An error
    /// ends all traffic with the peer. Returns true if the peer must be rung in case it is asleep.
    pub(super) fn look(
        &mut self,
        membership: &ViewMappings,
        rank: Rank,
        peer: &Peer,
    ) -> Result<bool, LossCause> {
        let (Some(ends), Some(between)) =
            (ends(membership, rank), self.between.get_mut(rank.index()))
        else {
            return Ok(false);
        };
        // If memory is missing, it may belong to a process that has just ended.
        let misbehaved = || peer.loss().unwrap_or(LossCause::Misbehaved);
        while let Some((offered, is_taken)) =
            between.outbox.next_answer(ends.theirs).map_err(|_| misbehaved())?
        {
            self.under_way -= 1;
            if !is_taken {
                return Err(LossCause::Denied);
            }
            if !ends.own_queues.is_closed(offered.channel) {
                let way = Way { view: self.view, channel: offered.channel, peer: rank };
                self.events.push_back(BlockEvent::Sent { way, token: offered.token });
            }
        }
        let (residence, view) = (membership.residence(), self.view);
        let mut is_answered = false;
        for _ in 0..ENTRIES {
            match between.inbox.take_in(&ends, (residence, view), peer).map_err(|_| misbehaved())? {
                TakenIn::Nothing => break,
                TakenIn::First(channel) => self.copies.push_back((rank, channel)),
                TakenIn::Another => {}
                TakenIn::Dropped => is_answered = true,
            }
        }
        Ok(is_answered)
    }

    /// Copies one piece. If that completes a block, returns the peer that must be rung in case it
    /// is asleep.
    pub(super) fn copy_piece(&mut self, membership: &ViewMappings) -> Option<Rank> {
        let (rank, channel) = self.copies.pop_front()?;
        let ends = ends(membership, rank)?;
        match self.between.get_mut(rank.index())?.inbox.copy_piece(&ends, channel) {
            Copied::Idle => None,
            Copied::Part => {
                self.copies.push_back((rank, channel));
                None
            }
            Copied::Whole { received, has_more } => {
                if has_more {
                    self.copies.push_back((rank, channel));
                }
                self.under_way -= 1;
                if let Some(block) = received {
                    let way = Way { view: self.view, channel, peer: rank };
                    let (token, immediate, length) = (block.token, block.immediate, block.length);
                    self.events.push_back(BlockEvent::Received { way, token, immediate, length });
                }
                Some(rank)
            }
        }
    }

    /// Closes a channel to all peers. Memory may change when this returns. Blocks that peers have
    /// offered on the channel are answered, so the caller must ring.
    pub(super) fn close(&mut self, membership: &ViewMappings, channel: Channel) {
        let Some(queues) = membership.queues(self.own) else { return };
        queues.close(channel);
        for (rank, between) in (0..).map(Rank).zip(&mut self.between) {
            self.under_way -= between.inbox.close(queues.lane(rank), channel);
        }
        self.copies.retain(|(_, other)| *other != channel);
        self.events.retain(|event| way_of(event).channel != channel);
    }

    /// Ends all traffic with a peer. Memory may change when this returns.
    pub(super) fn give_up(&mut self, membership: &ViewMappings, peer: Rank) {
        if let Some(queues) = membership.queues(self.own) {
            queues.lane(peer).end();
        }
        if let Some(between) = self.between.get_mut(peer.index()) {
            self.under_way -= between.inbox.give_up() + between.outbox.give_up();
        }
        self.copies.retain(|(other, _)| *other != peer);
        self.events.retain(|event| way_of(event).peer != peer);
    }

    /// Ends all traffic with all peers. Memory may change when this returns.
    pub(super) fn end(&mut self, membership: &ViewMappings) {
        for rank in (0..).map(Rank).take(self.between.len()) {
            self.give_up(membership, rank);
        }
    }
}

fn way_of(event: &BlockEvent) -> &Way {
    match event {
        BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. } => way,
    }
}

/// Returns the lanes between this member and another.
fn ends(membership: &ViewMappings, peer: Rank) -> Option<Ends<'_>> {
    let (own_queues, their_queues) =
        (membership.queues(membership.own())?, membership.queues(peer)?);
    Some(Ends {
        own_queues,
        their_queues,
        own: own_queues.lane(peer),
        theirs: their_queues.lane(membership.own()),
    })
}
