//! The step of a [`ViewNode`](super::ViewNode): the view protocol around the stages of a node's
//! step.
//!
//! Nodes with a fixed membership are not affected: they have no columns, no state and no branch for
//! views.
//!
//! Order of a step: the view protocol first, because a member that halts delivers nothing more;
//! then the stages (a wedged node runs only delivery); then the posts, with the view columns last.
//!
//! A due heartbeat is posted before the first upcall of a step and after each upcall. There is
//! therefore at most one upcall between two heartbeats, however many upcalls a step makes (VIE-2).
//!
//! Requirement: VIE-11.

use super::{Node, Progress, StepError};
use crate::fabric::{Fabric, LossCause};
use crate::ids::{Frontier, NodeId, Rank, SubgroupId, Time};
use crate::layout::Layout;
use crate::multicast::{
    Application, Control, Impossible, Misbehaved, Order, Poster, Shown, SubgroupSet, Work,
};
#[cfg(feature = "durable")]
use crate::view::Ballot;
use crate::view::{
    Cause, Host, Loss, NextView, PeerState, RowTable, Status, ViewChange, ViewState,
};

/// Number of checks per heartbeat interval in a view in which nothing changes.
const CHECKS_PER_HEARTBEAT: u32 = 3;

/// A record of the view columns that have been posted to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ViewLink {
    pub(super) version: u64,
    pub(super) heartbeats: u64,
}

impl ViewLink {
    /// An entry to be filled in by [`ViewNode::open`](super::ViewNode::open).
    pub const VACANT: Self = Self { version: 0, heartbeats: 0 };
}

/// The view protocol of one node.
#[derive(Debug)]
pub(super) struct Views<'m> {
    pub(super) layout: Layout<'m>,
    pub(super) state: ViewState,
    pub(super) table: RowTable<'m>,
    pub(super) peers: &'m mut [PeerState],
    pub(super) next: &'m mut [NodeId],
    pub(super) links: &'m mut [ViewLink],
    pub(super) next_check: Time,
    /// State that has been posted to every peer. Most steps only compare with it.
    pub(super) posted: ViewLink,
}

impl<'m> Views<'m> {
    /// Returns the operations of the view protocol over the local state, together with the table.
    pub(super) fn change(&mut self) -> (ViewChange<'_>, &mut RowTable<'m>) {
        let change = ViewChange::over(&self.layout, &mut self.state, self.peers, self.next);
        (change, &mut self.table)
    }

    /// Publishes a heartbeat if one is due, and returns whether it published one. It does nothing
    /// before the first step in this view.
    pub(super) fn beat(&mut self, now: Time) -> bool {
        self.state.started && !self.state.status.is_final() && self.state.beat(now, &mut self.table)
    }

    /// Returns whether everything published about the view has been posted to every peer that is
    /// neither lost nor suspected.
    pub(super) fn is_all_posted(&self) -> bool {
        let mut rank = Rank::ZERO;
        // bound: the members
        for link in self.links.iter() {
            let is_posted = link.version == self.table.version() || self.is_given_up(rank);
            if rank != self.state.rank && !is_posted {
                return false;
            }
            rank = rank.next();
        }
        true
    }

    /// Returns whether nothing more is posted to a peer. A peer that is suspected only because
    /// another member suspects it need not be lost here; and if the peer was never ready, no post
    /// to it will ever fail.
    pub(super) fn is_given_up(&self, rank: Rank) -> bool {
        self.state.suspects(&self.table, rank)
            || self.peers.get(rank.index()).is_none_or(PeerState::is_lost)
    }

    /// Returns whether all cells of all peers pass their checks. As long as one fails, the view
    /// protocol takes no step, because it would act on a value that the cell's owner has not
    /// published. A peer whose cells fail for too long is lost.
    fn is_readable(&mut self, progress: &mut Progress) -> bool {
        let mut all = true;
        // bound: the members
        for (rank, peer) in (0..=u16::MAX).map(Rank).zip(self.peers.iter_mut()) {
            let is_given_up = peer.is_lost() || self.state.suspects(&self.table, rank);
            let failed = rank != self.state.rank && !is_given_up && !self.table.is_readable(rank);
            if peer.unreadable.count(failed).is_err() {
                progress.refused.get_or_insert((rank, Impossible::CellCheck));
                progress.lost.get_or_insert((rank, LossCause::Misbehaved));
                peer.lost.get_or_insert(Loss::Misbehaved);
                self.next_check = Time::ZERO;
            } else if failed {
                all = false;
            }
        }
        if !all {
            progress.unreadable = true;
            self.next_check = Time::ZERO;
        }
        all
    }

    /// Records a loss that the fabric reported. The next step checks the view.
    pub(super) fn note_loss(&mut self, peer: Rank, loss: Loss) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.lost.get_or_insert(loss);
        }
        self.next_check = Time::ZERO;
    }
}

/// The caller's preparations, which a node requires before it agrees to a next view. For a member
/// that keeps nothing on disk, a closure that prepares the memory is enough.
pub trait Preparation {
    /// See [`Host::prepare`].
    fn prepare(&mut self, next: NextView<'_>) -> bool;

    /// Makes durable the promise of a sealed list, and everything that
    /// [`Application::append`](crate::multicast::Application::append) was shown before it, in this
    /// step or an earlier one. Returns true once both are durable; the call is repeated until then.
    /// A promise that differs from the previous one replaces it (DUR-6).
    #[cfg(feature = "durable")]
    fn promise(&mut self, _next: NextView<'_>, _ballot: Ballot) -> bool {
        true
    }
}

impl<F: FnMut(NextView<'_>) -> bool> Preparation for F {
    fn prepare(&mut self, next: NextView<'_>) -> bool {
        self(next)
    }
}

/// A node as seen by the view protocol.
struct Hosted<'h, 'm, F, A, P> {
    node: &'h mut Node<'m>,
    fabric: &'h mut F,
    application: &'h mut A,
    preparation: &'h mut P,
    progress: &'h mut Progress,
    /// Whether an upcall is still allowed in this step.
    may_call: bool,
    failed: Option<StepError>,
}

impl<F, A, P> Host for Hosted<'_, '_, F, A, P>
where
    F: Fabric,
    A: Application,
    P: Preparation,
{
    fn received(&self, subgroup: SubgroupId) -> Frontier {
        self.node.frontiers(subgroup).map_or(Frontier::ZERO, |frontiers| frontiers.received)
    }

    fn delivered(&self, subgroup: SubgroupId) -> Frontier {
        self.node.frontiers(subgroup).map_or(Frontier::ZERO, |frontiers| frontiers.delivered)
    }

    fn wedge(&mut self) {
        // Nothing remains to be done: while its view is not steady, a node is stepped without its
        // first two stages.
    }

    fn prepare(&mut self, next: NextView<'_>) -> bool {
        self.preparation.prepare(next)
    }

    #[cfg(feature = "durable")]
    fn promise(
        &mut self,
        next: NextView<'_>,
        ballot: Ballot,
        trim: impl Fn(SubgroupId) -> Option<Frontier>,
    ) -> Result<bool, Misbehaved> {
        match self.node.show_until(trim, self.application) {
            Ok(shown) => shown?,
            Err(error) => {
                self.failed = Some(error);
                return Ok(false);
            }
        }
        Ok(self.preparation.promise(next, ballot))
    }

    /// There is one upcall per step, and none in the step of the decision: the decision is first
    /// posted to the other members, and a heartbeat is posted between two upcalls.
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
            Cause::Silent | Cause::Lost | Cause::SuspectedBy(_) | Cause::Halted => {
                LossCause::Unreachable
            }
        };
        self.node.lose(peer, cause, self.progress);
    }
}

impl<'m> Node<'m> {
    /// See [`ViewNode::step`](super::ViewNode::step).
    pub(super) fn step_in_views<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        views: &mut Views<'m>,
        mut preparation: impl Preparation,
    ) -> Result<(Progress, Status), StepError> {
        let mut progress = Progress::default();
        if views.state.status().is_final() {
            self.post_views(fabric, views, &mut progress);
            return Ok((progress, views.state.status()));
        }
        if now >= views.next_check || views.state.status() != Status::Steady {
            let interval = views.state.options.heartbeat_interval_ns;
            views.next_check = now
                .after(interval.checked_div(u64::from(CHECKS_PER_HEARTBEAT)).unwrap_or(interval));
            self.beat(now, fabric, views, &mut progress);
            let is_first = !views.state.started;
            let is_readable = views.is_readable(&mut progress);
            let may_call = views.state.status() == Status::Decided;
            let mut host = Hosted {
                node: self,
                fabric,
                application,
                preparation: &mut preparation,
                progress: &mut progress,
                may_call,
                failed: None,
            };
            if is_readable {
                let (mut change, table) = views.change();
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
                // Nothing was sent in this view that these posts would have to follow.
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
            // bound: the links. Several may be lost at once, but a step reports only one.
            for link in self.links.iter().filter(|link| link.lost) {
                views.note_loss(link.peer, if link.denied { Loss::Denied } else { Loss::Reported });
            }
        }
        progress.add(&stages);
        self.post_views(fabric, views, &mut progress);
        Ok((progress, views.state.status()))
    }

    /// Runs the rest of a step once the view ends: delivery of stable messages, and posts.
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
        // bound: the subgroups
        while index < self.subgroups.len() {
            let delivered =
                self.with_work(index, |work| work.deliver(application))?.unwrap_or_default();
            progress.delivered = progress.delivered.saturating_add(delivered.messages);
            if let Some(Misbehaved(peer)) = delivered.misbehaved {
                self.report_refused(index, &mut progress);
                fabric.cut(self.view, peer);
                self.lose(peer, LossCause::Misbehaved, &mut progress);
            }
            if delivered.messages > 0 {
                self.beat(application.now(now), fabric, views, &mut progress);
            }
            index = index.saturating_add(1);
        }
        progress.unreadable |= self.is_waiting_for_checks();
        self.post_lagging(fabric, &mut progress);
        Ok(progress)
    }

    /// Posts as [`Node::step`] does at its end. `Node::step` has its own copy of this code, because
    /// a shared function would cost a step with a fixed membership one call and 1,000 bytes of
    /// stack.
    fn post_lagging<F: Fabric>(&mut self, fabric: &mut F, progress: &mut Progress) {
        if self.lagging.is_empty() {
            return;
        }
        let (subgroups, senders, rows) = (&*self.subgroups, &*self.senders, self.rows);
        let mut poster = Poster::new(self.view, fabric, self.capabilities);
        poster.post(self.links, (self.lagging, subgroups.len()), |index, posted| {
            Shown::unless_posted(subgroups.get(index)?, posted, senders, rows)
        });
        let report = poster.report;
        if !report.held_back {
            self.lagging = SubgroupSet::NONE;
        }
        self.account(report, progress);
    }

    /// Delivers a subgroup up to the position where its view ends, and returns whether that is
    /// done. The inner error is a member whose slots changed after receipt.
    fn deliver_to<A: Application>(
        &mut self,
        subgroup: SubgroupId,
        trim: Frontier,
        application: &mut A,
        progress: &mut Progress,
    ) -> Result<Result<bool, Misbehaved>, StepError> {
        let mut index = 0_usize;
        // bound: the subgroups
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
        self.lagging = SubgroupSet::ALL;
        if let Some(misbehaved) = delivered.misbehaved {
            self.report_refused(index, progress);
            return Ok(Err(misbehaved));
        }
        Ok(Ok(self.is_delivered_to(subgroup, trim)))
    }

    /// Shows the application the undelivered messages of each logged subgroup up to its trim. The
    /// inner error is a member whose slots changed after receipt.
    #[cfg(feature = "durable")]
    fn show_until<A: Application>(
        &mut self,
        trim: impl Fn(SubgroupId) -> Option<Frontier>,
        application: &mut A,
    ) -> Result<Result<(), Misbehaved>, StepError> {
        let mut index = 0_usize;
        // bound: the subgroups
        while let Some(state) = self.subgroups.get(index) {
            if let Some(trim) = trim(state.id) {
                let shown = self.with_work(index, |work| Ok(work.show_until(application, trim)))?;
                if let Some(Err(misbehaved)) = shown {
                    return Ok(Err(misbehaved));
                }
            }
            index = index.saturating_add(1);
        }
        Ok(Ok(()))
    }

    /// Returns whether a subgroup has been delivered up to `trim`, or is not one of this node's.
    fn is_delivered_to(&self, subgroup: SubgroupId, trim: Frontier) -> bool {
        self.frontiers(subgroup).is_none_or(|frontiers| frontiers.delivered >= trim)
    }

    /// Publishes and posts a heartbeat if one is due.
    pub(super) fn beat<F: Fabric>(
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

    /// Runs a stage of one subgroup, or returns `None` if it has no senders.
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
        subgroup.is_at_rest = false;
        let control = Control::new(self.row, subgroup);
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
            messages_max: self.options.messages_max.max(1),
            capabilities: self.capabilities,
        };
        Ok(Some(stage(&mut work)?))
    }
}

impl Progress {
    /// Adds the results of another stage of the step.
    fn add(&mut self, other: &Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.received = self.received.saturating_add(other.received);
        self.nulls = self.nulls.saturating_add(other.nulls);
        self.delivered = self.delivered.saturating_add(other.delivered);
        self.freed = self.freed.saturating_add(other.freed);
        self.lists = self.lists.saturating_add(other.lists);
        self.writes = self.writes.saturating_add(other.writes);
        self.heartbeats = self.heartbeats.saturating_add(other.heartbeats);
        self.overdue = self.overdue.or(other.overdue);
        self.refused = self.refused.or(other.refused);
        self.unreadable |= other.unreadable;
        self.lost = self.lost.or(other.lost);
    }
}
