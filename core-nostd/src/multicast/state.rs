//! What a node remembers: private state, plain numbers, lent as slices that the layout sizes.
//!
//! State holds offsets and counts, never addresses, so that it can be a `static` in a partition.
//! Whatever can be read from the own row is not kept here a second time.
//!
//! Requirements: COR-2, MEM-1.

use super::order::Order;
use super::switches::Switches;
use super::watched::{Impossible, Misbehaved, Refused, Unreadable, Watched};
use crate::check::Checks;
use crate::fabric::Capabilities;
use crate::ids::{Frontier, Rank, Round, SenderRank, SubgroupId, Time};
use crate::layout::{ControlCell, Delivery};
use crate::memory::{Cell, OutOfRow, OwnCell, RingPlace, Row, RowWriter};
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
    /// Whether cells and slots carry checks.
    pub(crate) checks: Checks,
    /// Whether there is one view for ever.
    pub(crate) is_fixed: bool,
    /// Who published something impossible, and what; until the step reports it.
    pub(crate) refused: Option<Refused>,
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
    /// Steps in which its next slot, or its silence, failed a check.
    pub(crate) unreadable: Unreadable,
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
    pub(crate) received: Watched,
    /// Its delivered frontier as last seen; in an unordered subgroup, its consumed count of the own
    /// messages.
    pub(crate) delivered: Watched,
    /// Its row is not read any more.
    pub(crate) lost: bool,
    /// How much it showed as durable when it was last looked at. The own member's is what it shows.
    #[cfg(feature = "durable")]
    pub(crate) durable: Watched,
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
        checks: Checks::Off,
        is_fixed: true,
        refused: None,
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
        unreadable: Unreadable::NONE,
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
        received: Watched::ZERO,
        delivered: Watched::ZERO,
        lost: false,
        #[cfg(feature = "durable")]
        durable: Watched::ZERO,
    };

    /// Whether one of its cells failed its check in the last step.
    pub(crate) const fn is_unreadable(&self) -> bool {
        let unreadable = self.received.is_unreadable() || self.delivered.is_unreadable();
        #[cfg(feature = "durable")]
        let unreadable = unreadable || self.durable.is_unreadable();
        unreadable && !self.lost
    }
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
    /// The most messages of a stage.
    pub(crate) messages_max: u32,
    pub(crate) capabilities: Capabilities,
}

impl Work<'_, '_> {
    /// Notes what a peer published, for the step's report.
    #[cold]
    pub(crate) fn refuse(&mut self, rank: Rank, what: Impossible) -> Misbehaved {
        self.subgroup.refused.get_or_insert(Refused { rank, what });
        Misbehaved(rank)
    }
}

/// The own control block, to be published in.
#[derive(Clone, Copy)]
pub(crate) struct Control<'m> {
    row: RowWriter<'m>,
    offset: usize,
    checks: Checks,
}

impl<'m> Control<'m> {
    pub(crate) const fn new(row: RowWriter<'m>, subgroup: &SubgroupState) -> Self {
        Self { row, offset: subgroup.control, checks: subgroup.checks }
    }

    #[inline]
    pub(crate) fn publish(&self, cell: ControlCell, value: u64) -> Result<(), OutOfRow> {
        self.cell(cell)?.publish(self.checks.seal(value));
        Ok(())
    }

    /// What was last published.
    #[inline]
    pub(crate) fn load(&self, cell: ControlCell) -> Result<u64, OutOfRow> {
        Ok(self.checks.own(self.cell(cell)?.load()))
    }

    #[inline]
    fn cell(&self, cell: ControlCell) -> Result<OwnCell<'m>, OutOfRow> {
        self.row.cell(self.offset.saturating_add(cell.offset()))
    }
}

/// What a cell of a peer's control block says; within, nothing if it fails its check.
#[inline]
pub(crate) fn peer_value(
    rows: &[Row<'_>],
    (rank, control): (Rank, usize),
    cell: ControlCell,
    checks: Checks,
) -> Result<Option<u64>, OutOfRow> {
    let row = rows.get(rank.index()).ok_or(OutOfRow)?;
    let cell: Cell<'_> = row.cell(control.saturating_add(cell.offset()))?;
    Ok(checks.unseal(cell.load()))
}
