//! The reason why a group ended before it was closed, and its encoding in a cell.
//!
//! Requirement: RDM-6.

use crate::fabric::LossCause;
use crate::ids::Rank;

/// The cause of a member's failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Cause {
    /// A fabric reported the member as lost, or the member misbehaved.
    Lost(LossCause),
    /// The member's application had no memory for a message.
    NoMemory,
    /// The member's own fabric refused a post that it should accept.
    Fabric,
}

/// The reason why a group ended: the first failure that this member learned of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Failure {
    /// Rank of the failed member in the view.
    pub member: Rank,
    /// Its fault.
    pub cause: Cause,
}

impl core::fmt::Display for Failure {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the group ended at member ")?;
        core::fmt::Display::fmt(&self.member, out)?;
        out.write_str(": ")?;
        match self.cause {
            Cause::Lost(cause) => core::fmt::Display::fmt(&cause, out),
            Cause::NoMemory => out.write_str("it did not have enough memory for a message"),
            Cause::Fabric => out.write_str("its fabric refused a post"),
        }
    }
}

/// The lowest byte is one if there is a failure; the cause and the rank follow.
const CAUSE_SHIFT: u32 = 8;
const RANK_SHIFT: u32 = 16;

impl Failure {
    pub(super) fn encode(self) -> u64 {
        let cause: u64 = match self.cause {
            Cause::Lost(LossCause::Exited) => 1,
            Cause::Lost(LossCause::Left) => 2,
            Cause::Lost(LossCause::Unreachable) => 3,
            Cause::Lost(LossCause::Denied) => 4,
            Cause::Lost(LossCause::Misbehaved) => 5,
            Cause::NoMemory => 6,
            Cause::Fabric => 7,
        };
        let rank = u64::from(self.member.0);
        1 | (cause << CAUSE_SHIFT) | (rank << RANK_SHIFT)
    }

    /// Decodes a peer's cell, or returns `None` if no correct member publishes that value.
    pub(super) fn decode(cell: u64) -> Option<Self> {
        let cause = match (cell >> CAUSE_SHIFT) & 0xff {
            1 => Cause::Lost(LossCause::Exited),
            2 => Cause::Lost(LossCause::Left),
            3 => Cause::Lost(LossCause::Unreachable),
            4 => Cause::Lost(LossCause::Denied),
            5 => Cause::Lost(LossCause::Misbehaved),
            6 => Cause::NoMemory,
            7 => Cause::Fabric,
            _ => return None,
        };
        let member = Rank(u16::try_from(cell >> RANK_SHIFT).ok()?);
        (cell & 0xff == 1).then_some(Self { member, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_failure_encodings_decode() {
        let lost = [
            LossCause::Exited,
            LossCause::Left,
            LossCause::Unreachable,
            LossCause::Denied,
            LossCause::Misbehaved,
        ];
        let causes = lost.into_iter().map(Cause::Lost).chain([Cause::NoMemory, Cause::Fabric]);
        for cause in causes {
            for rank in [0, 1, u16::MAX] {
                let failure = Failure { member: Rank(rank), cause };
                assert_eq!(Failure::decode(failure.encode()), Some(failure));
            }
        }
        for cell in [0, 1, 0x0101_0001, 0x0801, 1 << 40, u64::MAX] {
            let decoded = Failure::decode(cell);
            assert!(
                decoded.is_none_or(|failure| failure.encode() == cell),
                "{cell:x}: {decoded:?}"
            );
        }
        assert_eq!(Failure::decode(0), None);
    }
}
