//! The deliver stage: hands over the messages that every member has, in one upcall, and then frees
//! slots.
//!
//! Requirements: BAT-1, FLT-1, ORD-2.

use super::application::Application;
use super::batch::Batch;
use super::state::{Work, peer_value};
use super::switches::Switches;
use super::watched::{Impossible, Misbehaved, Refused};
use crate::ids::{Frontier, Position, Round, SenderRank};
use crate::layout::{ControlCell, Delivery};
use crate::memory::OutOfRow;
use crate::smc::{Outbox, RingCursor, SlotCounter};

/// The result of the deliver stage.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) messages: u64,
    /// Whether the local delivered frontier or a consumed count has moved.
    pub(crate) changed: bool,
    pub(crate) misbehaved: Option<Misbehaved>,
}

/// The result of freeing slots.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freed {
    pub(crate) slots: u32,
    /// Member with an impossible delivered frontier, which would keep slots from being freed or
    /// free too many of them.
    pub(crate) misbehaved: Option<Misbehaved>,
}

impl Work<'_, '_> {
    /// Hands over the deliverable messages and publishes the delivery.
    pub(crate) fn deliver<A: Application>(
        &mut self,
        application: &mut A,
    ) -> Result<Delivered, OutOfRow> {
        let (stable, refused) = match self.subgroup.delivery {
            Delivery::Ordered => self.stable_frontier()?,
            Delivery::Unordered => (Frontier(u64::MAX), None),
        };
        let delivered = self.deliver_until(application, stable)?;
        Ok(Delivered { misbehaved: delivered.misbehaved.or(refused), ..delivered })
    }

    /// Hands over the messages below `stable`, which the caller knows to be stable, and publishes
    /// the delivery.
    #[inline(always)]
    pub(crate) fn deliver_until<A: Application>(
        &mut self,
        application: &mut A,
        stable: Frontier,
    ) -> Result<Delivered, OutOfRow> {
        let batching = self.switches.contains(Switches::DELIVERY_BATCHING);
        let room = match (batching, self.messages_max) {
            (false, _) => 1,
            (true, u32::MAX) => u64::MAX,
            (true, most) => u64::from(most),
        };
        let subgroup = &mut *self.subgroup;
        let turn = match subgroup.delivery {
            Delivery::Ordered => (subgroup.next_round, subgroup.next_sender),
            Delivery::Unordered => Default::default(),
        };
        if subgroup.delivery == Delivery::Ordered && self.order.place(turn.0, turn.1).0 >= stable.0
        {
            return Ok(Delivered::default());
        }
        let mut batch = Batch::new(
            subgroup.id,
            subgroup.delivery,
            self.order,
            self.senders,
            self.rows,
            subgroup.window,
            turn,
            stable,
            (room, subgroup.checks),
        );
        if batch.advance_to_message() {
            application.deliver(&mut batch);
        }
        let ended = batch.finish();
        let mut delivered = Delivered { messages: ended.taken, changed: false, misbehaved: None };
        if let Some(refused) = ended.refused {
            delivered.misbehaved = Some(refused.into());
            self.subgroup.refused.get_or_insert(refused);
        }
        match self.subgroup.delivery {
            Delivery::Ordered => {
                if turn != (ended.round, ended.sender) {
                    self.subgroup.next_round = ended.round;
                    self.subgroup.next_sender = ended.sender;
                    let frontier = self.order.place(ended.round, ended.sender);
                    self.control.publish(ControlCell::Delivered, frontier.0)?;
                    delivered.changed = true;
                }
            }
            Delivery::Unordered => delivered.changed = self.publish_consumed()?,
        }
        if delivered.changed {
            self.subgroup.version = self.subgroup.version.saturating_add(1);
        }
        Ok(delivered)
    }

    /// Returns the minimum of all members' received frontiers (ORD-3), including the local one.
    ///
    /// A lone sender has received its own messages, and the messages themselves show how many there
    /// are, so there is no need to wait for its frontier, which follows them. With several senders,
    /// a message says nothing about the other senders' messages. This also holds at a view change:
    /// a surviving member publishes its frontier before it says that it is wedged.
    ///
    /// Also returns a member whose frontier has shrunk or is ahead of what was sent. Otherwise such
    /// a member could stop stability, or make too much stable, while its heartbeats continue.
    fn stable_frontier(&mut self) -> Result<(Frontier, Option<Misbehaved>), OutOfRow> {
        let mut stable = self.subgroup.received;
        let mut refused = None;
        let lone = match &*self.senders {
            [sender] => Some((sender.rank, self.order.place(sender.taken, SenderRank::ZERO))),
            _ => None,
        };
        let most = self.places_max();
        // bound: the members of the subgroup
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank {
                continue;
            }
            if let Some((rank, sent)) = lone
                && rank == member.rank
            {
                member.received.count = sent.0;
            } else if !member.lost {
                let place = (member.rank, member.control);
                let cell = ControlCell::Received;
                let shown = peer_value(self.rows, place, cell, self.subgroup.checks)?;
                if let Err(what) = member.received.look(shown, most, Impossible::Received) {
                    refused = Some(Refused { rank: member.rank, what });
                }
            }
            stable = stable.min(Frontier(member.received.count));
        }
        Ok((stable, refused.map(|refused| self.refuse(refused.rank, refused.what))))
    }

    fn publish_consumed(&mut self) -> Result<bool, OutOfRow> {
        let mut changed = false;
        let mut sender = SenderRank::ZERO;
        // bound: the senders
        for state in self.senders.iter() {
            let cell = ControlCell::Consumed(sender);
            if self.control.load(cell)? != state.hand.position.0 {
                self.control.publish(cell, state.hand.position.0)?;
                changed = true;
            }
            sender = sender.next();
        }
        Ok(changed)
    }

    /// Frees the local slots whose messages every member has delivered (SMC-2), at most one window.
    pub(crate) fn free_slots(&mut self) -> Result<Freed, OutOfRow> {
        let mut freed_now = Freed::default();
        let own = self.subgroup.own.as_ref().map(|own| (own.rank, own.freed));
        let (Some((own_rank, before)), Some(outbox)) = (own, self.outbox) else {
            return Ok(freed_now);
        };
        let state = self.senders.get(own_rank.index()).ok_or(OutOfRow)?;
        let end = state.take;
        if before == end {
            return Ok(freed_now);
        }
        let (cell, most, beyond) = match self.subgroup.delivery {
            Delivery::Ordered => {
                (ControlCell::Delivered, self.delivered_max(), Impossible::Delivered)
            }
            Delivery::Unordered => {
                (ControlCell::Consumed(own_rank), end.position.0, Impossible::Consumed)
            }
        };
        let mut refused = None;
        let mut done = Frontier(self.control.load(cell)?);
        // bound: the members of the subgroup
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank {
                continue;
            }
            if !member.lost {
                let place = (member.rank, member.control);
                let shown = peer_value(self.rows, place, cell, self.subgroup.checks)?;
                match member.delivered.look(shown, most, beyond) {
                    // Consumed counts travel as content, which a fabric may read late, so an older
                    // count may arrive after a newer one.
                    Ok(()) | Err(Impossible::Shrunk) if beyond == Impossible::Consumed => {}
                    Ok(()) => {}
                    Err(what) => refused = Some(Refused { rank: member.rank, what }),
                }
            }
            done = done.min(Frontier(member.delivered.count));
        }
        freed_now.misbehaved = refused.map(|refused| self.refuse(refused.rank, refused.what));
        let window = self.subgroup.window;
        let most = u32::try_from(end.since(before)).unwrap_or(window);
        let count = match self.subgroup.delivery {
            Delivery::Ordered => {
                let below = self.order.rounds_below(done, own_rank);
                count_below(&outbox, (before, window), most, below)
            }
            Delivery::Unordered => {
                u32::try_from(done.0.saturating_sub(before.position.0)).unwrap_or(most).min(most)
            }
        };
        let next = before.advanced(count, window);
        if next != before {
            if let Some(own) = self.subgroup.own.as_mut() {
                own.freed = next;
            }
            let limit = next.position.0.saturating_add(u64::from(window));
            outbox.handoff().set_limit(Position(limit));
        }
        freed_now.slots = count;
        Ok(freed_now)
    }
}

/// Returns how many of the `most` slots from `first` on hold messages of rounds below `below`.
///
/// Each slot holds a later round than the one before it, so the first slot's round limits the
/// number. If this sender used none of its rounds in silence, the limit is the number, and two
/// counters are read; otherwise the slots are read one by one.
fn count_below(
    outbox: &Outbox<'_>,
    (first, window): (RingCursor, u32),
    most: u32,
    below: Round,
) -> u32 {
    let round_of = |slot| match SlotCounter::decode(outbox.ring().own_counter(slot)) {
        SlotCounter::Message(round) => round,
        SlotCounter::UsedBelow(_) => Round(u64::MAX),
    };
    let rounds = below.0.saturating_sub(round_of(first.slot).0);
    let limit = u32::try_from(rounds).unwrap_or(most).min(most);
    if limit == 0 || round_of(first.advanced(limit.saturating_sub(1), window).slot) < below {
        return limit;
    }
    let mut next = first;
    let mut count = 0_u32;
    // bound: a window
    for _ in 0..limit {
        if round_of(next.slot) >= below {
            break;
        }
        next = next.next(window);
        count = count.saturating_add(1);
    }
    count
}
