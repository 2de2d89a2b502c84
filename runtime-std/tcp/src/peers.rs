//! Operations on individual peers: adding peers while the fabric runs, and limiting the send rate.

use tramontane_core::fabric::{Event, LossCause};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::connection::Connection;
use super::fabric::Tcp;
use super::views::Route;

impl Tcp {
    /// Adds a peer that has been met, before or after the first view that includes it is opened. A
    /// peer that returns replaces its former process, once that process has been lost or
    /// [`Tcp::part_from`] has been called for it. Views that await the peer are opened to it.
    ///
    /// # Errors
    /// Returns [`std::io::ErrorKind::AlreadyExists`] if that peer is already connected; otherwise,
    /// returns the system's error for the socket.
    pub fn add_peer(
        &mut self,
        peer: NodeId,
        connection: tramontane_control::Connection,
    ) -> std::io::Result<()> {
        let connections = self.connections.get_mut();
        let before = connections.iter().position(|before| before.peer == peer);
        let is_there = |index| connections.get(index).is_some_and(Connection::is_used);
        if peer == self.own || before.is_some_and(is_there) {
            return Err(std::io::ErrorKind::AlreadyExists.into());
        }
        let connection = Connection::new(peer, connection, &self.settings)?;
        let index = before.unwrap_or_else(|| self.free_place());
        if let Some(stream) = connection.stream() {
            self.watch.add(index, stream)?;
        }
        self.leave_place(index);
        self.connections.get_mut().put(index, connection);
        self.open_views_to(index);
        Ok(())
    }

    /// Returns an index for a connection: that of a connection which is over and to which no view
    /// leads, or a new one.
    fn free_place(&mut self) -> usize {
        let Self { connections, views, .. } = self;
        let connections = connections.get_mut();
        let is_free = |(index, connection): (usize, &Connection)| {
            connection.is_over() && views.iter().all(|view| view.rank_of(index).is_none())
        };
        connections.iter().enumerate().position(is_free).unwrap_or(connections.len())
    }

    /// Prepares an index for another process: views no longer lead there, and those that do not
    /// know of the loss yet report it.
    fn leave_place(&mut self, index: usize) {
        let Self { connections, views, events, .. } = self;
        let Some(before) = connections.get_mut().get(index) else { return };
        // Nothing is reported about a peer that this member has cut off.
        let is_news = before.is_live() || before.is_untold;
        let cause = before.loss().unwrap_or(LossCause::Exited);
        for view in views {
            let Some(peer) = view.rank_of(index) else { continue };
            view.routes[peer.index()] = Route::Gone;
            if is_news {
                events.push(Event::PeerLost { view: view.id, peer, cause });
            }
        }
    }

    /// Returns whether there is a connection to a node.
    #[must_use]
    pub fn has_peer(&self, node: NodeId) -> bool {
        self.connections
            .borrow()
            .iter()
            .any(|connection| connection.peer == node && connection.is_used())
    }

    /// Returns whether a peer has ended a view that is open here. Posts to it are then dropped.
    #[must_use]
    pub fn has_ended(&self, view: ViewId, peer: Rank) -> bool {
        let route = self.view(view).and_then(|open| open.route(peer));
        let connections = self.connections.borrow();
        let connection = route.and_then(|index| connections.get(index));
        connection.is_some_and(|connection| connection.is_over_there(view))
    }

    /// Notes that a node has left all open views. Its connection stays until a connection of the
    /// node's next process replaces it, so that frames sent on it are read to the end.
    pub fn part_from(&mut self, node: NodeId) {
        for connection in
            self.connections.get_mut().iter_mut().filter(|connection| connection.peer == node)
        {
            connection.part();
        }
    }

    /// Opens the views that await a peer which has arrived.
    pub(super) fn open_views_to(&mut self, index: usize) {
        let Self { connections, views, events, regions, .. } = self;
        let Some(connection) = connections.get_mut().get_mut(index) else { return };
        for view in views {
            let place = view.members.iter().position(|member| *member == connection.peer);
            let Some(rank) = place.and_then(|place| u16::try_from(place).ok()).map(Rank) else {
                continue;
            };
            let route = &mut view.routes[rank.index()];
            if *route != Route::NotYet {
                continue;
            }
            *route = Route::Through(index);
            if connection.open(view.id, (&view.rows, regions), view.closed, rank) {
                events.push(Event::Ready { view: view.id, peer: rank });
            }
        }
        connection.flush(|sent| events.sent(sent));
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::time::{Duration, Instant};

    use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};

    use super::*;
    use crate::connection::Settings;

    const OWN: NodeId = NodeId(1);

    fn connection() -> (tramontane_control::Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let other = TcpStream::connect(listener.local_addr().expect("an address")).expect("open");
        let (stream, _) = listener.accept().expect("it came");
        (tramontane_control::Connection { stream, cipher: None }, other)
    }

    fn open(fabric: &mut Tcp, view: ViewId, peer: NodeId) {
        let members = [OWN, peer];
        let plan = ViewPlan::with_sizes(view, Rank(0), &members, &[64; 2], 1);
        let rows = fabric.rows(&plan).expect("memory");
        fabric.open(view, &rows.memory()).expect("there is room");
    }

    fn await_that(mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(20), "it never comes");
        }
    }

    fn await_loss(fabric: &mut Tcp) {
        await_that(|| matches!(fabric.poll(), Some(Event::PeerLost { .. })));
    }

    #[test]
    fn slot_of_lost_peer_is_reused() {
        let mut fabric = Tcp::new(OWN, Settings::default()).expect("descriptors");
        let (stays, _stays) = connection();
        fabric.add_peer(NodeId(2), stays).expect("a fresh one");
        for number in 3..30 {
            let (peer, view) = (NodeId(number), ViewId(number.into()));
            open(&mut fabric, view, peer);
            let (comes, goes) = connection();
            fabric.add_peer(peer, comes).expect("a fresh one");
            assert!(fabric.has_peer(peer) && fabric.has_peer(NodeId(2)));
            drop(goes);
            await_loss(&mut fabric);
            assert!(fabric.retire(view) && !fabric.has_peer(peer));
        }
        assert_eq!(fabric.connections.get_mut().len(), 2);
    }

    #[test]
    fn poll_handles_only_busy_connections() {
        let mut fabric = Tcp::new(OWN, Settings::default()).expect("descriptors");
        let mut ends = Vec::new();
        for number in 2..20 {
            let (comes, end) = connection();
            fabric.add_peer(NodeId(number), comes).expect("a fresh one");
            ends.push(end);
        }
        let busy = |fabric: &mut Tcp| {
            fabric.carry();
            fabric.connections.get_mut().busy().count()
        };
        await_that(|| busy(&mut fabric) == 0);
        // The peer's frames, and posts to the peer, still cause a report.
        drop(ends.pop());
        await_that(|| {
            fabric.carry();
            !fabric.has_peer(NodeId(19))
        });
        open(&mut fabric, ViewId(3), NodeId(4));
        let mut bytes = [0; 32];
        std::io::Read::read_exact(&mut ends[2], &mut bytes).expect("the frame of the open");
        assert_eq!(bytes[0], 1);
        await_that(|| busy(&mut fabric) == 0);
    }

    #[test]
    fn end_of_view_at_peer_is_noticed() {
        let (view, peer) = (ViewId(7), NodeId(2));
        let mut fabric = Tcp::new(OWN, Settings::default()).expect("descriptors");
        let mut other = Tcp::new(peer, Settings::default()).expect("descriptors");
        let (comes, stream) = connection();
        fabric.add_peer(peer, comes).expect("a fresh one");
        let connection = tramontane_control::Connection { stream, cipher: None };
        other.add_peer(OWN, connection).expect("a fresh one");
        open(&mut fabric, view, peer);
        let members = [OWN, peer];
        let plan = ViewPlan::with_sizes(view, Rank(1), &members, &[64; 2], 1);
        let rows = other.rows(&plan).expect("memory");
        other.open(view, &rows.memory()).expect("there is room");
        await_that(|| {
            other.poll();
            fabric.poll();
            fabric.ready(view, Rank(1))
        });
        assert!(!fabric.has_ended(view, Rank(1)));
        assert!(other.retire(view));
        await_that(|| {
            other.poll();
            fabric.poll();
            fabric.has_ended(view, Rank(1))
        });
    }

    #[test]
    fn view_reports_replaced_process_unless_disconnected() {
        let mut fabric = Tcp::new(OWN, Settings::default()).expect("descriptors");
        let (peer, ways) = (NodeId(2), [connection(), connection(), connection()]);
        let (ways, _ends): (Vec<_>, Vec<_>) = ways.into_iter().unzip();
        let [one, two, three] = ways.try_into().expect("three");
        open(&mut fabric, ViewId(7), peer);
        fabric.add_peer(peer, one).expect("a fresh one");
        fabric.part_from(peer);
        fabric.add_peer(peer, two).expect("its place is free");
        let cause = LossCause::Exited;
        let lost = Event::PeerLost { view: ViewId(7), peer: Rank(1), cause };
        assert_eq!((fabric.poll(), fabric.poll()), (Some(lost), None));
        open(&mut fabric, ViewId(6), peer);
        fabric.cut(ViewId(6), Rank(1));
        fabric.part_from(peer);
        fabric.add_peer(peer, three).expect("its place is free");
        assert_eq!(fabric.poll(), None, "who cuts is told nothing");
    }

    #[test]
    fn slot_is_kept_until_loss_is_reported() {
        let mut fabric = Tcp::new(OWN, Settings::default()).expect("descriptors");
        let peers = [NodeId(2), NodeId(3), NodeId(4)];
        open(&mut fabric, ViewId(2), peers[0]);
        for peer in &peers[..2] {
            let (comes, goes) = connection();
            fabric.add_peer(*peer, comes).expect("a fresh one");
            drop(goes);
        }
        await_loss(&mut fabric);
        await_that(|| {
            fabric.carry();
            !fabric.has_peer(peers[1])
        });
        let (comes, _goes) = connection();
        fabric.add_peer(peers[2], comes).expect("a fresh one");
        assert_eq!(fabric.connections.get_mut().len(), 3);
        // A view that is opened now reports the loss of that peer, unless `part_from` has been
        // called for it.
        open(&mut fabric, ViewId(3), peers[1]);
        await_loss(&mut fabric);
        assert!(fabric.retire(ViewId(2)) && fabric.retire(ViewId(3)));
        fabric.part_from(peers[1]);
        open(&mut fabric, ViewId(4), peers[1]);
        assert_eq!(fabric.poll(), None, "it awaits another process");
        let (comes, _goes_too) = connection();
        fabric.add_peer(peers[1], comes).expect("its place is free");
        assert_eq!(fabric.connections.get_mut().len(), 3);
    }
}
