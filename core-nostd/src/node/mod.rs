//! A node: all protocols of one member, driven by one call.
//!
//! [`Node::step`] is the only input that does work. It takes the time, the fabric and the application,
//! does a bounded amount of work and returns; it never blocks. The bound is, for each subgroup of the node,
//! one window of slots for each sender, twice as many turns looked at, and the writes that bring each peer
//! up to date.
//!
//! - *Inputs*: [`Node::step`].
//! - *Outputs*: upcalls and posts during a step, [`Progress`] after it.
//! - *Getters*: [`Node::frontiers`], [`Node::is_settled`], [`Node::is_lost`].
//!
//! A panic of the application's upcall may unwind through a step. The node is then in no defined state and
//! must not be stepped again; the runtime sees to that (DEL-2).

mod open;
mod progress;

pub use open::{Loan, OpenError, Options, State};
pub use progress::{Progress, StepError};

use crate::fabric::{Capabilities, ErrorKind, Event, Fabric, LossCause};
use crate::ids::{Frontier, Rank, SubgroupId, Time, ViewId};
use crate::memory::{OutOfRow, Row, RowWriter};
use crate::multicast::{
    Application, Control, Link, MemberState, Misbehaved, Order, Poster, SenderState, SubgroupState, Work,
};
use crate::smc::Outbox;

/// Events taken from the fabric in one step; what is left waits for the next.
const EVENTS_PER_STEP: u32 = 64;

/// One member of a group.
#[derive(Debug)]
pub struct Node<'m> {
    view: ViewId,
    rank: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    outboxes: &'m [Outbox<'m>],
    subgroups: &'m mut [SubgroupState],
    senders: &'m mut [SenderState],
    members: &'m mut [MemberState],
    links: &'m mut [Link],
    options: Options,
    capabilities: Capabilities,
    /// Some link lacks something.
    lagging: bool,
    /// Some peer is lost: the group cannot go on in this view.
    lost: bool,
}

/// The frontiers of a node in one of its subgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Frontiers {
    /// Places that are here.
    pub received: Frontier,
    /// Places that were delivered.
    pub delivered: Frontier,
}

impl<'m> Node<'m> {
    /// Does what there is to do: sends, receives, delivers, posts.
    ///
    /// # Errors
    /// [`StepError`]; after one the node stays as it is, and stepping on does not help.
    pub fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
    ) -> Result<Progress, StepError> {
        let mut progress = Progress::default();
        self.take_events(fabric, &mut progress);
        let mut index = 0_usize;
        while index < self.subgroups.len() {
            self.step_subgroup(index, now, fabric, application, &mut progress)?;
            index = index.saturating_add(1);
        }
        if self.lagging {
            self.post(fabric, None, &mut progress);
        }
        Ok(progress)
    }

    /// The own frontiers in a subgroup, if this node belongs to it.
    #[must_use]
    pub fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let delivered = state.order?.place(state.next_round, state.next_sender);
        Some(Frontiers { received: state.received, delivered: Frontier(delivered.0) })
    }

    /// Whether nothing is under way here: all that this node has seen is delivered, everything that it sent
    /// was delivered everywhere, and no post waits. A node that is settled may sleep (IDL-1).
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if self.lagging {
            return false;
        }
        let delivered = self.senders.iter().all(|sender| sender.hand == sender.take);
        delivered && self.subgroups.iter().all(|subgroup| self.is_sent(subgroup))
    }

    /// Whether all that was reserved in a subgroup was sent, and delivered everywhere.
    fn is_sent(&self, subgroup: &SubgroupState) -> bool {
        let Some(own) = subgroup.own.as_ref() else { return true };
        let at = subgroup.senders.start.saturating_add(own.rank.index());
        let (Some(state), Some(outbox)) = (self.senders.get(at), self.outboxes.get(own.outbox)) else {
            return false;
        };
        state.take == own.freed && outbox.handoff().reserved() == state.take.position
    }

    /// Whether a peer is lost: with a fixed membership nothing more becomes stable then.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// The own rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// The view that this node was opened in.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.view
    }

    fn take_events<F: Fabric>(&mut self, fabric: &mut F, progress: &mut Progress) {
        let mut taken = 0_u32;
        while taken < EVENTS_PER_STEP {
            let Some(event) = fabric.poll() else { break };
            match event {
                Event::Completed(token) => {
                    let link = usize::try_from(token.0).ok().and_then(|index| self.links.get_mut(index));
                    if let Some(link) = link {
                        link.in_flight = false;
                    }
                }
                Event::PeerLost { peer, cause } => {
                    fabric.cut(self.view, peer);
                    self.lose(peer, cause, progress);
                }
                Event::Ready { .. } | Event::Woken => {}
            }
            taken = taken.saturating_add(1);
        }
    }

    /// Reads nothing more from a peer and posts nothing more to it. Its frontiers stay where they were, so
    /// nothing becomes stable that it may not have.
    fn lose(&mut self, peer: Rank, cause: LossCause, progress: &mut Progress) {
        for sender in self.senders.iter_mut().filter(|sender| sender.rank == peer) {
            sender.lost = true;
        }
        for member in self.members.iter_mut().filter(|member| member.rank == peer) {
            member.lost = true;
        }
        for link in self.links.iter_mut().filter(|link| link.peer == peer) {
            link.lost = true;
        }
        self.lost = true;
        progress.lost = Some((peer, cause));
    }

    fn step_subgroup<F: Fabric, A: Application>(
        &mut self,
        index: usize,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        progress: &mut Progress,
    ) -> Result<(), StepError> {
        let Some(order) = self.subgroups.get(index).and_then(|subgroup| subgroup.order) else {
            return Ok(());
        };
        let before = self.subgroups.get(index).map_or(0, |subgroup| subgroup.version);
        let early = self.options.switches.posts_early();

        let timeout_ns = self.options.reservation_timeout_ns;
        let sent = self.work(index, order)?.send(now, timeout_ns)?;
        progress.sent = progress.sent.saturating_add(sent.slots);
        if sent.overdue {
            progress.overdue = self.subgroups.get(index).map(|subgroup| subgroup.id);
        }
        if early {
            self.post(fabric, Some(index), progress);
        }

        match self.receive(index, order, sent.slots > 0, progress)? {
            Ok(received) => {
                if received {
                    fabric.observe_barrier();
                }
            }
            Err(misbehaved) => self.expel(misbehaved, fabric, progress),
        }
        if early {
            self.post(fabric, Some(index), progress);
        }

        let mut work = self.work(index, order)?;
        let delivered = work.deliver(application)?;
        work.free_slots()?;
        progress.delivered = progress.delivered.saturating_add(delivered.messages);
        if let Some(misbehaved) = delivered.misbehaved {
            self.expel(misbehaved, fabric, progress);
        }
        let after = self.subgroups.get(index).map_or(0, |subgroup| subgroup.version);
        self.lagging |= after != before;
        if early {
            self.post(fabric, Some(index), progress);
        }
        Ok(())
    }

    /// The receive stage, nulls and acknowledgement with it. True if something new was seen.
    fn receive(
        &mut self,
        index: usize,
        order: Order,
        sent: bool,
        progress: &mut Progress,
    ) -> Result<Result<bool, Misbehaved>, StepError> {
        let mut work = self.work(index, order)?;
        let received = match work.receive() {
            Ok(received) => received,
            Err(crate::multicast::ReceiveError::Misbehaved(misbehaved)) => return Ok(Err(misbehaved)),
            Err(crate::multicast::ReceiveError::OutOfRow) => return Err(StepError::OutOfRow),
        };
        progress.received = progress.received.saturating_add(received.slots);
        if work.subgroup.delivery == crate::layout::Delivery::Unordered {
            return Ok(Ok(received.changed));
        }
        let nulls = work.publish_nulls()?;
        progress.nulls = progress.nulls.saturating_add(nulls);
        if received.changed || sent || nulls > 0 {
            work.publish_received()?;
        }
        Ok(Ok(received.changed))
    }

    fn expel<F: Fabric>(&mut self, misbehaved: Misbehaved, fabric: &mut F, progress: &mut Progress) {
        fabric.cut(self.view, misbehaved.0);
        self.lose(misbehaved.0, LossCause::Misbehaved, progress);
    }

    fn post<F: Fabric>(&mut self, fabric: &mut F, only: Option<usize>, progress: &mut Progress) {
        let mut poster = Poster {
            view: self.view,
            fabric,
            capabilities: self.capabilities,
            report: Default::default(),
        };
        poster.post(self.links, self.subgroups, self.senders, only);
        let report = poster.report;
        progress.lists = progress.lists.saturating_add(report.lists);
        progress.writes = progress.writes.saturating_add(report.writes);
        self.lagging = report.held_back;
        if let Some((peer, kind)) = report.refused {
            let cause = match kind {
                ErrorKind::Revoked => LossCause::Denied,
                ErrorKind::QueueFull
                | ErrorKind::PeerLost
                | ErrorKind::OutOfRange
                | ErrorKind::Other => LossCause::Unreachable,
            };
            self.lose(peer, cause, progress);
        }
    }

    /// One subgroup and everything that belongs to it.
    fn work(&mut self, index: usize, order: Order) -> Result<Work<'_, 'm>, StepError> {
        let subgroup = self.subgroups.get_mut(index).ok_or(StepError::OutOfRow)?;
        let senders = subgroup.senders.of(self.senders).ok_or(StepError::OutOfRow)?;
        let members = subgroup.members.of(self.members).ok_or(StepError::OutOfRow)?;
        let outbox = subgroup.own.as_ref().and_then(|own| self.outboxes.get(own.outbox)).copied();
        let control = Control::new(self.row, subgroup.control);
        Ok(Work {
            subgroup,
            order,
            senders,
            members,
            rows: self.rows,
            outbox,
            control,
            own_rank: self.rank,
            switches: self.options.switches,
            capabilities: self.capabilities,
        })
    }
}

impl From<OutOfRow> for StepError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}
