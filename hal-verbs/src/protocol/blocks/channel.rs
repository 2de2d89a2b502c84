//! One channel with one peer: its receives, its blocks, and the messages still owed to the peer
//! about them.
//!
//! # Invariants
//! - Serials count the blocks of one direction from 0. A block and its receive have the same
//!   serial.
//! - A receive's memory is held until its block has arrived, or until the peer has announced that
//!   it will write nothing more (`Over`).
//! - After sending `Over`, an end writes no block and sends no message. Each end sends `Over` once.

use std::collections::VecDeque;

use tramontane_core::fabric::{LossCause, Token};

use super::message::{ChannelMessage, OfferedAddress};

/// Maximum number of receives posted for one peer on one channel.
pub(crate) const RECEIVES_MAX: usize = 16;

/// Maximum number of blocks in flight to one peer on one channel.
pub(crate) const SENDS_MAX: usize = 16;

/// A posted receive and the address for its block, which is sent to the peer.
#[derive(Debug)]
pub(crate) struct Receive<M> {
    /// The handle that keeps the bytes in place.
    pub(crate) _memory: M,
    pub(crate) address: u64,
    pub(crate) key: u32,
    pub(crate) length: u32,
    pub(crate) token: Token,
}

/// A block to be sent.
#[derive(Debug)]
pub(crate) struct Block<M> {
    pub(crate) memory: M,
    pub(crate) offset: usize,
    pub(crate) length: u32,
    /// The sender's block number.
    pub(crate) number: u32,
    pub(crate) token: Token,
}

/// A block that has arrived at the peer, but whose arrival has not been announced to the peer yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Landed {
    pub(super) number: u32,
    pub(super) length: u32,
}

/// A block that has arrived at this end, but has not been reported yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) token: Token,
    pub(super) number: u32,
    pub(super) length: u32,
}

/// The progress of announcing that a channel has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Over {
    #[default]
    NotYet,
    Due,
    Sent,
}

/// One channel.
#[derive(Debug)]
pub(super) struct ChannelState<M> {
    receives: VecDeque<Receive<M>>,
    /// Number of blocks that have arrived, which is the serial of the first receive.
    came: u64,
    /// Number of receives announced to the peer.
    offered: u64,
    /// Offered addresses for which no block has been begun yet.
    offers: VecDeque<OfferedAddress>,
    /// Offers received.
    offers_heard: u64,
    waiting: VecDeque<Block<M>>,
    /// Number of blocks whose write has begun.
    begun: u64,
    /// Number of begun blocks that have not been acknowledged.
    writing: usize,
    landed: VecDeque<Landed>,
    asks: bool,
    refuses: bool,
    /// Whether the channel is closed at this end, in which case nothing is reported.
    is_closed: bool,
    over: Over,
    is_over_there: bool,
    /// Whether the channel is on the list of those with something to write or send.
    pub(super) in_writers: bool,
    pub(super) in_talkers: bool,
}

impl<M> ChannelState<M> {
    pub(super) fn new() -> Self {
        Self {
            receives: VecDeque::with_capacity(RECEIVES_MAX),
            came: 0,
            offered: 0,
            offers: VecDeque::with_capacity(RECEIVES_MAX),
            offers_heard: 0,
            waiting: VecDeque::with_capacity(SENDS_MAX),
            begun: 0,
            writing: 0,
            landed: VecDeque::with_capacity(SENDS_MAX),
            asks: false,
            refuses: false,
            is_closed: false,
            over: Over::NotYet,
            is_over_there: false,
            in_writers: false,
            in_talkers: false,
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Returns whether the peer accepts nothing more and sends nothing more.
    pub(super) const fn is_over_there(&self) -> bool {
        self.is_over_there
    }

    pub(super) fn takes_receive(&self) -> bool {
        self.receives.len() < RECEIVES_MAX
    }

    pub(super) fn takes_block(&self) -> bool {
        self.waiting.len() + self.writing + self.landed.len() < SENDS_MAX
    }

    /// Returns the number of blocks and receives that will still be reported.
    pub(super) fn under_way(&self) -> usize {
        if self.is_closed { 0 } else { self.receives.len() + self.waiting.len() + self.writing }
    }

    pub(super) fn add_receive(&mut self, receive: Receive<M>) {
        self.receives.push_back(receive);
    }

    pub(super) fn add_block(&mut self, block: Block<M>) {
        self.waiting.push_back(block);
        self.asks = self.over == Over::NotYet && self.lacks_offers();
    }

    fn lacks_offers(&self) -> bool {
        self.begun + count(self.waiting.len()) > self.offers_heard
    }

    /// Returns the number of receives posted so far.
    fn posted(&self) -> u64 {
        self.came + count(self.receives.len())
    }

    pub(super) fn has_write(&self) -> bool {
        !self.waiting.is_empty() && !self.offers.is_empty()
    }

    /// Returns the next block and its address.
    ///
    /// # Errors
    /// Fails if the block is longer than its receive: the two ends disagree, and it is unknown
    /// which of them is wrong.
    pub(super) fn begin_write(&mut self) -> Result<Option<(Block<M>, OfferedAddress)>, LossCause> {
        if !self.has_write() {
            return Ok(None);
        }
        let (Some(block), Some(place)) = (self.waiting.pop_front(), self.offers.pop_front()) else {
            return Ok(None);
        };
        if block.length > place.length {
            return Err(LossCause::Unreachable);
        }
        self.begun += 1;
        self.writing += 1;
        Ok(Some((block, place)))
    }

    /// Records that a begun block has been acknowledged.
    pub(super) fn end_write(&mut self, landed: Landed) {
        self.writing -= 1;
        if self.over == Over::NotYet {
            self.landed.push_back(landed);
        }
    }

    pub(super) fn has_message(&self) -> bool {
        self.over == Over::Due || (self.over == Over::NotYet && self.has_more_to_say())
    }

    fn has_more_to_say(&self) -> bool {
        !self.landed.is_empty() || self.offered < self.posted() || self.asks || self.refuses
    }

    /// Returns the next message to send.
    pub(super) fn next_message(&mut self) -> Option<ChannelMessage> {
        match self.over {
            Over::Sent => return None,
            Over::Due => {
                self.over = Over::Sent;
                return Some(ChannelMessage::Over);
            }
            Over::NotYet => {}
        }
        if let Some(Landed { number, length }) = self.landed.front().copied() {
            let serial = self.begun - count(self.writing + self.landed.len());
            self.landed.pop_front();
            return Some(ChannelMessage::Written { serial, number, length });
        }
        if let Some(offer) = self.next_offer() {
            return Some(offer);
        }
        if std::mem::take(&mut self.asks) {
            return Some(ChannelMessage::Asked {
                serial: self.begun + count(self.waiting.len()).saturating_sub(1),
            });
        }
        std::mem::take(&mut self.refuses).then_some(ChannelMessage::Refused)
    }

    fn next_offer(&mut self) -> Option<ChannelMessage> {
        let serial = self.offered;
        let place = usize::try_from(serial.checked_sub(self.came)?).ok()?;
        let Receive { address, key, length, .. } = *self.receives.get(place)?;
        self.offered += 1;
        Some(ChannelMessage::Offer { serial, place: OfferedAddress { address, key, length } })
    }

    /// Handles the peer's offer of a receive.
    pub(super) fn hear_offer(
        &mut self,
        serial: u64,
        place: OfferedAddress,
    ) -> Result<(), LossCause> {
        if serial != self.offers_heard || self.offers.len() == RECEIVES_MAX || self.is_over_there {
            return Err(LossCause::Misbehaved);
        }
        self.offers_heard += 1;
        if self.over == Over::NotYet {
            self.offers.push_back(place);
            self.asks &= self.lacks_offers();
        }
        Ok(())
    }

    /// Handles the arrival of a block. Reports nothing if the channel has been closed.
    pub(super) fn hear_written(
        &mut self,
        serial: u64,
        landed: Landed,
    ) -> Result<Option<Arrived>, LossCause> {
        let is_awaited = serial == self.came && self.came < self.offered && !self.is_over_there;
        let receive =
            self.receives.front().filter(|receive| is_awaited && landed.length <= receive.length);
        let token = receive.ok_or(LossCause::Misbehaved)?.token;
        self.receives.pop_front();
        self.came += 1;
        let Landed { number, length } = landed;
        Ok((!self.is_closed).then_some(Arrived { token, number, length }))
    }

    /// Handles the peer's question about a block for which it knows no receive.
    pub(super) fn hear_question(&mut self, serial: u64) -> Result<(), LossCause> {
        if self.is_over_there {
            return Err(LossCause::Misbehaved);
        }
        // An offer, or the notice that the channel is over, is in flight.
        self.refuses |= serial >= self.posted() && self.over == Over::NotYet;
        Ok(())
    }

    /// Handles the peer's answer that it is not waiting for the block. The peer is lost if the
    /// channel is still open.
    pub(super) fn hear_refusal(&self) -> Result<(), LossCause> {
        if self.over == Over::NotYet { Err(LossCause::Unreachable) } else { Ok(()) }
    }

    /// Handles the peer's closing of the channel.
    pub(super) fn hear_over(&mut self) -> Result<(), LossCause> {
        if std::mem::replace(&mut self.is_over_there, true) {
            return Err(LossCause::Misbehaved);
        }
        self.receives = VecDeque::new();
        self.end();
        Ok(())
    }

    /// Returns the blocks that the peer no longer accepts, once the earlier ones are complete.
    pub(super) fn take_dropped(&mut self) -> VecDeque<Block<M>> {
        let is_their_turn = self.is_over_there && self.writing == 0;
        if is_their_turn { std::mem::take(&mut self.waiting) } else { VecDeque::new() }
    }

    /// Closes the channel at this end. Memory into which the peer may still write is kept.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.waiting = VecDeque::new();
        self.end();
    }

    fn end(&mut self) {
        if self.over == Over::NotYet {
            self.over = Over::Due;
        }
        // The queues are not used again, so their memory is released too.
        (self.offers, self.landed) = (VecDeque::new(), VecDeque::new());
        (self.asks, self.refuses) = (false, false);
    }

    /// Returns the number of receives whose memory is held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.receives.len()
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}
