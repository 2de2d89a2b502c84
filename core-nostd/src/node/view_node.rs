//! A node whose membership may change: one type that holds the node and its view protocol.
//!
//! Requirements: DUR-6, DUR-9, RDM-7, VIE-1, VIE-2, VIE-4, VIE-6, VIE-9, VIE-10.

#[cfg(feature = "durable")]
use super::views::Preparation;
use super::views::{ViewLink, Views};
use super::{Loan, Node, OpenError, Options, Progress, StepError};
use crate::fabric::{Capabilities, Fabric, Promises};
use crate::ids::{Frontier, NodeId, Rank, SubgroupId, Time, ViewId};
use crate::layout::Layout;
use crate::multicast::Application;
use crate::view::{
    Loss, NextView, PeerState, RequestError, RowTable, Status, ViewChange, ViewOptions, ViewState,
};

/// All memory that is lent to a node whose membership may change. The initial contents of the view
/// protocol's slices do not matter.
#[derive(Debug)]
pub struct ViewLoan<'m> {
    /// Loan of the node itself.
    pub node: Loan<'m>,
    /// One entry per member.
    pub peers: &'m mut [PeerState],
    /// One entry per possible member of the next view, and at least as many as this view has
    /// members.
    pub next: &'m mut [NodeId],
    /// One entry per member.
    pub links: &'m mut [ViewLink],
}

/// Reason why a node whose membership may change cannot be opened. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ViewError {
    /// The layout has no columns for views, or a slice of the view protocol is too short.
    WrongState = 1,
    /// The fabric does not keep the order of writes.
    NoWriteOrder = 2,
    /// The fabric's limits are too small. A node needs four writes per list, all columns in one
    /// write, and 24 bytes per guard.
    FabricTooSmall = 3,
    /// The node itself cannot be opened.
    Node(OpenError) = 4,
}

impl core::fmt::Display for ViewError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::WrongState => {
                "the layout has no view columns, or the lent state is too small for views"
            }
            Self::NoWriteOrder => "views need a fabric that keeps writes in order",
            Self::FabricTooSmall => {
                "the fabric accepts too few bytes per write for the columns of a view"
            }
            Self::Node(error) => return core::fmt::Display::fmt(error, out),
        })
    }
}

impl core::error::Error for ViewError {}

impl From<OpenError> for ViewError {
    fn from(error: OpenError) -> Self {
        Self::Node(error)
    }
}

/// One member of a group whose membership may change, in one view.
///
/// - *Inputs*: [`ViewNode::step`], and [`ViewNode::show_life`] between two long calls of the
///   application; [`ViewNode::peer_lost`] and [`ViewNode::denied_by`] for reports of the fabric
///   outside a step; [`ViewNode::leave`], [`ViewNode::request_join`] and
///   [`ViewNode::withdraw_join`] for requests to the group.
/// - *Outputs*: upcalls and posts during a step; [`Progress`] and [`Status`] after it.
/// - *Getters*: [`ViewNode::node`] for messages; the others for the view.
///
/// Its node can be read but not stepped. It is therefore never stepped without its view protocol,
/// or with that of another node.
#[derive(Debug)]
pub struct ViewNode<'m> {
    node: Node<'m>,
    views: Views<'m>,
}

impl<'m> ViewNode<'m> {
    /// Opens a node on the lent memory of a view.
    ///
    /// The caller must have compared [`Layout::digest`] with its peers' digests. Steps need not
    /// wait until every peer is ready in the fabric, because nothing is posted to a peer before the
    /// peer is ready.
    ///
    /// # Errors
    /// See [`ViewError`].
    pub fn open(
        view: ViewId,
        layout: Layout<'m>,
        own: Rank,
        loan: ViewLoan<'m>,
        options: Options,
        view_options: ViewOptions,
        capabilities: Capabilities,
    ) -> Result<Self, ViewError> {
        let ViewLoan { node, peers, next, links } = loan;
        let node = Node::open(view, &layout, own, node, options, capabilities)?;
        let mut state = ViewState::new(view, own, view_options);
        let fits = ViewChange::new(&layout, &mut state, peers, next).is_some();
        let block = layout.view_block().ok_or(ViewError::WrongState)?;
        if !fits || links.len() != layout.members() {
            return Err(ViewError::WrongState);
        }
        if !capabilities.promises.contains(Promises::WRITE_ORDER) {
            return Err(ViewError::NoWriteOrder);
        }
        if capabilities.writes_max < 4
            || capabilities.guard_bytes_max < 24
            || capabilities.write_bytes_max < block.bytes()
        {
            return Err(ViewError::FabricTooSmall);
        }
        links.iter_mut().for_each(|link| *link = ViewLink::default());
        let table = RowTable::new(&layout, own, node.rows, node.row);
        let posted = ViewLink::default();
        let next_check = Time::ZERO;
        let views = Views { layout, state, table, peers, next, links, next_check, posted };
        Ok(Self { node, views })
    }

    /// Does the pending work, as [`Node::step`] does: the view protocol, then sends, receipts,
    /// deliveries and posts. `prepare` is called to prepare the next view's memory, and returns
    /// whether the memory is ready ([`Host::prepare`](crate::view::Host::prepare)). Once the status
    /// is final, only the last posts remain: continue to step until [`ViewNode::is_all_posted`].
    ///
    /// # Errors
    /// Fails as [`Node::step`] does.
    pub fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        prepare: impl FnMut(NextView<'_>) -> bool,
    ) -> Result<(Progress, Status), StepError> {
        self.node.step_in_views(now, fabric, application, &mut self.views, prepare)
    }

    /// Steps a member that keeps logs. `preparation` is also asked to make the promise durable that
    /// this member is about to give.
    ///
    /// # Errors
    /// Fails as [`Node::step`] does.
    #[cfg(feature = "durable")]
    pub fn step_logged<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        preparation: impl Preparation,
    ) -> Result<(Progress, Status), StepError> {
        self.node.step_in_views(now, fabric, application, &mut self.views, preparation)
    }

    /// Posts a heartbeat to all peers if one is due. Call it between two long calls of the
    /// application that happen outside a step. It posts at most one short write per peer.
    pub fn show_life<F: Fabric>(&mut self, now: Time, fabric: &mut F) -> Progress {
        let mut progress = Progress::default();
        self.node.beat(now, fabric, &mut self.views, &mut progress);
        progress
    }

    /// Reports the number of a sender's large messages that have arrived, as
    /// [`Node::large_arrived`] does.
    #[cfg(feature = "blocks")]
    pub fn large_arrived(
        &mut self,
        subgroup: SubgroupId,
        sender: crate::ids::SenderRank,
        count: u64,
    ) {
        self.node.large_arrived(subgroup, sender, count);
    }

    /// Sets the number of messages in a logged subgroup that are durable here, as
    /// [`Node::set_durable`] does.
    #[cfg(feature = "durable")]
    pub fn set_durable(&mut self, subgroup: SubgroupId, count: crate::ids::DurableCount) {
        self.node.set_durable(subgroup, count);
    }

    /// Returns the node, for reading its outboxes, frontiers and undelivered messages.
    #[must_use]
    pub const fn node(&self) -> &Node<'m> {
        &self.node
    }

    /// Returns the view columns of all rows, for reading.
    #[must_use]
    pub const fn table(&self) -> &RowTable<'m> {
        &self.views.table
    }

    /// Returns the progress of this member in the view change.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.views.state.status()
    }

    /// Returns whether everything that this member has published about the view has been posted to
    /// every peer that is neither lost nor suspected.
    #[must_use]
    pub fn is_all_posted(&self) -> bool {
        self.views.is_all_posted()
    }

    /// Returns the next view once it has been decided.
    #[must_use]
    pub fn next_view(&self) -> Option<NextView<'_>> {
        self.views.state.next_view(self.views.next)
    }

    /// Returns the ragged trim of a subgroup, the position at which the view ends, once it has been
    /// decided: see [`ViewChange::trim`].
    #[must_use]
    pub fn trim(&self, subgroup: SubgroupId) -> Option<Frontier> {
        self.views.state.trim(&self.views.table, &self.views.layout, subgroup)
    }

    /// Returns whether this member suspects the member `rank`.
    #[must_use]
    pub fn suspects(&self, rank: Rank) -> bool {
        self.views.state.suspects(&self.views.table, rank)
    }

    /// Returns the leader of a change as seen by this member: the lowest rank that it does not
    /// suspect.
    #[must_use]
    pub fn leader(&self) -> Rank {
        self.views.state.leader(&self.views.table, &self.views.layout)
    }

    /// Records that the fabric can no longer reach a peer. The next step checks the view.
    pub fn peer_lost(&mut self, peer: Rank) {
        self.views.note_loss(peer, Loss::Reported);
    }

    /// Records that a peer no longer accepts writes from this member, as [`ViewChange::denied_by`]
    /// does. The next step checks the view.
    pub fn denied_by(&mut self, peer: Rank) {
        self.views.note_loss(peer, Loss::Denied);
    }

    /// Asks the group to continue without this member, as [`ViewChange::leave`] does.
    pub fn leave(&mut self) {
        let (mut change, table) = self.views.change();
        change.leave(table);
    }

    /// Asks the group to admit a node, as [`ViewChange::request_join`] does.
    ///
    /// # Errors
    /// Fails if the node is in the view, or if this member has made too many requests.
    pub fn request_join(&mut self, node: NodeId) -> Result<(), RequestError> {
        let (mut change, table) = self.views.change();
        change.request_join(table, node)
    }

    /// Withdraws the last request to admit a node, as [`ViewChange::withdraw_join`] does.
    ///
    /// # Errors
    /// Fails if there is no such request.
    pub fn withdraw_join(&mut self) -> Result<(), RequestError> {
        let (mut change, table) = self.views.change();
        change.withdraw_join(table)
    }
}
