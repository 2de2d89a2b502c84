//! The deliver stage: what every member has is handed over in one upcall; then slots come free.

use super::batch::Batch;
use super::state::{Work, peer_cell};
use super::{Application, Misbehaved, Switches};
use crate::ids::{Frontier, Position, Round, SenderRank};
use crate::layout::{ControlCell, Delivery};
use crate::memory::OutOfRow;
use crate::smc::SlotCounter;

/// What the deliver stage did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) messages: u64,
    /// The own delivered frontier, or a consumed count, moved.
    pub(crate) changed: bool,
    pub(crate) misbehaved: Option<Misbehaved>,
}

/// What came free.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Freed {
    pub(crate) slots: u32,
    /// A member whose delivered frontier shrank: no slot would come free any more.
    pub(crate) misbehaved: Option<Misbehaved>,
}

impl Work<'_, '_> {
    /// Hands over what is deliverable, and publishes that it was.
    pub(crate) fn deliver<A: Application>(
        &mut self,
        application: &mut A,
    ) -> Result<Delivered, OutOfRow> {
        let (stable, shrunk) = match self.subgroup.delivery {
            Delivery::Ordered => self.stable_frontier()?,
            Delivery::Unordered => (Frontier(u64::MAX), None),
        };
        let delivered = self.deliver_until(application, stable)?;
        Ok(Delivered { misbehaved: delivered.misbehaved.or(shrunk), ..delivered })
    }

    /// Hands over what lies below `stable`, which the caller knows to be so, and publishes that it
    /// was.
    #[inline(always)]
    pub(crate) fn deliver_until<A: Application>(
        &mut self,
        application: &mut A,
        stable: Frontier,
    ) -> Result<Delivered, OutOfRow> {
        let batching = self.switches.contains(Switches::DELIVERY_BATCHING);
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
            if batching { u64::MAX } else { 1 },
        );
        if batch.advance_to_message() {
            application.deliver(&mut batch);
        }
        let ended = batch.finish();
        let mut delivered = Delivered {
            messages: ended.taken,
            changed: false,
            misbehaved: ended.misbehaved.map(Misbehaved),
        };
        match subgroup.delivery {
            Delivery::Ordered => {
                if turn != (ended.round, ended.sender) {
                    subgroup.next_round = ended.round;
                    subgroup.next_sender = ended.sender;
                    let frontier = self.order.place(ended.round, ended.sender);
                    self.control.cell(ControlCell::Delivered)?.publish(frontier.0);
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

    /// The minimum of the members' received frontiers (ORD-3), the own included.
    ///
    /// A lone sender has received what it sent, and its messages say how far that is: its frontier,
    /// which comes after them, need not be waited for. With more senders a message says nothing of
    /// the others'. At a change of view this holds too: a member that goes on publishes its
    /// frontier before it says that it is wedged.
    ///
    /// Also a member whose frontier shrank: nothing would become stable any more, although its
    /// heartbeats go on.
    fn stable_frontier(&mut self) -> Result<(Frontier, Option<Misbehaved>), OutOfRow> {
        let mut stable = self.subgroup.received;
        let mut shrunk = None;
        let lone = match &*self.senders {
            [sender] => Some((sender.rank, self.order.place(sender.taken, SenderRank::ZERO))),
            _ => None,
        };
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank {
                continue;
            }
            if let Some((rank, sent)) = lone
                && rank == member.rank
            {
                member.received = Frontier(sent.0);
            } else if !member.lost {
                let cell =
                    peer_cell(self.rows, member.rank, member.control, ControlCell::Received)?;
                let shown = Frontier(cell.load());
                if shown < member.received {
                    shrunk = Some(Misbehaved(member.rank));
                } else {
                    member.received = shown;
                }
            }
            stable = stable.min(member.received);
        }
        Ok((stable, shrunk))
    }

    fn publish_consumed(&mut self) -> Result<bool, OutOfRow> {
        let mut changed = false;
        let mut sender = SenderRank::ZERO;
        for state in self.senders.iter() {
            let cell = self.control.cell(ControlCell::Consumed(sender))?;
            if cell.load() != state.hand.position.0 {
                cell.publish(state.hand.position.0);
                changed = true;
            }
            sender = sender.next();
        }
        Ok(changed)
    }

    /// Frees the own slots whose messages every member has delivered (SMC-2), at most a window of
    /// them.
    pub(crate) fn free_slots(&mut self) -> Result<Freed, OutOfRow> {
        let mut freed_now = Freed::default();
        let (Some(own), Some(outbox)) = (self.subgroup.own.as_mut(), self.outbox) else {
            return Ok(freed_now);
        };
        let Some(state) = self.senders.get(own.rank.index()) else { return Err(OutOfRow) };
        if own.freed == state.take {
            return Ok(freed_now);
        }
        // Consumed counts travel as content, which a fabric may read late: an older one may come
        // after a newer one.
        let cell_is_guard = self.subgroup.delivery == Delivery::Ordered;
        let cell = match self.subgroup.delivery {
            Delivery::Ordered => ControlCell::Delivered,
            Delivery::Unordered => ControlCell::Consumed(own.rank),
        };
        let mut done = Frontier(self.control.cell(cell)?.load());
        for member in self.members.iter_mut() {
            if member.rank == self.own_rank {
                continue;
            }
            if !member.lost {
                let cell = peer_cell(self.rows, member.rank, member.control, cell)?;
                let shown = Frontier(cell.load());
                if shown >= member.delivered {
                    member.delivered = shown;
                } else if cell_is_guard {
                    freed_now.misbehaved = Some(Misbehaved(member.rank));
                }
            }
            done = done.min(member.delivered);
        }
        let window = self.subgroup.window;
        let (before, end) = (own.freed, state.take);
        let mut next = before;
        while next != end {
            let freed = match self.subgroup.delivery {
                Delivery::Ordered => {
                    let counter = outbox.ring().counter(next.slot).load();
                    let round = match SlotCounter::decode(counter) {
                        SlotCounter::Message(round) => round,
                        SlotCounter::UsedBelow(_) => Round(u64::MAX),
                    };
                    self.order.place(round, own.rank).0 < done.0
                }
                Delivery::Unordered => next.position.0 < done.0,
            };
            if !freed {
                break;
            }
            next = next.next(window);
        }
        own.freed = next;
        if next != before {
            let limit = next.position.0.saturating_add(u64::from(window));
            outbox.handoff().set_limit(Position(limit));
        }
        freed_now.slots = u32::try_from(next.since(before)).unwrap_or(window);
        Ok(freed_now)
    }
}
