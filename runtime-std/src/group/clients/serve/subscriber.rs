//! The member's side of a client that subscribes. Its messages come from the member's memory or
//! log.
//!
//! # Invariants
//! - Queued data is bounded to [`CHUNK_BYTES`], or one message, plus whatever the system buffers.

use std::time::{Duration, Instant};

use tramontane_control::client_messages::{
    ClientRefusal, ClientReply, Level, PublishedMessage, encode,
};
use tramontane_core::ids::SubgroupId;

use super::cut::Cut;
use super::stall::Stall;
use crate::group::clients::order::feed::Feed;
use crate::group::clients::order::history::{digest_at, earlier, read};
use crate::group::clients::order::retained::{CHUNK_BYTES, RetainedMessage};

/// One subscriber.
#[derive(Debug)]
pub(crate) struct Subscriber {
    subgroup: SubgroupId,
    /// The sequence position of the message that the subscriber receives next.
    next: u64,
    /// The level that messages must have reached before they are sent.
    level: Level,
    stage: SubscriberStage,
    stall: Stall,
}

/// The stages of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubscriberStage {
    Comes,
    /// The start position is known, but not its digest, because the order has not reached it yet.
    Waits,
    Subscribed,
}

impl Subscriber {
    /// Creates a subscriber that begins at a position, or with the next message.
    pub(crate) fn new(subgroup: SubgroupId, from: Option<u64>, level: Level, feed: &Feed) -> Self {
        let told = feed.lock();
        let end = told.subgroups.get(&subgroup).map_or(0, |of| of.reached().at(level));
        let next = from.unwrap_or(end);
        Self { subgroup, next, level, stage: SubscriberStage::Comes, stall: Stall::default() }
    }

    pub(crate) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns how long the client has received nothing.
    pub(crate) fn stalled_for(&self, now: Instant) -> Duration {
        self.stall.lasts(now)
    }

    pub(crate) const fn stall(&mut self) -> &mut Stall {
        &mut self.stall
    }

    /// Returns the next bytes to be sent, if there are any.
    pub(crate) fn take(&mut self, feed: &Feed) -> Result<Option<Vec<u8>>, Cut> {
        if self.stage == SubscriberStage::Comes {
            return Ok(Some(self.begin(feed)));
        }
        let told = feed.lock();
        let Some(of) = told.subgroups.get(&self.subgroup) else { return Ok(None) };
        let to = of.reached().at(self.level);
        if self.stage == SubscriberStage::Waits && self.next <= of.retained.end() {
            drop(told);
            return Ok(Some(self.subscribed(feed)));
        }
        if self.next >= of.retained.first() {
            let messages = of.retained.from(self.next, to, CHUNK_BYTES);
            return Ok(self.pass(&messages));
        }
        let record = of.words.record_of(self.next);
        let (Some(log), Some(record)) = (told.logs.get(self.subgroup), record) else {
            return Err(Cut::Refused(ClientRefusal::TooSlow));
        };
        // The driving thread must not wait for a disk.
        drop(told);
        let messages = read(&log, self.subgroup, record, self.next, to);
        // The client reconnects, here or elsewhere, and then learns which messages are lost.
        let messages = messages.ok_or(Cut::Refused(ClientRefusal::NotNow))?;
        let messages: Vec<_> = messages.iter().map(RetainedMessage::publish).collect();
        Ok(self.pass(&messages))
    }

    /// Encodes the next messages, if there are any.
    fn pass(&mut self, messages: &[PublishedMessage<'_>]) -> Option<Vec<u8>> {
        self.next = messages.last()?.place.saturating_add(1);
        Some(encode(&ClientReply::Messages(messages.to_vec())))
    }

    /// Returns the first reply: the subscriber's position, or the fact that the position is no
    /// longer available.
    fn begin(&mut self, feed: &Feed) -> Vec<u8> {
        let first = feed.first(self.subgroup);
        let from = self.next;
        if from < first {
            self.next = first;
            return encode(&ClientReply::Gap { from, to: first });
        }
        self.subscribed(feed)
    }

    /// Encodes the subscriber's position.
    fn subscribed(&mut self, feed: &Feed) -> Vec<u8> {
        let digest = digest_at(feed, self.subgroup, self.next);
        let told = feed.lock();
        let (next, view, level) = (self.next, told.view_number(), self.level);
        let mut before = Vec::new();
        self.stage = SubscriberStage::Waits;
        if let Some(of) = told.subgroups.get(&self.subgroup)
            && next <= of.retained.end()
        {
            self.stage = SubscriberStage::Subscribed;
            before = earlier(of, next);
        }
        encode(&ClientReply::Subscribed { next, digest, earlier: before, view, level })
    }
}
