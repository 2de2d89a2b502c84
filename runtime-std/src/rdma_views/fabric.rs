//! The `Fabric` over RDMA, for members whose views change.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};
use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, LossCause, Token, ViewMemory, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::Layout;
use tramontane_verbs::{JoinError, Site, Verbs, ViewOptions};

use super::cards::Cards;
use crate::host::HostFabric;
use crate::member::Memory;
use crate::tcp::{self, Tcp};

/// Why a view has no memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoView {
    /// The device has none to give.
    #[error(transparent)]
    Device(#[from] JoinError),
    /// It cannot be opened.
    #[error(transparent)]
    Fabric(#[from] ErrorKind),
    /// There are no descriptors left.
    #[error("cannot wait for the view's device: {0}")]
    Descriptors(#[from] rustix::io::Errno),
}

/// A view that is open here.
#[derive(Debug)]
pub(super) struct OpenView {
    pub(super) id: ViewId,
    members: Vec<NodeId>,
    pub(super) verbs: Verbs,
    cards: Cards,
    /// It was to be retired, and something was under way.
    is_retiring: bool,
}

impl OpenView {
    fn rank_of(&self, node: NodeId) -> Option<Rank> {
        let rank = self.members.iter().position(|member| *member == node)?;
        u16::try_from(rank).ok().map(Rank)
    }

    fn lose(&mut self, peer: Rank, cause: LossCause) {
        self.cards.forget(peer);
        self.verbs.lose_peer(peer, cause);
    }
}

/// The fabric of one member over RDMA, through all its views.
#[derive(Debug)]
pub struct RdmaViews {
    // First: queue pairs end before the device is closed.
    /// Oldest first.
    pub(super) views: Vec<OpenView>,
    pub(super) site: Site,
    tcp: Tcp,
    /// Those of the sockets, and of the views that are open.
    descriptors: OwnedFd,
    /// Sockets are to be looked at with the next poll.
    is_look_due: bool,
    /// Somebody rang.
    is_rung: bool,
}

impl RdmaViews {
    /// A member without peers, on a device that was chosen.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new(own: NodeId, site: Site) -> std::io::Result<Self> {
        let tcp = Tcp::new(own, tcp::Settings::default())?;
        let descriptors = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&descriptors, &tcp, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(Self { views: Vec::new(), site, tcp, descriptors, is_look_due: true, is_rung: false })
    }

    /// Adds a peer that was met: see [`Tcp::add_peer`].
    ///
    /// # Errors
    /// As there.
    pub fn add_peer(
        &mut self,
        peer: NodeId,
        connection: tramontane_mesh::Connection,
    ) -> std::io::Result<()> {
        self.is_look_due = true;
        self.tcp.add_peer(peer, connection)
    }

    /// A node is out of all views that are open: see [`Tcp::part_from`].
    pub fn part_from(&mut self, node: NodeId) {
        self.tcp.part_from(node);
    }

    /// Whether a node's connection is there.
    #[must_use]
    pub fn has_peer(&self, node: NodeId) -> bool {
        self.tcp.has_peer(node)
    }

    /// Makes fresh memory for a view, with `blocks` for large messages, and opens it.
    ///
    /// # Errors
    /// [`NoView`].
    pub fn open_view(
        &mut self,
        layout: &Layout<'_>,
        own: Rank,
        view: ViewId,
    ) -> Result<Memory, NoView> {
        // A list of members that another takes the place of, under the same view.
        if let Some(place) = self.views.iter().position(|open| open.id == view && open.is_retiring)
        {
            self.views.remove(place);
            self.tcp.retire(view);
        }
        let members = layout.group().members;
        let ranks = (0..).map(Rank).take(members.len());
        let row_bytes: Vec<usize> = ranks.map(|rank| layout.row_bytes(rank)).collect();
        let mut verbs = self.site.view(&ViewOptions {
            view,
            own,
            members,
            row_bytes: &row_bytes,
            regions: &[],
            blocks: layout.channels() > 0,
        })?;
        let rows = std::sync::Arc::clone(verbs.rows());
        let (all, row) = (rows.rows(), rows.row());
        verbs.open(view, &ViewMemory { own, members, row, rows: &all })?;
        // Closing it takes it out again.
        epoll::add(&self.descriptors, &verbs, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        let cards = Cards::open(&mut self.tcp, view, own, members, layout.digest())?;
        let members = members.to_vec();
        self.views.push(OpenView { id: view, members, verbs, cards, is_retiring: false });
        self.is_look_due = true;
        // SAFETY: the pages live as long as `rows`.
        Ok(unsafe { Memory::new(&all, row, rows.clone()) })
    }

    fn view(&self, id: ViewId) -> Option<&OpenView> {
        self.views.iter().find(|view| view.id == id)
    }

    pub(super) fn view_mut(&mut self, id: ViewId) -> Option<&mut OpenView> {
        self.views.iter_mut().find(|view| view.id == id)
    }

    /// Takes what came over TCP, and goes on with those who are not connected yet.
    #[cold]
    fn look_beside(&mut self) {
        self.is_look_due = false;
        let Self { views, tcp, is_rung, .. } = self;
        while let Some(event) = tcp.poll() {
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
                cards.tend(tcp, verbs);
            }
        }
        // What was posted just now is on its way before anybody sleeps.
        tcp.carry();
    }

    /// Whether somebody is awaited.
    fn is_meeting(&self) -> bool {
        self.views.iter().any(|view| !view.cards.is_done())
    }

    fn poll_views(&mut self) -> Option<Event> {
        let event = self.views.iter_mut().find_map(|view| view.verbs.poll())?;
        let Event::PeerLost { view, peer, cause } = event else { return Some(event) };
        // Who was cut off finds its writes unanswered, as if the others were dead: only their last words tell.
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
        let Self { views, tcp, .. } = self;
        views.retain_mut(|view| {
            let is_over = view.is_retiring && view.verbs.retire(view.id);
            if is_over {
                tcp.retire(view.id);
            }
            !is_over
        });
    }
}

impl Fabric for RdmaViews {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        self.site.capabilities()
    }

    /// # Errors
    /// [`ErrorKind::Other`]: memory and view come together, from [`RdmaViews::open_view`].
    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Err(ErrorKind::Other)
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.view(view).is_some_and(|open| open.verbs.ready(view, peer))
    }

    /// In all views, and over TCP: who is cut off in one is a member of none that comes.
    fn cut(&mut self, view: ViewId, peer: Rank) {
        let Some(node) = self.view(view).and_then(|open| open.members.get(peer.index()).copied())
        else {
            return;
        };
        for open in &mut self.views {
            if let Some(rank) = open.rank_of(node) {
                open.cards.forget(rank);
                open.verbs.cut(open.id, rank);
            }
        }
        self.tcp.cut(view, peer);
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
        let is_quiet =
            self.tcp.arm() && !self.is_rung && self.views.iter_mut().all(|view| view.verbs.arm());
        // What the sockets have is taken with the next poll.
        self.is_look_due |= !is_quiet;
        is_quiet
    }

    fn disarm(&mut self) {
        self.tcp.disarm();
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

impl HostFabric for RdmaViews {
    type Bell = tcp::Bell;

    fn local_bell(&self) -> tcp::Bell {
        self.tcp.local_bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            let is_called = HostFabric::sleep(&mut self.tcp, Duration::ZERO);
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

    fn check_peers(&mut self) {
        self.look_beside();
        for view in &mut self.views {
            view.verbs.check_peers();
        }
        self.retire_rest();
    }

    fn leave(&mut self) {
        for view in &mut self.views {
            view.verbs.leave();
        }
        HostFabric::leave(&mut self.tcp);
    }
}
