//! Posting of the view protocol's columns to the peers: the content first, then the guards that
//! cover it.
//!
//! Content may be read late, so a peer may see a column that is newer than its guards. That is
//! harmless: every cell only grows, and a list that is newer than its guard is recognisable as
//! such.
//!
//! Requirements: HAL-1, VIE-1.

use super::views::{ViewLink, Views};
use super::{Node, Progress};
use crate::fabric::{ErrorKind, Fabric, FabricError, Kind, WRITES_MAX, Write, WriteList};
use crate::ids::Rank;
use crate::layout::ViewColumn;
use crate::view::Loss;

impl<'m> Node<'m> {
    /// Brings each peer's copy of the view columns up to date: content first, then the guards.
    pub(super) fn post_views<F: Fabric>(
        &mut self,
        fabric: &mut F,
        views: &mut Views<'m>,
        progress: &mut Progress,
    ) {
        let (version, heartbeats) = (views.table.version(), views.table.heartbeats());
        let current = ViewLink { version, heartbeats };
        if views.posted == current {
            return;
        }
        let offset = |column| views.table.own_offset(column);
        let places = (
            offset(ViewColumn::Heartbeat),
            offset(ViewColumn::Stance),
            offset(ViewColumn::Suspicions(0)),
        );
        let (Some(head), Some(guards), Some(rest)) = places else { return };
        let end =
            views.layout.view_block().map_or(rest, |block| head.saturating_add(block.bytes()));
        let count = u16::try_from(views.layout.members()).unwrap_or(u16::MAX);
        let is_final = views.state.status().is_final();
        let mut all = true;
        // bound: the members
        for rank in (0..count).map(Rank) {
            let given_up = views.is_given_up(rank);
            let Some(link) = views.links.get_mut(rank.index()) else { continue };
            if rank == self.rank || given_up || *link == current {
                continue;
            }
            // In a final status, steps no longer report losses in this view, so a failed post has
            // to show which peers are lost.
            if !is_final && !fabric.ready(self.view, rank) {
                all = false;
                continue;
            }
            let mut list = WriteList::new();
            // There is room for three writes: see the assertion below.
            let _ = list.push(head_write(head));
            if link.version != version {
                let _ = list.push(Write::of_row(rest, end.saturating_sub(rest), Kind::Content));
                let _ = list.push(Write::of_row(guards, 24, Kind::Guard));
            }
            match fabric.post(self.view, rank, &list, None) {
                Ok(()) => {
                    *link = current;
                    progress.lists = progress.lists.saturating_add(1);
                    let writes = u32::try_from(list.len()).unwrap_or(0);
                    if list.len() > 1 {
                        progress.writes = progress.writes.saturating_add(writes);
                    } else {
                        progress.heartbeats = progress.heartbeats.saturating_add(1);
                    }
                }
                Err(error) => {
                    views.refused(rank, error.kind());
                    all = false;
                }
            }
        }
        if all {
            views.posted = current;
        }
    }

    /// Posts the newest heartbeat, and nothing else, to each peer. A heartbeat guards nothing, so
    /// it may precede any other pending posts.
    pub(super) fn post_heartbeat<F: Fabric>(
        &mut self,
        fabric: &mut F,
        views: &mut Views<'m>,
        progress: &mut Progress,
    ) {
        let heartbeats = views.table.heartbeats();
        let Some(head) = views.table.own_offset(ViewColumn::Heartbeat) else { return };
        let count = u16::try_from(views.layout.members()).unwrap_or(u16::MAX);
        // bound: the members
        for rank in (0..count).map(Rank) {
            if rank == self.rank || views.is_given_up(rank) || !fabric.ready(self.view, rank) {
                continue;
            }
            match fabric.post(self.view, rank, &[head_write(head)], None) {
                Ok(()) => {
                    if let Some(link) = views.links.get_mut(rank.index()) {
                        link.heartbeats = heartbeats;
                    }
                    progress.lists = progress.lists.saturating_add(1);
                    progress.heartbeats = progress.heartbeats.saturating_add(1);
                }
                Err(error) => views.refused(rank, error.kind()),
            }
        }
    }
}

impl Views<'_> {
    /// Handles a refused post. Only a full queue is worth a retry. In all other cases the peer is
    /// suspected in the next step, together with all other peers to which this applies, because a
    /// member that has lost most of its peers must not accuse them one by one before it halts.
    fn refused(&mut self, rank: Rank, kind: ErrorKind) {
        match kind {
            ErrorKind::QueueFull => {}
            ErrorKind::Revoked => self.note_loss(rank, Loss::Denied),
            ErrorKind::PeerLost
            | ErrorKind::OutOfRange
            | ErrorKind::Other
            | ErrorKind::WrongMemory => self.note_loss(rank, Loss::Reported),
        }
    }
}

/// Returns the write of the cells before the guards: the heartbeat, and two cells that need no
/// order.
fn head_write(offset: usize) -> Write {
    Write::of_row(offset, 24, Kind::Content)
}

// The columns, the content that follows them, and the guards.
const _: () = assert!(WRITES_MAX >= 3);
