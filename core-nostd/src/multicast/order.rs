//! Rounds, sequence positions and frontiers (ORD-1; Spindle II-B, III-B).
//!
//! Requirement: ORD-4.

use core::num::NonZeroU64;

use crate::check::{Checks, SEALED_MAX};
use crate::ids::{Frontier, Place, Round, SenderRank, u64_from_index};

/// The order arithmetic for a subgroup with a given number of senders.
///
/// ```
/// use tramontane_core::ids::{Place, Round, SenderRank};
/// use tramontane_core::multicast::Order;
/// let order = Order::new(3).unwrap();
/// assert_eq!(order.place(Round(2), SenderRank(1)), Place(7));
/// assert_eq!(order.turn(Place(7)), (Round(2), SenderRank(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Order {
    senders: NonZeroU64,
    round_limit: Round,
}

impl Order {
    /// Creates the order for `senders` senders, or returns `None` if there are none.
    #[must_use]
    pub const fn new(senders: usize) -> Option<Self> {
        match NonZeroU64::new(u64_from_index(senders)) {
            Some(senders) => Some(Self::with_places(senders, u64::MAX >> 2)),
            None => None,
        }
    }

    /// Adapts the order to cells with or without checks. With checks, fewer positions are
    /// available.
    #[must_use]
    pub const fn with_checks(self, checks: Checks) -> Self {
        match checks {
            Checks::Off => self,
            Checks::On => Self::with_places(self.senders, SEALED_MAX >> 2),
        }
    }

    // The quotient is rounded down, and the divisor is not zero.
    #[allow(clippy::integer_division, clippy::arithmetic_side_effects)]
    const fn with_places(senders: NonZeroU64, places: u64) -> Self {
        Self { senders, round_limit: Round(places / senders.get()) }
    }

    /// Returns the number of senders.
    #[must_use]
    pub const fn senders(self) -> u64 {
        self.senders.get()
    }

    /// Returns the first round without sequence positions, which no sender may use. Positions below
    /// it fit in 63 bits, and so do slot counters.
    #[must_use]
    pub const fn round_limit(self) -> Round {
        self.round_limit
    }

    /// Returns the position of a sender's turn in a round: `round * senders + sender`. Saturates
    /// above the limit.
    #[inline]
    #[must_use]
    pub const fn place(self, round: Round, sender: SenderRank) -> Place {
        let start = round.0.saturating_mul(self.senders.get());
        Place(start.saturating_add(u64_from_index(sender.index())))
    }

    /// Returns the round and the sender of a position.
    #[allow(clippy::integer_division)] // The remainder is the other half of the answer.
    #[must_use]
    pub fn turn(self, place: Place) -> (Round, SenderRank) {
        let sender = u16::try_from(place.0 % self.senders).unwrap_or(0);
        (Round(place.0 / self.senders), SenderRank(sender))
    }

    /// Returns the number of a sender's rounds whose positions are below a frontier.
    #[inline]
    pub(crate) fn rounds_below(self, frontier: Frontier, sender: SenderRank) -> Round {
        let (round, next) = self.turn(Place(frontier.0));
        if sender < next { round.next() } else { round }
    }

    /// Returns the received frontier: all positions below it have been received if the given number
    /// of rounds has been received from each sender.
    #[inline]
    #[must_use]
    pub fn frontier(self, rounds: impl Iterator<Item = Round>) -> Frontier {
        let mut frontier = u64::MAX;
        let mut sender = 0_u64;
        // bound: the senders, or the items that the caller passes
        for taken in rounds {
            let missing = taken.0.saturating_mul(self.senders.get()).saturating_add(sender);
            frontier = frontier.min(missing);
            sender = sender.saturating_add(1);
        }
        Frontier(frontier)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::integer_division, clippy::as_conversions)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn order_without_senders_is_refused() {
        assert_eq!(Order::new(0), None);
    }

    proptest! {
        #[test]
        fn turns_and_sequence_positions_convert_both_ways(
            senders in 1_usize..1024,
            place in 0_u64..(1 << 50),
        ) {
            let order = Order::new(senders).expect("at least one");
            let (round, sender) = order.turn(Place(place));
            prop_assert_eq!(order.place(round, sender), Place(place));
            prop_assert!(u64::from(sender.0) < order.senders());
            prop_assert_eq!(order.senders(), senders as u64);
        }

        #[test]
        fn rounds_below_a_frontier_have_earlier_positions(
            (senders, sender) in (1_usize..6).prop_flat_map(|all| (Just(all), 0..all)),
            (round, frontier) in (0_u64..20, 0_u64..100),
        ) {
            let order = Order::new(senders).expect("at least one");
            let sender = SenderRank(u16::try_from(sender).expect("small"));
            let is_below = Round(round) < order.rounds_below(Frontier(frontier), sender);
            prop_assert_eq!(is_below, order.place(Round(round), sender).0 < frontier);
        }

        /// The number of rounds is the largest for which all positions fit.
        #[test]
        fn round_limit_is_largest_with_valid_positions(senders in 1_usize..1024) {
            let of = |places: u64| u128::from(places) + 1;
            let order = Order::new(senders).expect("at least one");
            for (order, places) in
                [(order, u64::MAX >> 2), (order.with_checks(Checks::On), SEALED_MAX >> 2)]
            {
                let used = u128::from(order.round_limit().0) * senders as u128;
                prop_assert!(used < of(places) && used + senders as u128 >= of(places));
            }
        }

        /// A literal reading of ORD-1: counts positions from zero until one is missing.
        #[test]
        fn frontier_is_the_first_missing_position(
            rounds in prop::collection::vec(0_u64..20, 1..8),
        ) {
            let order = Order::new(rounds.len()).expect("at least one");
            let mut naive = 0;
            while rounds[(naive as usize) % rounds.len()] > naive / rounds.len() as u64 {
                naive += 1;
            }
            prop_assert_eq!(order.frontier(rounds.iter().copied().map(Round)), Frontier(naive));
        }

        #[test]
        fn rounds_below_limit_never_overflow_their_encoding(senders in 1_usize..1024) {
            let order = Order::new(senders).expect("at least one");
            let last = Round(order.round_limit().0 - 1);
            let sender = SenderRank(u16::try_from(senders - 1).expect("small"));
            prop_assert!(order.place(last, sender).0 < 1 << 63);
            prop_assert!(crate::smc::SlotCounter::Message(last).encode().is_some());
            let checked = order.with_checks(Checks::On);
            let last = Round(checked.round_limit().0 - 1);
            prop_assert!(checked.place(last, sender).0 < SEALED_MAX);
            let counter = crate::smc::SlotCounter::Message(last).encode();
            prop_assert!(counter.is_some_and(|counter| counter < SEALED_MAX));
        }
    }
}
