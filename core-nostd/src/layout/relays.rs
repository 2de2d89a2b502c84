//! Addition to a layout for relaying: the members of a subgroup pass on the messages of its only
//! sender, so that the sender's link carries each message about once (REL-1). Rows do not grow.
//!
//! The slots of the ring are divided into segments, which belong to two stripes in turn. Each
//! stripe has its own tree of members. The root of both trees is the sender, which has one child in
//! each, and every other member has at most two. A member that has children in one tree has none
//! in the other. No member therefore sends more than each message once, for any number of members,
//! and the height of a tree is the logarithm of that number, as in the binomial pipeline.
//!
//! ```text
//! stripe 0:  S - 0 - 2 - 1        stripe 1:  S - 1 - 3 - 0
//!                |   ` - 3                       |   ` - 2
//!                ` - 4 - 5                       ` - 5 - 4
//! ```
//!
//! # Invariants
//! - A member receives each slot from one member only, the same for the whole view. Two writes of a
//!   slot therefore never overtake each other.
//! - All members compute the same trees, from the layout alone.
//!
//! Requirements: LAY-1, REL-1.

use super::configuration::{Delivery, LayoutError, Subgroup, each};
use super::map::{Layout, slot_stride};
use crate::ids::{Rank, SubgroupId, index_from_u32};

/// Size in bytes up to which consecutive slots form one segment, and can share a write. A member
/// passes on what it has of a segment and does not wait for the rest.
const SEGMENT_BYTES: usize = 128 << 10;

/// Number of segments that a ring has at least, if it has that many slots.
const SEGMENTS_MIN: u32 = 8;

/// A set of stripes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stripes(u8);

impl Stripes {
    /// No stripe.
    pub const NONE: Self = Self(0);
    /// Both stripes.
    pub const BOTH: Self = Self(3);

    /// Returns whether the set contains the stripe of a segment.
    #[must_use]
    pub const fn contains(self, segment: u32) -> bool {
        self.0 & Self::of(segment).0 != 0
    }

    const fn of(segment: u32) -> Self {
        Self(1 << (segment & 1))
    }
}

/// A ring in a member's copy of its sender's row. Another member writes some of its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RelayedRing {
    /// Member that passes on slots.
    pub from: Rank,
    /// Member to whose copy it writes them.
    pub to: Rank,
    /// Sender, to whom the row belongs.
    pub owner: Rank,
    /// Offset of the ring in bytes from the start of the row.
    pub offset: usize,
    /// Size of the ring in bytes.
    pub bytes: usize,
}

impl RelayedRing {
    /// Returns whether a write of a member to a range of a row is one to this ring.
    #[must_use]
    pub const fn contains(&self, from: Rank, owner: Rank, offset: usize, length: usize) -> bool {
        let end = match offset.checked_add(length) {
            Some(end) => end,
            None => return false,
        };
        self.from.0 == from.0
            && self.owner.0 == owner.0
            && offset >= self.offset
            && end <= self.offset.saturating_add(self.bytes)
    }
}

impl<'c> Layout<'c> {
    /// Marks the subgroups whose members pass on their sender's messages (REL-1). All members must
    /// use a fabric that promises [`RELAYS`](crate::fabric::Promises::RELAYS).
    ///
    /// # Errors
    /// Fails if a subgroup is unknown, listed twice or unordered, or does not have exactly one
    /// sender. Several senders already share the links of all members.
    pub const fn with_relays(self, relayed: &'c [SubgroupId]) -> Result<Self, LayoutError> {
        let mut rest = relayed;
        // bound: the listed subgroups
        while let [first, tail @ ..] = rest {
            each!(other in tail, {
                if other.0 == first.0 {
                    return Err(LayoutError::BadRelayedSubgroup);
                }
            });
            match self.subgroup(*first) {
                Some(Subgroup { senders: [_], delivery: Delivery::Ordered, .. }) => {}
                Some(_) | None => return Err(LayoutError::BadRelayedSubgroup),
            }
            rest = tail;
        }
        Self { relayed, ..self }.measured()
    }

    /// Returns whether the members of a subgroup pass on its sender's messages.
    #[must_use]
    pub const fn is_relayed(&self, subgroup: SubgroupId) -> bool {
        each!(relayed in self.relayed, {
            if relayed.0 == subgroup.0 {
                return true;
            }
        });
        false
    }

    /// Returns the rings that other members pass on to a member. A fabric accepts copies of rows
    /// only within them.
    pub fn relayed_to(&self, to: Rank) -> impl Iterator<Item = RelayedRing> {
        let of_subgroup = move |id: SubgroupId| {
            let subgroup = self.subgroup(id)?;
            let [owner] = *subgroup.senders else { return None };
            let shape = self.ring(owner, id)?;
            let bytes = shape.stride.saturating_mul(index_from_u32(shape.slots));
            let writers =
                subgroup.members.iter().copied().filter(move |from| {
                    *from != owner && self.stripes(id, *from, to) != Stripes::NONE
                });
            let offset = shape.offset;
            Some(writers.map(move |from| RelayedRing { from, to, owner, offset, bytes }))
        };
        self.relayed.iter().filter_map(move |id| of_subgroup(*id)).flatten()
    }

    /// Returns whether a member sends stripes of any subgroup with relays to another.
    pub(crate) const fn has_relayed_link(&self, from: Rank, to: Rank) -> bool {
        each!(relayed in self.relayed, {
            if self.stripes(*relayed, from, to).0 != 0 {
                return true;
            }
        });
        false
    }

    /// Returns the number of slots in a segment of a subgroup's ring, and the stripes that a member
    /// sends to others. Returns `None` if the subgroup has no relays.
    pub(crate) const fn relaying(&self, id: SubgroupId, own: Rank) -> Option<(u32, Stripes)> {
        let Some(subgroup) = self.subgroup(id) else { return None };
        if !self.is_relayed(id) {
            return None;
        }
        let mut stripes = Stripes::NONE;
        each!(member in subgroup.members, {
            stripes = Stripes(stripes.0 | self.stripes(id, own, *member).0);
        });
        Some((segment_slots(subgroup, slot_stride(subgroup, self.checks)), stripes))
    }

    /// Returns the stripes of a subgroup that one member sends to another. Without relays, a sender
    /// sends both to every member.
    #[must_use]
    pub const fn stripes(&self, id: SubgroupId, from: Rank, to: Rank) -> Stripes {
        let Some(subgroup) = self.subgroup(id) else { return Stripes::NONE };
        if !self.is_relayed(id) {
            return if subgroup.has_sender(from) { Stripes::BOTH } else { Stripes::NONE };
        }
        let [sender] = subgroup.senders else { return Stripes::NONE };
        let receivers = subgroup.members.len().saturating_sub(1);
        let Some(to) = receiver(subgroup, *sender, to) else { return Stripes::NONE };
        let from = receiver(subgroup, *sender, from);
        let mut stripes = Stripes::NONE;
        let mut stripe = 0;
        // bound: the two stripes
        while stripe < 2 {
            let is_parent = match (parent(receivers, to, stripe), from) {
                (Some(parent), Some(from)) => parent == from,
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            if is_parent {
                stripes = Stripes(stripes.0 | 1 << stripe);
            }
            stripe = stripe.saturating_add(1);
        }
        stripes
    }
}

/// Returns the number of slots in a segment: a power of two.
const fn segment_slots(subgroup: &Subgroup<'_>, stride: usize) -> u32 {
    let most = match subgroup.window.checked_div(SEGMENTS_MIN) {
        Some(most) => most,
        None => 1,
    };
    let mut slots = 1_u32;
    // bound: the bits of a number
    while slots.saturating_mul(2) <= most
        && stride.saturating_mul(index_from_u32(slots.saturating_mul(2))) <= SEGMENT_BYTES
    {
        slots = slots.saturating_mul(2);
    }
    slots
}

/// Returns the index of a member among those of its subgroup that do not send, or `None` for the
/// sender.
const fn receiver(subgroup: &Subgroup<'_>, sender: Rank, rank: Rank) -> Option<usize> {
    let mut index = 0_usize;
    each!(member in subgroup.members, {
        if member.0 == rank.0 {
            return if rank.0 == sender.0 { None } else { Some(index) };
        }
        if member.0 != sender.0 {
            index = index.saturating_add(1);
        }
    });
    None
}

/// Returns the parent of a receiver in the tree of a stripe, or `None` if the parent is the sender.
///
/// The receivers form a binary heap: first those whose index has the parity of the stripe, then the
/// others. The first half of a heap contains all members that have children.
const fn parent(receivers: usize, index: usize, stripe: usize) -> Option<usize> {
    let inner = receivers.saturating_add(1).saturating_sub(stripe) >> 1;
    let place = match index & 1 == stripe {
        true => index >> 1,
        false => inner.saturating_add(index >> 1),
    };
    match place.checked_sub(1) {
        Some(before) => Some(((before >> 1) << 1).saturating_add(stripe)),
        None => None,
    }
}
