//! The reaction of one of two channels when the other fails.
//!
//! Two members cannot distinguish a dead partner from a broken link: each sees only silence. If
//! both continue, there are two orders; if neither continues, the function is lost at the first
//! failure. Therefore either a third party must decide which of them continues, or the survivor
//! must be fixed in advance. Each policy has a drawback:
//!
//! | policy | surviving channel | drawback |
//! |---|---|---|
//! | [`Policy::HaltBoth`] | none | the function is lost at the first failure |
//! | [`Policy::Survivor`] | only the named channel | the function is lost if the named channel fails |
//! | [`Policy::Exclusion`] | the channel that a discrete names | it is only as safe as the discrete, which must never name both |
//! | [`Policy::Witness`] | the channel that the witness keeps | the function is lost if a channel and the witness fail, or the link between them |
//!
//! Requirement: HLT-2.

use crate::ids::Rank;

/// The failure policy of a pair. Both channels must have the same policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Policy {
    /// Both stop.
    HaltBoth = 1,
    /// The channel with this rank continues, and the other one stops.
    Survivor(Rank) = 2,
    /// An external discrete input names the channel that may continue.
    Exclusion = 3,
    /// A witness answers at most one of the two channels.
    Witness = 4,
}

/// The current inputs from outside the pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Discretes {
    /// Channel that may continue, if the input names one ([`Policy::Exclusion`]).
    pub may_go_on: Option<Rank>,
    /// Channel that the witness keeps, if it has answered ([`Policy::Witness`]). The witness never
    /// changes its answer.
    pub kept_by_witness: Option<Rank>,
}

/// The action that a channel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum Decision {
    /// The channel continues without its partner.
    GoOnAlone = 1,
    /// The channel stops for good.
    Halt = 2,
    /// The channel does nothing yet, because the external input has not arrived.
    Wait = 3,
}

/// Decides what the channel `own` does once its partner is silent, has restarted or misbehaves.
/// Repeat the call as long as it returns [`Decision::Wait`].
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

    /// Tries all combinations of discretes that are equal at both channels or missing at one of
    /// them.
    #[test]
    fn policy_never_lets_both_channels_continue() {
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
