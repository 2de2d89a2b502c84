//! How a peer learns the key with which it may write to a region, and how it stops using a key.
//!
//! The owner creates a new key at each grant, and revokes the key together with the right. Changes
//! are sent to the peer as notices, over the rows' connection:
//!
//! | notice | from | meaning |
//! |---|---|---|
//! | `KeyLow`, `KeyHigh` | the owner | write with this key: two halves of 16 bits |
//! | `KeyGone` | the owner | the right is revoked |
//! | `KeyTaken` | the peer | the next announcement may be sent |
//!
//! The device alone protects the memory: it refuses a revoked key. The notices keep a correct peer
//! from trying.
//!
//! # Invariants
//! - At most one announcement per region is in flight, so two receives are enough for it. Changes
//!   during that time are announced afterwards, but only the last of them.
//! - A peer forgets its key when the region's connection is re-established, and ignores a key that
//!   was announced for another epoch. So a revoked key is never used in a later epoch, and its
//!   number may be reused in that epoch.
//! - Within one epoch, no key is reused: see [`EndedKeys`].

use super::Notice;
use super::epoch::tag;

/// The owner's announcements of a region's key to one peer.
#[derive(Debug, Default)]
pub(crate) struct Announcer {
    /// The key that the peer must eventually know.
    wanted: Option<u32>,
    /// Whether that key has yet to be announced, after the announcement in flight.
    is_due: bool,
    stage: KeyStage,
    /// The last key of which at least a half has been sent.
    sent: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum KeyStage {
    /// No announcement is in flight.
    #[default]
    Idle,
    /// The first half has been sent, and the second follows.
    Half { key: u32, tag: u8 },
    /// Both halves have been sent, but no answer has arrived.
    Sent,
}

impl Announcer {
    /// Sets the key that the peer is to know, or `None` for no key.
    pub(crate) const fn tell(&mut self, key: Option<u32>) {
        self.wanted = key;
        self.is_due = true;
    }

    /// Returns the next notice, if one is to be sent in this epoch.
    pub(crate) const fn next(&self, region: u8, epoch: u32) -> Option<Notice> {
        match (self.stage, self.wanted) {
            (KeyStage::Half { key, tag }, _) => {
                Some(Notice::KeyHigh { region, tag, bits: split(key).1 })
            }
            (KeyStage::Idle, Some(key)) if self.is_due => {
                Some(Notice::KeyLow { region, tag: tag(epoch), bits: split(key).0 })
            }
            (KeyStage::Idle, None) if self.is_due => Some(Notice::KeyGone { region }),
            (KeyStage::Idle | KeyStage::Sent, _) => None,
        }
    }

    /// Records that the notice from [`Announcer::next`] has been sent.
    pub(crate) const fn sent(&mut self, epoch: u32) {
        self.stage = match (self.stage, self.wanted) {
            (KeyStage::Idle, Some(key)) => {
                self.is_due = false;
                self.sent = Some(key);
                KeyStage::Half { key, tag: tag(epoch) }
            }
            (KeyStage::Idle, None) => {
                self.is_due = false;
                KeyStage::Sent
            }
            (KeyStage::Half { .. } | KeyStage::Sent, _) => KeyStage::Sent,
        };
    }

    /// Returns whether the peer may know this key, the last one to be announced.
    pub(crate) fn may_be_known(&self, key: u32) -> bool {
        self.sent == Some(key)
    }

    /// Handles the peer's answer. Returns `false` if nothing was in flight.
    pub(crate) const fn answered(&mut self) -> bool {
        let is_expected = matches!(self.stage, KeyStage::Sent);
        if is_expected {
            self.stage = KeyStage::Idle;
        }
        is_expected
    }
}

/// A key that an owner has given this member for a region.
#[derive(Debug, Default)]
pub(crate) struct Holder {
    key: Option<u32>,
    low: Option<u16>,
    owes_answer: bool,
}

impl Holder {
    /// Returns the key to use for writes.
    pub(crate) const fn key(&self) -> Option<u32> {
        self.key
    }

    /// Forgets the key, because the connection is being re-established.
    pub(crate) const fn forget(&mut self) {
        self.key = None;
    }

    /// Handles a notice from the owner in this end's current epoch. Returns `None` if the notice
    /// violates the protocol, and otherwise whether there is a new key.
    pub(crate) fn hear(&mut self, notice: Notice, epoch: u32) -> Option<bool> {
        if self.owes_answer {
            return None;
        }
        match notice {
            Notice::KeyLow { bits, .. } if self.low.is_none() => {
                self.low = Some(bits);
                Some(false)
            }
            Notice::KeyHigh { tag: told, bits, .. } => {
                let low = self.low.take()?;
                self.owes_answer = true;
                // A key for another epoch will be announced again for this epoch.
                self.key = (told == tag(epoch)).then(|| join(low, bits));
                Some(self.key.is_some())
            }
            Notice::KeyGone { .. } if self.low.is_none() => {
                self.key = None;
                self.owes_answer = true;
                Some(false)
            }
            _ => None,
        }
    }

    /// Returns whether the owner must be told that it may send the next announcement.
    pub(crate) const fn owes_answer(&self) -> bool {
        self.owes_answer
    }

    /// Records that the owner has been told.
    pub(crate) const fn answer_sent(&mut self) {
        self.owes_answer = false;
    }
}

/// Keys that one peer knew and that have been revoked since its connection was last re-established.
/// Writes with these keys may be in flight. Each entry required an announcement, so the list does
/// not grow faster than the peer answers.
#[derive(Debug, Default)]
pub(crate) struct EndedKeys(Vec<u32>);

/// Maximum number of remembered keys. Before there are more, the connection is re-established.
const ENDED_MAX: usize = 64;

impl EndedKeys {
    /// Creates an empty list and allocates all its memory.
    pub(crate) fn new() -> Self {
        Self(Vec::with_capacity(ENDED_MAX))
    }

    /// Records that a key has been revoked. There is room if the connection is re-established
    /// whenever the list is full.
    pub(crate) fn push(&mut self, key: u32) {
        if !self.is_full() {
            self.0.push(key);
        }
    }

    /// Returns whether the connection must be re-established before there can be another key.
    pub(crate) const fn is_full(&self) -> bool {
        self.0.len() >= ENDED_MAX
    }

    /// Returns whether a write with this key may be in flight without the right to write.
    pub(crate) fn contains(&self, key: u32) -> bool {
        self.0.contains(&key)
    }

    /// Forgets the keys after the connection has been re-established, because no earlier write is
    /// accepted any more.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[allow(clippy::as_conversions, reason = "halves, in a const fn")]
const fn split(key: u32) -> (u16, u16) {
    (key as u16, (key >> 16) as u16)
}

fn join(low: u16, high: u16) -> u32 {
    u32::from(high) << 16 | u32::from(low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::epoch;
    use super::*;

    /// Sends and handles due notices. Returns whether there were any.
    fn carry(from: &mut Announcer, to: &mut Holder, epochs: (u32, u32)) -> bool {
        let Some(notice) = from.next(3, epochs.0) else { return false };
        from.sent(epochs.0);
        let arrived = Notice::decode(notice.encode()).expect("a notice");
        assert_eq!(arrived, notice);
        to.hear(arrived, epochs.1).expect("as agreed");
        true
    }

    fn answer(from: &mut Announcer, to: &mut Holder) {
        if to.owes_answer() {
            to.answer_sent();
            assert!(from.answered());
        }
    }

    #[test]
    fn key_arrives_in_halves_and_is_revoked_immediately() {
        let (mut owner, mut peer) = (Announcer::default(), Holder::default());
        assert_eq!(owner.next(3, 7), None);
        owner.tell(Some(0xdead_beef));
        assert!(!owner.may_be_known(0xdead_beef));
        assert!(carry(&mut owner, &mut peer, (7, 7)));
        assert!(owner.may_be_known(0xdead_beef));
        assert_eq!(peer.key(), None, "a half is nothing");
        assert!(carry(&mut owner, &mut peer, (7, 7)));
        assert_eq!(peer.key(), Some(0xdead_beef));
        owner.tell(None);
        assert!(!carry(&mut owner, &mut peer, (7, 7)), "one at a time");
        answer(&mut owner, &mut peer);
        assert!(carry(&mut owner, &mut peer, (7, 7)));
        assert_eq!(peer.key(), None);
    }

    #[test]
    fn key_of_another_epoch_is_ignored() {
        let (mut owner, mut peer) = (Announcer::default(), Holder::default());
        owner.tell(Some(5));
        while carry(&mut owner, &mut peer, (7, 8)) {}
        assert_eq!(peer.key(), None);
        // The owner learns of the epoch, and announces the key again.
        owner.tell(Some(5));
        answer(&mut owner, &mut peer);
        while carry(&mut owner, &mut peer, (8, 8)) {}
        assert_eq!(peer.key(), Some(5));
        peer.forget();
        assert_eq!(peer.key(), None);
    }

    #[test]
    fn key_protocol_violations_are_detected() {
        let high = Notice::KeyHigh { region: 3, tag: 0, bits: 1 };
        let low = Notice::KeyLow { region: 3, tag: 0, bits: 1 };
        let gone = Notice::KeyGone { region: 3 };
        assert_eq!(Holder::default().hear(high, 0), None, "without a first half");
        let mut peer = Holder::default();
        assert_eq!(peer.hear(low, 0), Some(false));
        assert_eq!(peer.hear(low, 0), None, "twice");
        assert_eq!(peer.hear(gone, 0), None, "between the halves");
        assert_eq!(peer.hear(high, 0), Some(true));
        assert_eq!(peer.hear(low, 0), None, "before the answer");
        assert_eq!(Holder::default().hear(Notice::Ring, 0), None);
        assert!(!Announcer::default().answered());
    }

    #[test]
    fn revoked_keys_are_remembered_until_reconnection() {
        let mut ended = EndedKeys::new();
        let mut key = 100;
        while !ended.is_full() {
            assert!(!ended.contains(key));
            ended.push(key);
            assert!(ended.contains(key));
            key += 1;
        }
        assert_eq!(key, 164);
        ended.clear();
        assert!(!ended.contains(100) && !ended.is_full());
    }

    proptest! {
        /// For any sequence of grants, revocations and new connections, notices arrive in order,
        /// and at most two are in flight.
        #[test]
        fn latest_key_arrives_and_expires_with_its_epoch(
            deeds in proptest::collection::vec(0_u8..8, 1..200),
        ) {
            let (mut owner, mut peer) = (Announcer::default(), Holder::default());
            let (mut owner_epoch, mut peer_epoch) = (0, 0);
            let mut wire = std::collections::VecDeque::new();
            let mut current: Option<u32> = None;
            // Holds each key with the epoch in which it was given.
            let mut given = Vec::new();
            let mut next_key = 0x1_0000;
            let deeds = deeds.into_iter().chain(std::iter::repeat_n(7, 20));
            for deed in deeds {
                match deed {
                    0 => {
                        next_key += 0x1_0003;
                        current = Some(next_key);
                        owner.tell(current);
                    }
                    1 => {
                        current = None;
                        owner.tell(None);
                    }
                    // The peer re-establishes the connection, and the owner learns of that later.
                    2 if peer_epoch == owner_epoch => {
                        peer_epoch = epoch::next(peer_epoch);
                        peer.forget();
                    }
                    3 if peer_epoch != owner_epoch => {
                        owner_epoch = peer_epoch;
                        if current.is_some() {
                            owner.tell(current);
                        }
                    }
                    4 => {
                        if let Some(notice) = owner.next(3, owner_epoch) {
                            owner.sent(owner_epoch);
                            wire.push_back(notice);
                        }
                    }
                    5 => {
                        if let Some(notice) = wire.pop_front() {
                            prop_assert!(peer.hear(notice, peer_epoch).is_some());
                        }
                    }
                    6 => answer(&mut owner, &mut peer),
                    _ => {
                        owner_epoch = peer_epoch;
                        if current.is_some() {
                            owner.tell(current);
                        }
                        for _ in 0..4 {
                            while let Some(notice) = owner.next(3, owner_epoch) {
                                owner.sent(owner_epoch);
                                wire.push_back(notice);
                            }
                            while let Some(notice) = wire.pop_front() {
                                prop_assert!(peer.hear(notice, peer_epoch).is_some());
                            }
                            answer(&mut owner, &mut peer);
                        }
                        prop_assert_eq!(peer.key(), current);
                    }
                }
                if let Some(key) = current {
                    given.push((key, owner_epoch));
                }
                prop_assert!(wire.len() <= 2);
                if let Some(key) = peer.key() {
                    prop_assert!(given.contains(&(key, peer_epoch)), "a key of another epoch");
                }
            }
        }
    }
}
