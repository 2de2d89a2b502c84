//! Timestamps: the right to lead a group. A higher timestamp deposes a lower one.
//!
//! A timestamp contains a round, and the rank and incarnation of the replica that chose it.
//! Therefore no two replicas choose the same timestamp, and a replica that has lost its memory
//! chooses none that it used before (TRM-5). Source: TRAM, section 5.1; Paxos' ballots.
//!
//! Requirement: TRM-4.

use crate::ids::Rank;

/// The beginning of a replica's term as leader, in an order on which all replicas agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timestamp(u64);

const RANK_BITS: u32 = 8;
const INCARNATION_BITS: u32 = 16;
/// One bit of a cell is left for a flag next to the timestamp.
const ROUND_MAX: u64 = (1 << (63 - RANK_BITS - INCARNATION_BITS)) - 1;

impl Timestamp {
    /// Timestamp before all others, which has no owner.
    pub const NONE: Self = Self(0);

    /// Creates the timestamp of a round for one replica.
    #[must_use]
    pub fn new(round: u64, incarnation: u16, rank: Rank) -> Self {
        let round = round.min(ROUND_MAX);
        let rank = u64::from(rank.0) & 0xff;
        Self(
            (round << (RANK_BITS + INCARNATION_BITS))
                | (u64::from(incarnation) << RANK_BITS)
                | rank,
        )
    }

    /// Decodes a cell.
    #[must_use]
    pub const fn from_cell(cell: u64) -> Self {
        Self(cell)
    }

    /// Returns the timestamp as the value of a cell.
    #[must_use]
    pub const fn cell(self) -> u64 {
        self.0
    }

    /// Returns the round.
    #[must_use]
    pub const fn round(self) -> u64 {
        self.0 >> (RANK_BITS + INCARNATION_BITS)
    }

    /// Returns the owner's rank, or `None` for the zero timestamp.
    #[must_use]
    pub fn rank(self) -> Option<Rank> {
        let rank = u16::try_from(self.0 & 0xff).unwrap_or(0);
        (self.0 != 0).then_some(Rank(rank))
    }
}

impl core::fmt::Display for Timestamp {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.rank() {
            None => out.write_str("none"),
            Some(rank) => write!(out, "{}.{rank}", self.round()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamp_of_later_round_compares_higher() {
        let low = Timestamp::new(1, 9, Rank(2));
        let high = Timestamp::new(2, 1, Rank(0));
        assert!(low < high && Timestamp::NONE < low);
        assert_ne!(Timestamp::new(1, 1, Rank(0)), Timestamp::new(1, 2, Rank(0)));
        assert_eq!((high.round(), high.rank()), (2, Some(Rank(0))));
        assert_eq!(Timestamp::NONE.rank(), None);
        assert!(Timestamp::new(u64::MAX, u16::MAX, Rank(255)).cell() < 1 << 63);
    }
}
