//! What a slot's counter says. One cell says everything, so no count can overtake a message
//! (SMC-5).

use crate::ids::Round;

/// A slot's counter, decoded.
///
/// A reader looks only at a sender's next slot. There, a message is new if its round is at least
/// the rounds already taken, a marker is new if it is more, and anything else is from the previous
/// lap.
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
    /// `2*round + 1`: the message of that round is here.
    Message(Round),
    /// `2*round`: all the sender's rounds below are used, and no message is here yet.
    UsedBelow(Round),
}

impl SlotCounter {
    /// Reads a counter. Every number is one.
    #[inline]
    #[must_use]
    pub const fn decode(counter: u64) -> Self {
        let round = Round(counter >> 1);
        if counter & 1 == 1 { Self::Message(round) } else { Self::UsedBelow(round) }
    }

    /// The number, or nothing where the round needs all 64 bits.
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
