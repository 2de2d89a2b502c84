//! What one of two channels does when the other is gone.
//!
//! Two members cannot tell a partner that is dead from a way that is cut: each sees silence. If
//! both go on, there are two orders; if none does, the function is lost with the first failure. So
//! something besides the two must say which of them goes on, or it must be fixed in advance. Each
//! policy gives something up:
//!
//! | policy | who goes on | what it gives up |
//! |---|---|---|
//! | [`Policy::HaltBoth`] | nobody | the function, at the first failure |
//! | [`Policy::Survivor`] | the named channel, and only it | the function, if the named one fails |
//! | [`Policy::Exclusion`] | the channel that a discrete names | it is as safe as the discrete: it must never name both |
//! | [`Policy::Witness`] | the channel that the witness keeps | the function, if channel and witness fail, or the way between them |
//!
//! Requirement: HLT-2.

use crate::ids::Rank;

/// How a pair is to behave. Both channels must have the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Policy {
    /// Both stop.
    HaltBoth = 1,
    /// This channel goes on, and the other one stops.
    Survivor(Rank) = 2,
    /// A discrete from outside says which channel may go on.
    Exclusion = 3,
    /// A third party answers at most one of the two.
    Witness = 4,
}

/// What comes from outside of the pair, as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Discretes {
    /// The channel that may go on, if that is said ([`Policy::Exclusion`]).
    pub may_go_on: Option<Rank>,
    /// The channel that the witness keeps, if it has answered ([`Policy::Witness`]). The witness
    /// never changes its answer.
    pub kept_by_witness: Option<Rank>,
}

/// What a channel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Decision {
    /// It goes on alone.
    GoOnAlone = 1,
    /// It stops for good.
    Halt = 2,
    /// It does nothing yet: what has to come from outside has not come.
    Wait = 3,
}

/// What the channel `own` does once its partner is silent, has restarted, or misbehaves. It is
/// asked again as long as it says [`Decision::Wait`].
#[must_use]
pub fn decide(policy: Policy, own: Rank, discretes: Discretes) -> Decision {
    let named = match policy {
        Policy::HaltBoth => return Decision::Halt,
        Policy::Survivor(rank) => Some(rank),
        Policy::Exclusion => discretes.may_go_on,
        Policy::Witness => discretes.kept_by_witness,
    };
    match named {
        Some(rank) if rank == own => Decision::GoOnAlone,
        Some(_) => Decision::Halt,
        None => Decision::Wait,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the discretes say, as long as they say the same at both channels or nothing at one.
    #[test]
    fn never_do_both_channels_go_on() {
        let (one, other) = (Rank(0), Rank(1));
        let named = [None, Some(one), Some(other)];
        for policy in [Policy::HaltBoth, Policy::Survivor(one), Policy::Exclusion, Policy::Witness]
        {
            let mut goes_on = false;
            for name in named {
                let said = Discretes { may_go_on: name, kept_by_witness: name };
                for late in [said, Discretes::default()] {
                    let both = [decide(policy, one, said), decide(policy, other, late)];
                    assert_ne!(both, [Decision::GoOnAlone; 2], "{policy:?}, {said:?}");
                    goes_on |= both.contains(&Decision::GoOnAlone);
                }
            }
            assert_eq!(goes_on, policy != Policy::HaltBoth, "{policy:?}");
        }
    }
}
