//! All channels with one peer: selects the next write and the next message, taking channels in
//! turn.
//!
//! Only a few writes are in flight at a time. So messages, which share the connection, do not queue
//! long after them, and no channel waits for the whole queue of another.

use std::collections::VecDeque;

use tramontane_core::fabric::{Channel, ErrorKind, LossCause, Token};
use tramontane_core::ids::Rank;

use super::channel::{Arrived, Block, ChannelState, Landed, Receive};
use super::credits::Credits;
use super::message::{ChannelMessage, Envelope, OfferedAddress};
use super::{CHANNELS, EventQueue};

/// Maximum number of writes in flight to one peer. Two keep the port busy (RDMC 4.3), and small
/// blocks need more.
pub(super) const WRITES_MAX: usize = 4;

/// A block to be written.
#[derive(Debug)]
pub(crate) struct BlockOrder<M> {
    pub(crate) memory: M,
    pub(crate) offset: usize,
    pub(crate) length: u32,
    pub(crate) place: OfferedAddress,
}

/// A block that is being written. The memory is kept until the write has completed, even if the
/// channel is closed.
#[derive(Debug)]
struct Writing<M> {
    /// The request's number on the connection.
    request: u64,
    channel: Channel,
    landed: Landed,
    token: Token,
    _memory: M,
}

/// The channels with one peer. A channel's state is created on its first use and kept until the
/// view ends, even when empty.
#[derive(Debug)]
pub(crate) struct Exchange<M> {
    peer: Rank,
    channels: Vec<Option<Box<ChannelState<M>>>>,
    /// Channels with something to write, and channels with a message to send; each channel is
    /// listed once.
    writers: VecDeque<Channel>,
    talkers: VecDeque<Channel>,
    writing: VecDeque<Writing<M>>,
    credits: Credits,
}

impl<M: Clone> Exchange<M> {
    pub(crate) fn new(peer: Rank) -> Self {
        let all = usize::from(CHANNELS);
        Self {
            peer,
            channels: (0..all).map(|_| None).collect(),
            writers: VecDeque::with_capacity(all),
            talkers: VecDeque::with_capacity(all),
            writing: VecDeque::with_capacity(WRITES_MAX),
            credits: Credits::default(),
        }
    }

    fn state(&mut self, channel: Channel) -> Option<&mut ChannelState<M>> {
        let place = self.channels.get_mut(usize::from(channel.0))?;
        Some(place.get_or_insert_with(|| Box::new(ChannelState::new())))
    }

    /// Posts a receive.
    ///
    /// # Errors
    /// Fails with `QueueFull` if the limit on posted receives has been reached, and with
    /// `OutOfRange` if there is no such channel.
    pub(crate) fn receive(
        &mut self,
        channel: Channel,
        receive: Receive<M>,
        events: &mut EventQueue,
    ) -> Result<(), ErrorKind> {
        let state = self.state(channel).ok_or(ErrorKind::OutOfRange)?;
        if !state.takes_receive() || !events.has_place() {
            return Err(ErrorKind::QueueFull);
        }
        // A peer that has closed the channel sends nothing, so the receive would never complete.
        if !state.is_over_there() {
            state.add_receive(receive);
            events.begin();
            self.take_turn(channel);
        }
        Ok(())
    }

    /// Accepts a block to be sent.
    ///
    /// # Errors
    /// Fails like [`receive`](Self::receive).
    pub(crate) fn send(
        &mut self,
        channel: Channel,
        block: Block<M>,
        events: &mut EventQueue,
    ) -> Result<(), ErrorKind> {
        let state = self.state(channel).ok_or(ErrorKind::OutOfRange)?;
        if !state.takes_block() || !events.has_place() {
            return Err(ErrorKind::QueueFull);
        }
        events.begin();
        state.add_block(block);
        self.go_on(channel, events);
        Ok(())
    }

    /// Closes a channel at this end, if it has ever been used with this peer. If the peer uses it
    /// later, it is notified then.
    pub(crate) fn close(&mut self, channel: Channel, events: &mut EventQueue) {
        if let Some(Some(state)) = self.channels.get_mut(usize::from(channel.0)) {
            events.give_up(state.under_way());
            state.close();
            self.take_turn(channel);
        }
    }

    /// Handles the peer's message. `is_closed` says whether a channel has been closed at this end.
    ///
    /// # Errors
    /// Fails with the cause for which the peer is lost.
    pub(crate) fn hear(
        &mut self,
        envelope: &Envelope,
        is_closed: impl Fn(Channel) -> bool,
        events: &mut EventQueue,
    ) -> Result<(), LossCause> {
        let Envelope { taken, channel, message } = *envelope;
        if !self.credits.take(taken) {
            return Err(LossCause::Misbehaved);
        }
        if message == ChannelMessage::Credit {
            return Ok(());
        }
        let peer = self.peer;
        let state = self.state(channel).ok_or(LossCause::Misbehaved)?;
        if is_closed(channel) && !state.is_closed() {
            // The channel was closed before its first use with this peer.
            state.close();
        }
        match message {
            ChannelMessage::Offer { serial, place } => state.hear_offer(serial, place)?,
            ChannelMessage::Written { serial, number, length } => {
                let arrived = state.hear_written(serial, Landed { number, length })?;
                if let Some(Arrived { token, number, length }) = arrived {
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    events.received((channel, peer), token, number, length);
                }
            }
            ChannelMessage::Asked { serial } => state.hear_question(serial)?,
            ChannelMessage::Refused => state.hear_refusal()?,
            ChannelMessage::Over => {
                let before = state.under_way();
                state.hear_over()?;
                events.give_up(before - state.under_way());
            }
            ChannelMessage::Credit => {}
        }
        self.go_on(channel, events);
        Ok(())
    }

    /// Returns the next block that may be written now. `request` is the number that its request
    /// will have.
    ///
    /// # Errors
    /// Fails with the cause for which the peer is lost.
    pub(crate) fn next_write(&mut self, request: u64) -> Result<Option<BlockOrder<M>>, LossCause> {
        while self.writing.len() < WRITES_MAX {
            let Some(channel) = self.writers.pop_front() else { break };
            let Some(state) = self.state(channel) else { continue };
            state.in_writers = false;
            let Some((block, place)) = state.begin_write()? else { continue };
            self.take_turn(channel);
            let Block { memory, offset, length, number, token } = block;
            let _memory = memory.clone();
            let landed = Landed { number, length };
            self.writing.push_back(Writing { request, channel, landed, token, _memory });
            return Ok(Some(BlockOrder { memory, offset, length, place }));
        }
        Ok(None)
    }

    /// Records that all requests below a number have been acknowledged.
    pub(crate) fn acknowledged(&mut self, requests: u64, events: &mut EventQueue) {
        while self.writing.front().is_some_and(|writing| writing.request < requests) {
            let Some(Writing { channel, landed, token, .. }) = self.writing.pop_front() else {
                break;
            };
            let peer = self.peer;
            let Some(state) = self.state(channel) else { continue };
            state.end_write(landed);
            if !state.is_closed() {
                events.sent(channel, peer, token);
            }
            self.go_on(channel, events);
        }
    }

    /// Returns the next message that may be sent now.
    pub(crate) fn next_message(&mut self) -> Option<Envelope> {
        while self.credits.has_room() {
            let Some(channel) = self.talkers.pop_front() else { break };
            let Some(state) = self.state(channel) else { continue };
            state.in_talkers = false;
            let Some(message) = state.next_message() else { continue };
            self.take_turn(channel);
            return Some(Envelope { taken: self.credits.send(), channel, message });
        }
        let message = ChannelMessage::Credit;
        self.credits.owes().then(|| Envelope {
            taken: self.credits.send(),
            channel: Channel(0),
            message,
        })
    }

    /// Drops the blocks of a channel that the peer has closed, because the peer would drop them
    /// too.
    fn go_on(&mut self, channel: Channel, events: &mut EventQueue) {
        let peer = self.peer;
        if let Some(state) = self.state(channel) {
            for block in state.take_dropped() {
                events.sent(channel, peer, block.token);
            }
        }
        self.take_turn(channel);
    }

    /// Puts a channel at the end of the queue, if it has something to write or a message to send.
    fn take_turn(&mut self, channel: Channel) {
        let Some(Some(state)) = self.channels.get_mut(usize::from(channel.0)) else { return };
        if state.has_write() && !std::mem::replace(&mut state.in_writers, true) {
            self.writers.push_back(channel);
        }
        if state.has_message() && !std::mem::replace(&mut state.in_talkers, true) {
            self.talkers.push_back(channel);
        }
    }

    /// Closes all channels after the loss of the peer. Outstanding blocks are not reported.
    pub(crate) fn end(&mut self, events: &mut EventQueue) {
        events.give_up(self.under_way());
        events.forget(|way| way.peer == self.peer);
    }

    /// Returns the number of blocks and receives that will still be reported.
    pub(super) fn under_way(&self) -> usize {
        self.channels.iter().flatten().map(|state| state.under_way()).sum()
    }

    /// Returns whether nothing waits for room or for an acknowledgement.
    pub(crate) fn is_idle(&self) -> bool {
        self.writers.is_empty() && self.talkers.is_empty() && self.writing.is_empty()
    }

    /// Returns the channel of the most recently begun write.
    #[cfg(test)]
    pub(super) fn last_begun(&self) -> Channel {
        self.writing.back().map_or(Channel(u16::MAX), |writing| writing.channel)
    }

    /// Returns the number of a channel's receives whose memory is held.
    #[cfg(test)]
    pub(super) fn held(&self, channel: Channel) -> usize {
        self.channels[usize::from(channel.0)].as_ref().map_or(0, |state| state.held())
    }
}
