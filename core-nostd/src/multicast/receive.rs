//! The receive stage: for each sender all new messages, up to the first empty slot (BAT-1).

use super::state::{SenderState, Work, peer_cell};
use super::{Misbehaved, Switches};
use crate::ids::Round;
use crate::layout::{ControlCell, Delivery};
use crate::memory::OutOfRow;
use crate::smc::{SlotCounter, SlotLength};

/// What the receive stage did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Received {
    /// Slots taken.
    pub(crate) slots: u32,
    /// Something of a peer's rounds changed: slots, or rounds used without a message.
    pub(crate) changed: bool,
}

/// What becomes of a slot whose length is above every message's.
enum Unusual {
    /// It may be taken.
    Here,
    /// A large message's blocks are not all here: neither it nor what comes after it counts as
    /// received (RDM-7).
    NotYet,
    /// No correct sender says this.
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
}

/// Why the receive stage ended early.
pub(crate) enum ReceiveError {
    OutOfRow,
    Misbehaved(Misbehaved),
}

impl From<OutOfRow> for ReceiveError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}

impl Work<'_, '_> {
    /// Takes what peers published: of each at most one window; without batching one slot in all.
    /// `observe` stands between seeing a guard and reading what it guards (HAL-1).
    pub(crate) fn receive(&mut self, observe: impl Fn()) -> Result<Received, ReceiveError> {
        let batching = self.switches.contains(Switches::RECEIVE_BATCHING);
        let rounds_max = self.rounds_max();
        let mut received = Received::default();
        let count = self.senders.len();
        let mut looked = 0_usize;
        let mut index = if batching { 0 } else { self.subgroup.look_first };
        while looked < count {
            if index >= count {
                index = 0;
            }
            let before = received.slots;
            self.receive_from(index, batching, rounds_max, &observe, &mut received)?;
            index = index.saturating_add(1);
            if !batching && received.slots > before {
                break;
            }
            looked = looked.saturating_add(1);
        }
        self.subgroup.look_first = index;
        Ok(received)
    }

    /// The most rounds that a sender can have used by now. Beyond the first round that is not
    /// delivered here, and so was not delivered everywhere, rounds are used up in silence only as
    /// others send: each holds a message whose slot is not free yet, and there are so many slots. A
    /// sender that is further ahead would oblige all others to use up more rounds than there are.
    fn rounds_max(&self) -> Round {
        let slots = self.order.senders().saturating_mul(u64::from(self.subgroup.window));
        let most = self.subgroup.next_round.0.saturating_add(slots).saturating_add(1);
        Round(most).min(self.order.round_limit())
    }

    fn receive_from(
        &mut self,
        index: usize,
        batching: bool,
        rounds_max: Round,
        observe: &impl Fn(),
        received: &mut Received,
    ) -> Result<(), ReceiveError> {
        let Some(sender) = self.senders.get_mut(index) else { return Ok(()) };
        if sender.lost || sender.rank == self.own_rank {
            return Ok(());
        }
        let misbehaved = ReceiveError::Misbehaved(Misbehaved(sender.rank));
        let row = self.rows.get(sender.rank.index()).ok_or(OutOfRow)?;
        let ring = row.ring_at(&sender.ring)?;
        let window = self.subgroup.window;
        let ordered = self.subgroup.delivery == Delivery::Ordered;

        // Before the ring: rounds used in silence speak for all messages published before them.
        let silent = match self.subgroup.delivery {
            Delivery::Ordered => {
                let cell = ControlCell::Silent;
                Round(peer_cell(self.rows, sender.rank, sender.control, cell)?.load())
            }
            Delivery::Unordered => Round::ZERO,
        };
        if silent > sender.taken {
            observe();
        }

        // A correct sender never runs more than a window ahead of what was handed over here.
        let ahead = u32::try_from(sender.take.since(sender.hand)).unwrap_or(window);
        let room = window.saturating_sub(ahead);
        let most = if batching { room } else { room.min(1) };
        let mut taken = 0_u32;
        let mut drained = false;
        while taken < most {
            let slot = sender.take.slot;
            match SlotCounter::decode(ring.counter(slot).load()) {
                SlotCounter::Message(round) if round >= sender.taken => {
                    // For the length here and for the payload at delivery.
                    observe();
                    let length = ring.length(slot);
                    // Without order each message uses the next round, and nothing else uses one.
                    let most = if ordered { rounds_max } else { sender.taken.next() };
                    if round >= most {
                        return Err(misbehaved);
                    }
                    if length > ring.capacity() {
                        match sender.unusual(length, ring.capacity()) {
                            Unusual::Here => {}
                            Unusual::NotYet => break,
                            Unusual::Impossible => return Err(misbehaved),
                        }
                    }
                    sender.taken = round.next();
                    sender.obliging = sender.taken;
                    sender.take = sender.take.next(window);
                    taken = taken.saturating_add(1);
                }
                SlotCounter::UsedBelow(round) if round > sender.taken => {
                    if round > rounds_max || !ordered {
                        return Err(misbehaved);
                    }
                    sender.taken = round;
                    sender.obliging = round;
                    received.changed = true;
                    drained = true;
                    break;
                }
                // The previous lap: nothing new.
                SlotCounter::Message(_) | SlotCounter::UsedBelow(_) => {
                    drained = true;
                    break;
                }
            }
        }
        // Only with the ring drained does it hold that what is left below `silent` are nulls.
        if drained && silent > sender.taken {
            if silent > rounds_max {
                return Err(misbehaved);
            }
            sender.taken = silent;
            received.changed = true;
        }
        if taken > 0 {
            received.changed = true;
        }
        received.slots = received.slots.saturating_add(taken);
        Ok(())
    }

    /// Uses up the rounds that are owed, and acknowledges what is here if anything of that or of
    /// `received` and `sent` moved. Returns how many rounds went as nulls. An unordered subgroup
    /// has neither (DEL-3).
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

    /// Publishes how far everything is here, if that moved. One frontier covers any number of
    /// messages (BAT-2).
    fn publish_received(&mut self) -> Result<(), OutOfRow> {
        let frontier = self.order.frontier(self.senders.iter().map(|sender| sender.taken));
        if frontier <= self.subgroup.received {
            return Ok(());
        }
        self.subgroup.received = frontier;
        self.control.cell(ControlCell::Received)?.publish(frontier.0);
        self.subgroup.version = self.subgroup.version.saturating_add(1);
        Ok(())
    }
}
