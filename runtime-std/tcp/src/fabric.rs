//! The `Fabric` over TCP. Writes travel as frames. Their receiver stores them in posting order,
//! into its own copy of the sender's row, or into a region to which the sender may write. The
//! receiver confirms lists that were posted with a token: the number of finished lists is sent with
//! its next frames, or with the next poll.
//!
//! A step's posts of short messages to a peer are one system call; other posts are one each. While
//! the socket is full, further posts to that peer are `QueueFull` until the peer has taken what is
//! waiting. A poll is one system call, plus one or two for each peer that has sent something. After
//! the start, no memory is allocated on the path of a message.

use std::cell::RefCell;
use std::time::Duration;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Promises, Token, ViewMemory, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::blocks::{BlockStore, Closed};
use super::connection::{Connection, Settings};
use super::connections::Connections;
use super::event_queue::EventQueue;
use super::frame::{HEADER, WRITE_MAX};
use super::memory::MadeRows;
use super::regions::{OwnRegions, RightNumbers};
use super::send_queue::GUARD_MAX;
use super::views::{Route, View};
use super::watch::{Change, Watch};

/// The maximum number of open views: enough for a replica of shards with 1,024 clients.
pub const VIEWS_MAX: usize = 2_048;

/// The TCP fabric of one member.
#[derive(Debug)]
pub struct Tcp {
    pub(super) own: NodeId,
    pub(super) settings: Settings,
    pub(super) watch: Watch,
    // Borrowed through a shared reference to send the last frame and to inspect connections.
    pub(super) connections: RefCell<Connections>,
    /// The memory of views that are not open yet. It is kept by the caller that asked for it.
    pub(super) made: Vec<MadeRows>,
    /// The views, in the order in which they were opened.
    pub(super) views: Vec<View>,
    pub(super) regions: OwnRegions,
    /// Whether memory for a view has been allocated. From then on, no region can be created.
    pub(super) has_made_views: bool,
    pub(super) right_numbers: RightNumbers,
    /// Whether received data has been processed since permissions were last polled.
    pub(super) has_carried: bool,
    pub(super) store: BlockStore,
    pub(super) events: EventQueue,
}

impl Tcp {
    /// Creates a member without peers.
    ///
    /// # Errors
    /// Fails if the system has no descriptors available.
    pub fn new(own: NodeId, settings: Settings) -> std::io::Result<Self> {
        Ok(Self {
            own,
            settings,
            watch: Watch::new()?,
            connections: RefCell::default(),
            made: Vec::new(),
            views: Vec::new(),
            regions: OwnRegions::default(),
            has_made_views: false,
            right_numbers: RightNumbers::default(),
            has_carried: false,
            store: BlockStore::default(),
            events: EventQueue::new(),
        })
    }

    /// Sends and stores what is possible now, without waiting. `poll`, which does the same work,
    /// returns the resulting events. Returns true if a peer has been newly lost.
    pub fn carry(&mut self) -> bool {
        self.has_carried = true;
        self.look(Duration::ZERO);
        self.flush();
        let mut is_lost = false;
        let Self { connections, events, .. } = self;
        connections.get_mut().for_each_busy(|connection| {
            if connection.is_readable() {
                connection.read(|notice| events.received(notice));
                is_lost |= connection.is_untold;
            }
        });
        connections.get_mut().rest();
        if is_lost {
            self.tell_losses();
        }
        is_lost
    }

    /// Returns whether nothing is waiting here, either to be sent or, as far as is known, to be
    /// read.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let connections = self.connections.borrow();
        !connections.iter().any(|connection| connection.is_pending() || connection.is_readable())
    }

    /// Notes the changes of sockets, and waits for them for at most `timeout`. Returns true if
    /// there is a reason to wake.
    pub(super) fn look(&mut self, timeout: Duration) -> bool {
        let connections = self.connections.get_mut();
        let mut is_news = false;
        self.watch.wait(timeout, |change| match change {
            Change::Rung => is_news = true,
            Change::Socket { index, readable, .. } => {
                if let Some(connection) = connections.get_mut(index) {
                    connection.note(change);
                    is_news |= readable;
                }
            }
        });
        is_news
    }

    /// Sends what is waiting, as far as the sockets accept it, within limits. Returns true if a
    /// full queue has room again, or a block has been sent.
    pub(super) fn flush(&mut self) -> bool {
        let Self { connections, events, .. } = self;
        let (mut is_room, had_no_block) = (false, events.has_no_block());
        connections.get_mut().for_each_busy(|connection| {
            if connection.is_pending() {
                let was_full = connection.is_full();
                connection.flush(|sent| events.sent(sent));
                is_room |= was_full && !connection.is_full();
            }
        });
        is_room || (had_no_block && !events.has_no_block())
    }

    /// Sends what is waiting for one peer.
    pub(super) fn flush_to(&mut self, view: ViewId, peer: Rank) {
        let Self { views, connections, events, .. } = self;
        let route = views.iter().find(|open| open.id == view).and_then(|view| view.route(peer));
        if let Some(connection) = route.and_then(|index| connections.get_mut().get_mut(index)) {
            connection.flush(|sent| events.sent(sent));
        }
    }

    /// Returns whether more can be sent right away.
    pub(super) fn is_sendable(&self) -> bool {
        self.connections.borrow().busy().any(Connection::is_sendable)
    }

    /// Reports each loss once, in each view that includes the peer.
    #[cold]
    fn tell_losses(&mut self) {
        for (index, connection) in self.connections.get_mut().iter_mut().enumerate() {
            let (Some(cause), true) = (connection.loss(), connection.is_untold) else { continue };
            for (view, peer) in
                self.views.iter().filter_map(|view| Some((view.id, view.rank_of(index)?)))
            {
                connection.is_untold = false;
                self.events.push(Event::PeerLost { view, peer, cause });
            }
        }
    }

    pub(super) fn view(&self, id: ViewId) -> Option<&View> {
        self.views.iter().find(|view| view.id == id)
    }
}

impl Fabric for Tcp {
    type Error = ErrorKind;

    /// Writes stay in order, and so do the bytes of a single write. A list is completed when the
    /// peer confirms that it has stored the list.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::ADDRESS_ORDER
                .union(Promises::WRITE_ORDER)
                .union(Promises::COMPLETION_VISIBLE)
                .union(Promises::RELAYS),
            writes_max: WRITES_MAX,
            write_bytes_max: WRITE_MAX,
            guard_bytes_max: GUARD_MAX,
            write_overhead_bytes: HEADER,
        }
    }

    /// Connects the view to the processes that already have connections, and to those of other
    /// members as they arrive. If a node is expected to return as a new process, [`Tcp::part_from`]
    /// must first be called for the known process.
    ///
    /// # Errors
    /// [`ErrorKind::Other`] if the view is open, or if as many views as permitted are open;
    /// [`ErrorKind::WrongMemory`] if the memory was not made for this view
    /// ([`rows`](tramontane_core::fabric::HostFabric::rows)), or was used before. So a view that
    /// ended may be opened again in fresh memory, with another list of members, until it has
    /// carried a post.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if self.view(view).is_some() || self.views.len() == VIEWS_MAX {
            return Err(ErrorKind::Other);
        }
        let rows = self.take_made(view, memory).ok_or(ErrorKind::WrongMemory)?;
        let connections = self.connections.get_mut();
        let mut routes = Vec::with_capacity(memory.members.len());
        for (rank, member) in (0..).map(Rank).zip(memory.members) {
            // A node that was not a member of the previous view, or has not arrived in it yet,
            // comes as a process other than the lost one.
            let goes_on = self.views.last().is_none_or(|before| before.has_met(*member));
            let is_route = |known: &Connection| {
                known.peer == *member && (known.is_used() || known.is_lost_in(goes_on))
            };
            let route = connections.iter().position(is_route);
            if let Some(connection) = route.and_then(|index| connections.get_mut(index)) {
                if let (Some(cause), false) = (connection.loss(), connection.is_untold) {
                    // The loss was reported in an earlier view, and also applies to this one.
                    self.events.push(Event::PeerLost { view, peer: rank, cause });
                }
                if connection.open(view, (&rows, &self.regions), Closed::default(), rank) {
                    self.events.push(Event::Ready { view, peer: rank });
                }
                connection.flush(|sent| self.events.sent(sent));
            }
            routes.push(route.map_or(Route::NotYet, Route::Through));
        }
        let (members, closed) = (memory.members.to_vec(), Closed::default());
        self.views.push(View { id: view, rows, members, routes, closed });
        self.tell_losses();
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        let route = self.view(view).and_then(|view| view.route(peer));
        let connections = self.connections.borrow();
        route
            .and_then(|index| connections.get(index))
            .is_some_and(|connection| connection.is_ready(view))
    }

    /// Ends the connection, which all views share, because a member that is cut off in one view is
    /// not a member of any later one.
    fn cut(&mut self, view: ViewId, peer: Rank) {
        let route = self.view(view).and_then(|view| view.route(peer));
        let Some(index) = route else { return };
        if let Some(connection) = self.connections.get_mut().get_mut(index) {
            connection.cut();
            for (view, peer) in
                self.views.iter().filter_map(|view| Some((view.id, view.rank_of(index)?)))
            {
                self.events.forget_blocks(view, |_, of| of == peer);
            }
        }
    }

    /// Returns true immediately, because unsent parts of the view's rows are kept elsewhere, and
    /// later arrivals are dropped.
    fn retire(&mut self, view: ViewId) -> bool {
        let Some(place) = self.views.iter().position(|open| open.id == view) else { return true };
        let View { rows, .. } = self.views.remove(place);
        let Self { connections, events, .. } = self;
        for connection in connections.get_mut().iter_mut() {
            connection.retire(view, &rows);
            connection.flush(|sent| events.sent(sent));
        }
        events.retire(view);
        true
    }

    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.post_list(view, to, writes, token)
    }

    fn poll(&mut self) -> Option<Event> {
        if self.events.has_no_event() {
            self.carry();
        }
        self.events.next()
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        let route = self.view(view).and_then(|view| view.route(to));
        if let Some(connection) = route.and_then(|index| self.connections.get_mut().get_mut(index))
        {
            connection.wake();
            self.flush_to(view, to);
        }
    }

    fn arm(&mut self) -> bool {
        self.watch.bell().raise();
        let is_news = self.look(Duration::ZERO) | self.flush();
        let has_more =
            |connection: &Connection| connection.is_readable() || connection.is_sendable();
        !is_news && self.events.is_empty() && !self.connections.get_mut().busy().any(has_more)
    }

    fn disarm(&mut self) {
        self.watch.bell().lower();
    }

    /// Does nothing, because one thread both stores received data and reads it.
    fn observe_barrier(&self) {}
}
