//! Peers one by one: those that come while the fabric runs, and how fast one is sent to.

use std::io;
use std::num::NonZeroU64;

use tramontane_core::fabric::Event;
use tramontane_core::ids::{NodeId, Rank};

use super::connection::Connection;
use super::fabric::Tcp;
use super::rate;
use super::views::{Route, View};

impl Tcp {
    /// Whether a node's connection is there.
    #[must_use]
    pub fn has_peer(&self, node: NodeId) -> bool {
        self.connections
            .borrow()
            .iter()
            .any(|connection| connection.peer == node && connection.is_used())
    }

    /// A node is out of all views that are open. Its connection stays, so that what is sent on it
    /// is read to its end, and is replaced by one of the node's next process.
    pub fn part_from(&mut self, node: NodeId) {
        for connection in
            self.connections.get_mut().iter_mut().filter(|connection| connection.peer == node)
        {
            connection.part();
        }
    }

    /// Holds what goes to a peer to so many bytes a second, until its connection ends. Of what the
    /// kernel has taken already, as much as it holds goes at that speed too.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotConnected`] if the peer is not there; else what the system says.
    pub fn limit_rate(&self, peer: NodeId, bytes_per_s: NonZeroU64) -> io::Result<()> {
        let connections = self.connections.borrow();
        let stream = connections
            .iter()
            .find(|connection| connection.peer == peer)
            .and_then(Connection::stream);
        rate::limit(stream.ok_or(io::ErrorKind::NotConnected)?, bytes_per_s)
    }

    /// Opens the newest view to a peer that came after it was opened here; and the one before, if
    /// it had not come in that either. Otherwise that one is of an earlier process of its node, if
    /// of any: a node is admitted again only after it is out.
    pub(super) fn open_newest_to(&mut self, index: usize) {
        let Self { connections, views, events, .. } = self;
        let Some(connection) = connections.get_mut().get_mut(index) else { return };
        let place_in =
            |view: &View| view.members.iter().position(|member| *member == connection.peer);
        let awaits = |view: &View| {
            place_in(view).is_some_and(|place| view.routes.get(place) == Some(&Route::NotYet))
        };
        let count = views.iter().rev().take_while(|view| awaits(view)).count();
        let first = views.len() - count;
        // Oldest first, as the peer opens them too.
        for view in views.iter_mut().skip(first) {
            let Some(place) = view.members.iter().position(|member| *member == connection.peer)
            else {
                continue;
            };
            let Ok(rank) = u16::try_from(place).map(Rank) else { continue };
            if let Some(route) = view.routes.get_mut(place) {
                *route = Route::Through(index);
            }
            if connection.open(view.id, &view.rows, view.closed, rank) {
                events.push(Event::Ready { view: view.id, peer: rank });
            }
        }
        connection.flush(|sent| events.sent(sent));
    }
}
