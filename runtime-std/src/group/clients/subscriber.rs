//! A client that subscribes, at the member that it is at: it is sent from what the member keeps.
//!
//! # Invariants
//! - What waits for it is bounded: [`CHUNK_BYTES`], or one message, beside what the system holds.

use std::time::{Duration, Instant};

use tramontane_control::client_messages::{ClientRefusal, ClientReply, encode};
use tramontane_core::ids::SubgroupId;

use super::connection::Cut;
use super::feed::Feed;

/// Bytes of messages that are handed to the system at a time.
pub(super) const CHUNK_BYTES: usize = 64 << 10;

/// A subscriber for which something waits, and that takes nothing for so long, is cut.
const STALL_MAX: Duration = Duration::from_secs(10);

/// One subscriber.
#[derive(Debug)]
pub(super) struct Subscriber {
    subgroup: SubgroupId,
    /// The place that it gets next.
    next: u64,
    is_told: bool,
    /// Since when it has taken nothing of what waits, and how much that is.
    stalled: Option<(Instant, usize)>,
}

impl Subscriber {
    /// One that begins at a place, or with what comes next.
    pub(super) fn new(subgroup: SubgroupId, from: Option<u64>, feed: &Feed) -> Self {
        let told = feed.lock();
        let end = told.subgroups.get(&subgroup).map_or(0, |of| of.retained.end());
        Self { subgroup, next: from.unwrap_or(end), is_told: false, stalled: None }
    }

    pub(super) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// For how long it has taken nothing.
    pub(super) fn stalled_for(&self, now: Instant) -> Duration {
        self.stalled.map_or(Duration::ZERO, |(since, _)| now.duration_since(since))
    }

    /// What it is to be sent next, as bytes, if there is something.
    pub(super) fn take(&mut self, feed: &Feed) -> Result<Option<Vec<u8>>, Cut> {
        if !self.is_told {
            return Ok(Some(self.begin(feed)));
        }
        let told = feed.lock();
        let Some(of) = told.subgroups.get(&self.subgroup) else { return Ok(None) };
        if self.next < of.retained.first() {
            return Err(Cut::Refused(ClientRefusal::TooSlow));
        }
        let messages = of.retained.from(self.next, u64::MAX, CHUNK_BYTES);
        let Some(last) = messages.last() else { return Ok(None) };
        self.next = last.place.saturating_add(1);
        Ok(Some(encode(&ClientReply::Messages(messages))))
    }

    /// Its first messages: the place, or that the place is gone.
    fn begin(&mut self, feed: &Feed) -> Vec<u8> {
        let first = feed.lock().subgroups.get(&self.subgroup).map_or(0, |of| of.retained.first());
        let from = self.next;
        if from < first {
            self.next = first;
            return encode(&ClientReply::Gap { from, to: first });
        }
        self.is_told = true;
        encode(&ClientReply::Subscribed { next: from })
    }

    /// Notes how much waits for it. An error if it has taken nothing of that for too long.
    pub(super) fn watch(&mut self, unsent: usize, now: Instant) -> Result<(), Cut> {
        match self.stalled {
            _ if unsent == 0 => self.stalled = None,
            Some((since, before)) if before == unsent => {
                if now.duration_since(since) >= STALL_MAX {
                    return Err(Cut::Refused(ClientRefusal::TooSlow));
                }
            }
            _ => self.stalled = Some((now, unsent)),
        }
        Ok(())
    }
}
