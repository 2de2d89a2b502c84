//! The open views, and the route to each of their members.

use tramontane_core::fabric::{ErrorKind, LossCause, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};

use super::blocks::Closed;
use super::connection::Connection;
use super::connections::Connections;
use super::memory::Rows;

/// An open view.
#[derive(Debug)]
pub(super) struct View {
    pub(super) id: ViewId,
    pub(super) rows: Rows,
    pub(super) members: Vec<NodeId>,
    /// By rank.
    pub(super) routes: Vec<Route>,
    /// The channels that have been closed here.
    pub(super) closed: Closed,
}

/// The route to a member of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The member has not arrived yet.
    NotYet,
    /// The member uses the connection with this index.
    Through(usize),
    /// The member has been lost, and another process has replaced its connection.
    Gone,
}

impl View {
    pub(super) fn route(&self, to: Rank) -> Option<usize> {
        match self.routes.get(to.index()) {
            Some(Route::Through(index)) => Some(*index),
            Some(Route::NotYet | Route::Gone) | None => None,
        }
    }

    /// Returns whether a node is a member and has arrived.
    pub(super) fn has_met(&self, node: NodeId) -> bool {
        let mut members = self.members.iter().zip(&self.routes);
        members.any(|(member, route)| *member == node && *route != Route::NotYet)
    }

    pub(super) fn rank_of(&self, connection: usize) -> Option<Rank> {
        let rank = self.routes.iter().position(|route| *route == Route::Through(connection))?;
        u16::try_from(rank).ok().map(Rank)
    }

    /// Returns the connection to a peer for a post.
    pub(super) fn reach<'c>(
        &self,
        to: Rank,
        connections: &'c mut Connections,
    ) -> Result<&'c mut Connection, ErrorKind> {
        if to == self.rows.own() {
            return Err(ErrorKind::OutOfRange);
        }
        let connection = match self.routes.get(to.index()).ok_or(ErrorKind::OutOfRange)? {
            Route::NotYet => return Err(ErrorKind::QueueFull),
            Route::Gone => return Err(ErrorKind::PeerLost),
            Route::Through(index) => connections.get_mut(*index).ok_or(ErrorKind::PeerLost)?,
        };
        if connection.is_live() {
            return Ok(connection);
        }
        // A peer that has cut off this member has reported that, so it may be alive.
        let is_denied = connection.loss() == Some(LossCause::Denied);
        Err(if is_denied { ErrorKind::Revoked } else { ErrorKind::PeerLost })
    }
}
