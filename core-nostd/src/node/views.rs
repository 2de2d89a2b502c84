//! A node whose membership may change: the view protocol around the stages of a step.
//!
//! [`Node::step_in_views`] takes the place of [`Node::step`]. A node of a fixed membership is never touched
//! by anything here: it has no columns, no state and no branch for it.
//!
//! The order of a step: the view protocol first, since a member that halts delivers nothing more; then the
//! stages, of which a wedged node keeps delivery only; then the posts, the columns of the view last.
//!
//! A heartbeat that is due goes out before the first upcall of a step and after each: between two heartbeats there is one
//! upcall at most, however many a step makes (VIE-2).

use super::{Node, Progress, StepError};
use crate::fabric::{Fabric, LossCause, Promises};
use crate::ids::{Frontier, NodeId, Rank, SubgroupId, Time};
use crate::layout::{Layout, ViewColumn};
use crate::multicast::{Application, Control, Misbehaved, Order, Poster, Shown, Work};
use crate::view::{
    Cause, Host, Loss, NextView, PeerState, RowTable, Status, Table, ViewChange, ViewState, flag_of,
};

/// Between two looks at a view in which nothing changes: so many to a heartbeat.
const LOOKS_A_HEARTBEAT: u32 = 3;

/// What a node remembers of the view columns that it posted to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ViewLink {
    pub(super) version: u64,
    pub(super) heartbeats: u64,
}

/// Private state of the view protocol, as long as it says. What it holds does not matter.
#[derive(Debug)]
pub struct ViewLoan<'m> {
    /// One a member.
    pub peers: &'m mut [PeerState],
    /// As many as the next view may have members, and at least as many as this one has.
    pub next: &'m mut [NodeId],
    /// One a member.
    pub links: &'m mut [ViewLink],
}

/// The view protocol of one node.
#[derive(Debug)]
pub struct Views<'m> {
    pub(super) layout: Layout<'m>,
    state: ViewState,
    pub(super) table: RowTable<'m>,
    pub(super) loan: ViewLoan<'m>,
    next_look: Time,
    /// Everyone was sent this; most steps have no more to do than to see so.
    pub(super) told: ViewLink,
}

/// Why a node cannot take part in views. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ViewError {
    /// The layout has no columns for views, or a slice is too short.
    WrongState = 1,
    /// The fabric does not keep writes in order.
    NoWriteOrder = 2,
    /// The fabric's limits are too small: four writes a list, the columns in one write, 24 bytes a guard.
    FabricTooSmall = 3,
}

impl core::fmt::Display for ViewError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::WrongState => "the layout or the lent state is not made for views",
            Self::NoWriteOrder => "views need a fabric that keeps writes in order",
            Self::FabricTooSmall => {
                "the fabric takes too few bytes a write for the columns of a view"
            }
        })
    }
}

impl core::error::Error for ViewError {}

impl<'m> Views<'m> {
    /// Requests, and what is known of the view: see [`ViewChange`].
    pub fn change(&mut self) -> Option<(ViewChange<'_>, &mut RowTable<'m>)> {
        let change =
            ViewChange::new(&self.layout, &mut self.state, self.loan.peers, self.loan.next)?;
        Some((change, &mut self.table))
    }

    /// How far this member is.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status()
    }

    /// Publishes a heartbeat, if one is due. Not before the view has begun here: its first step says so.
    pub(super) fn beat(&mut self, now: Time) -> bool {
        self.state.started && !self.state.status.is_final() && self.state.beat(now, &mut self.table)
    }

    /// Whether every peer that is neither lost nor suspected was sent all that there is to know of the view.
    #[must_use]
    pub fn is_told(&self) -> bool {
        let mut rank = Rank::ZERO;
        for link in self.loan.links.iter() {
            let told = link.version == self.table.version() || self.is_given_up(rank);
            if rank != self.state.rank && !told {
                return false;
            }
            rank = rank.next();
        }
        true
    }

    /// Whether nothing goes out to a peer any more. Who is suspected because another member suspects it need not be
    /// lost here, and if it never was ready no post will ever say so.
    pub(super) fn is_given_up(&self, rank: Rank) -> bool {
        let (word, flag) = flag_of(rank);
        let suspicions = self.table.load(self.state.rank, ViewColumn::Suspicions(word));
        suspicions & flag != 0 || self.loan.peers.get(rank.index()).is_none_or(PeerState::is_lost)
    }

    /// Says that the fabric cannot reach a peer any more, and looks at the view in the next step.
    pub fn peer_lost(&mut self, peer: Rank) {
        self.note_loss(peer, Loss::Reported);
    }

    /// Says that a peer takes nothing from this member any more, as [`ViewChange::denied_by`], and looks at the view in the
    /// next step.
    pub fn denied_by(&mut self, peer: Rank) {
        self.note_loss(peer, Loss::Denied);
    }

    /// What the fabric said of a peer, to be looked at in the next step.
    pub(super) fn note_loss(&mut self, peer: Rank, loss: Loss) {
        if let Some(peer) = self.loan.peers.get_mut(peer.index()) {
            peer.lost.get_or_insert(loss);
        }
        self.next_look = Time::ZERO;
    }
}

/// A node as the view protocol sees it.
struct Hosted<'h, 'm, F, A, P> {
    node: &'h mut Node<'m>,
    fabric: &'h mut F,
    application: &'h mut A,
    prepare: &'h mut P,
    progress: &'h mut Progress,
    /// Whether there may be an upcall yet in this step.
    may_call: bool,
    failed: Option<StepError>,
}

impl<F, A, P> Host for Hosted<'_, '_, F, A, P>
where
    F: Fabric,
    A: Application,
    P: FnMut(NextView<'_>) -> bool,
{
    fn received(&self, subgroup: SubgroupId) -> Frontier {
        self.node.frontiers(subgroup).map_or(Frontier::ZERO, |frontiers| frontiers.received)
    }

    fn delivered(&self, subgroup: SubgroupId) -> Frontier {
        self.node.frontiers(subgroup).map_or(Frontier::ZERO, |frontiers| frontiers.delivered)
    }

    fn wedge(&mut self) {
        // A node whose view is not steady is stepped without its first two stages.
    }

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        (self.prepare)(next)
    }

    /// One upcall a step, and none in that of the decision: the others are told of it first, and of life between two.
    fn deliver_to(&mut self, subgroup: SubgroupId, trim: Frontier) -> Result<bool, Misbehaved> {
        if !self.may_call {
            return Ok(self.node.is_delivered_to(subgroup, trim));
        }
        let before = self.progress.delivered;
        let done = match self.node.deliver_to(subgroup, trim, self.application, self.progress) {
            Ok(done) => done,
            Err(error) => {
                self.failed = Some(error);
                Ok(false)
            }
        };
        self.may_call = self.progress.delivered == before;
        done
    }

    fn observe(&self) {
        self.fabric.observe_barrier();
    }

    fn cut(&mut self, peer: Rank, cause: Cause) {
        self.fabric.cut(self.node.view, peer);
        let cause = match cause {
            Cause::Misbehaved => LossCause::Misbehaved,
            Cause::Silent | Cause::Lost | Cause::Told(_) | Cause::Halted => LossCause::Unreachable,
        };
        self.node.lose(peer, cause, self.progress);
    }
}

impl<'m> Node<'m> {
    /// The view protocol of this node, at the start of its view. `layout` is the one it was opened with.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub fn views(
        &self,
        layout: Layout<'m>,
        state: ViewState,
        loan: ViewLoan<'m>,
    ) -> Result<Views<'m>, ViewError> {
        let mut checked = state;
        let fits = ViewChange::new(&layout, &mut checked, loan.peers, loan.next).is_some();
        let block = layout.view_block().ok_or(ViewError::WrongState)?;
        if !fits
            || loan.links.len() != layout.members()
            || state.rank != self.rank
            || state.id != self.view
        {
            return Err(ViewError::WrongState);
        }
        let capabilities = &self.capabilities;
        if !capabilities.promises.contains(Promises::WRITE_ORDER) {
            return Err(ViewError::NoWriteOrder);
        }
        if capabilities.writes_max < 4
            || capabilities.guard_bytes_max < 24
            || capabilities.write_bytes_max < block.bytes()
        {
            return Err(ViewError::FabricTooSmall);
        }
        loan.links.iter_mut().for_each(|link| *link = ViewLink::default());
        let table = RowTable::new(&layout, self.rank, self.rows, self.row);
        Ok(Views { layout, state, table, loan, next_look: Time::ZERO, told: ViewLink::default() })
    }

    /// As [`Node::step`], in a group whose membership may change. `prepare` is asked to make the next view's
    /// memory ready, and to say when it is ([`Host::prepare`]). Once the status is final, only what peers still
    /// have to be told is left: step on until [`Views::is_told`].
    ///
    /// # Errors
    /// As [`Node::step`].
    pub fn step_in_views<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        views: &mut Views<'m>,
        mut prepare: impl FnMut(NextView<'_>) -> bool,
    ) -> Result<(Progress, Status), StepError> {
        let mut progress = Progress::default();
        if views.state.status().is_final() {
            self.post_views(fabric, views, &mut progress);
            return Ok((progress, views.state.status()));
        }
        if now >= views.next_look || views.state.status() != Status::Steady {
            let interval = views.state.options.heartbeat_interval_ns;
            views.next_look =
                now.after(interval.checked_div(u64::from(LOOKS_A_HEARTBEAT)).unwrap_or(interval));
            self.beat(now, fabric, views, &mut progress);
            let is_first = !views.state.started;
            let may_call = views.state.status() == Status::Decided;
            let mut host = Hosted {
                node: self,
                fabric,
                application,
                prepare: &mut prepare,
                progress: &mut progress,
                may_call,
                failed: None,
            };
            let Views { layout, state, table, loan, .. } = views;
            if let Some(mut change) = ViewChange::new(layout, state, loan.peers, loan.next) {
                change.step(now, table, &mut host);
            }
            let called = may_call && !host.may_call;
            if let Some(error) = host.failed {
                return Err(error);
            }
            if called {
                self.beat(application.now(now), fabric, views, &mut progress);
            }
            if is_first {
                // Nothing was sent in this view that these would have to come after.
                self.post_views(fabric, views, &mut progress);
            }
        }
        let stages = match views.state.status() {
            Status::Steady => self.step_stages(
                now,
                fabric,
                application,
                |node, fabric, application, progress| {
                    node.beat(application.now(now), fabric, views, progress);
                },
            )?,
            Status::Halted(_) => Progress::default(),
            Status::Wedged | Status::Decided | Status::Installed | Status::Left => {
                self.step_wedged(now, fabric, application, views)?
            }
        };
        if let Some((peer, cause)) = stages.lost {
            views.note_loss(
                peer,
                match cause {
                    LossCause::Denied => Loss::Denied,
                    LossCause::Misbehaved => Loss::Misbehaved,
                    LossCause::Left | LossCause::Exited | LossCause::Unreachable => Loss::Reported,
                },
            );
            // Several may have gone at once, and a step names one.
            for link in self.links.iter().filter(|link| link.lost) {
                views.note_loss(link.peer, if link.denied { Loss::Denied } else { Loss::Reported });
            }
        }
        progress.add(&stages);
        self.post_views(fabric, views, &mut progress);
        Ok((progress, views.state.status()))
    }

    /// What is left of a step once the view ends: delivery of what is stable, and posts.
    fn step_wedged<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        views: &mut Views<'m>,
    ) -> Result<Progress, StepError> {
        let mut progress = Progress::default();
        self.take_events(fabric, &mut progress);
        let mut index = 0_usize;
        while index < self.subgroups.len() {
            let delivered =
                self.with_work(index, |work| work.deliver(application))?.unwrap_or_default();
            progress.delivered = progress.delivered.saturating_add(delivered.messages);
            if let Some(Misbehaved(peer)) = delivered.misbehaved {
                fabric.cut(self.view, peer);
                self.lose(peer, LossCause::Misbehaved, &mut progress);
            }
            if delivered.messages > 0 {
                self.beat(application.now(now), fabric, views, &mut progress);
            }
            index = index.saturating_add(1);
        }
        self.post_lagging(fabric, &mut progress);
        Ok(progress)
    }

    /// As the end of [`Node::step`], which has its own copy: one of both would cost a step of a fixed membership a
    /// call and 1,000 bytes of stack.
    fn post_lagging<F: Fabric>(&mut self, fabric: &mut F, progress: &mut Progress) {
        if !self.lagging {
            return;
        }
        let (subgroups, senders) = (&*self.subgroups, &*self.senders);
        let mut poster = Poster::new(self.view, fabric, self.capabilities);
        poster.post(self.links, |index| {
            let subgroup = subgroups.get(index)?;
            Some(Shown::of(subgroup, subgroup.senders.of(senders)?))
        });
        let report = poster.report;
        self.lagging = report.held_back;
        self.account(report, progress);
    }

    /// Delivers a subgroup up to the place where its view ends; true once that is done. Within: a member whose slots do not
    /// say any more what they said.
    fn deliver_to<A: Application>(
        &mut self,
        subgroup: SubgroupId,
        trim: Frontier,
        application: &mut A,
        progress: &mut Progress,
    ) -> Result<Result<bool, Misbehaved>, StepError> {
        let mut index = 0_usize;
        while self.subgroups.get(index).is_some_and(|state| state.id != subgroup) {
            index = index.saturating_add(1);
        }
        if index >= self.subgroups.len() {
            return Ok(Ok(true));
        }
        let delivered = self
            .with_work(index, |work| work.deliver_until(application, trim))?
            .unwrap_or_default();
        progress.delivered = progress.delivered.saturating_add(delivered.messages);
        self.lagging = true;
        if let Some(misbehaved) = delivered.misbehaved {
            return Ok(Err(misbehaved));
        }
        Ok(Ok(self.is_delivered_to(subgroup, trim)))
    }

    /// Whether a subgroup is delivered up to a place, or is none of this node's.
    fn is_delivered_to(&self, subgroup: SubgroupId, trim: Frontier) -> bool {
        self.frontiers(subgroup).is_none_or(|frontiers| frontiers.delivered >= trim)
    }

    /// Says to all peers that this member lives, if a heartbeat is due: between two long calls of the application that no
    /// step makes. At most one short write a peer.
    pub fn show_life<F: Fabric>(
        &mut self,
        now: Time,
        fabric: &mut F,
        views: &mut Views<'m>,
    ) -> Progress {
        let mut progress = Progress::default();
        self.beat(now, fabric, views, &mut progress);
        progress
    }

    fn beat<F: Fabric>(
        &mut self,
        now: Time,
        fabric: &mut F,
        views: &mut Views<'m>,
        progress: &mut Progress,
    ) {
        if views.beat(now) {
            self.post_heartbeat(fabric, views, progress);
        }
    }

    /// Runs a stage of one subgroup; nothing where nobody sends.
    fn with_work<R>(
        &mut self,
        index: usize,
        stage: impl FnOnce(&mut Work<'_, 'm>) -> Result<R, crate::memory::OutOfRow>,
    ) -> Result<Option<R>, StepError> {
        let subgroup = self.subgroups.get_mut(index).ok_or(StepError::OutOfRow)?;
        let order: Order = match subgroup.order {
            Some(order) => order,
            None => return Ok(None),
        };
        let control = Control::new(self.row, subgroup.control);
        let mut work = Work {
            order,
            senders: subgroup.senders.of_mut(self.senders).ok_or(StepError::OutOfRow)?,
            members: subgroup.members.of_mut(self.members).ok_or(StepError::OutOfRow)?,
            subgroup,
            rows: self.rows,
            outbox: None,
            control,
            own_rank: self.rank,
            switches: self.options.switches,
            capabilities: self.capabilities,
        };
        Ok(Some(stage(&mut work)?))
    }
}
