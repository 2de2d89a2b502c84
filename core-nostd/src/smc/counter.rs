//! The content of a slot's counter. It is a single cell, so no count can overtake a message
//! (SMC-5).

use crate::ids::Round;

/// A decoded slot counter.
///
/// A reader examines only a sender's next slot. In that slot, a message is new if its round is at
/// least the number of rounds already received, a marker is new if it is greater than that number,
/// and anything else is from the previous lap.
///
/// ```
/// use tramontane_core::{ids::Round, smc::SlotCounter};
/// assert_eq!(SlotCounter::decode(7), SlotCounter::Message(Round(3)));
/// assert_eq!(SlotCounter::decode(6), SlotCounter::UsedBelow(Round(3)));
/// assert_eq!(SlotCounter::Message(Round(3)).encode(), Some(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SlotCounter {
    /// `2*round + 1`: the slot contains the message of that round.
    Message(Round),
    /// `2*round`: all the sender's earlier rounds have been used, and the slot has no message yet.
    UsedBelow(Round),
}

impl SlotCounter {
    /// Decodes a counter. Every number is valid.
    #[inline]
    #[must_use]
    pub const fn decode(counter: u64) -> Self {
        let round = Round(counter >> 1);
        if counter & 1 == 1 { Self::Message(round) } else { Self::UsedBelow(round) }
    }

    /// Returns the number of a message whose round is below a
    /// [round limit](crate::multicast::Order::round_limit), so that it fits.
    #[inline]
    pub(crate) const fn of_message(round: Round) -> u64 {
        round.0.wrapping_mul(2) | 1
    }

    /// Returns the number of the message of the round after that of the message numbered `counter`.
    #[inline]
    pub(crate) const fn after_message(counter: u64) -> u64 {
        counter.wrapping_add(2)
    }

    /// Returns the round in the counter: the message's round, or the first unused one.
    #[inline]
    pub(crate) const fn round(self) -> Round {
        match self {
            Self::Message(round) | Self::UsedBelow(round) => round,
        }
    }

    /// Returns the number, or `None` if the round needs all 64 bits.
    #[inline]
    #[must_use]
    pub const fn encode(self) -> Option<u64> {
        match self {
            Self::Message(round) => match round.0.checked_mul(2) {
                Some(even) => Some(even | 1),
                None => None,
            },
            Self::UsedBelow(round) => round.0.checked_mul(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first round that has no counter: twice its number does not fit.
    const FIRST_WITHOUT: u64 = 1 << 63;

    proptest! {
        /// SMC-5: the encoding is one to one.
        #[test]
        fn slot_counter_round_trips(counter: u64) {
            prop_assert_eq!(SlotCounter::decode(counter).encode(), Some(counter));
        }

        #[test]
        fn slot_counter_encodes_twice_its_round(
            round in 0..FIRST_WITHOUT,
        ) {
            let twice = u128::from(round).wrapping_mul(2);
            let encoded = |counter: SlotCounter| counter.encode().map(u128::from);
            prop_assert_eq!(encoded(SlotCounter::UsedBelow(Round(round))), Some(twice));
            let of_message = encoded(SlotCounter::Message(Round(round)));
            prop_assert_eq!(of_message, Some(twice.wrapping_add(1)));
            let number = u128::from(SlotCounter::of_message(Round(round)));
            prop_assert_eq!(of_message, Some(number));
            let after = SlotCounter::after_message(SlotCounter::of_message(Round(round)));
            prop_assert_eq!(after, SlotCounter::of_message(Round(round.wrapping_add(1))));
            let named = [SlotCounter::UsedBelow(Round(round)), SlotCounter::Message(Round(round))];
            prop_assert_eq!(named.map(SlotCounter::round), [Round(round); 2]);
        }

        #[test]
        fn round_above_the_limit_has_no_counter(round in FIRST_WITHOUT..) {
            prop_assert_eq!(SlotCounter::Message(Round(round)).encode(), None);
            prop_assert_eq!(SlotCounter::UsedBelow(Round(round)).encode(), None);
        }
    }

    /// The last round below that one has counters: the two greatest possible.
    #[test]
    fn last_encodable_round_has_the_largest_counters() {
        let last = Round(FIRST_WITHOUT.wrapping_sub(1));
        assert_eq!(SlotCounter::UsedBelow(last).encode(), Some(u64::MAX.wrapping_sub(1)));
        assert_eq!(SlotCounter::Message(last).encode(), Some(u64::MAX));
        assert_eq!(SlotCounter::Message(last.next()).encode(), None);
    }
}
