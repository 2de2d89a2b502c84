//! Bounds on the progress of senders.
//!
//! # Why it holds
//! The first sender that uses a round uses it for a message, because a round is used without a
//! message only after another sender has used it or a later one (NUL-1). So for each used round
//! there is a message of that round. A message that has not been delivered here occupies one of its
//! sender's slots, and each sender has one window of slots. Some of those messages have been
//! received here. The number of messages that have not been received bounds the number of used
//! rounds beyond those seen. This node's own messages are all known, and so are each sender's
//! messages before its next one.
//!
//! Requirement: FLT-1.

use super::state::{SenderState, Work};
use crate::ids::Round;

/// The bound on senders' progress as known at one moment. It holds until something else is
/// delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    /// Rounds below this have been used by some sender, including this node.
    rounds: Round,
    /// Number of messages that other senders can have sent but that have not been received here.
    unseen: u64,
}

impl Reach {
    /// Returns the maximum number of rounds that a sender can have used before its next message.
    pub(crate) fn most(&self, sender: &SenderState, window: u32) -> Round {
        let of_others = self.unseen.saturating_sub(unseen_of(sender, window));
        Round(self.rounds.max(sender.taken).0.saturating_add(of_others))
    }
}

impl Work<'_, '_> {
    /// Returns the current bound on the senders' progress.
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

    /// Returns the maximum number of positions that any member can have reached. If this member
    /// sends, its own next message is the limit, because all its earlier messages are known.
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

    /// Returns the maximum number of positions that another member can have delivered. In a single
    /// permanent view, no member delivers more than this member has published as received; with a
    /// lone sender, the messages themselves show this. A view that ends without this member may end
    /// beyond what this member publishes.
    pub(crate) fn delivered_max(&self) -> u64 {
        if self.subgroup.is_fixed && self.order.senders() > 1 {
            self.subgroup.received.0
        } else {
            self.places_max()
        }
    }
}

/// Returns the number of messages that a sender can have sent but that have not been received here.
fn unseen_of(sender: &SenderState, window: u32) -> u64 {
    u64::from(window).saturating_sub(sender.take.since(sender.hand))
}
