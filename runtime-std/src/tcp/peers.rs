//! Peers that come while the fabric runs.

use tramontane_core::fabric::Event;
use tramontane_core::ids::{NodeId, Rank};

use super::fabric::Tcp;
use super::views::Route;

impl Tcp {
    /// Whether a node's connection is there.
    #[must_use]
    pub fn has_peer(&self, node: NodeId) -> bool {
        self.connections.borrow().iter().any(|connection| connection.peer == node && connection.is_live())
    }

    /// Opens the newest view to a peer that came after it was opened here. Older views are of an earlier process of that
    /// node, if of any: nobody is let in again before it is out.
    pub(super) fn open_newest_to(&mut self, index: usize) {
        let Self { connections, views, told, .. } = self;
        let Some(connection) = connections.get_mut().get_mut(index) else { return };
        let Some(view) = views.last_mut() else { return };
        let Some(place) = view.members.iter().position(|member| *member == connection.peer) else { return };
        // Whoever was there once was an earlier process of that node.
        let Some(route @ Route::NotYet) = view.routes.get_mut(place) else { return };
        let Ok(rank) = u16::try_from(place).map(Rank) else { return };
        *route = Route::Through(index);
        if connection.open(view.id, &view.rows, view.closed, rank) {
            told.push(Event::Ready { view: view.id, peer: rank });
        }
        connection.flush(|gone| told.gone(gone));
    }
}
