//! The open two-member views of a process, by link.
//!
//! # Invariants
//! - A link has one view at a time. A view that has been given up is retired, and its rows are kept
//!   until the fabric confirms that nothing is in flight in them.

use std::time::{Duration, Instant};

use tramontane_core::fabric::{ErrorKind, HostRegions, RegionMemory as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::{GroupId, NodeId, Rank, ViewId};
use tramontane_core::memory::{Row, RowWriter};
use tramontane_core::tram::{
    Attachment, LOG, LinkId, LinkRole, Memory, Overlay, ReplicaLinks, Shape,
};

/// Time limit for the peer of an open view to become ready.
const WAITING_MAX: Duration = Duration::from_secs(5);

/// The reason why there is no view.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoView<E: std::error::Error> {
    #[error("not enough memory for a view: {0}")]
    Memory(#[source] E),
    #[error("the fabric cannot open a view: {0}")]
    Fabric(ErrorKind),
}

/// The terms of a view that two processes have agreed on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Agreed {
    pub(super) node: NodeId,
    pub(super) life: u64,
    pub(super) incarnation: u32,
    pub(super) view: ViewId,
    /// The sizes in bytes of the local row and of the peer's.
    pub(super) row_bytes: (usize, usize),
    /// The digest that identifies this overlay.
    pub(super) digest: u64,
}

/// A view that is open.
struct OpenLinkView<R> {
    view: ViewId,
    peer: Rank,
    node: NodeId,
    life: u64,
    opened: Instant,
    rows: R,
}

/// All views of a process, and its region.
pub(super) struct Links<F: HostRegions> {
    own: NodeId,
    log: F::RegionMemory,
    open: Vec<Option<OpenLinkView<F::Rows>>>,
    retiring: Vec<(ViewId, F::Rows)>,
}

impl<F: HostRegions<Error = ErrorKind>> Links<F> {
    /// Creates room for `links` links, and a region of `bytes` bytes that is part of all views.
    pub(super) fn new(
        fabric: &mut F,
        own: NodeId,
        links: usize,
        region_bytes: usize,
    ) -> Result<Self, F::MemoryError> {
        let log = fabric.region(LOG, region_bytes)?;
        let open = (0..links).map(|_| None).collect();
        Ok(Self { own, log, open, retiring: Vec::new() })
    }

    /// Opens the view agreed on with a peer, replacing the link's earlier view.
    pub(super) fn open(
        &mut self,
        fabric: &mut F,
        link: LinkId,
        agreed: &Agreed,
    ) -> Result<Attachment, NoView<F::MemoryError>> {
        self.close(fabric, link);
        let Agreed { node, life, incarnation, view, row_bytes: (own_bytes, peer_bytes), digest } =
            *agreed;
        // The lower node id comes first in both processes.
        let is_first = self.own < node;
        let (members, bytes) = if is_first {
            ([self.own, node], [own_bytes, peer_bytes])
        } else {
            ([node, self.own], [peer_bytes, own_bytes])
        };
        let (own, peer) = if is_first { (Rank(0), Rank(1)) } else { (Rank(1), Rank(0)) };
        let plan = ViewPlan::with_sizes(view, own, &members, &bytes, digest ^ view.0);
        let rows = fabric.rows(&plan).map_err(NoView::Memory)?;
        fabric.open(view, &rows.memory()).map_err(NoView::Fabric)?;
        let opened = Instant::now();
        if let Some(place) = self.open.get_mut(link.index()) {
            *place = Some(OpenLinkView { view, peer, node, life, opened, rows });
        }
        Ok(Attachment { view, peer, incarnation })
    }

    /// Gives up a link's view. Returns its id, and the node and process that shared it.
    pub(super) fn close(&mut self, fabric: &mut F, link: LinkId) -> Option<(ViewId, NodeId, u64)> {
        let OpenLinkView { view, peer, node, life, rows, .. } =
            self.open.get_mut(link.index())?.take()?;
        // All views share the log. It may be granted to another replica while this view is still
        // being retired. After an error the peer is cut, so none of its writes lands either.
        if fabric.may_write(view, peer, LOG) {
            let _ = fabric.revoke(view, peer, LOG);
        }
        if !fabric.retire(view) {
            self.retiring.push((view, rows));
        }
        Some((view, node, life))
    }

    /// Continues to retire views that have been given up.
    pub(super) fn retire(&mut self, fabric: &mut F) {
        self.retiring.retain(|(view, _)| !fabric.retire(*view));
    }

    /// Returns the view of a link.
    pub(super) fn view(&self, link: LinkId) -> Option<ViewId> {
        self.open.get(link.index())?.as_ref().map(|open| open.view)
    }

    /// Returns the node and process at the other end of a link.
    pub(super) fn process(&self, link: LinkId) -> Option<(NodeId, u64)> {
        self.open.get(link.index())?.as_ref().map(|open| (open.node, open.life))
    }

    /// Returns the view of a link and the peer's rank in it.
    pub(super) fn place(&self, link: LinkId) -> Option<(ViewId, Rank)> {
        self.open.get(link.index())?.as_ref().map(|open| (open.view, open.peer))
    }

    /// Returns whether the peer of a view should have been ready by now.
    pub(super) fn is_overdue(&self, link: LinkId) -> bool {
        let open = self.open.get(link.index()).and_then(Option::as_ref);
        open.is_some_and(|open| open.opened.elapsed() >= WAITING_MAX)
    }
}

impl<F: HostRegions> Memory for Links<F> {
    fn log(&self) -> RowWriter<'_> {
        self.log.writer()
    }

    #[inline]
    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)> {
        let open = self.open.get(link.index())?.as_ref()?;
        let theirs = open.rows.rows().get(open.peer.index())?;
        Some((open.rows.row(), *theirs))
    }
}

/// Returns the sizes in bytes of the local row of a replica's link, and of the peer's.
pub(super) fn row_bytes(overlay: &Overlay, group: GroupId, link: LinkId) -> (usize, usize) {
    let own = Shape::of(overlay, group);
    let links = ReplicaLinks::of(overlay, group);
    match links.role(link) {
        Some(LinkRole::Peer(_)) => (own.peer_row_bytes(), own.peer_row_bytes()),
        Some(LinkRole::Parent(_)) => (own.child_row_bytes(), own.parent_row_bytes()),
        Some(LinkRole::Child { child, .. }) => {
            let child = overlay.children(group).nth(usize::from(child)).unwrap_or_default();
            let below = Shape::of(overlay, child);
            (below.parent_row_bytes(), below.child_row_bytes())
        }
        Some(LinkRole::Client(_)) => {
            let replies = own.reply_row_bytes(overlay.limits().client_window);
            (replies, own.client_row_bytes())
        }
        None => (0, 0),
    }
}
