//! What a node remembers: private state, plain numbers, lent as slices that the layout sizes.
//!
//! State holds offsets and counts, never addresses, so that it can be a `static` in a partition.
//! Whatever can be read from the own row is not kept here a second time.

use crate::fabric::Capabilities;
use crate::ids::{Frontier, Rank, Round, SenderRank, SubgroupId, Time};
use crate::layout::{ControlCell, Delivery};
use crate::memory::{Cell, OutOfRow, OwnCell, RingPlace, Row, RowWriter};
use crate::multicast::order::Order;
use crate::multicast::{Shown, Switches};
use crate::smc::{Outbox, RingCursor};

/// A run of entries in one of the lent slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) count: usize,
}

impl Span {
    pub(crate) fn of<T>(self, slice: &[T]) -> Option<&[T]> {
        slice.get(self.start..self.start.checked_add(self.count)?)
    }

    pub(crate) fn of_mut<T>(self, slice: &mut [T]) -> Option<&mut [T]> {
        slice.get_mut(self.start..self.start.checked_add(self.count)?)
    }
}

/// A node's state of one subgroup that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct SubgroupState {
    pub(crate) id: SubgroupId,
    pub(crate) delivery: Delivery,
    /// None where there are no senders: then there is nothing to do.
    pub(crate) order: Option<Order>,
    pub(crate) senders: Span,
    pub(crate) members: Span,
    /// The own sender rank and outbox, if this node sends here.
    pub(crate) own: Option<OwnSender>,
    /// Where the control block lies in the own row.
    pub(crate) control: usize,
    /// Bytes of it that are used.
    pub(crate) control_bytes: usize,
    pub(crate) window: u32,
    /// Bytes from slot to slot.
    pub(crate) stride: usize,
    /// Places that are here: the published received frontier.
    pub(crate) received: Frontier,
    /// The next turn to deliver: round and sender.
    pub(crate) next_round: Round,
    pub(crate) next_sender: SenderRank,
    /// Without receive batching: the sender to look at first.
    pub(crate) look_first: usize,
    /// Counts changes of what peers should see, so that a link knows whether it lags.
    pub(crate) version: u64,
    /// Whether its members log what they deliver.
    #[cfg(feature = "durable")]
    pub(crate) is_logged: bool,
    /// Up to where the application was shown what is to be durable before the view is sealed.
    #[cfg(all(feature = "durable", feature = "views"))]
    pub(crate) shown_to: Option<Frontier>,
}

/// What a node remembers of its own sending in a subgroup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSender {
    /// The own place in the sender list.
    pub(crate) rank: SenderRank,
    /// Which of the node's hand-offs.
    pub(crate) handoff: usize,
    /// Its ready flags.
    pub(crate) ready: Span,
    /// Slots before this are free again.
    pub(crate) freed: RingCursor,
    /// The counter that marks used rounds in the next slot, if one was published since the last
    /// message.
    pub(crate) marker: u64,
    /// Rounds below this are declared silent.
    pub(crate) silent_below: Round,
    /// Steps in a row in which rounds were owed and left to the messages that are coming.
    pub(crate) grace_used: u32,
    /// Since when the next slot has been reserved but not ready.
    pub(crate) held_since: Option<Time>,
}

/// What a node remembers of one sender of a subgroup, itself included.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    pub(crate) rank: Rank,
    pub(crate) ring: RingPlace,
    /// Where its control block lies in its row.
    pub(crate) control: usize,
    /// The next slot to look at; for the own ring, to publish.
    pub(crate) take: RingCursor,
    /// Rounds of it that are here: used by messages or nulls.
    pub(crate) taken: Round,
    /// The rounds that oblige others to use up theirs: `taken`, without declared silence.
    pub(crate) obliging: Round,
    /// The next slot to hand over.
    pub(crate) hand: RingCursor,
    /// Nothing more is taken from it.
    pub(crate) lost: bool,
    /// Whether it may send large messages here.
    pub(crate) allows_large: bool,
    /// Large messages of it whose blocks are here, as the node's caller said.
    pub(crate) large_here: u64,
    /// Those whose slots were taken, all of the own; and those that were handed over.
    pub(crate) large_taken: u64,
    pub(crate) large_handed: u64,
    /// `hand` and `large_handed` as they were before messages were shown that stay undelivered.
    #[cfg(all(feature = "durable", feature = "views"))]
    pub(crate) before_shown: (RingCursor, u64),
}

/// What a node remembers of one member of a subgroup, itself included.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberState {
    pub(crate) rank: Rank,
    /// Where its control block lies in its row.
    pub(crate) control: usize,
    /// Its received frontier as last seen.
    pub(crate) received: Frontier,
    /// Its delivered frontier as last seen; in an unordered subgroup, its consumed count of the own
    /// messages.
    pub(crate) delivered: Frontier,
    /// Its row is not read any more.
    pub(crate) lost: bool,
    /// How much it showed as durable when it was last looked at. The own member's is what it shows.
    #[cfg(feature = "durable")]
    pub(crate) durable: crate::ids::DurableCount,
}

/// What a node remembers of what it posted to one peer for one subgroup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub(crate) peer: Rank,
    /// Which of the node's subgroups.
    pub(crate) subgroup: usize,
    /// What the fabric took.
    pub(crate) posted: Posted,
    /// What the list under construction would bring it to.
    pub(crate) pending: Posted,
    /// A list that must complete before the next, on a fabric that does not keep writes in order.
    pub(crate) in_flight: bool,
    pub(crate) lost: bool,
    /// It is lost because it takes no writes from this node any more.
    pub(crate) denied: bool,
}

/// How far a peer was served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Messages whose content was posted.
    pub(crate) content: RingCursor,
    /// Messages whose counter was posted.
    pub(crate) counters: RingCursor,
    /// The marker that was posted last.
    pub(crate) marker: u64,
    /// The control block was posted as of this version.
    pub(crate) control_version: u64,
    /// All was posted as of this version.
    pub(crate) version: u64,
}

impl SubgroupState {
    /// A place to be filled by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        id: SubgroupId::ZERO,
        delivery: Delivery::Ordered,
        order: None,
        senders: Span { start: 0, count: 0 },
        members: Span { start: 0, count: 0 },
        own: None,
        control: 0,
        control_bytes: 0,
        window: 1,
        stride: 0,
        received: Frontier::ZERO,
        next_round: Round::ZERO,
        next_sender: SenderRank::ZERO,
        look_first: 0,
        version: 0,
        #[cfg(feature = "durable")]
        is_logged: false,
        #[cfg(all(feature = "durable", feature = "views"))]
        shown_to: None,
    };
}

impl Default for SubgroupState {
    fn default() -> Self {
        Self::VACANT
    }
}

impl SenderState {
    /// A place to be filled by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        rank: Rank::ZERO,
        ring: RingPlace::VACANT,
        control: 0,
        take: RingCursor::START,
        taken: Round::ZERO,
        obliging: Round::ZERO,
        hand: RingCursor::START,
        lost: false,
        allows_large: false,
        large_here: 0,
        large_taken: 0,
        large_handed: 0,
        #[cfg(all(feature = "durable", feature = "views"))]
        before_shown: (RingCursor::START, 0),
    };
}

impl SenderState {
    /// Whether the next large message was one already when its slot was taken: its blocks are here
    /// then. A sender that writes to a slot after it was received is not believed.
    pub(crate) const fn has_large(&self) -> bool {
        self.large_handed < self.large_taken
    }
}

impl MemberState {
    /// A place to be filled by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        rank: Rank::ZERO,
        control: 0,
        received: Frontier::ZERO,
        delivered: Frontier::ZERO,
        lost: false,
        #[cfg(feature = "durable")]
        durable: crate::ids::DurableCount::ZERO,
    };
}

impl Link {
    /// A place to be filled by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        peer: Rank::ZERO,
        subgroup: 0,
        posted: Posted::NONE,
        pending: Posted::NONE,
        in_flight: false,
        lost: false,
        denied: false,
    };
}

impl Posted {
    const NONE: Self = Self {
        content: RingCursor::START,
        counters: RingCursor::START,
        marker: 0,
        control_version: 0,
        version: 0,
    };
}

/// One subgroup with everything that a stage needs of it, for the time of a step.
pub(crate) struct Work<'w, 'm> {
    pub(crate) subgroup: &'w mut SubgroupState,
    pub(crate) order: Order,
    pub(crate) senders: &'w mut [SenderState],
    pub(crate) members: &'w mut [MemberState],
    pub(crate) rows: &'w [Row<'m>],
    pub(crate) outbox: Option<Outbox<'m>>,
    pub(crate) control: Control<'m>,
    pub(crate) own_rank: Rank,
    pub(crate) switches: Switches,
    pub(crate) capabilities: Capabilities,
}

impl Work<'_, '_> {
    /// What peers should see, if it is `wanted`.
    pub(crate) fn shown(&self, wanted: bool) -> Option<Shown> {
        if wanted { Some(Shown::of(self.subgroup, self.senders)) } else { None }
    }
}

/// The own control block, to be published in.
#[derive(Clone, Copy)]
pub(crate) struct Control<'m> {
    row: RowWriter<'m>,
    offset: usize,
}

impl<'m> Control<'m> {
    pub(crate) const fn new(row: RowWriter<'m>, offset: usize) -> Self {
        Self { row, offset }
    }

    #[inline]
    pub(crate) fn cell(&self, cell: ControlCell) -> Result<OwnCell<'m>, OutOfRow> {
        self.row.cell(self.offset.saturating_add(cell.offset()))
    }
}

/// A cell of a peer's control block.
#[inline]
pub(crate) fn peer_cell<'m>(
    rows: &[Row<'m>],
    rank: Rank,
    control: usize,
    cell: ControlCell,
) -> Result<Cell<'m>, OutOfRow> {
    rows.get(rank.index()).ok_or(OutOfRow)?.cell(control.saturating_add(cell.offset()))
}
