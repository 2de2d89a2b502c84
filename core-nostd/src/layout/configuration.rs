//! The description of a group, and every error that a description can contain.
//!
//! Requirement: LAY-1.

use super::limits::{MEMBERS_MAX, MESSAGE_MAX, SUBGROUPS_MAX, WINDOW_MAX};
use crate::ids::{NodeId, Rank};

/// A group: its members in rank order, and its subgroups. This is the core's only configuration
/// type.
///
/// Every member must use the same group: compare [`Layout::digest`](super::Layout::digest).
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Group<'c> {
    /// Members, in rank order. No id occurs twice.
    pub members: &'c [NodeId],
    /// Subgroups. They may overlap in any way.
    pub subgroups: &'c [Subgroup<'c>],
}

/// A subgroup: one delivery order among some members, fed by some of them.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Subgroup<'c> {
    /// Members, by rank in the view. No rank occurs twice.
    pub members: &'c [Rank],
    /// Members that send, in sender order (ORD-1): a subset of the members, possibly empty.
    pub senders: &'c [Rank],
    /// Number of slots per sender (`w` in Spindle II-C).
    pub window: u32,
    /// Largest payload in bytes (`m`). If zero, every message is empty.
    pub message_max: u32,
    /// Whether delivery waits for stability.
    pub delivery: Delivery,
}

/// Condition for handing a message to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Delivery {
    /// In the same order at all members, once every member has the message (ORD-2, ORD-3).
    Ordered,
    /// On receipt, in the order of each sender only (DEL-3; Spindle IV-F, first level of the DDS).
    Unordered,
}

/// An error in the description of a group. The numbers are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum LayoutError {
    /// The group has no members.
    NoMembers = 1,
    /// There are more members than [`MEMBERS_MAX`].
    TooManyMembers = 2,
    /// A node id is listed twice.
    DuplicateMember = 3,
    /// The group has no subgroups.
    NoSubgroups = 4,
    /// There are more subgroups than [`SUBGROUPS_MAX`].
    TooManySubgroups = 5,
    /// A subgroup has no members.
    EmptySubgroup = 6,
    /// A subgroup lists an unknown rank, or lists a rank twice.
    BadSubgroupMember = 7,
    /// A sender is not a member of its subgroup, or is listed twice.
    SenderOutsideSubgroup = 8,
    /// The window has zero slots.
    ZeroWindow = 9,
    /// The window is above [`WINDOW_MAX`].
    WindowTooLarge = 10,
    /// The message size is above [`MESSAGE_MAX`].
    MessageTooLarge = 11,
    /// A row would be larger than this machine can address.
    RowTooLarge = 12,
    /// A subgroup for large messages is unknown or listed twice.
    BadLargeSubgroup = 13,
    /// There are more senders of large messages than there can be channels.
    TooManyChannels = 14,
    /// A logged subgroup is unknown, listed twice, or unordered.
    BadLoggedSubgroup = 15,
    /// A subgroup with relays is unknown, listed twice or unordered, or does not have exactly one
    /// sender.
    BadRelayedSubgroup = 16,
}

impl LayoutError {
    /// Returns the stable number of this error.
    #[allow(clippy::as_conversions)]
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl core::fmt::Display for LayoutError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::NoMembers => "the group has no members",
            Self::TooManyMembers => "the group has more than 1024 members",
            Self::DuplicateMember => "a node id is listed twice in the group",
            Self::NoSubgroups => "the group has no subgroups",
            Self::TooManySubgroups => "the group has more than 1024 subgroups",
            Self::EmptySubgroup => "a subgroup has no members",
            Self::BadSubgroupMember => "a subgroup names an unknown rank, or one rank twice",
            Self::SenderOutsideSubgroup => {
                "a sender is not a member of its subgroup, or is listed twice"
            }
            Self::ZeroWindow => "the window is 0; give each sender at least one slot",
            Self::WindowTooLarge => "the window is above 1048576 slots",
            Self::MessageTooLarge => "the largest message is above 268435456 bytes",
            Self::RowTooLarge => "a row would be larger than this machine can address",
            Self::BadLargeSubgroup => "a subgroup for large messages is unknown, or named twice",
            Self::TooManyChannels => "more than 65535 senders may send large messages",
            Self::BadRelayedSubgroup => {
                "a subgroup with relays is unknown, unordered, named twice, or without a sole sender"
            }
            Self::BadLoggedSubgroup => "a logged subgroup is unknown, unordered, or named twice",
        })
    }
}

impl core::error::Error for LayoutError {}

/// Walks a slice in a `const fn`, in which `for` and indexing are not available.
macro_rules! each {
    ($item:pat in $slice:expr, $body:block) => {{
        let mut rest = $slice;
        // bound: the items of the slice
        while let [$item, tail @ ..] = rest {
            rest = tail;
            $body
        }
    }};
}
pub(super) use each;

/// Returns whether `ranks` contains `rank`.
pub(super) const fn contains(ranks: &[Rank], rank: Rank) -> bool {
    each!(member in ranks, {
        if member.0 == rank.0 {
            return true;
        }
    });
    false
}

impl Group<'_> {
    /// Checks everything except sizes.
    ///
    /// # Errors
    /// Fails with the first error found.
    pub const fn check(&self) -> Result<(), LayoutError> {
        if let Err(error) = self.check_members() {
            return Err(error);
        }
        if self.subgroups.is_empty() {
            return Err(LayoutError::NoSubgroups);
        }
        if self.subgroups.len() > SUBGROUPS_MAX {
            return Err(LayoutError::TooManySubgroups);
        }
        each!(subgroup in self.subgroups, {
            if let Err(error) = subgroup.check(self.members.len()) {
                return Err(error);
            }
        });
        Ok(())
    }

    pub(super) const fn check_members(&self) -> Result<(), LayoutError> {
        if self.members.is_empty() {
            return Err(LayoutError::NoMembers);
        }
        if self.members.len() > MEMBERS_MAX {
            return Err(LayoutError::TooManyMembers);
        }
        let mut members = self.members;
        // bound: the members
        while let [first, tail @ ..] = members {
            each!(other in tail, {
                if other.0 == first.0 {
                    return Err(LayoutError::DuplicateMember);
                }
            });
            members = tail;
        }
        Ok(())
    }
}

impl Subgroup<'_> {
    const fn check(&self, group_size: usize) -> Result<(), LayoutError> {
        if self.members.is_empty() {
            return Err(LayoutError::EmptySubgroup);
        }
        let mut members = self.members;
        // bound: the members of the subgroup
        while let [first, tail @ ..] = members {
            if first.index() >= group_size {
                return Err(LayoutError::BadSubgroupMember);
            }
            if contains(tail, *first) {
                return Err(LayoutError::BadSubgroupMember);
            }
            members = tail;
        }
        let mut senders = self.senders;
        // bound: the senders
        while let [first, tail @ ..] = senders {
            if !contains(self.members, *first) {
                return Err(LayoutError::SenderOutsideSubgroup);
            }
            if contains(tail, *first) {
                return Err(LayoutError::SenderOutsideSubgroup);
            }
            senders = tail;
        }
        if self.window == 0 {
            return Err(LayoutError::ZeroWindow);
        }
        if self.window > WINDOW_MAX {
            return Err(LayoutError::WindowTooLarge);
        }
        if self.message_max > MESSAGE_MAX {
            return Err(LayoutError::MessageTooLarge);
        }
        Ok(())
    }

    /// Returns whether the member with that rank belongs to this subgroup.
    #[must_use]
    pub const fn has_member(&self, rank: Rank) -> bool {
        contains(self.members, rank)
    }

    /// Returns whether the member with that rank sends in this subgroup.
    #[must_use]
    pub const fn has_sender(&self, rank: Rank) -> bool {
        contains(self.senders, rank)
    }
}
