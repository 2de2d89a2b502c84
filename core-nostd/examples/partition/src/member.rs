//! One member in one view: the node with the memory that it borrows.

use crate::fabric::{CAPABILITIES, PortFabric};
use crate::group::{Members, ORDERS, WhichPartition};
use crate::memory::{Held, PartitionStorage, listed};
use crate::orders::Orders;
#[cfg(feature = "views")]
use tramontane_core::fabric::Promises;
use tramontane_core::ids::{Rank, Time, ViewId};
use tramontane_core::memory::{NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{Batch, Impossible};
use tramontane_core::node::{Loan, Options};
use tramontane_core::smc::{Outbox, ReserveError};
use tramontane_core::storage::Lent;

#[cfg(not(feature = "views"))]
use tramontane_core::node::Node;
#[cfg(feature = "views")]
use {
    crate::group::{MESSAGE_MAX, WINDOW},
    tramontane_core::node::{UndeliveredMessage, ViewNode},
    tramontane_core::view::{Status, ViewOptions},
};

/// A member of a view.
#[derive(Debug)]
pub struct Member<'s> {
    #[cfg(feature = "views")]
    node: ViewNode<'s>,
    #[cfg(not(feature = "views"))]
    node: Node<'s>,
    outbox: Outbox<'s>,
    /// The view.
    pub view: ViewId,
    /// Its members.
    pub members: Members,
    /// Dropped last, so that the node has been dropped when its memory can be lent again.
    _held: Held<'s>,
}

/// The results of a member's step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberStepped {
    /// Partner that published an impossible value, and the value's kind.
    pub refused: Option<(Rank, Impossible)>,
    /// Whether the view is over at this member, and everything has been posted.
    pub is_over: bool,
    /// Whether something was delivered that had not been sent, or this member is out of the group.
    pub is_wrong: bool,
}

/// Local messages that had not been delivered when a view ended.
#[cfg(feature = "views")]
pub type Remains = heapless::Vec<heapless::Vec<u8, MESSAGE_MAX>, WINDOW>;

impl<'s> Member<'s> {
    /// Opens a member on the memory of its partition, which no other member is using.
    pub fn open(
        storage: &'s PartitionStorage,
        rows: &'s [Row<'s>; 3],
        own: WhichPartition,
        view: ViewId,
        members: Members,
    ) -> Option<Self> {
        let layout = members.layout();
        let rank = members.rank(own)?;
        // SAFETY: node and outbox are dropped before the held memory, and lend nothing that
        // outlives an upcall.
        let (held, state) = unsafe { storage.hold() }?;
        let rows = listed(rows, members);
        let row: RowWriter<'s> = storage.own_row(own);
        let Lent { state: private, cells, ready } = state.node.lend(&layout.state_sizes(rank))?;
        // SAFETY: one node at a time is opened over this memory, which is fresh; the copy of the
        // partner's row is written only by the partner's frames, in their order and between steps.
        let memory = unsafe { NodeMemory::new(rows, row, cells, ready) };
        let loan = Loan { memory, state: private };
        let options = Options::default();
        #[cfg(feature = "views")]
        let (node, outbox) = {
            let loan = state.views.lend(loan, members.count())?;
            let node =
                ViewNode::open(view, layout, rank, loan, options, VIEW_OPTIONS, CAPABILITIES)
                    .ok()?;
            let outbox = node.node().outbox(ORDERS)?;
            (node, outbox)
        };
        #[cfg(not(feature = "views"))]
        let (node, outbox) = {
            let node = Node::open(view, &layout, rank, loan, options, CAPABILITIES).ok()?;
            let outbox = node.outbox(ORDERS)?;
            (node, outbox)
        };
        Some(Self { node, outbox, view, members, _held: held })
    }

    /// Sends a message. Returns false if there is no room now.
    pub fn send(&self, length: usize, build: impl FnOnce(&mut [u8])) -> Option<bool> {
        match self.outbox.reserve(length) {
            Ok(mut slot) => {
                build(slot.payload());
                slot.commit();
                Some(true)
            }
            Err(ReserveError::Full | ReserveError::Contended) => Some(false),
            Err(ReserveError::TooLarge { .. }) => None,
        }
    }

    /// Does one step. Delivered messages are applied to the replicated state.
    pub fn step(
        &mut self,
        now: Time,
        fabric: &mut PortFabric<'_>,
        orders: &mut Orders,
    ) -> Option<MemberStepped> {
        let members = self.members;
        let mut stepped = MemberStepped::default();
        let mut is_wrong = false;
        let mut take = |batch: &mut Batch<'_>| {
            for message in batch {
                is_wrong |= !orders.take(members.channel(message.rank), message.payload);
            }
        };
        #[cfg(feature = "views")]
        {
            // The next view uses the memory of this one, which counts as ready at any time, because
            // no peer writes to it before that peer has the state.
            let (progress, status) = self.node.step(now, fabric, &mut take, |_| true).ok()?;
            stepped.refused = progress.refused;
            stepped.is_over = status == Status::Installed && self.node.is_all_posted();
            stepped.is_wrong = matches!(status, Status::Halted(_) | Status::Left);
        }
        #[cfg(not(feature = "views"))]
        {
            let progress = self.node.step(now, fabric, &mut take).ok()?;
            stepped.refused = progress.refused;
            stepped.is_wrong = progress.lost.is_some();
        }
        stepped.is_wrong |= is_wrong;
        Some(stepped)
    }
}

#[cfg(feature = "views")]
const VIEW_OPTIONS: ViewOptions = ViewOptions {
    heartbeat_interval_ns: 10_000_000,
    // Silence ends no view. Only a new incarnation does, because it shows that the memory is lost.
    failure_timeout_ns: u64::MAX,
    first_timeout_ns: u64::MAX,
    members_max: 2,
    // For the same reason one of two members may continue: the partner's old incarnation cannot.
    majority: false,
};

#[cfg(feature = "views")]
const _: () = assert!(CAPABILITIES.promises.contains(Promises::WRITE_ORDER));

#[cfg(feature = "views")]
impl Member<'_> {
    /// Records that the partner's incarnation is over: the view ends, and this member is the only
    /// member of the next view.
    pub fn partner_is_gone(&mut self, own: WhichPartition) {
        if let Some(rank) = self.members.rank(own.other()) {
            self.node.peer_lost(rank);
        }
    }

    /// Asks the group to admit the partner. Returns false if that is not possible now.
    pub fn ask_for(&mut self, partner: WhichPartition) -> bool {
        self.node.request_join(partner.node()).is_ok()
    }

    /// Returns the next view once this one is over, and the local messages that had not been
    /// delivered in this view.
    pub fn end(self) -> Option<(ViewId, Members, Remains)> {
        let next = self.node.next_view()?;
        let (view, members) = (next.id, Members::of(next.members)?);
        let mut remains = Remains::new();
        let mut undelivered = self.node.node().undelivered(ORDERS)?;
        // bound: a window
        while let Some(message) = undelivered.get(&self.outbox) {
            match message {
                UndeliveredMessage::Message(payload) => {
                    remains.push(heapless::Vec::from_slice(payload).ok()?).ok()?;
                }
                UndeliveredMessage::Dropped => {}
                // Nothing is being built while the partition steps, and there are no large
                // messages.
                UndeliveredMessage::Building | UndeliveredMessage::Large(_) => return None,
            }
            undelivered.pass();
        }
        Some((view, members, remains))
    }
}
