//! Null rounds: a sender that lags uses up the rounds that the other senders wait for (Spindle
//! III-B; NUL-1 to NUL-5).
//!
//! Any number of rounds used without a message take one write of one number: a marker in the
//! sender's next slot (SMC-5). Under declared silence, the number is in the control block next to
//! the frontiers, so it costs no extra write and obliges no other sender. Readers read that cell
//! before they drain the ring, because it covers every message published before it. The cell is a
//! guard, so it needs order between writes; on a fabric without that order, silence falls back to
//! markers.
//!
//! A sender that sends in the same step is about to use its rounds itself, so it owes no nulls yet.
//! This grace lasts for at most [`STEPS_OF_GRACE`] successive steps; after that the rounds are owed
//! even if the sender sends. Without the grace, members that all send continuously would answer
//! each other's bursts with as many nulls as messages, because a burst is seen before the next
//! local burst is built (the paper's IV-B.2 reports the loss: up to 25 %).
//!
//! A message of round `k` from sender `j` needs only the rounds below `k` from the senders whose
//! turns follow `j`'s, and the paper's rule asks no more of them. A silent one therefore answers
//! the message of each round with the null of the round before. The sender of the messages lacks
//! that null when it sends its next message, so the frontier that covers the message follows two
//! hops later. A sender that seems to be silent therefore completes the round: it uses round `k`
//! too, in the same write. The next message then travels with a frontier that covers it. One of two
//! members delivers it after one hop, and all of more members after two. A sender seems to be
//! silent from the [`RUNS_OF_SILENCE`]th successive run of nulls without a message of its own. Any
//! other sender keeps round `k` for its next message, because a reply in a later round would wait
//! for a null of the sender that it answers. Only messages oblige other senders, so a completed
//! round asks nothing of them.
//!
//! Silence never covers a position before the silent sender itself has used the round. Counting
//! declared rounds in advance would save a hop. But a received frontier could then claim the
//! position of a message that its owner does not have, and after a crash the survivors' ragged trim
//! (VIE-6) would not hold.
//!
//! Requirement: NUL-4.

use super::state::Work;
use super::switches::Switches;
use crate::fabric::Promises;
use crate::ids::{Round, SenderRank};
use crate::layout::ControlCell;
use crate::memory::OutOfRow;
use crate::smc::SlotCounter;

/// Number of consecutive steps in which a sender that sends may leave rounds unused.
const STEPS_OF_GRACE: u32 = 3;

/// Number of successive runs of nulls, without a message in between, at which a sender seems to be
/// silent. This run is one of them, so that it costs no write of its own.
const RUNS_OF_SILENCE: u16 = 3;

/// Returns the number of rounds that a sender must have used because of the others, and the number
/// if it completes the last of their rounds (NUL-1).
///
/// `others` yields each other sender's rank and its number of rounds that oblige. A message of
/// round `k` from sender `j` obliges every sender whose turn in round `k` precedes `j`'s to use
/// round `k`, and every other sender to use all rounds below `k`.
pub(crate) fn rounds_owed(
    own: SenderRank,
    others: impl Iterator<Item = (SenderRank, Round)>,
) -> (Round, Round) {
    let (mut owed, mut complete) = (Round::ZERO, Round::ZERO);
    // bound: the senders
    for (sender, obliging) in others {
        let rounds = if own < sender { obliging } else { Round(obliging.0.saturating_sub(1)) };
        owed = owed.max(rounds);
        complete = complete.max(obliging);
    }
    (owed, complete)
}

impl Work<'_, '_> {
    /// Uses up the owed rounds as nulls, and returns their number. `sent` says whether this step
    /// has sent messages.
    pub(crate) fn publish_nulls(&mut self, sent: bool) -> Result<u64, OutOfRow> {
        if !self.switches.contains(Switches::NULLS) {
            return Ok(0);
        }
        let (Some(own), Some(outbox)) = (self.subgroup.own.as_mut(), self.outbox) else {
            return Ok(0);
        };
        let mut next = SenderRank::ZERO;
        let others = self.senders.iter().filter_map(|sender| {
            let rank = next;
            next = next.next();
            if rank == own.rank { None } else { Some((rank, sender.obliging)) }
        });
        let (owed, complete) = rounds_owed(own.rank, others);
        let state = self.senders.get_mut(own.rank.index()).ok_or(OutOfRow)?;
        let before = state.taken;
        let runs = own.null_runs.saturating_add(u16::from(owed > before));
        let owed = if runs < RUNS_OF_SILENCE { owed } else { complete };
        let owed = owed.min(self.order.round_limit());
        if owed <= before {
            own.grace_used = 0;
            return Ok(0);
        }
        if sent && own.grace_used < STEPS_OF_GRACE {
            own.grace_used = own.grace_used.saturating_add(1);
            return Ok(0);
        }
        own.grace_used = 0;

        let ordered = self.capabilities.promises.contains(Promises::WRITE_ORDER);
        let silent = if ordered { owed.min(own.silent_below) } else { Round::ZERO };
        if silent > state.taken {
            self.control.publish(ControlCell::Silent, silent.0)?;
            state.taken = silent;
        }

        // If no slot is free, the remaining rounds wait. That cannot stall the group: if the
        // smallest missing position is this sender's, all its messages have been delivered, so a
        // slot is free (NUL-2).
        let free = state.take.since(own.freed) < u64::from(self.subgroup.window);
        let marker = SlotCounter::UsedBelow(owed).encode();
        if let (true, true, Some(marker)) = (owed > state.taken, free, marker) {
            outbox.ring().publish_counter(state.take.slot, marker);
            own.marker = marker;
            state.taken = owed;
        }

        let nulls = state.taken.0.saturating_sub(before.0);
        if nulls > 0 {
            own.null_runs = runs;
            self.subgroup.version = self.subgroup.version.saturating_add(1);
        }
        Ok(nulls)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The paper's rule, message by message: on receipt of the message of round `k` from `j`, a
    /// null is sent for every own round whose turn precedes it.
    fn naive(own: u16, others: &[(u16, u64)]) -> u64 {
        let mut used = 0;
        for &(sender, rounds) in others {
            for round in 0..rounds {
                while (used, own) < (round, sender) {
                    used += 1;
                }
            }
        }
        used
    }

    proptest! {
        #[test]
        fn number_of_owed_rounds_matches_naive_rule(
            own in 0_u16..6,
            rounds in prop::collection::vec(0_u64..12, 6),
        ) {
            let others: Vec<(u16, u64)> =
                (0..6).zip(rounds).filter(|(sender, _)| *sender != own).collect();
            let fast = rounds_owed(
                SenderRank(own),
                others.iter().map(|&(sender, rounds)| (SenderRank(sender), Round(rounds))),
            );
            let newest = others.iter().map(|&(_, rounds)| rounds).max().unwrap_or(0);
            prop_assert_eq!(fast, (Round(naive(own, &others)), Round(newest)));
        }
    }
}
