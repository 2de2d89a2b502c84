//! A node in one view, with all that it borrows.

use std::sync::Arc;

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::{Capabilities, Fabric};
use tramontane_core::ids::{DurableCount, NodeId, Position, Rank, SenderRank, SubgroupId, Time};
use tramontane_core::layout::ViewColumn;
use tramontane_core::multicast::Application;
use tramontane_core::node::{
    DurableCounts, Frontiers, Preparation, Progress, StepError, Undelivered, ViewError, ViewLink,
    ViewLoan, ViewNode,
};
use tramontane_core::view::Table as _;
use tramontane_core::view::{PeerState, RequestError, Status};

use super::participant::Participant;
use crate::group::description::layout::ViewLayout;
use crate::group::description::view::View;
use crate::member::{Memory, PrivateState, Shared};

/// What a node and its view protocol borrow.
struct Lent {
    shared: Arc<Shared>,
    layout: Arc<ViewLayout>,
    state: PrivateState,
    peers: Vec<PeerState>,
    next: Vec<NodeId>,
    links: Vec<ViewLink>,
}

self_cell!(
    struct NodeCell {
        owner: MutBorrow<Lent>,
        #[not_covariant]
        dependent: ViewNode,
    }
);

/// One view at this member.
pub(crate) struct OpenView {
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

    /// The rows of the view.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// What senders share with the node.
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// One step: see [`ViewNode::step_logged`].
    pub(crate) fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        preparation: impl Preparation,
    ) -> Result<(Progress, Status), StepError> {
        self.cell
            .with_dependent_mut(|_, node| node.step_logged(now, fabric, application, preparation))
    }

    /// Says to all peers that this member lives, if a heartbeat is due: see
    /// [`ViewNode::show_life`].
    pub(crate) fn show_life<F: Fabric>(&mut self, now: Time, fabric: &mut F) -> Progress {
        self.cell.with_dependent_mut(|_, node| node.show_life(now, fabric))
    }

    pub(crate) fn status(&self) -> Status {
        self.cell.with_dependent(|_, node| node.status())
    }

    /// Whether all peers were sent all that there is to know of the view.
    pub(crate) fn is_told(&self) -> bool {
        self.cell.with_dependent(|_, node| node.is_all_posted())
    }

    /// What the core calls the members of the view to come, once it is decided: see
    /// [`View::next`].
    pub(crate) fn next_list(&mut self) -> Option<Vec<NodeId>> {
        self.cell.with_dependent(|_, node| Some(node.next_view()?.members.to_vec()))
    }

    /// Says that a peer cannot be reached any more.
    pub(crate) fn peer_lost(&mut self, peer: Rank) {
        self.cell.with_dependent_mut(|_, node| node.peer_lost(peer));
    }

    /// Says that a peer takes nothing from this member any more.
    pub(crate) fn denied_by(&mut self, peer: Rank) {
        self.cell.with_dependent_mut(|_, node| node.denied_by(peer));
    }

    /// Asks the group to go on without this member.
    pub(crate) fn leave(&mut self) {
        self.cell.with_dependent_mut(|_, node| node.leave());
    }

    /// Asks the group to let a node in.
    pub(crate) fn wish(&mut self, node: NodeId) -> Result<(), RequestError> {
        self.cell.with_dependent_mut(|_, own| own.request_join(node))
    }

    /// Takes back the last wish.
    pub(crate) fn take_back(&mut self) {
        // There may be none any more: then there is nothing to take back.
        let _ = self.cell.with_dependent_mut(|_, node| node.withdraw_join());
    }

    /// Where the view ended in a subgroup, once that is decided.
    pub(crate) fn trim(&mut self, subgroup: SubgroupId) -> Option<u64> {
        self.cell.with_dependent(|_, node| node.trim(subgroup).map(|trim| trim.0))
    }

    /// Whether a member has shown itself in the view, or is suspected.
    pub(crate) fn has_come(&mut self, rank: Rank) -> bool {
        self.cell.with_dependent(|_, node| {
            node.table().load(rank, ViewColumn::Installed) != 0 || node.suspects(rank)
        })
    }

    /// The members that this one suspects.
    pub(crate) fn suspected(&mut self) -> Vec<NodeId> {
        let ranks = (0..).map(Rank).zip(self.view.members.iter().copied());
        self.cell.with_dependent(|_, own| {
            ranks.filter(|(rank, _)| own.suspects(*rank)).map(|(_, node)| node).collect()
        })
    }

    pub(crate) fn frontiers(&self, subgroup: SubgroupId) -> Option<Frontiers> {
        self.cell.with_dependent(|_, node| node.node().frontiers(subgroup))
    }

    /// The members of an ordered subgroup, and how far each is, as far as that is known here.
    pub(crate) fn frontiers_of_all(
        &self,
        subgroup: SubgroupId,
    ) -> impl Iterator<Item = (Rank, Frontiers)> {
        let ranks = (0..).map(Rank).take(self.view.members.len());
        ranks.filter_map(move |rank| {
            let of = self.cell.with_dependent(|_, node| node.node().frontiers_of(subgroup, rank));
            Some((rank, of?))
        })
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.cell.with_dependent(|_, node| node.node().is_settled())
    }

    /// How many of the own messages in a subgroup were delivered here.
    pub(crate) fn own_delivered(&self, subgroup: SubgroupId) -> Option<Position> {
        self.cell.with_dependent(|_, node| node.node().own_delivered(subgroup))
    }

    /// How many of the own messages in a subgroup were delivered everywhere.
    pub(crate) fn own_delivered_everywhere(&self, subgroup: SubgroupId) -> Option<Position> {
        self.cell.with_dependent(|_, node| node.node().own_delivered_everywhere(subgroup))
    }

    /// Says how many messages of a logged subgroup are durable here.
    pub(crate) fn set_durable(&mut self, subgroup: SubgroupId, count: DurableCount) {
        self.cell.with_dependent_mut(|_, node| node.set_durable(subgroup, count));
    }

    /// What is durable of a logged subgroup, as the rows show it.
    pub(crate) fn durable(&self, subgroup: SubgroupId) -> Option<DurableCounts> {
        self.cell.with_dependent(|_, node| node.node().durable(subgroup))
    }

    /// Says how many large messages of a sender are here, whole.
    pub(crate) fn large_arrived(&mut self, subgroup: SubgroupId, sender: SenderRank, count: u64) {
        self.cell.with_dependent_mut(|_, node| node.large_arrived(subgroup, sender, count));
    }

    /// How many large messages of a sender were delivered here.
    pub(crate) fn large_delivered(&self, subgroup: SubgroupId, sender: SenderRank) -> u64 {
        self.cell.with_dependent(|_, node| node.node().large_delivered(subgroup, sender))
    }

    /// Closes the own outbox of a subgroup, and says what the view ended without there.
    pub(crate) fn undelivered(&self, subgroup: SubgroupId) -> Option<Undelivered> {
        self.cell.with_dependent(|_, node| node.node().undelivered(subgroup))
    }
}
