//! The `Fabric` over RDMA through all views of a member.

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

/// Why a view or a region has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoView {
    /// The device has none to give.
    #[error(transparent)]
    Device(#[from] JoinError),
    /// The side channel has none.
    #[error("the side channel has no memory for the view: {0}")]
    SideChannel(Box<dyn std::error::Error + Send + Sync>),
    /// A view was made before: it would not show the region.
    #[error("a view was made already; make the regions first")]
    RegionAfterView,
    /// The region was made before.
    #[error("region {0} was made already; give each a number of its own")]
    RegionTwice(u16),
    /// There are as many regions as there can be.
    #[error("this process has {REGIONS_MAX} regions already; make fewer")]
    TooManyRegions,
}

/// A view that was made here.
#[derive(Debug)]
pub(super) struct OpenView<R> {
    pub(super) id: ViewId,
    pub(super) verbs: Verbs,
    pub(super) cards: Cards<R>,
    /// It was to be retired, and something was under way.
    pub(super) is_retiring: bool,
    /// It has ended on the side channel.
    pub(super) has_ended_on_side_channel: bool,
    /// What it waits for is among the descriptors.
    pub(super) is_watched: bool,
}

impl<R: ViewRows> OpenView<R> {
    fn rank_of(&self, node: NodeId) -> Option<Rank> {
        let members = self.verbs.rows().members();
        let rank = members.iter().position(|member| *member == node)?;
        u16::try_from(rank).ok().map(Rank)
    }

    /// Takes what it waits for among the descriptors, once that is made. Closing it takes it out
    /// again.
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

    /// Whether somebody is awaited, or something that this member is to wait for.
    fn is_meeting(&self) -> bool {
        let is_to_come = self.verbs.is_building() || self.verbs.completions().is_some();
        !self.cards.is_done() || (!self.is_watched && is_to_come)
    }

    fn lose(&mut self, peer: Rank, cause: LossCause) {
        self.cards.forget(peer);
        self.verbs.lose_peer(peer, cause);
    }
}

/// The fabric of one member over RDMA, through all its views.
///
/// `S` is the side channel: a fabric over which members tell each other where their memory
/// is, and notice that one is gone.
#[derive(Debug)]
pub struct RdmaViews<S: HostFabric> {
    // First: queue pairs end before the device is closed.
    /// Oldest first.
    pub(super) views: Vec<OpenView<S::Rows>>,
    /// Those that were made and are not open yet.
    pub(super) made: Vec<OpenView<S::Rows>>,
    /// Those that nobody asks for any more: workers end what is left of them.
    pub(super) forgotten: Vec<OpenView<S::Rows>>,
    pub(super) site: Site,
    /// The regions of this process.
    pub(super) regions: Vec<RegionMemory>,
    /// A view was made: no region can be made any more.
    pub(super) has_made_views: bool,
    pub(super) side_channel: S,
    /// Those of the side channel, of the device, and of the views that are open.
    pub(super) descriptors: OwnedFd,
    /// The device's is among them: not that of one that failed, which may be readable for ever.
    pub(super) is_device_watched: bool,
    /// The side channel is to be looked at with the next poll.
    pub(super) is_look_due: bool,
    /// What was done in views that are gone.
    pub(super) ended: Counters,
    /// Peers that could not be reached: see `Figures::losses`.
    pub(super) losses: Vec<(&'static str, u64)>,
    /// Somebody rang.
    is_rung: bool,
    /// The place of the view that is polled first.
    turn: usize,
    /// Views were polled since permissions were last asked for.
    pub(super) has_polled: bool,
    /// The device was asked to seal a peer's copy since the last poll that found nothing.
    has_sealed: bool,
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// A member on a device that was chosen, with the side channel.
    ///
    /// Connections are made and ended by workers from now on.
    ///
    /// # Errors
    /// If the system has no descriptors or no threads left.
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

    /// The side channel.
    pub const fn side_channel(&self) -> &S {
        &self.side_channel
    }

    /// The same, to add and remove peers. It is looked at with the next poll.
    pub const fn side_channel_mut(&mut self) -> &mut S {
        self.is_look_due = true;
        &mut self.side_channel
    }

    /// Takes what came, and goes on with peers that are not connected yet: what a
    /// [`poll`](Fabric::poll) does, but that events stay.
    pub fn carry(&mut self) {
        self.look_at_side_channel();
        for view in &mut self.views {
            view.verbs.collect();
        }
    }

    /// Asks for a completion of all that is under way and that none was asked for, where there is
    /// room.
    pub fn flush(&mut self) {
        self.views.iter_mut().for_each(|view| view.verbs.flush());
    }

    /// Whether connections are being made or ended by workers.
    #[must_use]
    pub fn is_building(&self) -> bool {
        let views = self.views.iter().chain(&self.made).chain(&self.forgotten);
        views.into_iter().any(|view| view.verbs.is_building())
    }

    /// Requests that are under way, as far as is known.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.views.iter().map(|view| view.verbs.in_flight()).sum()
    }

    /// What was done so far in the newest view.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.views.last().map(|view| *view.verbs.counters()).unwrap_or_default()
    }

    /// Why a peer counts as lost in a view, if it does.
    #[must_use]
    pub fn loss_of(&self, view: ViewId, peer: Rank) -> Option<&Loss> {
        self.view(view)?.verbs.loss_of(peer)
    }

    /// The error of a peer that was lost before it was ready: what could not be made for it, or
    /// that it does not answer.
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
            why: self
                .loss_of(view, peer)
                .map_or("no answer in time".into(), |loss| format!("{loss}{}", loss.advice())),
        }
    }

    pub(super) fn view(&self, id: ViewId) -> Option<&OpenView<S::Rows>> {
        self.views.iter().find(|view| view.id == id)
    }

    pub(super) fn view_mut(&mut self, id: ViewId) -> Option<&mut OpenView<S::Rows>> {
        self.views.iter_mut().find(|view| view.id == id)
    }

    /// Takes what came on the side channel, and goes on with peers that are not connected yet.
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
        // What was posted just now is on its way before anybody sleeps.
        side_channel.check_peers();
    }

    /// Whether somebody is awaited.
    fn is_meeting(&self) -> bool {
        self.views.iter().any(OpenView::is_meeting)
    }

    /// Seals the copy of one peer that was lost, unless another was sealed since this was called
    /// last: a step that polls until nothing is left asks the device once at most.
    #[inline]
    fn seal_one(&mut self) -> bool {
        let may_seal = !std::mem::take(&mut self.has_sealed);
        self.has_sealed = may_seal && self.views.iter_mut().any(|view| view.verbs.seal_one());
        self.has_sealed
    }

    /// Asks one view after the other, first the one behind that which had something last: none
    /// waits for another that always has something.
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
        // A member that was cut off finds its writes unanswered, as if the others were dead: only
        // what they said last tells.
        self.look_at_side_channel();
        self.explain(view, peer);
        let loss = self.view(view).and_then(|open| open.verbs.loss_of(peer));
        Some(Event::PeerLost { view, peer, cause: loss.map_or(cause, |loss| loss.cause) })
    }

    /// Says in the log why a peer cannot be reached, with what the device says of its port.
    fn explain(&mut self, view: ViewId, peer: Rank) {
        let (news, _) = self.check_device();
        let has_lost_link = news.has_lost_link() || self.site.is_link_down();
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

    /// Goes on with views that ended with something under way, and that nobody asks for any more.
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
            // Nothing is under way, whatever is still to be ended: another may take its place.
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
    /// [`ErrorKind::Other`] if the view is open, as many as may be are, or the side channel does
    /// not open it; [`ErrorKind::WrongMemory`] if [`HostFabric::rows`] did not make the memory for
    /// this view, or it was used before.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        let at_work = self.views.iter().filter(|open| !open.is_retiring);
        if self.view(view).is_some_and(|open| !open.is_retiring) || at_work.count() >= VIEWS_MAX {
            return Err(ErrorKind::Other);
        }
        let is_it = |made: &OpenView<S::Rows>| made.id == view && made.verbs.rows().is(memory);
        let place = self.made.iter().position(is_it).ok_or(ErrorKind::WrongMemory)?;
        // A list of members that another takes the place of, under the same view.
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

    /// In all views, and on the side channel: a member that is cut off in one is a member of none
    /// that comes.
    fn cut(&mut self, view: ViewId, peer: Rank) {
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
        // A member whose own device failed loses all others at once, and they are none the worse:
        // told that they are cut off, they would halt.
        if !self.site.has_failed() {
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
            // Now it can be told.
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
        // What was done by now is taken below.
        self.site.workers().take_news();
        self.look_at_side_channel();
        let is_quiet = self.side_channel.arm()
            && !self.is_rung
            && self.views.iter_mut().all(|view| view.verbs.arm());
        // What came on the side channel is taken with the next poll.
        self.is_look_due |= !is_quiet;
        is_quiet
    }

    fn disarm(&mut self) {
        self.side_channel.disarm();
        self.views.iter_mut().for_each(|view| view.verbs.disarm());
    }

    #[inline]
    fn observe_barrier(&self) {
        // The device's, which is the same for all views.
        if let Some(view) = self.views.first() {
            view.verbs.observe_barrier();
        }
    }
}
