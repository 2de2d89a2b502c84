//! Upper bounds on the work of one step, computed from the layout only.
//!
//! Requirement: COR-1.

use super::configuration::{Delivery, Subgroup, each};
use super::limits::SLOT_HEADER;
use super::map::Layout;
use crate::ids::{Rank, SubgroupId, index_from_u32, u64_from_index};

/// Upper bounds on the work of one step of a member, over all its subgroups, if stages post at the
/// end of the step. If the group has views, the columns of the view protocol are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct StepBounds {
    /// Number of local slots published.
    pub sent: u64,
    /// Number of slots received from peers.
    pub received: u64,
    /// Number of messages handed to the application.
    pub delivered: u64,
    /// Number of writes posted, which also bounds the number of lists.
    pub writes: u64,
    /// Number of bytes in those writes. This can exceed the messages of one step, because posts
    /// bring peers up to date: a peer whose queue was full may lack up to a window of messages.
    pub posted_bytes: u64,
}

impl Layout<'_> {
    /// Returns the upper bounds on the work of one step of a member. `messages_max` is the value in
    /// [`Options`](crate::node::Options).
    ///
    /// ```
    /// use tramontane_core::ids::{NodeId, Rank};
    /// use tramontane_core::layout::{Delivery, Group, Layout, StepBounds, Subgroup};
    ///
    /// const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
    /// const SUBGROUPS: [Subgroup<'static>; 1] = [Subgroup {
    ///     members: &RANKS,
    ///     senders: &RANKS,
    ///     window: 10,
    ///     message_max: 100,
    ///     delivery: Delivery::Ordered,
    /// }];
    /// const GROUP: Group<'static> =
    ///     Group { members: &[NodeId(1), NodeId(2)], subgroups: &SUBGROUPS };
    /// const BOUNDS: StepBounds = match Layout::new(GROUP) {
    ///     Ok(layout) => layout.step_bounds(Rank(0), u32::MAX),
    ///     Err(_) => panic!("the group is wrong"),
    /// };
    /// assert_eq!((BOUNDS.sent, BOUNDS.received, BOUNDS.delivered), (10, 10, 20));
    /// ```
    #[must_use]
    pub const fn step_bounds(&self, own: Rank, messages_max: u32) -> StepBounds {
        let mut bounds =
            StepBounds { sent: 0, received: 0, delivered: 0, writes: 0, posted_bytes: 0 };
        let mut id = SubgroupId::ZERO;
        // bound: the subgroups
        each!(subgroup in self.group.subgroups, {
            if subgroup.has_member(own) {
                bounds = bounds.with(self.bounds_of(id, subgroup, own, messages_max));
            }
            id = id.next();
        });
        bounds
    }

    const fn bounds_of(
        &self,
        id: SubgroupId,
        subgroup: &Subgroup<'_>,
        own: Rank,
        messages_max: u32,
    ) -> StepBounds {
        let window = u64_from_index(index_from_u32(subgroup.window));
        let limit =
            u64_from_index(index_from_u32(if messages_max == 0 { 1 } else { messages_max }));
        let sends = subgroup.has_sender(own);
        let senders = u64_from_index(subgroup.senders.len());
        let others = senders.saturating_sub(if sends { 1 } else { 0 });
        let peers = u64_from_index(subgroup.members.len()).saturating_sub(1);
        let posts = sends || self.is_relayed(id);
        let slots = if posts { window } else { 0 };
        let stride = u64_from_index(super::map::slot_stride(subgroup, self.checks));
        let control = match subgroup.delivery {
            Delivery::Ordered => 32,
            Delivery::Unordered => senders.saturating_mul(8),
        };
        // A slot takes at most two writes (content and counter); a marker and the control block
        // follow.
        let ends = if posts { 2 } else { 1 };
        let writes = slots.saturating_mul(2).saturating_add(ends);
        let bytes = slots.saturating_mul(stride).saturating_add(8).saturating_add(control);
        StepBounds {
            sent: min(slots, limit),
            received: min(window.saturating_mul(others), limit),
            delivered: min(window.saturating_mul(senders), limit),
            writes: writes.saturating_mul(peers),
            posted_bytes: bytes.saturating_mul(peers),
        }
    }
}

#[cfg(not(feature = "relays"))]
impl Layout<'_> {
    const fn is_relayed(&self, _: SubgroupId) -> bool {
        false
    }
}

impl StepBounds {
    const fn with(self, other: Self) -> Self {
        Self {
            sent: self.sent.saturating_add(other.sent),
            received: self.received.saturating_add(other.received),
            delivered: self.delivered.saturating_add(other.delivered),
            writes: self.writes.saturating_add(other.writes),
            posted_bytes: self.posted_bytes.saturating_add(other.posted_bytes),
        }
    }
}

const fn min(one: u64, other: u64) -> u64 {
    if one < other { one } else { other }
}

// The content and the counter of a slot are together no larger than the slot.
const _: () = assert!(SLOT_HEADER >= 8);
