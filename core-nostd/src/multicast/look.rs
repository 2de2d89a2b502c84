//! Interpretation of a sender's next slot and its silence: new, not new, or something that no
//! correct sender publishes.
//!
//! Requirement: FLT-1.

use super::order::Order;
use super::reach::Reach;
use super::state::{SenderState, SubgroupState};
use super::watched::Impossible;
use crate::ids::Round;
use crate::layout::Delivery;
use crate::smc::SlotCounter;

/// The meaning of a sender's next slot.
pub(crate) enum Told {
    /// The message of that round has arrived.
    Message(Round),
    /// All rounds below this round have been used, but no message has arrived yet.
    Used(Round),
    /// Nothing new.
    Nothing,
    /// Rounds have been used without a message. A [`Reach`] is needed to judge their number.
    Skips,
    /// A value that no correct sender publishes.
    Impossible(Impossible),
}

/// Limits on the progress of a subgroup's senders in one step.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) window: u32,
    /// Whether each message uses the next round and nothing else uses rounds: in an unordered
    /// subgroup, or with a single sender.
    pub(crate) is_exact: bool,
    /// First round that no sender may use.
    pub(crate) rounds: Round,
    /// Round that is delivered next.
    pub(crate) next_round: Round,
    /// Reach of the senders, if it has been needed.
    pub(crate) reach: Option<Reach>,
}

impl Limits {
    /// Returns the limits in a subgroup at present, without a reach.
    #[inline(always)]
    pub(crate) fn of(subgroup: &SubgroupState, order: Order) -> Self {
        Self {
            window: subgroup.window,
            is_exact: order.senders() == 1 || subgroup.delivery == Delivery::Unordered,
            rounds: order.round_limit(),
            next_round: subgroup.next_round,
            reach: None,
        }
    }

    /// Interprets a counter in a sender's next slot.
    #[inline(always)]
    pub(crate) fn told(&self, sender: &SenderState, counter: u64) -> Told {
        match SlotCounter::decode(counter) {
            SlotCounter::Message(round) if round == sender.taken && round < self.rounds => {
                Told::Message(round)
            }
            SlotCounter::Message(round)
                if round < sender.taken && !self.is_older(sender, round) =>
            {
                Told::Nothing
            }
            SlotCounter::UsedBelow(round) if round <= sender.taken && !self.is_exact => {
                Told::Nothing
            }
            counter => self.told_rarely(sender, counter),
        }
    }

    /// Returns whether a counter is [`Told::Nothing`], without judging what else it may be.
    #[inline(always)]
    pub(crate) fn is_nothing(&self, sender: &SenderState, counter: u64) -> bool {
        match SlotCounter::decode(counter) {
            SlotCounter::Message(round) => round < sender.taken && !self.is_older(sender, round),
            SlotCounter::UsedBelow(round) => {
                round == Round::ZERO || round <= sender.taken && !self.is_exact
            }
        }
    }

    /// Returns whether a message of an earlier round is older than the message of the previous lap.
    /// The latter has been delivered here; otherwise its slot would not be free.
    #[inline(always)]
    fn is_older(&self, sender: &SenderState, round: Round) -> bool {
        if self.is_exact {
            round.0.saturating_add(u64::from(self.window)) != sender.taken.0
        } else {
            round > self.next_round
        }
    }

    #[cold]
    #[inline(never)]
    fn told_rarely(&self, sender: &SenderState, counter: SlotCounter) -> Told {
        match counter {
            SlotCounter::Message(round) if round >= sender.taken => {
                self.judged(sender, round, Told::Message(round), Impossible::Round)
            }
            SlotCounter::Message(_) => Told::Impossible(Impossible::OlderMessage),
            SlotCounter::UsedBelow(round) if round > sender.taken => {
                self.judged(sender, round, Told::Used(round), Impossible::Round)
            }
            SlotCounter::UsedBelow(Round::ZERO) => Told::Nothing,
            SlotCounter::UsedBelow(_) => Told::Impossible(Impossible::Round),
        }
    }

    /// Returns `told` if a sender can have used the rounds below `round`.
    #[cold]
    pub(crate) fn judged(
        &self,
        sender: &SenderState,
        round: Round,
        told: Told,
        beyond: Impossible,
    ) -> Told {
        if self.is_exact || round >= self.rounds {
            return Told::Impossible(beyond);
        }
        match self.reach {
            None => Told::Skips,
            Some(reach) if round > reach.most(sender, self.window) => Told::Impossible(beyond),
            Some(_) => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_new_matches_the_full_judgement(
            counter in prop_oneof![0_u64..60, any::<u64>()],
            (taken, next_round) in (0_u64..20, 0_u64..20),
            (window, senders, is_ordered) in (1_u32..8, 1_usize..3, any::<bool>()),
        ) {
            let subgroup = SubgroupState {
                delivery: if is_ordered { Delivery::Ordered } else { Delivery::Unordered },
                window,
                next_round: Round(next_round),
                ..SubgroupState::VACANT
            };
            let sender = SenderState { taken: Round(taken), ..SenderState::VACANT };
            let order = Order::new(senders).expect("there are senders");
            let limits = Limits::of(&subgroup, order);
            let told = matches!(limits.told(&sender, counter), Told::Nothing);
            prop_assert_eq!(limits.is_nothing(&sender, counter), told);
        }
    }
}
