//! Opening a node: the lent memory is checked against the layout once, so that steps can rely on
//! it.
//!
//! Requirement: COR-2.

use super::Node;
use super::attention::Attention;
use crate::fabric::Capabilities;
#[cfg(feature = "relays")]
use crate::fabric::Promises;
use crate::ids::{
    Position, Rank, Round, SenderRank, SubgroupId, ViewId, index_from_u32, u16_from_index,
};
use crate::layout::{Delivery, Layout, Subgroup};
use crate::memory::{NodeMemory, OutOfRow, RingPlace, Row, RowWriter};
#[cfg(feature = "relays")]
use crate::multicast::Relay;
use crate::multicast::{
    Link, MemberState, Order, OwnSender, SenderState, Span, SubgroupSet, SubgroupState, Switches,
};
use crate::smc::{HandOff, HandOffCells, ReadyFlag, RingCursor};

/// A node's private state: slices with the lengths in [`Layout::state_sizes`]. Their initial
/// contents do not matter.
#[derive(Debug)]
pub struct State<'m> {
    /// One entry per subgroup of the node.
    pub subgroups: &'m mut [SubgroupState],
    /// One entry per sender of each subgroup.
    pub senders: &'m mut [SenderState],
    /// One entry per member of each subgroup.
    pub members: &'m mut [MemberState],
    /// One entry per other member of each subgroup.
    pub links: &'m mut [Link],
}

/// All memory that a caller lends to a node.
#[derive(Debug)]
pub struct Loan<'m> {
    /// Rows, and the cells shared with application threads. All of it must be fresh.
    pub memory: NodeMemory<'m>,
    /// Private state.
    pub state: State<'m>,
}

/// The behaviour of a node. Options may differ between members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Options {
    /// The optimisations of Spindle that are on.
    pub switches: Switches,
    /// Time after which a reservation that holds back other messages is reported in
    /// [`Progress`](super::Progress).
    pub reservation_timeout_ns: u64,
    /// Maximum number of messages that a step sends, receives and delivers, for each of the three
    /// and in each subgroup; at least one. The remaining messages wait for the next step.
    pub messages_max: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            switches: Switches::default(),
            reservation_timeout_ns: 1_000_000_000,
            messages_max: u32::MAX,
        }
    }
}

/// Reason why a node cannot be opened. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum OpenError {
    /// The rank is not in the group.
    NotAMember = 1,
    /// A row is missing, or its size differs from the layout.
    WrongRows = 2,
    /// The length of a slice of state, cells or flags differs from the layout.
    WrongState = 3,
    /// The fabric cannot keep a guard after its content: it promises neither order between writes
    /// nor visibility upon completion.
    NoGuard = 4,
    /// The fabric's limits are too small. A node needs four writes per list, one slot or block of
    /// counts per write, and 24 bytes per guard (32 in a logged subgroup).
    FabricTooSmall = 5,
    /// Members pass on messages in a subgroup, but the fabric does not promise to carry writes of
    /// copies of rows in order.
    NoRelays = 6,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NotAMember => "the local rank is not in the group",
            Self::WrongRows => "the number or size of the rows does not match the layout",
            Self::WrongState => "the lent state does not have the sizes in the layout",
            Self::NoGuard => "the fabric does not promise to keep a guard after its content",
            Self::FabricTooSmall => {
                "the fabric accepts too few writes per list or bytes per write for this layout"
            }
            Self::NoRelays => "the fabric does not promise to pass on other members' messages",
        })
    }
}

impl core::error::Error for OpenError {}

impl From<OutOfRow> for OpenError {
    fn from(_: OutOfRow) -> Self {
        Self::WrongRows
    }
}

/// The used parts of the lent slices.
#[derive(Default)]
struct Used {
    subgroups: usize,
    senders: usize,
    members: usize,
    handoffs: usize,
    ready: usize,
}

impl<'m> Node<'m> {
    /// Opens a node in a fixed view on lent memory.
    ///
    /// The caller must have compared [`Layout::digest`] with its peers' digests, and must not call
    /// the first step until every peer is ready in the fabric.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        view: ViewId,
        layout: &Layout<'_>,
        own: Rank,
        loan: Loan<'m>,
        options: Options,
        capabilities: Capabilities,
    ) -> Result<Self, OpenError> {
        let Loan { memory: NodeMemory { rows, row, cells, ready }, state } = loan;
        check_rows(layout, own, rows, row)?;
        check_state(layout, own, &state, cells, ready)?;
        if !capabilities.can_guard() {
            return Err(OpenError::NoGuard);
        }
        let State { subgroups, senders, members, links } = state;
        let mut node = Self {
            view,
            rank: own,
            rows,
            row,
            cells,
            ready,
            subgroups,
            senders,
            members,
            links,
            options,
            capabilities,
            lagging: SubgroupSet::NONE,
            lost: false,
            checks: layout.checks(),
            attention: Attention::new(),
        };
        let mut used = Used::default();
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups of the layout
        while let Some(subgroup) = layout.subgroup(id) {
            if subgroup.has_member(own) {
                node.open_subgroup(layout, id, subgroup, &mut used)?;
            }
            id = id.next();
        }
        node.open_links(layout);
        Ok(node)
    }

    fn open_subgroup(
        &mut self,
        layout: &Layout<'_>,
        id: SubgroupId,
        subgroup: &Subgroup<'_>,
        used: &mut Used,
    ) -> Result<(), OpenError> {
        let control = layout.control_offset(self.rank, id).ok_or(OpenError::WrongRows)?;
        let senders = Span { start: used.senders, count: subgroup.senders.len() };
        let members = Span { start: used.members, count: subgroup.members.len() };
        let mut stride = 0;
        // bound: the senders
        for (state, rank) in senders
            .of_mut(self.senders)
            .ok_or(OpenError::WrongState)?
            .iter_mut()
            .zip(subgroup.senders)
        {
            let shape = layout.ring(*rank, id).ok_or(OpenError::WrongRows)?;
            let control = layout.control_offset(*rank, id).ok_or(OpenError::WrongRows)?;
            // The shape is checked once here, so that the checks in a step never fail.
            let ring = RingPlace::new(&shape)?;
            self.rows.get(rank.index()).ok_or(OpenError::WrongRows)?.ring_at(&ring)?;
            let allows_large = layout.allows_large(id);
            // The node's own large messages count as received from the start.
            let large_taken = if *rank == self.rank { u64::MAX } else { 0 };
            *state = SenderState {
                rank: *rank,
                ring,
                control,
                allows_large,
                large_taken,
                ..SenderState::VACANT
            };
            stride = shape.stride;
        }
        // bound: the members of the subgroup
        for (state, rank) in members
            .of_mut(self.members)
            .ok_or(OpenError::WrongState)?
            .iter_mut()
            .zip(subgroup.members)
        {
            let control = layout.control_offset(*rank, id).ok_or(OpenError::WrongRows)?;
            *state = MemberState { rank: *rank, control, ..MemberState::VACANT };
        }
        let control_bytes = match subgroup.delivery {
            Delivery::Ordered if layout.is_logged(id) => 32,
            Delivery::Ordered => 24,
            Delivery::Unordered => subgroup.senders.len().saturating_mul(8),
        };
        let capabilities = &self.capabilities;
        let guard_bytes = match subgroup.delivery {
            Delivery::Ordered => control_bytes,
            Delivery::Unordered => 24,
        };
        if capabilities.writes_max < 4 || capabilities.guard_bytes_max < guard_bytes {
            return Err(OpenError::FabricTooSmall);
        }
        if capabilities.write_bytes_max < stride.max(control_bytes) {
            return Err(OpenError::FabricTooSmall);
        }
        #[cfg(feature = "relays")]
        if layout.is_relayed(id)
            && !capabilities.promises.contains(Promises::RELAYS.union(Promises::WRITE_ORDER))
        {
            return Err(OpenError::NoRelays);
        }
        let own = match layout.sender_rank(self.rank, id) {
            Some(rank) => {
                let ready = Span { start: used.ready, count: index_from_u32(subgroup.window) };
                let flags = ready.of(self.ready).ok_or(OpenError::WrongState)?;
                let cells = self.cells.get(used.handoffs).ok_or(OpenError::WrongState)?;
                let handoff = HandOff::new(cells, flags).ok_or(OpenError::WrongState)?;
                handoff.set_limit(Position(u64::from(subgroup.window)));
                let own = OwnSender::new(rank, used.handoffs, ready);
                used.handoffs = used.handoffs.saturating_add(1);
                used.ready = used.ready.saturating_add(ready.count);
                Some(own)
            }
            None => None,
        };
        let state = self.subgroups.get_mut(used.subgroups).ok_or(OpenError::WrongState)?;
        *state = SubgroupState {
            id,
            delivery: subgroup.delivery,
            order: Order::new(subgroup.senders.len())
                .map(|order| order.with_checks(layout.checks())),
            senders,
            members,
            own,
            control,
            control_bytes,
            window: subgroup.window,
            stride,
            checks: layout.checks(),
            is_fixed: layout.is_fixed(),
            #[cfg(feature = "relays")]
            relay: layout
                .relaying(id, self.rank)
                .map(|(slots, stripes)| Relay::new(slots, stripes)),
            #[cfg(feature = "durable")]
            is_logged: layout.is_logged(id),
            ..SubgroupState::VACANT
        };
        used.subgroups = used.subgroups.saturating_add(1);
        used.senders = used.senders.saturating_add(senders.count);
        used.members = used.members.saturating_add(members.count);
        Ok(())
    }

    /// Fills in the links, with those to the same peer next to each other, so that a step can post
    /// one list of writes to each peer. Peers to which this node passes on messages come first,
    /// because others wait for these.
    fn open_links(&mut self, layout: &Layout<'_>) {
        let peers = u16_from_index(layout.members()).unwrap_or(u16::MAX);
        let mut links = self.links.iter_mut();
        let all = (0..peers).map(Rank).filter(|peer| *peer != self.rank);
        #[cfg(feature = "relays")]
        let all = {
            let own = self.rank;
            let is_first = move |peer: &Rank| layout.has_relayed_link(own, *peer);
            all.clone().filter(is_first).chain(all.filter(move |peer| !is_first(peer)))
        };
        // bound: the members
        for peer in all {
            let mut subgroup = 0_usize;
            // bound: the subgroups
            for state in self.subgroups.iter() {
                let together =
                    layout.subgroup(state.id).is_some_and(|group| group.has_member(peer));
                if together && let Some(link) = links.next() {
                    #[cfg(feature = "relays")]
                    let stripes = layout.stripes(state.id, self.rank, peer);
                    *link = Link {
                        peer,
                        subgroup,
                        #[cfg(feature = "relays")]
                        stripes,
                        ..Link::VACANT
                    };
                }
                subgroup = subgroup.saturating_add(1);
            }
        }
        Link::count_rest(self.links);
    }
}

impl OwnSender {
    const fn new(rank: SenderRank, handoff: usize, ready: Span) -> Self {
        Self {
            rank,
            handoff,
            ready,
            freed: RingCursor::START,
            marker: 0,
            silent_below: Round::ZERO,
            grace_used: 0,
            null_runs: 0,
            held_since: None,
        }
    }
}

fn check_rows(
    layout: &Layout<'_>,
    own: Rank,
    rows: &[Row<'_>],
    row: RowWriter<'_>,
) -> Result<(), OpenError> {
    if own.index() >= layout.members() {
        return Err(OpenError::NotAMember);
    }
    if rows.len() != layout.members() || row.bytes() != layout.row_bytes(own) {
        return Err(OpenError::WrongRows);
    }
    // bound: the members
    for (index, row) in rows.iter().enumerate() {
        let rank = Rank(u16_from_index(index).ok_or(OpenError::WrongRows)?);
        if row.bytes() != layout.row_bytes(rank) {
            return Err(OpenError::WrongRows);
        }
    }
    Ok(())
}

fn check_state(
    layout: &Layout<'_>,
    own: Rank,
    state: &State<'_>,
    cells: &[HandOffCells],
    ready: &[ReadyFlag],
) -> Result<(), OpenError> {
    let sizes = layout.state_sizes(own);
    let right = state.subgroups.len() == sizes.subgroups
        && state.senders.len() == sizes.senders
        && state.members.len() == sizes.members
        && state.links.len() == sizes.links
        && cells.len() == sizes.handoffs
        && ready.len() == sizes.ready;
    if right { Ok(()) } else { Err(OpenError::WrongState) }
}
