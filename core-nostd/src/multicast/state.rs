//! A node's private state: plain numbers, lent as slices whose sizes the layout determines.
//!
//! The state consists of offsets and counts but contains no addresses, so it can be a `static` in a
//! partition. Values that can be read from the local row are not stored here again.
//!
//! Requirements: COR-2, MEM-1.

use super::order::Order;
#[cfg(feature = "relays")]
use super::relay::Relay;
use super::switches::Switches;
use super::watched::{Impossible, Misbehaved, Refused, Unreadable, Watched};
use crate::check::Checks;
use crate::fabric::Capabilities;
use crate::ids::{Frontier, Rank, Round, SenderRank, SubgroupId, Time};
#[cfg(feature = "relays")]
use crate::layout::Stripes;
use crate::layout::{ControlCell, Delivery};
use crate::memory::{Cell, OutOfRow, OwnCell, RingPlace, Row, RowWriter};
use crate::smc::{Outbox, RingCursor};

/// A range of entries in one of the lent slices.
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

/// A node's state for one subgroup that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct SubgroupState {
    pub(crate) id: SubgroupId,
    pub(crate) delivery: Delivery,
    /// `None` if there are no senders, in which case there is nothing to do.
    pub(crate) order: Option<Order>,
    pub(crate) senders: Span,
    pub(crate) members: Span,
    /// Local sender rank and outbox, if this node sends here.
    pub(crate) own: Option<OwnSender>,
    /// Offset of the control block in the local row.
    pub(crate) control: usize,
    /// Size in bytes of the used part of the control block.
    pub(crate) control_bytes: usize,
    pub(crate) window: u32,
    /// Distance in bytes from one slot to the next.
    pub(crate) stride: usize,
    /// Published received frontier: the count of received positions.
    pub(crate) received: Frontier,
    /// Next turn to deliver: round and sender.
    pub(crate) next_round: Round,
    pub(crate) next_sender: SenderRank,
    /// Sender to read first, without receive batching.
    pub(crate) look_first: usize,
    /// Whether cells and slots carry checks.
    pub(crate) checks: Checks,
    /// Whether the membership is fixed.
    pub(crate) is_fixed: bool,
    /// Member that published an impossible value, and the value's kind, until the step reports it.
    pub(crate) refused: Option<Refused>,
    /// The relaying of the sender's messages, if members pass them on.
    #[cfg(feature = "relays")]
    pub(crate) relay: Option<Relay>,
    /// Counts changes of the state that peers should see, so that a link knows whether it lags.
    pub(crate) version: u64,
    /// Whether the last look found nothing to do, and nothing but the cells named in
    /// [`rest`](super::rest) has changed since.
    pub(crate) is_at_rest: bool,
    /// Whether the subgroup's members log delivered messages.
    #[cfg(feature = "durable")]
    pub(crate) is_logged: bool,
    /// Frontier up to which the application has been shown the messages that must be durable before
    /// the view is sealed.
    #[cfg(all(feature = "durable", feature = "views"))]
    pub(crate) shown_to: Option<Frontier>,
}

/// The state of this node's own sending in a subgroup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnSender {
    /// Local rank in the sender list.
    pub(crate) rank: SenderRank,
    /// Index of the hand-off in the node's list.
    pub(crate) handoff: usize,
    /// Ready flags of the hand-off.
    pub(crate) ready: Span,
    /// First slot that is not free again.
    pub(crate) freed: RingCursor,
    /// Counter that marks used rounds in the next slot, if one has been published since the last
    /// message.
    pub(crate) marker: u64,
    /// Rounds below this are declared silent.
    pub(crate) silent_below: Round,
    /// Number of consecutive steps in which owed rounds were left to the messages about to be sent.
    pub(crate) grace_used: u32,
    /// Number of runs of nulls since the last own message.
    pub(crate) null_runs: u16,
    /// Time since which the next slot has been reserved but not ready.
    pub(crate) held_since: Option<Time>,
}

/// A node's state for one sender of a subgroup, itself included.
#[derive(Clone, Copy, Debug)]
pub struct SenderState {
    pub(crate) rank: Rank,
    pub(crate) ring: RingPlace,
    /// Offset of the sender's control block in its row.
    pub(crate) control: usize,
    /// Next slot to receive; in the local ring, the next slot to publish.
    pub(crate) take: RingCursor,
    /// Number of the sender's rounds that have been received, as messages or as nulls.
    pub(crate) taken: Round,
    /// Number of rounds that oblige others to use up theirs: those up to the last message received.
    pub(crate) obliging: Round,
    /// Next slot to hand over.
    pub(crate) hand: RingCursor,
    /// Whether nothing more is received from the sender.
    pub(crate) lost: bool,
    /// Number of consecutive steps in which the sender's next slot or its silence failed a check.
    pub(crate) unreadable: Unreadable,
    /// Whether the sender may send large messages in this subgroup.
    pub(crate) allows_large: bool,
    /// Number of the sender's large messages whose blocks have arrived, as reported by the node's
    /// caller.
    pub(crate) large_here: u64,
    /// Number of the sender's large messages whose slots have been received (for the local sender,
    /// all of them); `large_handed` counts those handed over.
    pub(crate) large_taken: u64,
    pub(crate) large_handed: u64,
    /// Values of `hand` and `large_handed` before undelivered messages were shown.
    #[cfg(all(feature = "durable", feature = "views"))]
    pub(crate) before_shown: (RingCursor, u64),
}

/// A node's state for one member of a subgroup, itself included.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberState {
    pub(crate) rank: Rank,
    /// Offset of the member's control block in its row.
    pub(crate) control: usize,
    /// Member's received frontier as last seen.
    pub(crate) received: Watched,
    /// Member's delivered frontier as last seen; in an unordered subgroup, its consumed count of
    /// this node's messages.
    pub(crate) delivered: Watched,
    /// Whether the member's row is no longer read.
    pub(crate) lost: bool,
    /// Member's durable count as last seen; for the local member, the count that it publishes.
    #[cfg(feature = "durable")]
    pub(crate) durable: Watched,
}

/// A record of what has been posted to one peer for one subgroup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    pub(crate) peer: Rank,
    /// Index of the subgroup in the node's list.
    pub(crate) subgroup: usize,
    /// The stripes of the subgroup's ring that this node sends to the peer.
    #[cfg(feature = "relays")]
    pub(crate) stripes: Stripes,
    /// Number of links to the same peer from this one on; they are sorted by subgroup.
    pub(crate) rest: usize,
    /// State up to which the fabric accepted posts.
    pub(crate) posted: Posted,
    /// State once the list under construction has been posted.
    pub(crate) pending: Posted,
    /// Whether a list is in flight that must complete before the next one, on a fabric that does
    /// not keep writes in order.
    pub(crate) in_flight: bool,
    pub(crate) lost: bool,
    /// Whether the link is lost because the peer no longer accepts writes from this node.
    pub(crate) denied: bool,
}

/// The point up to which a peer has been served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Posted {
    /// Messages whose content has been posted.
    pub(crate) content: RingCursor,
    /// Messages whose counter has been posted.
    pub(crate) counters: RingCursor,
    /// Last posted marker.
    pub(crate) marker: u64,
    /// Version of the control block when it was last posted.
    pub(crate) control_version: u64,
    /// Newest version that has been posted completely.
    pub(crate) version: u64,
}

impl SubgroupState {
    /// An entry to be filled in by [`Node::open`](crate::node::Node::open).
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
        #[cfg(feature = "relays")]
        relay: None,
        version: 0,
        is_at_rest: false,
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
    /// An entry to be filled in by [`Node::open`](crate::node::Node::open).
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
    /// Returns whether the next large message was already large when its slot was received; its
    /// blocks have then arrived. A sender that changes a slot after receipt is not believed.
    pub(crate) const fn has_large(&self) -> bool {
        self.large_handed < self.large_taken
    }
}

impl MemberState {
    /// An entry to be filled in by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        rank: Rank::ZERO,
        control: 0,
        received: Watched::ZERO,
        delivered: Watched::ZERO,
        lost: false,
        #[cfg(feature = "durable")]
        durable: Watched::ZERO,
    };

    /// Returns whether a cell of this entry failed its check in the last step.
    pub(crate) const fn is_unreadable(&self) -> bool {
        let unreadable = self.received.is_unreadable() || self.delivered.is_unreadable();
        #[cfg(feature = "durable")]
        let unreadable = unreadable || self.durable.is_unreadable();
        unreadable && !self.lost
    }
}

impl Link {
    /// An entry to be filled in by [`Node::open`](crate::node::Node::open).
    pub const VACANT: Self = Self {
        peer: Rank::ZERO,
        subgroup: 0,
        #[cfg(feature = "relays")]
        stripes: Stripes::NONE,
        rest: 1,
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

/// One subgroup with everything that a stage needs during a step.
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
    /// Maximum number of messages per stage.
    pub(crate) messages_max: u32,
    pub(crate) capabilities: Capabilities,
}

impl Work<'_, '_> {
    /// Records an impossible value of a peer for the step's report.
    #[cold]
    pub(crate) fn refuse(&mut self, rank: Rank, what: Impossible) -> Misbehaved {
        self.subgroup.refused.get_or_insert(Refused { rank, what });
        Misbehaved(rank)
    }
}

/// The local control block, for publishing.
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

    /// Returns the value that was last published.
    #[inline]
    pub(crate) fn load(&self, cell: ControlCell) -> Result<u64, OutOfRow> {
        Ok(self.checks.own(self.cell(cell)?.load()))
    }

    #[inline]
    fn cell(&self, cell: ControlCell) -> Result<OwnCell<'m>, OutOfRow> {
        self.row.cell(self.offset.saturating_add(cell.offset()))
    }
}

/// Returns the value of a cell in a peer's control block, or `Ok(None)` if it fails its check.
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
