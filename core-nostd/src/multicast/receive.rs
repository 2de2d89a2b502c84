//! The receive stage: takes all new messages of each sender, up to the first empty slot (BAT-1).
//!
//! Requirements: FLT-1, NUL-2, ORD-2, SMC-5.

use super::look::{Limits, Told};
use super::state::{SenderState, Work, peer_value};
use super::switches::Switches;
use super::watched::{Impossible, Misbehaved, Unreadable};
use crate::ids::{Position, Round};
use crate::layout::{ControlCell, Delivery};
use crate::memory::{HERE, OutOfRow, Ring};
use crate::smc::{RingCursor, SlotCounter, SlotLength};

/// The result of the receive stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// Slots taken.
    pub(crate) slots: u32,
    /// Whether a peer's rounds have changed: slots were taken, or rounds were used without a
    /// message.
    pub(crate) changed: bool,
}

/// The verdict on a slot whose length is above the maximum for messages.
enum Unusual {
    /// The slot may be received.
    Here,
    /// Not all blocks of a large message have arrived: neither this message nor later ones count as
    /// received (RDM-7).
    NotYet,
    /// No correct sender publishes this length.
    Impossible,
}

impl SenderState {
    #[cold]
    fn unusual(&mut self, length: u32, capacity: u32) -> Unusual {
        match SlotLength::decode(length) {
            SlotLength::Null => Unusual::Here,
            SlotLength::Large(length) if self.allows_large && length <= capacity => {
                if self.large_taken >= self.large_here {
                    return Unusual::NotYet;
                }
                self.large_taken = self.large_taken.saturating_add(1);
                Unusual::Here
            }
            SlotLength::Large(_) | SlotLength::Message(_) => Unusual::Impossible,
        }
    }

    /// Receives small messages of successive rounds from slots without checks, at most `most`. It
    /// ends before any other slot. A counter is only compared with the one that is next.
    #[inline(always)]
    fn take_run(
        &mut self,
        ring: &Ring<'_>,
        limits: &Limits,
        most: u32,
        observe: &impl Fn(),
    ) -> u32 {
        let rounds = limits.rounds.0.saturating_sub(self.taken.0);
        let most = most.min(u32::try_from(rounds).unwrap_or(u32::MAX));
        let mut walk = ring.walk(self.take.slot);
        let mut counter = SlotCounter::of_message(self.taken);
        let mut taken = 0_u32;
        // bound: a window
        while taken < most && !ring.has_checks() {
            if walk.here().counter(HERE).load() != counter {
                break;
            }
            // This barrier covers the read of the length here and of the payload at delivery.
            observe();
            if walk.here().length(HERE) > ring.capacity() {
                break;
            }
            counter = SlotCounter::after_message(counter);
            walk.advance();
            taken = taken.wrapping_add(1);
        }
        if taken > 0 {
            let count = u64::from(taken);
            let position = Position(self.take.position.0.wrapping_add(count));
            self.take = RingCursor { position, slot: walk.slot() };
            self.taken = Round(self.taken.0.saturating_add(count));
            self.obliging = self.taken;
        }
        taken
    }

    /// Receives the new slots, up to `most` and at most a window. A correct sender is never more
    /// than a window ahead of the messages handed over here.
    #[inline(always)]
    fn take_messages(
        &mut self,
        ring: &Ring<'_>,
        limits: &Limits,
        most: u32,
        observe: &impl Fn(),
    ) -> (u32, End) {
        let ahead = u32::try_from(self.take.since(self.hand)).unwrap_or(limits.window);
        let room = limits.window.saturating_sub(ahead);
        let most = room.min(most);
        let mut taken = self.take_run(ring, limits, most, observe);
        // bound: a window
        while taken < most {
            let RingCursor { slot, position } = self.take;
            let Some(counter) = ring.read_counter(slot) else {
                return (taken, End::Failed(Impossible::CellCheck));
            };
            let round = match limits.told(self, counter) {
                Told::Message(round) => round,
                Told::Used(round) => {
                    self.taken = round;
                    return (taken, End::Drained);
                }
                Told::Nothing => return (taken, End::Drained),
                Told::Skips => return (taken, End::Skips),
                Told::Impossible(what) => return (taken, End::Wrong(what)),
            };
            // This barrier covers the read of the length here and of the payload at delivery.
            observe();
            let length = ring.length(slot);
            if !ring.is_intact(slot, position, length) {
                return (taken, End::Failed(Impossible::SlotCheck));
            }
            if length > ring.capacity() {
                match self.unusual(length, ring.capacity()) {
                    Unusual::Here => {}
                    Unusual::NotYet => return (taken, End::Full),
                    Unusual::Impossible => return (taken, End::Wrong(Impossible::Length)),
                }
            }
            self.taken = round.next();
            self.obliging = self.taken;
            self.take = self.take.next(limits.window);
            taken = taken.saturating_add(1);
        }
        (taken, End::Full)
    }
}

/// Reason why the receive stage ended early.
pub(crate) enum ReceiveError {
    OutOfRow,
    Misbehaved(Misbehaved),
}

impl From<OutOfRow> for ReceiveError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}

/// The state in which reading from one sender ended.
#[derive(Clone, Copy)]
enum End {
    /// Everything allowed for now has been received; there may be more.
    Full,
    /// Nothing more has arrived.
    Drained,
    /// A [reach](super::reach) is needed to continue.
    Skips,
    /// A check failed: the slot or cell counts as not yet written.
    Failed(Impossible),
    /// The sender published something that no correct sender publishes.
    Wrong(Impossible),
}

impl Work<'_, '_> {
    /// Receives what peers have published: at most one window from each sender, or one slot in
    /// total without batching. `observe` separates the observation of a guard from the reads of the
    /// data that it guards (HAL-1).
    pub(crate) fn receive(&mut self, observe: impl Fn()) -> Result<Received, ReceiveError> {
        let batching = self.switches.contains(Switches::RECEIVE_BATCHING);
        let mut limits = Limits::of(self.subgroup, self.order);
        let mut received = Received::default();
        let count = self.senders.len();
        let mut looked = 0_usize;
        let is_limited = !batching || self.messages_max < u32::MAX;
        let mut index = if is_limited { self.subgroup.look_first } else { 0 };
        // bound: the senders of the subgroup
        while looked < count {
            if index >= count {
                index = 0;
            }
            let before = received.slots;
            if self.receive_from(index, &limits, &observe, &mut received)? {
                limits.reach = Some(self.reach());
                self.receive_from(index, &limits, &observe, &mut received)?;
            }
            index = index.saturating_add(1);
            if is_limited && (received.slots >= self.messages_max || !batching) {
                // The next step begins with the next sender.
                if received.slots > before {
                    break;
                }
            }
            looked = looked.saturating_add(1);
        }
        self.subgroup.look_first = index;
        Ok(received)
    }

    /// Receives from one sender. Returns true if a reach is needed to continue; the next call, with
    /// a reach, continues from there.
    #[inline(always)]
    fn receive_from(
        &mut self,
        index: usize,
        limits: &Limits,
        observe: &impl Fn(),
        received: &mut Received,
    ) -> Result<bool, ReceiveError> {
        let batching = self.switches.contains(Switches::RECEIVE_BATCHING);
        let Some(sender) = self.senders.get_mut(index) else { return Ok(false) };
        if sender.lost || sender.rank == self.own_rank {
            return Ok(false);
        }
        let rank = sender.rank;
        let row = self.rows.get(rank.index()).ok_or(OutOfRow)?;
        let ring = row.ring_at(&sender.ring)?;
        // The silent rounds are read before the ring, because they cover all messages published
        // before them.
        let silent = match self.subgroup.delivery {
            Delivery::Ordered => {
                let (place, cell) = ((rank, sender.control), ControlCell::Silent);
                peer_value(self.rows, place, cell, self.subgroup.checks)?.map(Round)
            }
            Delivery::Unordered => Some(Round::ZERO),
        };
        if silent > Some(sender.taken) {
            observe();
        }
        let before = sender.taken;
        let most = if batching { self.messages_max.saturating_sub(received.slots) } else { 1 };
        let (taken, mut end) = sender.take_messages(&ring, limits, most, observe);
        #[cfg(feature = "relays")]
        if let Some(relay) = &mut self.subgroup.relay
            && relay.look(&ring, sender, limits.window, observe)
        {
            self.subgroup.version = self.subgroup.version.saturating_add(1);
        }
        // The remaining rounds below are known to be nulls only if the ring is drained.
        match (silent, end) {
            (Some(silent), End::Drained) if silent > sender.taken => {
                match limits.judged(sender, silent, Told::Used(silent), Impossible::Silence) {
                    Told::Used(silent) => sender.taken = silent,
                    Told::Impossible(what) => end = End::Wrong(what),
                    Told::Skips | Told::Message(_) | Told::Nothing => end = End::Skips,
                }
            }
            (None, End::Full | End::Drained) => end = End::Failed(Impossible::CellCheck),
            (Some(_) | None, _) => {}
        }
        received.changed |= sender.taken > before;
        received.slots = received.slots.saturating_add(taken);
        match end {
            End::Full | End::Drained => {
                sender.unreadable = Unreadable::NONE;
                Ok(false)
            }
            End::Skips => Ok(true),
            End::Failed(_) if sender.unreadable.count(true).is_ok() => Ok(false),
            End::Failed(what) | End::Wrong(what) => {
                Err(ReceiveError::Misbehaved(self.refuse(rank, what)))
            }
        }
    }

    /// Uses up the owed rounds, and publishes the received frontier if nulls were used or if
    /// `received` or `sent` is true. Returns the number of nulls. An unordered subgroup has neither
    /// nulls nor a frontier (DEL-3).
    pub(crate) fn acknowledge(&mut self, received: bool, sent: bool) -> Result<u64, OutOfRow> {
        if self.subgroup.delivery == Delivery::Unordered {
            return Ok(0);
        }
        let nulls = self.publish_nulls(sent)?;
        if received || sent || nulls > 0 {
            self.publish_received()?;
        }
        Ok(nulls)
    }

    /// Publishes the received frontier if it has moved. One frontier acknowledges any number of
    /// messages (BAT-2).
    fn publish_received(&mut self) -> Result<(), OutOfRow> {
        let frontier = self.order.frontier(self.senders.iter().map(|sender| sender.taken));
        if frontier <= self.subgroup.received {
            return Ok(());
        }
        self.subgroup.received = frontier;
        self.control.publish(ControlCell::Received, frontier.0)?;
        self.subgroup.version = self.subgroup.version.saturating_add(1);
        Ok(())
    }
}
