//! The send stage: takes ready slots in ring order, assigns a round to each, and publishes it.
//!
//! A round is assigned here rather than at reservation, so that a slow builder never holds back
//! this sender's nulls (NUL-6).
//!
//! Requirements: BAT-1, ORD-2, SMC-3.

use super::state::Work;
use crate::ids::{Position, Round, Time};
use crate::memory::{HERE, OutOfRow};
use crate::smc::{RingCursor, SlotCounter};

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
        let mut walk = ring.walk(state.take.slot);
        let mut position = state.take.position;
        let mut counter = SlotCounter::of_message(state.taken);
        let mut slots = 0_u32;
        // bound: a window
        while slots < most {
            if handoff.outcome(position, walk.slot()).is_none() {
                break;
            }
            walk.here().publish_counter(HERE, counter);
            walk.advance();
            counter = SlotCounter::after_message(counter);
            position = Position(position.0.wrapping_add(1));
            slots = slots.wrapping_add(1);
        }
        sent.slots = slots;

        if slots > 0 {
            state.take = RingCursor { position, slot: walk.slot() };
            state.taken = Round(state.taken.0.saturating_add(u64::from(slots)));
            own.silent_below = Round::ZERO;
            own.null_runs = 0;
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
