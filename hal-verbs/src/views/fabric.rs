//! The `Fabric` over RDMA over all views of a member.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, LossCause, Token, ViewMemory, ViewRows,
    Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::cards::Cards;
use super::regions::VIEWS_MAX;
use crate::fabric::{Loss, LossReason, Verbs};
use crate::protocol::Counters;
use crate::site::{JoinError, REGIONS_MAX, RegionMemory, Site};
use crate::status::WorkStatus;

/// The reason that a view or a region has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoView {
    /// The device cannot provide the memory.
    #[error(transparent)]
    Device(#[from] JoinError),
    /// The side channel cannot provide the memory.
    #[error("the side channel does not have enough memory for the view: {0}")]
    SideChannel(Box<dyn std::error::Error + Send + Sync>),
    /// A view has already been created, and would not include the region.
    #[error("a view has already been created; create all regions before the first view")]
    RegionAfterView,
    /// The region has already been created.
    #[error("region {0} has already been created; give each region its own number")]
    RegionTwice(u16),
    /// The maximum number of regions has been reached.
    #[error("this process already has {REGIONS_MAX} regions, the maximum; use fewer regions")]
    TooManyRegions,
}

/// A view that this member has created.
#[derive(Debug)]
pub(super) struct OpenView<R> {
    pub(super) id: ViewId,
    pub(super) verbs: Verbs,
    pub(super) cards: Cards<R>,
    /// Whether the view is to be retired, but still has something in flight.
    pub(super) is_retiring: bool,
    /// Whether the view has ended on the side channel.
    pub(super) has_ended_on_side_channel: bool,
    /// Whether the view's descriptor is watched.
    pub(super) is_watched: bool,
}

impl<R: ViewRows> OpenView<R> {
    fn rank_of(&self, node: NodeId) -> Option<Rank> {
        let members = self.verbs.rows().members();
        let rank = members.iter().position(|member| *member == node)?;
        u16::try_from(rank).ok().map(Rank)
    }

    /// Watches the view's descriptor once it exists. Closing the descriptor ends the watch.
    fn watch(&mut self, descriptors: &OwnedFd) {
        let (data, flags) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
        let Some(completions) = self.verbs.completions() else { return };
        if self.is_watched {
            return;
        }
        self.is_watched = true;
        if let Err(error) = epoll::add(descriptors, completions, data, flags) {
            tracing::warn!(view = %self.id, %error, "cannot wait for a view's device");
            self.verbs.lose_all(LossCause::Unreachable);
        }
    }

    /// Returns whether this member is waiting for a peer or for anything else.
    fn is_meeting(&self) -> bool {
        let is_to_come = self.verbs.is_building() || self.verbs.completions().is_some();
        !self.cards.is_done() || (!self.is_watched && is_to_come)
    }

    fn lose(&mut self, peer: Rank, cause: LossCause) {
        self.cards.forget(peer);
        self.verbs.lose_peer(peer, cause);
    }
}

/// The fabric of one member over RDMA, over all its views.
///
/// `S` is the side channel: a fabric over which members exchange the addresses of their memory and
/// notice that a member is gone.
#[derive(Debug)]
pub struct RdmaViews<S: HostFabric> {
    // This field is the first, so that queue pairs are destroyed before the device is closed.
    /// Oldest first.
    pub(super) views: Vec<OpenView<S::Rows>>,
    /// Views that have been created but not opened yet.
    pub(super) made: Vec<OpenView<S::Rows>>,
    /// Views that are no longer in use. Workers destroy their remaining objects.
    pub(super) forgotten: Vec<OpenView<S::Rows>>,
    pub(super) site: Site,
    /// The regions of this process.
    pub(super) regions: Vec<RegionMemory>,
    /// Whether a view has been created, after which regions cannot be created.
    pub(super) has_made_views: bool,
    pub(super) side_channel: S,
    /// Watches the side channel, the device, and the open views.
    pub(super) descriptors: OwnedFd,
    /// Whether the device is watched. A failed device is not watched, because its descriptor may
    /// stay readable forever.
    pub(super) is_device_watched: bool,
    /// Whether the next poll checks the side channel.
    pub(super) is_look_due: bool,
    /// The counters of views that no longer exist.
    pub(super) ended: Counters,
    /// Peers that could not be reached: see `Figures::losses`.
    pub(super) losses: Vec<(&'static str, u64)>,
    /// Whether this member has been rung.
    is_rung: bool,
    /// The index of the view that is polled first.
    turn: usize,
    /// Whether views have been polled since permission events were last requested.
    pub(super) has_polled: bool,
    /// Whether the device sealed a peer's copy since the last poll that found nothing.
    has_sealed: bool,
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// Creates the fabric of a member on a chosen device, with the side channel.
    ///
    /// From then on, workers create and destroy connections.
    ///
    /// # Errors
    /// Fails if the system has no descriptors or threads left.
    pub fn new(mut site: Site, side_channel: S) -> std::io::Result<Self> {
        site.start_workers()?;
        let descriptors = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(
            &descriptors,
            &side_channel,
            epoll::EventData::new_u64(0),
            epoll::EventFlags::IN,
        )?;
        if let Some(news) = site.workers().news() {
            epoll::add(&descriptors, news, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        let mut members = Self {
            views: Vec::new(),
            made: Vec::new(),
            forgotten: Vec::new(),
            site,
            regions: Vec::new(),
            has_made_views: false,
            side_channel,
            descriptors,
            is_device_watched: false,
            is_look_due: true,
            ended: Counters::default(),
            losses: Vec::new(),
            is_rung: false,
            turn: 0,
            has_polled: false,
            has_sealed: false,
        };
        members.watch_device()?;
        Ok(members)
    }

    /// Returns the side channel.
    pub const fn side_channel(&self) -> &S {
        &self.side_channel
    }

    /// Returns the side channel mutably, to add and remove peers. The next poll checks it.
    pub const fn side_channel_mut(&mut self) -> &mut S {
        self.is_look_due = true;
        &mut self.side_channel
    }

    /// Processes what has arrived, and makes progress with peers that are not connected yet, like a
    /// [`poll`](Fabric::poll) that leaves events in place.
    pub fn carry(&mut self) {
        self.look_at_side_channel();
        for view in &mut self.views {
            view.verbs.collect();
        }
    }

    /// Requests a completion for everything in flight without one, if there is room.
    pub fn flush(&mut self) {
        self.views.iter_mut().for_each(|view| view.verbs.flush());
    }

    /// Returns whether workers are creating or destroying connections.
    #[must_use]
    pub fn is_building(&self) -> bool {
        let views = self.views.iter().chain(&self.made).chain(&self.forgotten);
        views.into_iter().any(|view| view.verbs.is_building())
    }

    /// Returns the number of requests not known to be complete.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.views.iter().map(|view| view.verbs.in_flight()).sum()
    }

    /// Returns the counters of the newest view.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.views.last().map(|view| *view.verbs.counters()).unwrap_or_default()
    }

    /// Returns the reason that a peer counts as lost in a view, or `None` if it does not.
    #[must_use]
    pub fn loss_of(&self, view: ViewId, peer: Rank) -> Option<&Loss> {
        self.view(view)?.verbs.loss_of(peer)
    }

    /// Returns the error of a peer that was lost before it was ready: either an object for it could
    /// not be created, or it does not answer.
    #[must_use]
    pub fn no_answer(&mut self, view: ViewId, peer: Rank) -> JoinError {
        let failure = self.view_mut(view).and_then(|view| view.verbs.take_failure());
        if let Some(failure) = failure {
            return failure;
        }
        let report = self.site.report();
        let members = self.view(view).map(|view| view.verbs.rows().members());
        let node = members.and_then(|members| members.get(peer.index()).copied());
        JoinError::NoAnswer {
            device: report.choice.name,
            peer: node.unwrap_or_default(),
            own: report.choice.gid.address,
            why: self.loss_of(view, peer).map_or("no answer arrived in time".into(), |loss| {
                format!("{loss}{}", loss.advice())
            }),
        }
    }

    pub(super) fn view(&self, id: ViewId) -> Option<&OpenView<S::Rows>> {
        self.views.iter().find(|view| view.id == id)
    }

    pub(super) fn view_mut(&mut self, id: ViewId) -> Option<&mut OpenView<S::Rows>> {
        self.views.iter_mut().find(|view| view.id == id)
    }

    /// Processes the side channel's events, and makes progress with peers that are not connected
    /// yet.
    #[cold]
    pub(super) fn look_at_side_channel(&mut self) {
        self.is_look_due = false;
        self.site.workers().go_on();
        let Self { views, side_channel, is_rung, descriptors, .. } = self;
        while let Some(event) = side_channel.poll() {
            match event {
                Event::PeerLost { view, peer, cause } => {
                    if let Some(view) = views.iter_mut().find(|open| open.id == view) {
                        view.lose(peer, cause);
                    }
                }
                Event::Woken => *is_rung = true,
                Event::Ready { .. } | Event::Completed(_) => {}
            }
        }
        for view in views {
            view.watch(descriptors);
            let OpenView { verbs, cards, .. } = view;
            if !cards.is_done() {
                cards.advance(side_channel, verbs);
            }
        }
        // This sends recent posts before the member can fall asleep.
        side_channel.check_peers();
    }

    /// Returns whether any peer is awaited.
    fn is_meeting(&self) -> bool {
        self.views.iter().any(OpenView::is_meeting)
    }

    /// Seals the copy of one lost peer, unless another has been sealed since the last poll that
    /// found nothing: a step that polls until nothing is left makes at most one device command.
    #[inline]
    fn seal_one(&mut self) -> bool {
        let may_seal = !std::mem::take(&mut self.has_sealed);
        self.has_sealed = may_seal && self.views.iter_mut().any(|view| view.verbs.seal_one());
        self.has_sealed
    }

    /// Polls the views in turn, starting after the one that last had an event, so that no view
    /// waits for another that always has events.
    #[inline]
    pub(super) fn poll_in_turn<T>(
        &mut self,
        mut poll: impl FnMut(&mut OpenView<S::Rows>) -> Option<T>,
    ) -> Option<T> {
        let count = self.views.len();
        let first = if self.turn < count { self.turn } else { 0 };
        let (before, from) = self.views.split_at_mut(first);
        let found = (first..).zip(from).chain((0..).zip(before)).find_map(|(place, view)| {
            let found = poll(view)?;
            Some((place, found))
        });
        found.map(|(place, found)| {
            self.turn = place + 1;
            found
        })
    }

    fn poll_views(&mut self) -> Option<Event> {
        let event = self.poll_in_turn(|view| view.verbs.poll())?;
        let Event::PeerLost { view, peer, cause } = event else { return Some(event) };
        // If this member has been cut off, its writes stay unanswered, as if the others were dead.
        // Only the others' last words on the side channel show the difference.
        self.look_at_side_channel();
        self.explain(view, peer);
        let loss = self.view(view).and_then(|open| open.verbs.loss_of(peer));
        Some(Event::PeerLost { view, peer, cause: loss.map_or(cause, |loss| loss.cause) })
    }

    /// Returns whether this member's own port has no link.
    fn has_no_link(&self) -> bool {
        self.site.is_link_down() || self.site.lacks_link()
    }

    /// Logs why a peer cannot be reached, with the state of the port.
    fn explain(&mut self, view: ViewId, peer: Rank) {
        let (news, _) = self.check_device();
        let has_lost_link = news.has_lost_link() || self.has_no_link();
        let choice = self.site.choice().clone();
        let Some(open) = self.view_mut(view) else { return };
        if has_lost_link {
            open.verbs.explain(peer, LossReason::NoLink);
        }
        let node = open.verbs.rows().members().get(peer.index());
        let Some(loss) = open.verbs.loss_of(peer) else { return };
        if loss.cause != LossCause::Unreachable {
            return;
        }
        tracing::warn!(
            node = node.map(|node| node.get()),
            %view,
            device = choice.name,
            port = choice.port,
            %loss,
            "a peer is lost"
        );
        let status = loss.status.map_or("none", WorkStatus::name);
        self.count_loss(status);
    }

    /// Makes progress with views that were ended with requests in flight and are no longer in use.
    pub(super) fn retire_rest(&mut self) {
        let Self { views, forgotten, side_channel, ended, .. } = self;
        let mut is_kept = |view: &OpenView<S::Rows>, is_over: bool| {
            if is_over {
                *ended += *view.verbs.counters();
            }
            !is_over
        };
        forgotten.retain_mut(|view| {
            let is_over = view.verbs.retire(view.id);
            is_kept(view, is_over)
        });
        views.retain_mut(|view| {
            if !view.is_retiring {
                return true;
            }
            let is_over = view.verbs.retire(view.id);
            // Nothing is in flight, so another view may take its place, even if objects have yet to
            // be destroyed.
            if view.verbs.has_ended()
                && !std::mem::replace(&mut view.has_ended_on_side_channel, true)
            {
                side_channel.retire(view.id);
            }
            is_kept(view, is_over)
        });
    }
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> Fabric for RdmaViews<S> {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.site.capabilities()
    }

    /// # Errors
    /// Fails with [`ErrorKind::Other`] if the view is open, the limit on open views has been
    /// reached, or the side channel does not open the view; and with [`ErrorKind::WrongMemory`] if
    /// [`HostFabric::rows`] did not allocate the memory for this view, or if the memory has already
    /// been used.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        let at_work = self.views.iter().filter(|open| !open.is_retiring);
        if self.view(view).is_some_and(|open| !open.is_retiring) || at_work.count() >= VIEWS_MAX {
            return Err(ErrorKind::Other);
        }
        let is_it = |made: &OpenView<S::Rows>| made.id == view && made.verbs.rows().is(memory);
        let place = self.made.iter().position(is_it).ok_or(ErrorKind::WrongMemory)?;
        // This list of members has been replaced with another one under the same view.
        if let Some(place) = self.views.iter().position(|open| open.id == view) {
            let replaced = self.views.remove(place);
            if !replaced.has_ended_on_side_channel {
                self.side_channel.retire(view);
            }
            self.forgotten.push(replaced);
        }
        let mut opened = self.made.swap_remove(place);
        opened.cards.open(&mut self.side_channel)?;
        opened.verbs.open(view, memory)?;
        self.views.push(opened);
        self.is_look_due = true;
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.view(view).is_some_and(|open| open.verbs.ready(view, peer))
    }

    /// The cut applies to all views and the side channel: a member that is cut off in one view is
    /// not a member of any later one.
    fn cut(&mut self, view: ViewId, peer: Rank) {
        // A post has found the loss before the poll that would have explained it.
        if self.view(view).is_some_and(|open| open.verbs.has_untold_loss(peer)) {
            self.explain(view, peer);
        }
        let rows = self.view(view).map(|open| open.verbs.rows());
        let Some(node) = rows.and_then(|rows| rows.members().get(peer.index()).copied()) else {
            return;
        };
        for open in &mut self.views {
            if let Some(rank) = open.rank_of(node) {
                open.cards.forget(rank);
                if open.id == view {
                    self.has_sealed |= open.verbs.cut_peer(view, rank);
                } else {
                    open.verbs.part_from(open.id, rank);
                }
            }
        }
        // A member whose own device or link has failed loses all others at once, although they are
        // healthy: if it reported to them that they are cut off, they would halt.
        let reason = self.loss_of(view, peer).and_then(|loss| loss.reason);
        let is_own_failure =
            self.site.has_failed() || reason == Some(LossReason::NoLink) || self.has_no_link();
        if !is_own_failure {
            self.side_channel.cut(view, peer);
        }
    }

    fn retire(&mut self, view: ViewId) -> bool {
        if let Some(open) = self.view_mut(view) {
            open.is_retiring = true;
        }
        self.retire_rest();
        self.view(view).is_none()
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let open = self.view_mut(view).ok_or(ErrorKind::Other)?;
        open.verbs.post(view, to, writes, token)
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        self.has_polled = true;
        if let Some(event) = self.poll_views() {
            return Some(event);
        }
        if self.is_look_due || self.is_meeting() {
            self.look_at_side_channel();
            if let Some(event) = self.poll_views() {
                return Some(event);
            }
        }
        if self.seal_one() {
            // A sealed loss can now be reported.
            if let Some(event) = self.poll_views() {
                return Some(event);
            }
        }
        std::mem::take(&mut self.is_rung).then_some(Event::Woken)
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        if let Some(open) = self.view_mut(view) {
            open.verbs.wake(view, to);
        }
    }

    fn arm(&mut self) -> bool {
        // The jobs that have been completed are handled below.
        self.site.workers().take_news();
        self.look_at_side_channel();
        let is_quiet = self.side_channel.arm()
            && !self.is_rung
            && self.views.iter_mut().all(|view| view.verbs.arm());
        // The next poll processes the side channel's news.
        self.is_look_due |= !is_quiet;
        is_quiet
    }

    fn disarm(&mut self) {
        self.side_channel.disarm();
        self.views.iter_mut().for_each(|view| view.verbs.disarm());
    }

    #[inline]
    fn observe_barrier(&self) {
        // These figures belong to the device, and are the same for all views.
        if let Some(view) = self.views.first() {
            view.verbs.observe_barrier();
        }
    }
}
