//! Opening a node: lent memory is checked against the layout once, so that steps can rely on it.
//!
//! Requirement: COR-2.

use super::Node;
use crate::fabric::Capabilities;
use crate::ids::{
    Position, Rank, Round, SenderRank, SubgroupId, ViewId, index_from_u32, u16_from_index,
};
use crate::layout::{Delivery, Layout, Subgroup};
use crate::memory::{NodeMemory, OutOfRow, RingPlace, Row, RowWriter};
use crate::multicast::{
    Link, MemberState, Order, OwnSender, SenderState, Span, SubgroupState, Switches,
};
use crate::smc::{HandOff, HandOffCells, ReadyFlag, RingCursor};

/// A node's private state: slices as long as [`Layout::state_sizes`] says. What they hold does not
/// matter.
#[derive(Debug)]
pub struct State<'m> {
    /// One a subgroup of the node.
    pub subgroups: &'m mut [SubgroupState],
    /// One a sender of each of them.
    pub senders: &'m mut [SenderState],
    /// One a member of each of them.
    pub members: &'m mut [MemberState],
    /// One a member other than the node of each of them.
    pub links: &'m mut [Link],
}

/// Everything that is lent to a node.
#[derive(Debug)]
pub struct Loan<'m> {
    /// Rows, and what is shared with application threads. All of it fresh.
    pub memory: NodeMemory<'m>,
    /// Private state.
    pub state: State<'m>,
}

/// How a node behaves. All members may differ in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Options {
    /// Which of Spindle's techniques are on.
    pub switches: Switches,
    /// After so long a reservation that holds back others is reported in
    /// [`Progress`](super::Progress).
    pub reservation_timeout_ns: u64,
    /// The most messages that a step sends, receives and delivers, of each of these, in each
    /// subgroup; at least one. What is left waits for the next step.
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

/// Why a node cannot be opened. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum OpenError {
    /// The rank is not in the group.
    NotAMember = 1,
    /// A row is missing, or has another size than the layout says.
    WrongRows = 2,
    /// A slice of state, cells or flags has another length than the layout says.
    WrongState = 3,
    /// The fabric keeps no guard behind its content: it promises neither order between writes nor
    /// visibility upon completion.
    NoGuard = 4,
    /// The fabric's limits are too small: four writes a list, one slot or block of counts a write,
    /// 24 bytes a guard, 32 in a logged subgroup.
    FabricTooSmall = 5,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NotAMember => "the own rank is not in the group",
            Self::WrongRows => "the rows are not as the layout says",
            Self::WrongState => "the lent state is not as long as the layout says",
            Self::NoGuard => "the fabric promises no order that keeps a guard behind its content",
            Self::FabricTooSmall => {
                "the fabric takes too few writes a list, or too few bytes a write"
            }
        })
    }
}

impl core::error::Error for OpenError {}

impl From<OutOfRow> for OpenError {
    fn from(_: OutOfRow) -> Self {
        Self::WrongRows
    }
}

/// How far the lent slices are used.
#[derive(Default)]
struct Used {
    subgroups: usize,
    senders: usize,
    members: usize,
    handoffs: usize,
    ready: usize,
}

impl<'m> Node<'m> {
    /// Opens a node of a fixed view on lent memory.
    ///
    /// The caller has compared [`Layout::digest`] with its peers' and holds back the first step
    /// until the fabric says that every peer is ready.
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
            lagging: false,
            lost: false,
            checks: layout.checks(),
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
            // Shown once here, so that a step's checks never fail.
            let ring = RingPlace::new(&shape)?;
            self.rows.get(rank.index()).ok_or(OpenError::WrongRows)?.ring_at(&ring)?;
            let allows_large = layout.allows_large(id);
            // The own blocks are here from the first.
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
            #[cfg(feature = "durable")]
            is_logged: layout.is_logged(id),
            ..SubgroupState::VACANT
        };
        used.subgroups = used.subgroups.saturating_add(1);
        used.senders = used.senders.saturating_add(senders.count);
        used.members = used.members.saturating_add(members.count);
        Ok(())
    }

    /// Sorted by peer, so that a step can bring one list of writes to each.
    fn open_links(&mut self, layout: &Layout<'_>) {
        let peers = u16_from_index(layout.members()).unwrap_or(u16::MAX);
        let mut links = self.links.iter_mut();
        // bound: the members
        for peer in (0..peers).map(Rank).filter(|peer| *peer != self.rank) {
            let mut subgroup = 0_usize;
            // bound: the subgroups
            for state in self.subgroups.iter() {
                let together =
                    layout.subgroup(state.id).is_some_and(|group| group.has_member(peer));
                if together && let Some(link) = links.next() {
                    *link = Link { peer, subgroup, ..Link::VACANT };
                }
                subgroup = subgroup.saturating_add(1);
            }
        }
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
