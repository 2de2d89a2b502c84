//! One member of a group: its state, its step, and the getters for its progress.
//!
//! Requirements: BAT-3, BAT-5, COR-2, EXT-2, HAL-5, ORD-3.

use super::attention::Attention;
use super::{Options, Progress, StepError};
use crate::check::Checks;
use crate::fabric::{Capabilities, ErrorKind, Event, Fabric, LossCause};
use crate::ids::{Frontier, Position, Rank, SubgroupId, Time, ViewId};
use crate::layout::{ControlCell, Delivery};
use crate::memory::{OutOfRow, Row, RowWriter};
#[cfg(feature = "durable")]
use crate::multicast::see_durable;
use crate::multicast::{
    Application, Control, Link, MemberState, Misbehaved, PostReport, Poster, ReceiveError, Rest,
    SenderState, Shown, SubgroupSet, SubgroupState, Work, peer_value,
};
use crate::smc::{HandOffCells, Outbox, ReadyFlag};

/// Maximum number of events taken from the fabric in one step; the remaining events wait for the
/// next step.
const EVENTS_PER_STEP: u32 = 64;

/// One member of a group.
#[derive(Debug)]
pub struct Node<'m> {
    pub(super) view: ViewId,
    pub(super) rank: Rank,
    pub(super) rows: &'m [Row<'m>],
    pub(super) row: RowWriter<'m>,
    pub(super) cells: &'m [HandOffCells],
    pub(super) ready: &'m [ReadyFlag],
    pub(super) subgroups: &'m mut [SubgroupState],
    pub(super) senders: &'m mut [SenderState],
    pub(super) members: &'m mut [MemberState],
    pub(super) links: &'m mut [Link],
    pub(super) options: Options,
    pub(super) capabilities: Capabilities,
    /// Subgroups of which at least one peer may not have been posted everything that this node has
    /// published.
    pub(super) lagging: SubgroupSet,
    /// Whether at least one peer is lost, so that the group cannot continue in this view.
    pub(super) lost: bool,
    /// Whether cells and slots carry checks.
    pub(super) checks: Checks,
    pub(super) attention: Attention,
}

/// The frontiers of a node in one of its subgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Frontiers {
    /// Number of received positions.
    pub received: Frontier,
    /// Number of delivered positions.
    pub delivered: Frontier,
}

impl<'m> Node<'m> {
    /// Does the pending work: sends, receives, delivers and posts.
    ///
    /// # Errors
    /// Fails as described at [`StepError`]. After an error the node remains as it is, and further
    /// steps do not help.
    pub fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
    ) -> Result<Progress, StepError> {
        self.step_stages(now, fabric, application, |_, _, _, _| {})
    }

    /// Steps as [`Node::step`] does, and calls `between` after each subgroup in which something was
    /// delivered.
    pub(super) fn step_stages<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        mut between: impl FnMut(&mut Self, &mut F, &mut A, &mut Progress),
    ) -> Result<Progress, StepError> {
        let mut progress = Progress::default();
        self.take_events(fabric, &mut progress);
        let first = self.attention.choose(self.subgroups.len());
        // bound: the two parts of the subgroups
        for chosen in [first, first.others()] {
            if chosen.is_empty() || chosen != first && !progress.is_idle() {
                break;
            }
            let mut index = chosen.next(0);
            // bound: the subgroups
            while index < self.subgroups.len() {
                if self.is_undisturbed(index) {
                    index = chosen.next(index.saturating_add(1));
                    continue;
                }
                let before = progress.delivered;
                let misbehaved =
                    self.step_subgroup(index, now, fabric, application, &mut progress)?;
                if progress.delivered != before {
                    between(self, fabric, application, &mut progress);
                }
                if let Some(Misbehaved(peer)) = misbehaved {
                    self.report_refused(index, &mut progress);
                    fabric.cut(self.view, peer);
                    self.lose(peer, LossCause::Misbehaved, &mut progress);
                }
                index = chosen.next(index.saturating_add(1));
            }
        }
        if !self.lagging.is_empty() {
            let (subgroups, senders, rows) = (&*self.subgroups, &*self.senders, self.rows);
            let mut poster = Poster::new(self.view, fabric, self.capabilities);
            poster.post(self.links, (self.lagging, subgroups.len()), |index, posted| {
                Shown::unless_posted(subgroups.get(index)?, posted, senders, rows)
            });
            let report = poster.report;
            if !report.held_back {
                self.lagging = SubgroupSet::NONE;
            }
            self.account(report, &mut progress);
        }
        Ok(progress)
    }

    /// Returns the outbox through which this node sends in a subgroup, or `None` if it does not
    /// send there. Any thread may use a copy.
    #[must_use]
    pub fn outbox(&self, subgroup: SubgroupId) -> Option<Outbox<'m>> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        let sender = state.senders.of(self.senders)?.get(own.rank.index())?;
        Outbox::at(self.row, &sender.ring, self.cells.get(own.handoff)?, own.ready.of(self.ready)?)
            .ok()
    }

    /// Returns this node's frontiers in a subgroup if the node belongs to it.
    #[must_use]
    pub fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let delivered = state.order?.place(state.next_round, state.next_sender);
        Some(Frontiers { received: state.received, delivered: Frontier(delivered.0) })
    }

    /// Returns a member's frontiers in an ordered subgroup as known here; the member with the
    /// lowest frontier holds the others back. Returns `None` if this node or the member does not
    /// belong to the subgroup.
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
        // A cell that fails its check is not used: the last known count is returned.
        let delivered = Frontier(shown.unwrap_or(member.delivered.count));
        Some(Frontiers { received: Frontier(member.received.count), delivered })
    }

    /// Returns the number of this node's messages in a subgroup that have been delivered here and
    /// are therefore stable. Dropped reservations count too. Returns `None` if this node does not
    /// send in the subgroup.
    #[must_use]
    pub fn own_delivered(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        let own = state.own.as_ref()?;
        Some(state.senders.of(self.senders)?.get(own.rank.index())?.hand.position)
    }

    /// Returns the number of this node's messages in a subgroup that have been delivered
    /// everywhere, as known here. The sender's copies of the large messages among them are no
    /// longer needed (RDM-7). Returns `None` if this node does not send in the subgroup.
    #[must_use]
    pub fn own_delivered_everywhere(&self, subgroup: SubgroupId) -> Option<Position> {
        let state = self.subgroups.iter().find(|state| state.id == subgroup)?;
        Some(state.own.as_ref()?.freed.position)
    }

    /// Returns whether the node is settled: everything that it has seen has been delivered,
    /// everything that it sent has been delivered everywhere, and no post waits. A settled node may
    /// sleep (IDL-1).
    #[must_use]
    pub fn is_settled(&self) -> bool {
        if !self.lagging.is_empty() || self.is_waiting_for_checks() {
            return false;
        }
        let delivered = self.senders.iter().all(|sender| sender.hand == sender.take);
        delivered && self.subgroups.iter().all(|subgroup| self.is_sent(subgroup))
    }

    /// Returns whether data of a peer failed a check in the last step, so that further steps must
    /// see whether it is repaired.
    pub(super) fn is_waiting_for_checks(&self) -> bool {
        self.checks.is_on() && is_any_waiting(self.senders, self.members)
    }

    /// Returns whether everything reserved in a subgroup has been sent and delivered everywhere.
    fn is_sent(&self, subgroup: &SubgroupState) -> bool {
        let Some(own) = subgroup.own.as_ref() else { return true };
        let state =
            subgroup.senders.of(self.senders).and_then(|senders| senders.get(own.rank.index()));
        let (Some(state), Some(outbox)) = (state, self.outbox(subgroup.id)) else { return false };
        state.take == own.freed && outbox.handoff().reserved() == state.take.position
    }

    /// Returns whether a peer is lost. With a fixed membership, nothing more becomes stable after a
    /// loss.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Returns this node's rank.
    #[must_use]
    pub const fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the view that this node was opened in.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.view
    }

    pub(super) fn take_events<F: Fabric>(&mut self, fabric: &mut F, progress: &mut Progress) {
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
                // In another view, the same rank belongs to another member.
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

    /// Stops reading from a peer and posting to it. Its frontiers remain where they were, so
    /// nothing becomes stable that the peer may lack.
    pub(super) fn lose(&mut self, peer: Rank, cause: LossCause, progress: &mut Progress) {
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
            // The first cause is the most likely one here too.
            link.denied |= !link.lost && cause == LossCause::Denied;
            link.lost = true;
        }
        self.lost = true;
        self.disturb_all();
        // The first cause is the most likely one; later ones may be its consequences.
        progress.lost.get_or_insert((peer, cause));
    }

    /// Returns whether a subgroup is at rest and no cell has brought work to it.
    #[inline(always)]
    fn is_undisturbed(&self, index: usize) -> bool {
        let Some(subgroup) = self.subgroups.get(index) else { return false };
        subgroup.is_at_rest && self.is_quiet(subgroup)
    }

    /// Returns whether no cell can bring work to a subgroup at rest.
    #[inline(always)]
    fn is_quiet(&self, subgroup: &SubgroupState) -> bool {
        let (senders, members) =
            (subgroup.senders.of(self.senders), subgroup.members.of(self.members));
        let (Some(senders), Some(members)) = (senders, members) else { return false };
        let (cells, rows, own_rank) = (self.cells, self.rows, self.rank);
        Rest { subgroup, senders, members, cells, rows, own_rank }.is_quiet()
    }

    /// Has each subgroup looked at completely by the next step, after a change to its state outside
    /// its own look.
    pub(super) fn disturb_all(&mut self) {
        // bound: the subgroups
        for subgroup in self.subgroups.iter_mut() {
            subgroup.is_at_rest = false;
        }
    }

    /// Runs the three stages of one subgroup. The caller posts their changes; without late posting,
    /// they are posted here after each stage.
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
        let subgroups = self.subgroups.len();
        let subgroup = self.subgroups.get_mut(index).ok_or(StepError::OutOfRow)?;
        let Some(order) = subgroup.order else {
            #[cfg(feature = "durable")]
            {
                let members = subgroup.members.of_mut(self.members).ok_or(StepError::OutOfRow)?;
                return Ok(see_durable(subgroup, members, self.rows, self.rank)?);
            }
            #[cfg(not(feature = "durable"))]
            return Ok(None);
        };
        let version = subgroup.version;
        let only = (SubgroupSet::only(index), subgroups);
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
            poster
                .post(self.links, only, |candidate, posted| work.shown(candidate == index, posted));
        }

        let observed = &*poster.fabric;
        let mut has_received = true;
        match work.receive(|| observed.observe_barrier()) {
            Ok(received) => {
                has_received = received.changed;
                progress.received = progress.received.saturating_add(received.slots);
                let nulls = work.acknowledge(received.changed, sent.slots > 0)?;
                progress.nulls = progress.nulls.saturating_add(nulls);
            }
            Err(ReceiveError::Misbehaved(peer)) => misbehaved = Some(peer),
            Err(ReceiveError::OutOfRow) => return Err(StepError::OutOfRow),
        }
        if early {
            poster
                .post(self.links, only, |candidate, posted| work.shown(candidate == index, posted));
        }

        let delivered = work.deliver(application)?;
        let freed = work.free_slots()?;
        #[cfg(feature = "durable")]
        let shrunk = see_durable(work.subgroup, work.members, work.rows, work.own_rank)?;
        #[cfg(not(feature = "durable"))]
        let shrunk = None;
        progress.freed = progress.freed.saturating_add(freed.slots);
        progress.delivered = progress.delivered.saturating_add(delivered.messages);
        if early {
            poster
                .post(self.links, only, |candidate, posted| work.shown(candidate == index, posted));
        }

        let changed = work.subgroup.version != version;
        let is_waiting = self.checks.is_on() && is_any_waiting(work.senders, work.members);
        let misbehaved = misbehaved.or(delivered.misbehaved).or(freed.misbehaved).or(shrunk);
        let has_worked = changed || has_received || freed.slots > 0;
        work.subgroup.is_at_rest = !has_worked && !is_waiting && misbehaved.is_none();
        if has_worked || is_waiting {
            self.attention.note_work(index);
        }
        if changed {
            self.lagging = self.lagging.with(SubgroupSet::only(index));
        }
        progress.unreadable |= is_waiting;
        let report = poster.report;
        self.account(report, progress);
        Ok(misbehaved)
    }

    /// Adds a subgroup's refusal to the step's report.
    #[cold]
    pub(super) fn report_refused(&mut self, index: usize, progress: &mut Progress) {
        let refused = self.subgroups.get_mut(index).and_then(|state| state.refused.take());
        progress.refused = progress.refused.or(refused.map(|refused| (refused.rank, refused.what)));
    }

    /// Adds the post stage's report to the step's.
    pub(super) fn account(&mut self, report: PostReport, progress: &mut Progress) {
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

/// Returns whether data of one of these peers failed a check, and may still be repaired.
fn is_any_waiting(senders: &[SenderState], members: &[MemberState]) -> bool {
    let of_sender = |sender: &SenderState| sender.unreadable.is_waiting() && !sender.lost;
    senders.iter().any(of_sender) || members.iter().any(MemberState::is_unreadable)
}

impl From<OutOfRow> for StepError {
    fn from(_: OutOfRow) -> Self {
        Self::OutOfRow
    }
}
