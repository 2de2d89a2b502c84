//! How far senders can be.
//!
//! # Why it holds
//! The first sender that uses a round uses it for a message: a round without one is used only
//! because another sender has used it or a later one (NUL-1). So behind each round there is a
//! message of that round. A message that has not been delivered here holds one of its sender's
//! slots, and each sender has one window of them. Of those, some have been received here; the
//! others are as many rounds as there can be beyond all that were seen. The own messages are all
//! known, and so are those of a sender before its next one.
//!
//! Requirement: FLT-1.

use super::state::{SenderState, Work};
use crate::ids::Round;

/// What was known at one moment of how far senders can be. It holds until something is delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Rounds below it were used by some sender, the own included.
    rounds: Round,
    /// Messages that other senders can have sent, and that were not received here.
    unseen: u64,
}

impl Reach {
    /// The most rounds that a sender can have used before its next message.
    pub(crate) fn most(&self, sender: &SenderState, window: u32) -> Round {
        let of_others = self.unseen.saturating_sub(unseen_of(sender, window));
        Round(self.rounds.max(sender.taken).0.saturating_add(of_others))
    }
}

impl Work<'_, '_> {
    /// How far senders can be now.
    #[cold]
    pub(crate) fn reach(&self) -> Reach {
        let mut reach = Reach { rounds: Round::ZERO, unseen: 0 };
        // bound: the senders
        for sender in self.senders.iter() {
            reach.rounds = reach.rounds.max(sender.taken);
            if sender.rank != self.own_rank {
                let unseen = unseen_of(sender, self.subgroup.window);
                reach.unseen = reach.unseen.saturating_add(unseen);
            }
        }
        reach
    }

    /// The most places that all members together can have come to: with the own messages, which are
    /// all known, where this member sends.
    pub(crate) fn places_max(&self) -> u64 {
        let own = self.subgroup.own.as_ref();
        match own.and_then(|own| Some((self.senders.get(own.rank.index())?, own.rank))) {
            Some((state, rank)) => self.order.place(state.taken, rank).0,
            None => {
                let slots = self.order.senders().saturating_mul(u64::from(self.subgroup.window));
                let rounds = self.subgroup.next_round.0.saturating_add(slots).saturating_add(1);
                rounds.saturating_mul(self.order.senders())
            }
        }
    }

    /// The most places that another member can have delivered. In one view for ever nobody delivers
    /// what this member has not shown to be here; a lone sender shows it by its messages. A view
    /// that ends without this member may end behind what it shows.
    pub(crate) fn delivered_max(&self) -> u64 {
        if self.subgroup.is_fixed && self.order.senders() > 1 {
            self.subgroup.received.0
        } else {
            self.places_max()
        }
    }
}

/// Messages that a sender can have sent and that were not received here.
fn unseen_of(sender: &SenderState, window: u32) -> u64 {
    u64::from(window).saturating_sub(sender.take.since(sender.hand))
}
