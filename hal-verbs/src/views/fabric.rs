//! The `Fabric` over RDMA through all views of a member.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, LossCause, Token, ViewMemory, ViewPlan,
    ViewRows, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::cards::Cards;
use crate::fabric::{Loss, Verbs};
use crate::protocol::Counters;
use crate::site::{JoinError, Rows, Site, ViewOptions};

/// Why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoView {
    /// The device has none to give.
    #[error(transparent)]
    Device(#[from] JoinError),
    /// The side channel has none.
    #[error("no memory on the way beside the device: {0}")]
    Beside(Box<dyn std::error::Error + Send + Sync>),
}

/// A view that was made here.
#[derive(Debug)]
pub(super) struct OpenView<R> {
    pub(super) id: ViewId,
    pub(super) verbs: Verbs,
    cards: Cards<R>,
    /// It was to be retired, and something was under way.
    is_retiring: bool,
}

impl<R: ViewRows> OpenView<R> {
    fn rank_of(&self, node: NodeId) -> Option<Rank> {
        let members = self.verbs.rows().members();
        let rank = members.iter().position(|member| *member == node)?;
        u16::try_from(rank).ok().map(Rank)
    }

    fn lose(&mut self, peer: Rank, cause: LossCause) {
        self.cards.forget(peer);
        self.verbs.lose_peer(peer, cause);
    }
}

/// The fabric of one member over RDMA, through all its views.
///
/// `S` is the way beside the device: a fabric over which members tell each other where their memory
/// is, and notice that one is gone.
#[derive(Debug)]
pub struct RdmaViews<S: HostFabric> {
    // First: queue pairs end before the device is closed.
    /// Oldest first.
    pub(super) views: Vec<OpenView<S::Rows>>,
    /// Those that were made and are not open yet.
    made: Vec<OpenView<S::Rows>>,
    pub(super) site: Site,
    beside: S,
    /// Those of the way beside, and of the views that are open.
    descriptors: OwnedFd,
    /// The way beside is to be looked at with the next poll.
    is_look_due: bool,
    /// Somebody rang.
    is_rung: bool,
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> RdmaViews<S> {
    /// A member on a device that was chosen, with the way beside it.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new(site: Site, beside: S) -> std::io::Result<Self> {
        let descriptors = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&descriptors, &beside, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        let (views, made) = (Vec::new(), Vec::new());
        Ok(Self { views, made, site, beside, descriptors, is_look_due: true, is_rung: false })
    }

    /// The way beside the device.
    pub const fn beside(&self) -> &S {
        &self.beside
    }

    /// The same, to add and remove peers. It is looked at with the next poll.
    pub const fn beside_mut(&mut self) -> &mut S {
        self.is_look_due = true;
        &mut self.beside
    }

    /// Takes what came, and goes on with peers that are not connected yet: what a
    /// [`poll`](Fabric::poll) does, but that events stay.
    pub fn carry(&mut self) {
        self.look_beside();
        for view in &mut self.views {
            view.verbs.collect();
        }
    }

    /// Asks for a completion of all that is under way and that none was asked for, where there is
    /// room.
    pub fn flush(&mut self) {
        self.views.iter_mut().for_each(|view| view.verbs.flush());
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

    /// The error of a peer that was lost before it was ready.
    #[must_use]
    pub fn no_answer(&self, view: ViewId, peer: Rank) -> JoinError {
        let report = self.site.report();
        let members = self.view(view).map(|view| view.verbs.rows().members());
        let node = members.and_then(|members| members.get(peer.index()).copied());
        JoinError::NoAnswer {
            device: report.choice.name,
            peer: node.unwrap_or_default(),
            own: report.choice.gid.address,
            why: self.loss_of(view, peer).map_or("no answer in time".into(), Loss::to_string),
        }
    }

    fn view(&self, id: ViewId) -> Option<&OpenView<S::Rows>> {
        self.views.iter().find(|view| view.id == id)
    }

    pub(super) fn view_mut(&mut self, id: ViewId) -> Option<&mut OpenView<S::Rows>> {
        self.views.iter_mut().find(|view| view.id == id)
    }

    /// Takes what came beside, and goes on with peers that are not connected yet.
    #[cold]
    fn look_beside(&mut self) {
        self.is_look_due = false;
        let Self { views, beside, is_rung, .. } = self;
        while let Some(event) = beside.poll() {
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
        for OpenView { verbs, cards, .. } in views {
            if !cards.is_done() {
                cards.advance(beside, verbs);
            }
        }
        // What was posted just now is on its way before anybody sleeps.
        beside.check_peers();
    }

    /// Whether somebody is awaited.
    fn is_meeting(&self) -> bool {
        self.views.iter().any(|view| !view.cards.is_done())
    }

    fn poll_views(&mut self) -> Option<Event> {
        let event = self.views.iter_mut().find_map(|view| view.verbs.poll())?;
        let Event::PeerLost { view, peer, cause } = event else { return Some(event) };
        // A member that was cut off finds its writes unanswered, as if the others were dead: only
        // what they said last tells.
        self.look_beside();
        let loss = self.view(view).and_then(|open| open.verbs.loss_of(peer));
        Some(Event::PeerLost { view, peer, cause: loss.map_or(cause, |loss| loss.cause) })
    }

    /// Waits for a socket, the own bell or a device.
    fn wait(&self, timeout: Duration) {
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); 1];
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        // An interrupted wait is a short one.
        let _ = epoll::wait(&self.descriptors, &mut events, Some(&timeout));
    }

    /// Goes on with views that ended with something under way, and that nobody asks for any more.
    fn retire_rest(&mut self) {
        let Self { views, beside, .. } = self;
        views.retain_mut(|view| {
            let is_over = view.is_retiring && view.verbs.retire(view.id);
            if is_over {
                beside.retire(view.id);
            }
            !is_over
        });
    }
}

impl<S: HostFabric<Error = ErrorKind> + AsFd> Fabric for RdmaViews<S> {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.site.capabilities()
    }

    /// # Errors
    /// [`ErrorKind::Other`] if the view is open, or the way beside does not open it, as where a
    /// newer one was ever open; [`ErrorKind::WrongMemory`] if [`HostFabric::rows`] did not make the
    /// memory for this view, or it was used before.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if self.view(view).is_some_and(|open| !open.is_retiring) {
            return Err(ErrorKind::Other);
        }
        let is_it = |made: &OpenView<S::Rows>| made.id == view && made.verbs.rows().is(memory);
        let place = self.made.iter().position(is_it).ok_or(ErrorKind::WrongMemory)?;
        // A list of members that another takes the place of, under the same view.
        if let Some(place) = self.views.iter().position(|open| open.id == view) {
            self.views.remove(place);
            self.beside.retire(view);
        }
        let mut opened = self.made.swap_remove(place);
        opened.cards.open(&mut self.beside)?;
        opened.verbs.open(view, memory)?;
        // Closing it takes it out again.
        let (data, flags) = (epoll::EventData::new_u64(0), epoll::EventFlags::IN);
        if let Err(error) = epoll::add(&self.descriptors, &opened.verbs, data, flags) {
            tracing::warn!(%view, %error, "cannot wait for a view's device");
            self.beside.retire(view);
            return Err(ErrorKind::Other);
        }
        self.views.push(opened);
        self.is_look_due = true;
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.view(view).is_some_and(|open| open.verbs.ready(view, peer))
    }

    /// In all views, and beside: a member that is cut off in one is a member of none that comes.
    fn cut(&mut self, view: ViewId, peer: Rank) {
        let rows = self.view(view).map(|open| open.verbs.rows());
        let Some(node) = rows.and_then(|rows| rows.members().get(peer.index()).copied()) else {
            return;
        };
        for open in &mut self.views {
            if let Some(rank) = open.rank_of(node) {
                open.cards.forget(rank);
                open.verbs.cut(open.id, rank);
            }
        }
        self.beside.cut(view, peer);
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
        if let Some(event) = self.poll_views() {
            return Some(event);
        }
        if self.is_look_due || self.is_meeting() {
            self.look_beside();
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
        self.look_beside();
        let is_quiet = self.beside.arm()
            && !self.is_rung
            && self.views.iter_mut().all(|view| view.verbs.arm());
        // What came beside is taken with the next poll.
        self.is_look_due |= !is_quiet;
        is_quiet
    }

    fn disarm(&mut self) {
        self.beside.disarm();
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

impl<S: HostFabric<Error = ErrorKind> + AsFd> HostFabric for RdmaViews<S> {
    type Bell = S::Bell;
    type Rows = Rows;
    type MemoryError = NoView;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Rows, NoView> {
        self.made.retain(|made| !made.verbs.rows().is_alone());
        let (members, id) = (plan.members(), plan.view());
        let ranks = (0..).map(Rank).take(members.len());
        let row_bytes: Vec<usize> = ranks.map(|rank| plan.row_bytes(rank)).collect();
        // First: it says whether this member has that rank.
        let cards = Cards::new(&mut self.beside, plan);
        let cards = cards.map_err(|error| NoView::Beside(error.into()))?;
        let verbs = self.site.view(&ViewOptions {
            view: id,
            own: plan.own(),
            members,
            row_bytes: &row_bytes,
            regions: &[],
            blocks: plan.has_blocks(),
        })?;
        let rows = verbs.rows().clone();
        self.made.push(OpenView { id, verbs, cards, is_retiring: false });
        Ok(rows)
    }

    fn local_bell(&self) -> S::Bell {
        self.beside.local_bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let is_called = self.beside.sleep(Duration::ZERO);
            self.is_look_due |= is_called;
            let is_written = self.views.iter_mut().any(|view| view.verbs.sleep(Duration::ZERO));
            if is_called || is_written {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait(left);
        }
    }

    fn check_peers(&mut self) -> bool {
        self.look_beside();
        let mut is_news = false;
        for view in &mut self.views {
            is_news |= view.verbs.check_device();
        }
        self.retire_rest();
        is_news
    }

    fn leave(&mut self) {
        for view in &mut self.views {
            view.verbs.leave();
        }
        self.beside.leave();
    }
}
