//! A member's record of every delivery: the digest, the counts, the latency, and whether each
//! message is the one that was sent.
//!
//! # The digest
//! The digest is XXH3 with 128 bits over all delivered messages in order: for each, the sender's id
//! and the length in bytes (4 bytes each, little-endian), then the payload. It guards against
//! mistakes, not against forgery. Every message is also compared with the record that its sender
//! was due to send, so equal digests mean that all members delivered the same messages in the same
//! order.

use std::collections::{BTreeMap, VecDeque};

use xxhash_rust::xxh3::Xxh3;

use super::input::Records;
use super::messages::{Deliveries, LatencyCount, Wrong};
use super::share::Share;
use tramontane_local::clock::now_ns;
use tramontane_runtime::group::{Application, Message, Messages};

/// Size in bytes of the buffer for small messages. They are hashed together, because the hash is
/// fastest on long inputs.
const GATHER: usize = 4096;

/// Payloads above this size are hashed in place, because copying them costs more than hashing a
/// short input.
const GATHER_EACH: usize = 256;

/// Size in bytes of the header before each payload.
const FRAME: usize = 8;

/// Number of leading bits kept of a latency, which gives a precision of about one in a thousand.
const LATENCY_BITS: u32 = 10;

/// The digest of a sequence of messages.
pub(super) struct SequenceDigest {
    hash: Xxh3,
    gathered: Vec<u8>,
}

impl SequenceDigest {
    pub(super) fn new() -> Self {
        Self { hash: Xxh3::new(), gathered: Vec::with_capacity(GATHER) }
    }

    /// Adds the next message.
    #[inline]
    pub(super) fn message(&mut self, sender: u32, payload: &[u8]) {
        if self.gathered.len() + FRAME + GATHER_EACH > GATHER {
            self.flush();
        }
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        let frame = u64::from(sender) | u64::from(length) << 32;
        self.gathered.extend_from_slice(&frame.to_le_bytes());
        if payload.len() <= GATHER_EACH {
            self.gathered.extend_from_slice(payload);
        } else {
            self.flush();
            self.hash.update(payload);
        }
    }

    fn flush(&mut self) {
        self.hash.update(&self.gathered);
        self.gathered.clear();
    }

    /// Returns the digest of all messages so far.
    pub(super) fn text(&mut self) -> String {
        self.flush();
        format!("{:032x}", self.hash.digest128())
    }
}

/// Number of occurrences of each latency.
pub(super) type Counts = BTreeMap<u64, u64>;

/// Clears the low bits of a latency in nanoseconds.
fn cut(latency_ns: u64) -> u64 {
    let bits = (u64::BITS - latency_ns.leading_zeros()).saturating_sub(LATENCY_BITS);
    latency_ns >> bits << bits
}

/// Latencies from commit to local delivery. Messages that were committed together are recorded
/// together.
#[derive(Debug)]
struct Latencies {
    /// Commit time and number of messages in flight.
    under_way: VecDeque<(u64, u64)>,
    /// Number of occurrences of each latency, rounded down to its leading bits.
    seen: Counts,
    max_ns: u64,
}

impl Latencies {
    fn new(window: usize) -> Self {
        Self {
            // At most one window of messages is in flight.
            under_way: VecDeque::with_capacity(window),
            seen: Counts::new(),
            max_ns: 0,
        }
    }

    #[inline]
    fn committed(&mut self, at_ns: u64, count: u64) {
        match self.under_way.back_mut() {
            Some((then, counted)) if *then == at_ns => *counted += count,
            _ => self.under_way.push_back((at_ns, count)),
        }
    }

    #[inline]
    fn delivered(&mut self, now_ns: u64, mut count: u64) {
        while count > 0 {
            let Some((then, counted)) = self.under_way.front_mut() else { return };
            let taken = count.min(*counted);
            let latency = now_ns.saturating_sub(*then);
            *counted -= taken;
            count -= taken;
            if *counted == 0 {
                self.under_way.pop_front();
            }
            *self.seen.entry(cut(latency)).or_default() += taken;
            self.max_ns = self.max_ns.max(latency);
        }
    }
}

/// A member's notes.
pub(super) struct Ledger<'r> {
    records: Records<'r>,
    /// The next records that each sender is due to send.
    shares: Vec<Share>,
    /// The local node's id.
    own: u32,
    digest: SequenceDigest,
    latencies: Latencies,
    /// Number of messages delivered.
    pub(super) delivered: u64,
    bytes: u64,
    wrong: Option<Wrong>,
    /// Time of the last delivery.
    pub(super) delivered_at_ns: u64,
}

impl<'r> Ledger<'r> {
    /// Creates a ledger for `own`. The senders are the first nodes.
    pub(super) fn new(
        records: Records<'r>,
        own: u32,
        senders: usize,
        total: u64,
        window: usize,
    ) -> Self {
        let shares =
            (0..senders).map(|sender| Share::new(sender, senders, records.len(), total)).collect();
        Self {
            records,
            shares,
            own,
            digest: SequenceDigest::new(),
            latencies: Latencies::new(window),
            delivered: 0,
            bytes: 0,
            wrong: None,
            delivered_at_ns: 0,
        }
    }

    /// Records that `count` local messages were committed, none of them before `at_ns`.
    #[inline]
    pub(super) fn committed(&mut self, at_ns: u64, count: u64) {
        self.latencies.committed(at_ns, count);
    }

    #[inline]
    fn note(&mut self, message: &Message<'_>) {
        let sender = message.sender.get();
        self.digest.message(sender, message.payload);
        self.bytes += message.payload.len() as u64;
        let is_right = match self.shares.get_mut(sender as usize) {
            Some(share) => {
                let expected = share.peek();
                share.advance();
                expected.is_some_and(|index| self.records.get(index) == message.payload)
            }
            None => false,
        };
        if !is_right && self.wrong.is_none() {
            self.wrong = Some(Wrong { place: message.place.get(), sender });
        }
    }

    /// Returns the report of the whole run.
    pub(super) fn report(&mut self, sent: u64, nulls: u64, start_ns: u64) -> Deliveries {
        let seen = self.latencies.seen.iter();
        let latencies =
            seen.map(|(&latency_ns, &count)| LatencyCount { latency_ns, count }).collect();
        Deliveries {
            sent,
            delivered: self.delivered,
            bytes: self.bytes,
            nulls,
            digest: self.digest.text(),
            wrong: self.wrong,
            start_ns,
            end_ns: self.delivered_at_ns,
            latencies,
            latency_max_ns: self.latencies.max_ns,
        }
    }
}

impl Application for Ledger<'_> {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let now = now_ns();
        let (mut all, mut own) = (0, 0);
        for message in messages {
            all += 1;
            own += u64::from(message.sender.get() == self.own);
            self.note(&message);
        }
        self.delivered += all;
        self.delivered_at_ns = now;
        self.latencies.delivered(now, own);
    }
}

/// Merges the latencies of all members.
pub(super) fn merge<'r>(reports: impl Iterator<Item = &'r Deliveries>) -> Counts {
    let mut all = Counts::new();
    for LatencyCount { latency_ns, count } in reports.flat_map(|report| &report.latencies) {
        *all.entry(*latency_ns).or_default() += count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_128;

    #[test]
    fn digest_does_not_depend_on_buffering() {
        let long = vec![3_u8; 3 * GATHER];
        let small = vec![4_u8; GATHER_EACH + 1];
        let mut messages: Vec<(u32, &[u8])> =
            vec![(0, b"abc"), (1, b""), (2, &long), (0, &small), (7, b"x"), (1, &small[1..])];
        messages.extend((0..40).map(|length| (3, &small[..GATHER_EACH - length])));
        let (mut digest, mut plain) = (SequenceDigest::new(), Vec::new());
        for (sender, payload) in messages {
            digest.message(sender, payload);
            plain.extend_from_slice(&sender.to_le_bytes());
            plain.extend_from_slice(&(payload.len() as u32).to_le_bytes());
            plain.extend_from_slice(payload);
        }
        assert_eq!(digest.text(), format!("{:032x}", xxh3_128(&plain)));
    }

    #[test]
    fn moving_a_message_boundary_changes_the_digest() {
        let digest = |messages: [(u32, &[u8]); 2]| {
            let mut digest = SequenceDigest::new();
            messages.iter().for_each(|(sender, payload)| digest.message(*sender, payload));
            digest.text()
        };
        let all = [
            digest([(0, b"ab"), (1, b"c")]),
            digest([(0, b"a"), (1, b"bc")]),
            digest([(1, b"ab"), (0, b"c")]),
            digest([(1, b"c"), (0, b"ab")]),
        ];
        for (index, one) in all.iter().enumerate() {
            assert!(!all[..index].contains(one));
        }
    }

    #[test]
    fn each_latency_is_measured_from_its_commit() {
        let mut latencies = Latencies::new(8);
        latencies.committed(100, 2);
        latencies.committed(100, 1);
        latencies.committed(200, 2);
        latencies.delivered(300, 4);
        latencies.delivered(1200, 1);
        assert_eq!((latencies.seen[&200], latencies.seen[&100]), (3, 1));
        assert_eq!(latencies.max_ns, 1000);
        assert!(latencies.under_way.is_empty());
        // Only messages that were committed here are measured.
        latencies.delivered(2000, 1);
        assert_eq!(latencies.seen.values().sum::<u64>(), 5);
        assert_eq!((cut(1_023), cut(2_001), cut(u64::MAX)), (1_023, 2_000, u64::MAX << 54));
    }
}
