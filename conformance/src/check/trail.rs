//! One incarnation's deliveries in one group, position by position, as far as a later incarnation
//! may have to replay them.
//!
//! The first positions are stored individually, with their lines. For later positions, up to the
//! last durable one, only a running hash is stored. Positions that may still become durable are
//! stored in a bounded tail. So a finding at a late position does not name the position, and a
//! delivery that becomes durable very late cannot be judged.
//!
//! Invariant: `tail` holds the positions `PLACES_MAX.max(durable)..delivered`, unless `lost` is
//! set.

use std::collections::VecDeque;

/// Maximum number of positions stored individually, and of stored positions that are not durable.
pub(super) const PLACES_MAX: usize = 1 << 14;

/// A delivery at its position: a hash of the message's name, and the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TrailPlace {
    /// A hash of the message's name.
    pub(super) message: u64,
    /// The line.
    pub(super) line: u64,
}

/// A running hash over positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chain(u64);

impl Chain {
    /// Adds one position.
    pub(super) fn add(&mut self, message: u64) {
        let product =
            u128::from(self.0 ^ message).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product as u64) ^ ((product >> 64) as u64).rotate_left(23).wrapping_add(message);
    }
}

/// An incarnation's deliveries in a group.
#[derive(Debug, Default)]
pub(super) struct Trail {
    /// The first positions.
    pub(super) first: Vec<TrailPlace>,
    /// Number of deliveries.
    pub(super) delivered: u64,
    /// Number of durable deliveries.
    pub(super) durable: u64,
    /// Hash of the durable deliveries after the first positions.
    pub(super) chain: Chain,
    /// Whether more deliveries became durable than were still stored.
    pub(super) lost: bool,
    tail: VecDeque<u64>,
}

impl Trail {
    /// Adds a delivery.
    pub(super) fn deliver(&mut self, message: u64, line: u64) {
        self.delivered += 1;
        if self.first.len() < PLACES_MAX {
            self.first.push(TrailPlace { message, line });
            return;
        }
        if self.tail.len() == PLACES_MAX {
            self.tail.pop_front();
        }
        self.tail.push_back(message);
    }

    /// Drops the deliveries that are not durable.
    pub(super) fn keep_durable(&mut self) {
        self.first.truncate(usize::try_from(self.durable).unwrap_or(usize::MAX));
        self.first.shrink_to_fit();
        self.tail = VecDeque::new();
    }

    /// Makes at least the first `count` deliveries durable.
    pub(super) fn secure(&mut self, count: u64) {
        let count = count.min(self.delivered);
        let mut place = self.durable.max(PLACES_MAX as u64);
        while place < count {
            let held_from = self.delivered - self.tail.len() as u64;
            if place < held_from {
                self.lost = true;
                place = held_from;
                continue;
            }
            if let Some(message) = self.tail.pop_front() {
                self.chain.add(message);
            }
            place += 1;
        }
        self.durable = self.durable.max(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = 3 * PLACES_MAX as u64;

    fn chain(from: u64, to: u64) -> Chain {
        let mut chain = Chain::default();
        (from..to).for_each(|message| chain.add(message));
        chain
    }

    #[test]
    fn durable_hash_is_independent_of_report_times() {
        let mut trail = Trail::default();
        for message in 0..FAR {
            trail.deliver(message, message + 1);
            if message % 1000 == 7 {
                trail.secure(message - 5);
            }
        }
        trail.secure(FAR - 3);
        assert_eq!((trail.durable, trail.lost), (FAR - 3, false));
        assert_eq!(trail.chain, chain(PLACES_MAX as u64, FAR - 3));
        trail.secure(5);
        assert_eq!(trail.durable, FAR - 3, "it never falls");
    }

    #[test]
    fn delivery_reported_durable_too_late_is_untracked() {
        let mut trail = Trail::default();
        (0..FAR).for_each(|message| trail.deliver(message, 1));
        assert!(!trail.lost);
        trail.secure(FAR);
        assert!(trail.lost && trail.tail.is_empty());
        assert_eq!(trail.first.len(), PLACES_MAX);
    }

    #[test]
    fn delivery_order_changes_the_hash() {
        let mut swapped = Chain::default();
        [1, 0].into_iter().for_each(|message| swapped.add(message));
        assert_ne!(swapped, chain(0, 2));
        assert_ne!(chain(0, 2), chain(0, 1));
    }
}
