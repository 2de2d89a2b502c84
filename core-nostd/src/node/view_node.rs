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

/// Everything that is lent to a node whose membership may change. What the slices of the view
/// protocol hold does not matter.
#[derive(Debug)]
pub struct ViewLoan<'m> {
    /// What is lent to the node itself.
    pub node: Loan<'m>,
    /// One a member.
    pub peers: &'m mut [PeerState],
    /// As many as the next view may have members, and at least as many as this one has.
    pub next: &'m mut [NodeId],
    /// One a member.
    pub links: &'m mut [ViewLink],
}

/// Why a node whose membership may change cannot be opened. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum ViewError {
    /// The layout has no columns for views, or a slice of the view protocol is too short.
    WrongState = 1,
    /// The fabric does not keep writes in order.
    NoWriteOrder = 2,
    /// The fabric's limits are too small: four writes a list, the columns in one write, 24 bytes a
    /// guard.
    FabricTooSmall = 3,
    /// The node itself cannot be opened.
    Node(OpenError) = 4,
}

impl core::fmt::Display for ViewError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::WrongState => "the layout or the lent state is not made for views",
            Self::NoWriteOrder => "views need a fabric that keeps writes in order",
            Self::FabricTooSmall => {
                "the fabric takes too few bytes a write for the columns of a view"
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
///   application; [`ViewNode::peer_lost`] and [`ViewNode::denied_by`] for what the fabric reports
///   outside a step; [`ViewNode::leave`], [`ViewNode::request_join`] and
///   [`ViewNode::withdraw_join`] for what is asked of the group.
/// - *Outputs*: upcalls and posts during a step; [`Progress`] and [`Status`] after it.
/// - *Getters*: [`ViewNode::node`] for what concerns messages; the others for the view.
///
/// Its node can be read and not stepped. So it is never stepped without its view protocol, nor with
/// that of another node.
#[derive(Debug)]
pub struct ViewNode<'m> {
    node: Node<'m>,
    views: Views<'m>,
}

impl<'m> ViewNode<'m> {
    /// Opens a node on the lent memory of a view.
    ///
    /// The caller has compared [`Layout::digest`] with its peers'. No step has to wait until the
    /// fabric says that a peer is ready: nothing is posted to a peer before.
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

    /// Does what there is to do, as [`Node::step`]: the view protocol, then sends, receipts,
    /// deliveries and posts. `prepare` is asked to make the next view's memory ready, and to say
    /// when it is ([`Host::prepare`](crate::view::Host::prepare)). Once the status is final, only
    /// the last posts are left: step on until [`ViewNode::is_all_posted`].
    ///
    /// # Errors
    /// As [`Node::step`].
    pub fn step<F: Fabric, A: Application>(
        &mut self,
        now: Time,
        fabric: &mut F,
        application: &mut A,
        prepare: impl FnMut(NextView<'_>) -> bool,
    ) -> Result<(Progress, Status), StepError> {
        self.node.step_in_views(now, fabric, application, &mut self.views, prepare)
    }

    /// The same for a member that keeps logs: `preparation` is also asked to make durable what this
    /// member is about to promise.
    ///
    /// # Errors
    /// As [`Node::step`].
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

    /// Shows all peers that this member lives, if a heartbeat is due: between two long calls of
    /// the application that no step makes. At most one short write a peer.
    pub fn show_life<F: Fabric>(&mut self, now: Time, fabric: &mut F) -> Progress {
        let mut progress = Progress::default();
        self.node.beat(now, fabric, &mut self.views, &mut progress);
        progress
    }

    /// Says how many large messages of a sender are here, as [`Node::large_arrived`].
    #[cfg(feature = "blocks")]
    pub fn large_arrived(
        &mut self,
        subgroup: SubgroupId,
        sender: crate::ids::SenderRank,
        count: u64,
    ) {
        self.node.large_arrived(subgroup, sender, count);
    }

    /// Says how many messages of a logged subgroup are durable here, as [`Node::set_durable`].
    #[cfg(feature = "durable")]
    pub fn set_durable(&mut self, subgroup: SubgroupId, count: crate::ids::DurableCount) {
        self.node.set_durable(subgroup, count);
    }

    /// The node, to be read: its outboxes, frontiers and undelivered messages.
    #[must_use]
    pub const fn node(&self) -> &Node<'m> {
        &self.node
    }

    /// The view columns of all rows, to be read.
    #[must_use]
    pub const fn table(&self) -> &RowTable<'m> {
        &self.views.table
    }

    /// How far this member is.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.views.state.status()
    }

    /// Whether everything that this member published of the view was posted to every peer that is
    /// neither lost nor suspected.
    #[must_use]
    pub fn is_all_posted(&self) -> bool {
        self.views.is_all_posted()
    }

    /// The view that comes next, once it is decided.
    #[must_use]
    pub fn next_view(&self) -> Option<NextView<'_>> {
        self.views.state.next_view(self.views.next)
    }

    /// Where the view ends in a subgroup, once that is decided: see [`ViewChange::trim`].
    #[must_use]
    pub fn trim(&self, subgroup: SubgroupId) -> Option<Frontier> {
        self.views.state.trim(&self.views.table, &self.views.layout, subgroup)
    }

    /// Whether this member suspects that one.
    #[must_use]
    pub fn suspects(&self, rank: Rank) -> bool {
        self.views.state.suspects(&self.views.table, rank)
    }

    /// The member that leads a change as this one sees it: the lowest rank that it does not
    /// suspect.
    #[must_use]
    pub fn leader(&self) -> Rank {
        self.views.state.leader(&self.views.table, &self.views.layout)
    }

    /// Says that the fabric cannot reach a peer any more. The next step looks at the view.
    pub fn peer_lost(&mut self, peer: Rank) {
        self.views.note_loss(peer, Loss::Reported);
    }

    /// Says that a peer takes no writes from this member any more, as [`ViewChange::denied_by`].
    /// The next step looks at the view.
    pub fn denied_by(&mut self, peer: Rank) {
        self.views.note_loss(peer, Loss::Denied);
    }

    /// Asks the group to go on without this member, as [`ViewChange::leave`].
    pub fn leave(&mut self) {
        let (mut change, table) = self.views.change();
        change.leave(table);
    }

    /// Asks the group to let a node in, as [`ViewChange::request_join`].
    ///
    /// # Errors
    /// The node is in the view, or this member has asked too often.
    pub fn request_join(&mut self, node: NodeId) -> Result<(), RequestError> {
        let (mut change, table) = self.views.change();
        change.request_join(table, node)
    }

    /// Takes back the last request to let a node in, as [`ViewChange::withdraw_join`].
    ///
    /// # Errors
    /// There is none.
    pub fn withdraw_join(&mut self) -> Result<(), RequestError> {
        let (mut change, table) = self.views.change();
        change.withdraw_join(table)
    }
}
