//! The `Fabric` over TCP: writes travel as frames, and their receiver stores them into its own copy
//! of the sender's row, in the order in which they were posted.
//!
//! A post is a system call, unless the socket is full; then that peer's next posts are `QueueFull`
//! until it has taken what waits. A poll is one system call, and one or two more for each peer that
//! sent something. After the start nothing is allocated on the way of a message.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, Kind, Promises, Region, Token, ViewMemory,
    ViewPlan, ViewRows, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::memory::Row;

use super::blocks::{BlockStore, Closed};
use super::connection::{Connection, Settings};
use super::event_queue::EventQueue;
use super::frame::{Frame, WRITE_MAX};
use super::memory::{MadeRows, NoRows, Rows};
use super::send_queue::GUARD_MAX;
use super::views::{Route, View};
use super::watch::{Bell, Change, Watch};

/// Views that can be open at once: a change has two.
const VIEWS_MAX: usize = 2;

/// The TCP fabric of one member.
#[derive(Debug)]
pub struct Tcp {
    own: NodeId,
    settings: Settings,
    watch: Watch,
    // Borrowed from behind a shared reference for the last frame, and to look.
    pub(super) connections: RefCell<Vec<Connection>>,
    /// Memory of views that are not open yet; the caller that asked for it keeps it.
    made: Vec<MadeRows>,
    /// Oldest first.
    pub(super) views: Vec<View>,
    /// The newest view that was ever open here.
    newest: Option<ViewId>,
    pub(super) store: BlockStore,
    pub(super) events: EventQueue,
}

impl Tcp {
    /// A member without peers.
    ///
    /// # Errors
    /// If the system has no descriptors left.
    pub fn new(own: NodeId, settings: Settings) -> std::io::Result<Self> {
        Ok(Self {
            own,
            settings,
            watch: Watch::new()?,
            connections: RefCell::new(Vec::new()),
            made: Vec::new(),
            views: Vec::new(),
            newest: None,
            store: BlockStore::default(),
            events: EventQueue::new(),
        })
    }

    /// Adds a peer that was met, before or after the first view that has it as a member is opened.
    /// A peer that comes again takes the place of the process that it was.
    ///
    /// # Errors
    /// [`std::io::ErrorKind::AlreadyExists`] if that peer is there; else what the system says of
    /// the socket.
    pub fn add_peer(
        &mut self,
        peer: NodeId,
        connection: tramontane_control::Connection,
    ) -> std::io::Result<()> {
        let connections = self.connections.get_mut();
        let before = connections.iter().position(|before| before.peer == peer);
        if peer == self.own || before.is_some_and(|index| connections[index].is_used()) {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        let connection = Connection::new(peer, connection, &self.settings)?;
        let index = before.unwrap_or(connections.len());
        if let Some(stream) = connection.stream() {
            self.watch.add(index, stream)?;
        }
        if before.is_some() {
            // Earlier views do not lead to the process that came since.
            for route in self.views.iter_mut().flat_map(|view| &mut view.routes) {
                if *route == Route::Through(index) {
                    *route = Route::Gone;
                }
            }
            connections[index] = connection;
        } else {
            connections.push(connection);
        }
        self.open_newest_to(index);
        Ok(())
    }

    /// Takes the memory that a view is opened with, if it was made for that.
    fn take_made(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Option<Rows> {
        let is_it = |rows: &Rows| {
            rows.view() == view
                && rows.own() == memory.own
                && rows.members() == memory.members
                && is_same(&rows.row().reader(), &memory.row.reader())
                && rows.rows().len() == memory.rows.len()
                && rows.rows().iter().zip(memory.rows).all(|(made, given)| is_same(made, given))
        };
        let found = |(place, made): (usize, &MadeRows)| Some((place, made.get().filter(is_it)?));
        let (place, rows) = self.made.iter().enumerate().find_map(found)?;
        self.made.swap_remove(place);
        Some(rows)
    }

    /// Sends and stores what can be now, without waiting. What it finds comes out of `poll`, which
    /// does the same. True if a peer is newly lost.
    pub fn carry(&mut self) -> bool {
        self.look(Duration::ZERO);
        self.flush();
        let mut is_lost = false;
        let Self { connections, events, .. } = self;
        for connection in connections.get_mut() {
            if connection.is_readable() {
                connection.read(|notice| events.received(notice));
                is_lost |= connection.is_untold;
            }
        }
        if is_lost {
            self.tell_losses();
        }
        is_lost
    }

    /// Whether nothing waits here: neither to be sent, nor, as far as was looked, to be read.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let connections = self.connections.borrow();
        !connections.iter().any(|connection| connection.is_pending() || connection.is_readable())
    }

    /// Takes note of what changed; waits for it at most `timeout`. True if that is worth to wake
    /// for.
    fn look(&mut self, timeout: Duration) -> bool {
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

    /// Sends what waits, as far as the sockets take it, within bounds. True if a queue that was
    /// full has room again, or a block has gone.
    fn flush(&mut self) -> bool {
        let Self { connections, events, .. } = self;
        let (mut is_room, had_no_block) = (false, events.has_no_block());
        for connection in
            connections.get_mut().iter_mut().filter(|connection| connection.is_pending())
        {
            let was_full = connection.is_full();
            connection.flush(|sent| events.sent(sent));
            is_room |= was_full && !connection.is_full();
        }
        is_room || (had_no_block && !events.has_no_block())
    }

    /// Sends what waits for one peer.
    pub(super) fn flush_to(&mut self, view: ViewId, peer: Rank) {
        let Self { views, connections, events, .. } = self;
        let route = views.iter().find(|open| open.id == view).and_then(|view| view.route(peer));
        if let Some(connection) = route.and_then(|index| connections.get_mut().get_mut(index)) {
            connection.flush(|sent| events.sent(sent));
        }
    }

    /// Whether more can be sent at once.
    fn is_sendable(&self) -> bool {
        self.connections.borrow().iter().any(Connection::is_sendable)
    }

    /// Tells of each loss once, in each view that has the peer.
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

    fn view(&self, id: ViewId) -> Option<&View> {
        self.views.iter().find(|view| view.id == id)
    }
}

/// Whether two rows are the same memory.
fn is_same(one: &Row<'_>, other: &Row<'_>) -> bool {
    (one.base(), one.bytes()) == (other.base(), other.bytes())
}

/// Whether a write is one that can be carried: from the own row into the peer's copy of it.
fn is_carried(write: &Write, row_bytes: usize) -> bool {
    let fits = |offset: usize| offset.checked_add(write.length).is_some_and(|end| end <= row_bytes);
    let is_row = (write.source.region, write.target.region) == (Region::ROW, Region::ROW);
    let most = match write.kind {
        Kind::Content => WRITE_MAX,
        Kind::Guard => GUARD_MAX,
    };
    is_row && write.length <= most && fits(write.source.offset) && fits(write.target.offset)
}

impl Fabric for Tcp {
    type Error = ErrorKind;

    /// Writes keep their order, and so do the bytes of one. That a list is completed says that the
    /// kernel has it, and nothing of the peer.
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::ADDRESS_ORDER.union(Promises::WRITE_ORDER),
            writes_max: WRITES_MAX,
            write_bytes_max: WRITE_MAX,
            guard_bytes_max: GUARD_MAX,
        }
    }

    /// # Errors
    /// [`ErrorKind::Other`] if the view is open, a newer one was ever opened, or two are open;
    /// [`ErrorKind::WrongMemory`] if [`HostFabric::rows`] did not make the memory for this view, or
    /// it was used before. So a view that ended may be opened again in fresh memory, with another
    /// list of members, until a newer one is.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        let is_old = self.newest > Some(view) || self.view(view).is_some();
        if is_old || self.views.len() == VIEWS_MAX {
            return Err(ErrorKind::Other);
        }
        let rows = self.take_made(view, memory).ok_or(ErrorKind::WrongMemory)?;
        let connections = self.connections.get_mut();
        let mut routes = Vec::with_capacity(memory.members.len());
        for (rank, member) in (0..).map(Rank).zip(memory.members) {
            // A node that was no member of the view before, or has not come in it yet, comes as
            // another process than the one that was lost.
            let goes_on = self.views.last().is_none_or(|before| before.has_met(*member));
            let is_route =
                |known: &Connection| known.peer == *member && (goes_on || known.is_used());
            let route = connections.iter().position(is_route);
            if let Some(connection) = route.and_then(|index| connections.get_mut(index)) {
                if let (Some(cause), false) = (connection.loss(), connection.is_untold) {
                    // EventQueue in an older view, and as true in this one.
                    self.events.push(Event::PeerLost { view, peer: rank, cause });
                }
                if connection.open(view, &rows, Closed::default(), rank) {
                    self.events.push(Event::Ready { view, peer: rank });
                }
                connection.flush(|sent| self.events.sent(sent));
            }
            routes.push(route.map_or(Route::NotYet, Route::Through));
        }
        let (members, closed) = (memory.members.to_vec(), Closed::default());
        self.views.push(View { id: view, rows, members, routes, closed });
        self.newest = Some(view);
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

    /// Ends the connection: there is one for all views, and a member that is cut off in one is a
    /// member of none that comes.
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

    /// True at once: what had not gone of the view's rows is kept elsewhere, and what still comes
    /// is dropped.
    fn retire(&mut self, view: ViewId) -> bool {
        let Some(place) = self.views.iter().position(|open| open.id == view) else { return true };
        let View { rows, .. } = self.views.remove(place);
        for connection in self.connections.get_mut() {
            connection.retire(view, &rows);
        }
        self.events.retire(view);
        true
    }

    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let Self { views, connections, events, .. } = self;
        let open = views.iter().find(|open| open.id == view).ok_or(ErrorKind::Other)?;
        let connection = open.reach(to, connections.get_mut())?;
        let rows = &open.rows;
        let row_bytes = rows.row().bytes();
        if writes.len() > WRITES_MAX || !writes.iter().all(|write| is_carried(write, row_bytes)) {
            return Err(ErrorKind::OutOfRange);
        }
        if !connection.is_ready(view) || (token.is_some() && !events.has_room()) {
            return Err(ErrorKind::QueueFull);
        }
        if connection.is_full() {
            connection.flush(|sent| events.sent(sent));
            if connection.is_full() {
                return Err(ErrorKind::QueueFull);
            }
        }
        connection.post(view, rows, writes, token).map_err(|_| ErrorKind::OutOfRange)?;
        connection.flush(|sent| events.sent(sent));
        Ok(())
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
        !is_news && self.events.is_empty() && !self.connections.get_mut().iter().any(has_more)
    }

    fn disarm(&mut self) {
        self.watch.bell().lower();
    }

    /// Nothing: the thread that stores what came is the one that looks at it.
    fn observe_barrier(&self) {}
}

/// Becomes readable when a socket has something, or the own bell was rung: for a caller that waits
/// for other things too.
impl AsFd for Tcp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }
}

impl HostFabric for Tcp {
    type Bell = Bell;
    type Rows = Rows;
    type MemoryError = NoRows;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Rows, NoRows> {
        let (view, rank) = (plan.view(), plan.own());
        if plan.members().get(rank.index()) != Some(&self.own) {
            return Err(NoRows::NotAMember { node: self.own, rank, view });
        }
        let rows = Rows::new(plan)?;
        self.made.retain(|made| made.get().is_some());
        self.made.push(rows.downgrade());
        Ok(rows)
    }

    fn local_bell(&self) -> Bell {
        self.watch.bell().clone()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            // A member that was refused for a full queue is woken once there is room, and not for
            // each part that goes.
            let left = if self.is_sendable() {
                Duration::ZERO
            } else {
                timeout.saturating_sub(start.elapsed())
            };
            if self.look(left) | self.flush() || self.is_sendable() {
                return true;
            }
            if start.elapsed() >= timeout {
                return false;
            }
        }
    }

    /// The kernel wakes a sleeper as soon as something comes: to give way and look again costs
    /// whole time slices.
    fn idle_time(&self) -> Duration {
        Duration::ZERO
    }

    fn check_peers(&mut self) -> bool {
        self.carry()
    }

    fn leave(&mut self) {
        for connection in self.connections.borrow_mut().iter_mut() {
            connection.farewell(Frame::Leave);
        }
    }
}
