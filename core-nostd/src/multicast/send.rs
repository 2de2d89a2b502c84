//! The send stage: takes ready slots in ring order, assigns a round to each, and publishes it.
//!
//! A round is assigned here rather than at reservation, so that a slow builder never holds back
//! this sender's nulls (NUL-6).
//!
//! Requirements: BAT-1, ORD-2, SMC-3.

use super::state::Work;
use crate::ids::{Round, Time};
use crate::memory::OutOfRow;
use crate::smc::SlotCounter;

/// The result of the send stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// Number of slots published: messages and dropped reservations.
    pub(crate) slots: u32,
    /// Whether the next slot has been reserved but not ready for longer than the caller allows.
    pub(crate) overdue: bool,
}

impl Work<'_, '_> {
    /// Publishes the ready slots: at most one window, or one slot without batching.
    pub(crate) fn send(
        &mut self,
        now: Time,
        reservation_timeout_ns: u64,
    ) -> Result<Sent, OutOfRow> {
        let mut sent = Sent::default();
        let (Some(outbox), Some(own)) = (self.outbox, self.subgroup.own.as_mut()) else {
            return Ok(sent);
        };
        let state = self.senders.get_mut(own.rank.index()).ok_or(OutOfRow)?;
        let (handoff, ring) = (outbox.handoff(), outbox.ring());

        let window = self.subgroup.window;
        let batching = self.switches.contains(super::Switches::SEND_BATCHING);
        let most = if batching { window.min(self.messages_max) } else { 1 };
        let rounds = self.order.round_limit().0.saturating_sub(state.taken.0);
        let most = most.min(u32::try_from(rounds).unwrap_or(u32::MAX));
        // Local copies are used because otherwise each acquire load would force the state to be
        // read again.
        let (mut take, mut round) = (state.take, state.taken);
        // bound: a window
        while sent.slots < most {
            if handoff.outcome(take.position, take.slot).is_none() {
                break;
            }
            ring.publish_counter(take.slot, SlotCounter::of_message(round));
            round = round.next();
            take = take.next(window);
            sent.slots = sent.slots.saturating_add(1);
        }

        if sent.slots > 0 {
            (state.take, state.taken) = (take, round);
            own.silent_below = Round::ZERO;
        }
        let silence = handoff.take_silence(state.take.position);
        if silence > 0 {
            own.silent_below = Round(state.taken.0.saturating_add(silence));
        }

        if sent.slots > 0 {
            own.marker = 0;
            own.held_since = None;
            self.subgroup.version = self.subgroup.version.saturating_add(1);
            return Ok(sent);
        }
        if handoff.reserved() <= state.take.position {
            own.held_since = None;
            return Ok(sent);
        }
        let since = *own.held_since.get_or_insert(now);
        sent.overdue = now.since(since) > reservation_timeout_ns;
        Ok(sent)
    }
}
