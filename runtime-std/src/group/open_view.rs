//! A node in one view, with all that it borrows.

use std::sync::Arc;

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::{Capabilities, Fabric};
use tramontane_core::ids::{NodeId, Position, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::ViewColumn;
use tramontane_core::multicast::Application;
use tramontane_core::node::{
    Frontiers, Node, OpenError, Progress, Remains, StepError, ViewError, ViewLink, ViewLoan, Views,
};
use tramontane_core::view::{NextView, PeerState, RequestError, Status, Table as _, ViewState};

use super::layout::ViewLayout;
use super::membership::Membership;
use super::view::View;
use crate::member::{Memory, PrivateState, Shared};

/// Why a view cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenViewError {
    /// Memory and layout do not belong together.
    #[error("the view's memory does not fit: {0}")]
    Node(#[from] OpenError),
    /// The fabric or the layout cannot have views.
    #[error(transparent)]
    Views(#[from] ViewError),
}

/// What a node and its view protocol borrow.
struct Lent {
    shared: Arc<Shared>,
    layout: Arc<ViewLayout>,
    state: PrivateState,
    peers: Vec<PeerState>,
    next: Vec<NodeId>,
    links: Vec<ViewLink>,
}

/// A node, and its part in the views of its group.
struct NodeInView<'l> {
    node: Node<'l>,
    views: Views<'l>,
}

self_cell!(
    struct NodeCell {
        owner: MutBorrow<Lent>,
        #[not_covariant]
        dependent: NodeInView,
    }
);

/// One view at this member.
pub(super) struct OpenView {
    // Dropped first: it reads the memory that `shared` keeps.
    cell: NodeCell,
    shared: Arc<Shared>,
    layout: Arc<ViewLayout>,
    memory: Memory,
    view: View,
    own: Rank,
}

impl OpenView {
    /// Opens a node on a view's fresh memory.
    pub(super) fn open(
        view: View,
        layout: Arc<ViewLayout>,
        own: Rank,
        memory: Memory,
        membership: &Membership,
        capabilities: Capabilities,
    ) -> Result<Self, OpenViewError> {
        let (options, view_options) = (membership.options, membership.view_options());
        let shared = Arc::new(Shared::new(
            layout.get(),
            own,
            memory.clone(),
            Arc::clone(&membership.ending),
        )?);
        let members = layout.get().members();
        let lent = Lent {
            shared: Arc::clone(&shared),
            state: PrivateState::new(layout.get(), own),
            peers: vec![PeerState::default(); members],
            next: vec![NodeId::default(); members.max(view_options.members_max)],
            links: vec![ViewLink::default(); members],
            layout: Arc::clone(&layout),
        };
        let id = view.id;
        let cell = NodeCell::try_new(MutBorrow::new(lent), |lent| {
            let Lent { shared, layout, state, peers, next, links } = lent.borrow_mut();
            let loan = shared.loan(state);
            let node = Node::open(id, layout.get(), own, loan, options, capabilities)?;
            let view_loan = ViewLoan { peers, next, links };
            let views =
                node.views(*layout.get(), ViewState::new(id, own, view_options), view_loan)?;
            Ok::<_, OpenViewError>(NodeInView { node, views })
        })?;
        Ok(Self { cell, shared, layout, memory, view, own })
    }

    pub(super) const fn view(&self) -> &View {
        &self.view
    }

    pub(super) const fn own(&self) -> Rank {
        self.own
    }

    pub(super) fn layout(&self) -> &ViewLayout {
        &self.layout
    }

    /// The rows of the view.
    pub(super) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// What senders share with the node.
    pub(super) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// One step: see [`Node::step_in_views`].
    pub(super) fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        prepare: impl FnMut(NextView<'_>) -> bool,
    ) -> Result<(Progress, Status), StepError> {
        self.cell.with_dependent_mut(|_, both| {
            let NodeInView { node, views } = both;
            node.step_in_views(now, fabric, application, views, prepare)
        })
    }

    /// Says to all peers that this member lives, if a heartbeat is due: see [`Node::show_life`].
    pub(super) fn show_life<F: Fabric>(&mut self, now: Time, fabric: &mut F) -> Progress {
        self.cell.with_dependent_mut(|_, both| {
            let NodeInView { node, views } = both;
            node.show_life(now, fabric, views)
        })
    }

    pub(super) fn status(&self) -> Status {
        self.cell.with_dependent(|_, both| both.views.status())
    }

    /// Whether all peers were sent all that there is to know of the view.
    pub(super) fn is_told(&self) -> bool {
        self.cell.with_dependent(|_, both| both.views.is_told())
    }

    /// The members of the view to come, once it is decided.
    pub(super) fn next_members(&mut self) -> Option<Vec<NodeId>> {
        self.cell.with_dependent_mut(|_, both| {
            let (change, _) = both.views.change()?;
            Some(change.next_view()?.members.to_vec())
        })
    }

    /// Says that a peer cannot be reached any more.
    pub(super) fn peer_lost(&mut self, peer: Rank) {
        self.cell.with_dependent_mut(|_, both| both.views.peer_lost(peer));
    }

    /// Says that a peer takes nothing from this member any more.
    pub(super) fn denied_by(&mut self, peer: Rank) {
        self.cell.with_dependent_mut(|_, both| both.views.denied_by(peer));
    }

    /// Asks the group to go on without this member.
    pub(super) fn leave(&mut self) {
        self.cell.with_dependent_mut(|_, both| {
            if let Some((mut change, table)) = both.views.change() {
                change.leave(table);
            }
        });
    }

    /// Asks the group to let a node in.
    pub(super) fn wish(&mut self, node: NodeId) -> Result<(), RequestError> {
        self.cell.with_dependent_mut(|_, both| match both.views.change() {
            Some((mut change, table)) => change.wish(table, node),
            None => Err(RequestError::NoWish),
        })
    }

    /// Takes back the last wish.
    pub(super) fn take_back(&mut self) {
        self.cell.with_dependent_mut(|_, both| {
            if let Some((mut change, table)) = both.views.change() {
                // There may be none any more: then there is nothing to take back.
                let _ = change.take_back(table);
            }
        });
    }

    /// Where the view ended in a subgroup, once that is decided.
    pub(super) fn trim(&mut self, subgroup: SubgroupId) -> Option<u64> {
        self.cell.with_dependent_mut(|_, both| {
            let (change, table) = both.views.change()?;
            change.trim(table, subgroup).map(|trim| trim.0)
        })
    }

    /// Whether a member has shown itself in the view, or is suspected.
    pub(super) fn has_come(&mut self, rank: Rank) -> bool {
        self.cell.with_dependent_mut(|_, both| {
            let Some((change, table)) = both.views.change() else { return true };
            table.load(rank, ViewColumn::Installed) != 0 || change.suspects(table, rank)
        })
    }

    /// The members that this one suspects.
    pub(super) fn suspected(&mut self) -> Vec<NodeId> {
        let members = self.view.members.clone();
        self.cell.with_dependent_mut(|_, both| {
            let Some((change, table)) = both.views.change() else { return Vec::new() };
            let ranks = (0..).map(Rank).zip(members);
            ranks.filter(|(rank, _)| change.suspects(table, *rank)).map(|(_, node)| node).collect()
        })
    }

    pub(super) fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        self.cell.with_dependent(|_, both| both.node.frontiers(subgroup))
    }

    pub(super) fn is_settled(&self) -> bool {
        self.cell.with_dependent(|_, both| both.node.is_settled())
    }

    /// How many of the own messages in a subgroup were delivered here.
    pub(super) fn own_delivered(&self, subgroup: SubgroupId) -> Option<Position> {
        self.cell.with_dependent(|_, both| both.node.own_delivered(subgroup))
    }

    /// How many of the own messages in a subgroup were delivered everywhere.
    pub(super) fn own_delivered_everywhere(&self, subgroup: SubgroupId) -> Option<Position> {
        self.cell.with_dependent(|_, both| both.node.own_delivered_everywhere(subgroup))
    }

    /// Says how many large messages of a sender are here, whole.
    pub(super) fn large_arrived(&mut self, subgroup: SubgroupId, sender: SenderRank, count: u64) {
        self.cell.with_dependent_mut(|_, both| both.node.large_arrived(subgroup, sender, count));
    }

    /// How many large messages of a sender were delivered here.
    pub(super) fn large_delivered(&self, subgroup: SubgroupId, sender: SenderRank) -> u64 {
        self.cell.with_dependent(|_, both| both.node.large_delivered(subgroup, sender))
    }

    /// Closes the own outbox of a subgroup, and says what the view ended without there.
    pub(super) fn remains(&self, subgroup: SubgroupId) -> Option<Remains> {
        self.cell.with_dependent(|_, both| both.node.remains(subgroup))
    }
}
