//! A node: all protocols of one member, driven by one call.
//!
//! [`Node::step`] is the only input that does work. It takes the time, the fabric and the
//! application, does a bounded amount of work and returns; it never blocks. The bound is, for each
//! subgroup of the node, one window of slots for each sender, twice as many turns looked at, and
//! the writes that bring each peer up to date.
//!
//! - *Inputs*: [`Node::step`]; with the feature `durable`, `Node::set_durable`.
//! - *Outputs*: upcalls and posts during a step, [`Progress`] after it.
//! - *Getters*: [`Node::frontiers`], [`Node::is_settled`], [`Node::is_lost`].
//!
//! Where membership may change (the feature `views`), a `ViewNode` holds the node and its view
//! protocol, and steps both: such a node cannot be stepped alone, or with another's views.
//!
//! A panic of the application's upcall may unwind through a step. The node is then in no defined
//! state and must not be stepped again; the runtime sees to that (DEL-2).
//!
//! Requirements: BAT-3, COR-2, EXT-2, HAL-5, ORD-3.

mod alone;
#[cfg(feature = "durable")]
mod durable;
#[cfg(feature = "blocks")]
mod large;
mod open;
mod progress;
#[cfg(feature = "views")]
mod undelivered;
#[cfg(feature = "views")]
mod view_node;
#[cfg(feature = "views")]
mod view_posts;
#[cfg(feature = "views")]
mod views;

pub use alone::AloneError;
#[cfg(feature = "durable")]
pub use durable::DurableCounts;
pub use open::{Loan, OpenError, Options, State};
pub use progress::{Progress, StepError};
#[cfg(feature = "views")]
pub use undelivered::{Undelivered, UndeliveredMessage};
#[cfg(feature = "views")]
pub use view_node::{ViewError, ViewLoan, ViewNode};
#[cfg(feature = "views")]
pub use views::{Preparation, ViewLink};

use crate::check::Checks;
use crate::fabric::{Capabilities, ErrorKind, Event, Fabric, LossCause};
use crate::ids::{Frontier, Position, Rank, SubgroupId, Time, ViewId};
use crate::layout::{ControlCell, Delivery};
use crate::memory::{OutOfRow, Row, RowWriter};
use crate::multicast::{
    Application, Control, Link, MemberState, Misbehaved, PostReport, Poster, ReceiveError,
    SenderState, Shown, SubgroupState, Work, peer_value,
};
use crate::smc::{HandOffCells, Outbox, ReadyFlag};

/// Events taken from the fabric in one step; what is left waits for the next.
const EVENTS_PER_STEP: u32 = 64;

/// One member of a group.
#[derive(Debug)]
pub struct Node<'m> {
    view: ViewId,
    rank: Rank,
    rows: &'m [Row<'m>],
    row: RowWriter<'m>,
    cells: &'m [HandOffCells],
    ready: &'m [ReadyFlag],
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
    /// Whether cells and slots carry checks.
    checks: Checks,
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
        self.step_stages(now, fabric, application, |_, _, _, _| {})
    }

    /// As [`Node::step`]; after each subgroup in which something was delivered, `between` is
    /// called.
    fn step_stages<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        mut between: impl FnMut(&mut Self, &mut F, &mut A, &mut Progress),
    ) -> Result<Progress, StepError> {
        let mut progress = Progress::default();
        self.take_events(fabric, &mut progress);
        let mut index = 0_usize;
        // bound: the subgroups
        while index < self.subgroups.len() {
            let before = progress.delivered;
            let misbehaved = self.step_subgroup(index, now, fabric, application, &mut progress)?;
            if progress.delivered != before {
                between(self, fabric, application, &mut progress);
            }
            if let Some(Misbehaved(peer)) = misbehaved {
                self.report_refused(index, &mut progress);
                fabric.cut(self.view, peer);
                self.lose(peer, LossCause::Misbehaved, &mut progress);
            }
            index = index.saturating_add(1);
        }
        if self.lagging {
            let (subgroups, senders, rows) = (&*self.subgroups, &*self.senders, self.rows);
            let mut poster = Poster::new(self.view, fabric, self.capabilities);
            poster.post(self.links, |index| {
                let subgroup = subgroups.get(index)?;
                Some(Shown::of(subgroup, subgroup.senders.of(senders)?, rows))
            });
            let report = poster.report;
            self.lagging = report.held_back;
            self.account(report, &mut progress);
        }
        Ok(progress)
    }

    /// The sending end of a subgroup, if this node sends there. Any thread may use a copy.
    #[must_use]
    pub fn outbox(&self, subgroup: SubgroupId) -> Option<Outbox<'m>> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        let sender = state.senders.of(self.senders)?.get(own.rank.index())?;
        Outbox::at(self.row, &sender.ring, self.cells.get(own.handoff)?, own.ready.of(self.ready)?)
            .ok()
    }

    /// The own frontiers in a subgroup, if this node belongs to it.
    #[must_use]
    pub fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let delivered = state.order?.place(state.next_round, state.next_sender);
        Some(Frontiers { received: state.received, delivered: Frontier(delivered.0) })
    }

    /// A member's frontiers in an ordered subgroup, as far as they are known here: who is behind
    /// holds the others back. Nothing if this node or the member does not belong to it.
    #[must_use]
    pub fn frontiers_of(&self, subgroup: SubgroupId, rank: Rank) -> Option<Frontiers> {
        if rank == self.rank {
            return self.frontiers(subgroup);
        }
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let members = state.members.of(self.members)?;
        let member = members.iter().find(|member| member.rank == rank)?;
        if state.delivery != Delivery::Ordered {
            return None;
        }
        let place = (rank, member.control);
        let shown = peer_value(self.rows, place, ControlCell::Delivered, state.checks).ok()?;
        // A cell that fails its check is not read: the count stays what it was.
        let delivered = Frontier(shown.unwrap_or(member.delivered.count));
        Some(Frontiers { received: Frontier(member.received.count), delivered })
    }

    /// How many of the own messages in a subgroup were delivered here, those that were dropped
    /// counted too; and so are stable. Nothing if this node does not send in it.
    #[must_use]
    pub fn own_delivered(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        Some(state.senders.of(self.senders)?.get(own.rank.index())?.hand.position)
    }

    /// How many of the own messages in a subgroup were delivered everywhere, as far as is known
    /// here: the sender's copies of large ones are not needed any more (RDM-7). Nothing if this
    /// node does not send in it.
    #[must_use]
    pub fn own_delivered_everywhere(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        Some(state.own.as_ref()?.freed.position)
    }

    /// Whether nothing is under way here: all that this node has seen is delivered, everything that
    /// it sent was delivered everywhere, and no post waits. A node that is settled may sleep
    /// (IDL-1).
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if self.lagging || self.is_waiting_for_checks() {
            return false;
        }
        let delivered = self.senders.iter().all(|sender| sender.hand == sender.take);
        delivered && self.subgroups.iter().all(|subgroup| self.is_sent(subgroup))
    }

    /// Whether something of a peer failed its check in the last step: the next steps see whether it
    /// is mended.
    fn is_waiting_for_checks(&self) -> bool {
        let of_sender = |sender: &SenderState| sender.unreadable.is_waiting() && !sender.lost;
        self.checks.is_on()
            && (self.senders.iter().any(of_sender)
                || self.members.iter().any(MemberState::is_unreadable))
    }

    /// Whether all that was reserved in a subgroup was sent, and delivered everywhere.
    fn is_sent(&self, subgroup: &SubgroupState) -> bool {
        let Some(own) = subgroup.own.as_ref() else { return true };
        let state =
            subgroup.senders.of(self.senders).and_then(|senders| senders.get(own.rank.index()));
        let (Some(state), Some(outbox)) = (state, self.outbox(subgroup.id)) else { return false };
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
        // bound: EVENTS_PER_STEP
        while taken < EVENTS_PER_STEP {
            let Some(event) = fabric.poll() else { break };
            match event {
                Event::Completed(token) => {
                    let link =
                        usize::try_from(token.0).ok().and_then(|index| self.links.get_mut(index));
                    if let Some(link) = link {
                        link.in_flight = false;
                    }
                }
                // In another view its rank is another member's here.
                Event::PeerLost { view, .. } if view != self.view => {}
                Event::PeerLost { peer, cause, .. } => {
                    fabric.cut(self.view, peer);
                    self.lose(peer, cause, progress);
                }
                Event::Ready { .. } | Event::Woken => {}
            }
            taken = taken.saturating_add(1);
        }
    }

    /// Reads nothing more from a peer and posts nothing more to it. Its frontiers stay where they
    /// were, so nothing becomes stable that it may not have.
    fn lose(&mut self, peer: Rank, cause: LossCause, progress: &mut Progress) {
        // bound: the senders of all subgroups
        for sender in self.senders.iter_mut().filter(|sender| sender.rank == peer) {
            sender.lost = true;
        }
        // bound: the members of all subgroups
        for member in self.members.iter_mut().filter(|member| member.rank == peer) {
            member.lost = true;
        }
        // bound: the links
        for link in self.links.iter_mut().filter(|link| link.peer == peer) {
            // The first cause is the likeliest here too.
            link.denied |= !link.lost && cause == LossCause::Denied;
            link.lost = true;
        }
        self.lost = true;
        // The first cause is the likeliest; later ones may be its consequences.
        progress.lost.get_or_insert((peer, cause));
    }

    /// The three stages of one subgroup. What they changed is posted by the caller, or here after
    /// each where late posting is off.
    fn step_subgroup<F: Fabric, A: Application>(
        &mut self,
        index: usize,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        progress: &mut Progress,
    ) -> Result<Option<Misbehaved>, StepError> {
        let options = self.options;
        let early = options.switches.posts_early();
        let subgroup = self.subgroups.get_mut(index).ok_or(StepError::OutOfRow)?;
        let Some(order) = subgroup.order else { return Ok(None) };
        let version = subgroup.version;
        let senders = subgroup.senders.of_mut(self.senders).ok_or(StepError::OutOfRow)?;
        let members = subgroup.members.of_mut(self.members).ok_or(StepError::OutOfRow)?;
        let outbox = match subgroup.own.as_ref() {
            Some(own) => {
                let place = senders.get(own.rank.index()).ok_or(StepError::OutOfRow)?.ring;
                let cells = self.cells.get(own.handoff).ok_or(StepError::OutOfRow)?;
                let ready = own.ready.of(self.ready).ok_or(StepError::OutOfRow)?;
                Some(Outbox::at(self.row, &place, cells, ready)?)
            }
            None => None,
        };
        let control = Control::new(self.row, subgroup);
        let mut work = Work {
            subgroup,
            order,
            senders,
            members,
            rows: self.rows,
            outbox,
            control,
            own_rank: self.rank,
            switches: options.switches,
            messages_max: options.messages_max.max(1),
            capabilities: self.capabilities,
        };
        let mut poster = Poster::new(self.view, fabric, self.capabilities);
        let mut misbehaved = None;

        let sent = work.send(now, options.reservation_timeout_ns)?;
        progress.sent = progress.sent.saturating_add(sent.slots);
        if sent.overdue {
            progress.overdue = Some(work.subgroup.id);
        }
        if early {
            poster.post(self.links, |candidate| work.shown(candidate == index));
        }

        let observed = &*poster.fabric;
        match work.receive(|| observed.observe_barrier()) {
            Ok(received) => {
                progress.received = progress.received.saturating_add(received.slots);
                let nulls = work.acknowledge(received.changed, sent.slots > 0)?;
                progress.nulls = progress.nulls.saturating_add(nulls);
            }
            Err(ReceiveError::Misbehaved(peer)) => misbehaved = Some(peer),
            Err(ReceiveError::OutOfRow) => return Err(StepError::OutOfRow),
        }
        if early {
            poster.post(self.links, |candidate| work.shown(candidate == index));
        }

        let delivered = work.deliver(application)?;
        let freed = work.free_slots()?;
        #[cfg(feature = "durable")]
        let shrunk = work.see_durable()?;
        #[cfg(not(feature = "durable"))]
        let shrunk = None;
        progress.freed = progress.freed.saturating_add(freed.slots);
        progress.delivered = progress.delivered.saturating_add(delivered.messages);
        if early {
            poster.post(self.links, |candidate| work.shown(candidate == index));
        }

        self.lagging |= work.subgroup.version != version;
        let report = poster.report;
        self.account(report, progress);
        if self.checks.is_on() {
            progress.unreadable |= self.is_waiting_for_checks();
        }
        Ok(misbehaved.or(delivered.misbehaved).or(freed.misbehaved).or(shrunk))
    }

    /// Takes what a subgroup refused into the step's report.
    #[cold]
    fn report_refused(&mut self, index: usize, progress: &mut Progress) {
        let refused = self.subgroups.get_mut(index).and_then(|state| state.refused.take());
        progress.refused = progress.refused.or(refused.map(|refused| (refused.rank, refused.what)));
    }

    /// Takes a post stage's report into the step's.
    fn account(&mut self, report: PostReport, progress: &mut Progress) {
        progress.lists = progress.lists.saturating_add(report.lists);
        progress.writes = progress.writes.saturating_add(report.writes);
        if let Some((peer, kind)) = report.refused {
            let cause = match kind {
                ErrorKind::Revoked => LossCause::Denied,
                ErrorKind::QueueFull
                | ErrorKind::PeerLost
                | ErrorKind::OutOfRange
                | ErrorKind::Other
                | ErrorKind::WrongMemory => LossCause::Unreachable,
            };
            self.lose(peer, cause, progress);
        }
    }
}

impl From<OutOfRow> for StepError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}
