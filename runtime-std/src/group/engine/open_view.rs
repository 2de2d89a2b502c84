//! A node in one view, together with everything that it borrows.

use std::sync::Arc;

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::Capabilities;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::ViewColumn;
use tramontane_core::node::{Frontiers, ViewError, ViewLink, ViewLoan, ViewNode};
use tramontane_core::view::PeerState;
use tramontane_core::view::Table as _;

use super::participant::Participant;
use crate::group::description::layout::ViewLayout;
use crate::group::description::view::View;
use crate::member::{Memory, PrivateState, Shared};

/// The memory that a node and its view protocol borrow.
struct NodeLoan {
    shared: Arc<Shared>,
    layout: Arc<ViewLayout>,
    state: PrivateState,
    peers: Vec<PeerState>,
    next: Vec<NodeId>,
    links: Vec<ViewLink>,
}

self_cell!(
    struct NodeCell {
        owner: MutBorrow<NodeLoan>,
        #[not_covariant]
        dependent: ViewNode,
    }
);

/// One view at this member.
pub(crate) struct OpenView {
    // Dropped first, because it reads memory that `shared` keeps.
    cell: NodeCell,
    shared: Arc<Shared>,
    layout: Arc<ViewLayout>,
    memory: Memory,
    view: View,
    own: Rank,
}

impl OpenView {
    /// Opens a node on a view's fresh memory.
    pub(crate) fn open(
        view: View,
        layout: Arc<ViewLayout>,
        own: Rank,
        memory: Memory,
        participant: &Participant,
        capabilities: Capabilities,
    ) -> Result<Self, ViewError> {
        let (options, view_options) = (participant.options, participant.view_options());
        let shared = Arc::new(Shared::new(layout.get(), own, memory.clone())?);
        let members = layout.get().members();
        let lent = NodeLoan {
            shared: Arc::clone(&shared),
            state: PrivateState::new(layout.get(), own),
            peers: vec![PeerState::default(); members],
            next: vec![NodeId::default(); members.max(view_options.members_max)],
            links: vec![ViewLink::default(); members],
            layout: Arc::clone(&layout),
        };
        let id = view.id;
        let cell = NodeCell::try_new(MutBorrow::new(lent), |lent| {
            let NodeLoan { shared, layout, state, peers, next, links } = lent.borrow_mut();
            let loan = ViewLoan { node: shared.loan(state), peers, next, links };
            ViewNode::open(id, *layout.get(), own, loan, options, view_options, capabilities)
        })?;
        Ok(Self { cell, shared, layout, memory, view, own })
    }

    pub(crate) const fn view(&self) -> &View {
        &self.view
    }

    pub(crate) const fn own(&self) -> Rank {
        self.own
    }

    pub(crate) fn layout(&self) -> &ViewLayout {
        &self.layout
    }

    /// Returns the rows of the view.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Returns the state that senders share with the node.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Reads from the node.
    #[inline]
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ViewNode<'_>) -> T) -> T {
        self.cell.with_dependent(|_, node| read(node))
    }

    /// Calls `change` with the node, for example to step it.
    #[inline]
    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut ViewNode<'_>) -> T) -> T {
        self.cell.with_dependent_mut(|_, node| change(node))
    }

    /// Returns the core's list for the next view, once the view has been decided. See
    /// [`View::next`].
    pub(crate) fn next_list(&self) -> Option<Vec<NodeId>> {
        self.read(|node| Some(node.next_view()?.members.to_vec()))
    }

    /// Returns whether a member has appeared in the view, or is suspected.
    pub(crate) fn has_come(&self, rank: Rank) -> bool {
        self.read(|node| node.table().load(rank, ViewColumn::Installed) != 0 || node.suspects(rank))
    }

    /// Returns the members that this one suspects.
    pub(crate) fn suspected(&self) -> Vec<NodeId> {
        let ranks = (0..).map(Rank).zip(self.view.members.iter().copied());
        self.read(|own| {
            ranks.filter(|(rank, _)| own.suspects(*rank)).map(|(_, node)| node).collect()
        })
    }

    /// Returns the members of an ordered subgroup with their frontiers, as far as this member knows
    /// them.
    pub(crate) fn frontiers_of_all(
        &self,
        subgroup: SubgroupId,
    ) -> impl Iterator<Item = (Rank, Frontiers)> {
        let ranks = (0..).map(Rank).take(self.view.members.len());
        ranks.filter_map(move |rank| {
            let of = self.read(|node| node.node().frontiers_of(subgroup, rank));
            Some((rank, of?))
        })
    }
}
