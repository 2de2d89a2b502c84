//! Newtypes for all counts and names, so that no bare integer crosses a module boundary.
//!
//! Counts are 64 bits wide (requirement ORD-4): at a thousand million per second they last for more
//! than 500 years. Arithmetic on them saturates. A saturated count stops its group, whereas a
//! wrapped count would confuse the group.

/// Declares a newtype over an unsigned integer with the few operations that ids need.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($integer:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[repr(transparent)]
        pub struct $name(pub $integer);

        impl $name {
            /// The first value.
            pub const ZERO: Self = Self(0);

            /// Returns the plain number.
            #[must_use]
            pub const fn get(self) -> $integer {
                self.0
            }

            /// Returns the next value, or the same value at the end of the range.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(&self.0, out)
            }
        }
    };
}

id! {
    /// The permanent name of a node, the same in every view.
    NodeId(u32)
}
id! {
    /// A member's index in the view's ordered member list, from zero.
    Rank(u16)
}
id! {
    /// The id of a view. Ids increase; a fixed membership is a single permanent view.
    ViewId(u64)
}
id! {
    /// A subgroup's index in the configuration's list, from zero. The same at every member.
    SubgroupId(u16)
}
id! {
    /// A sender's index in its subgroup's ordered sender list, from zero (ORD-1).
    SenderRank(u16)
}
id! {
    /// The number of a round, in which every sender of a subgroup has one turn; from zero (ORD-1).
    Round(u64)
}
id! {
    /// A sequence number: round `k` of sender `s` of `S` has position `k*S + s` in
    /// the delivery order.
    Place(u64)
}
id! {
    /// A count of sequence positions: `n` means that positions `0` to `n - 1` are done (ORD-1). A
    /// frontier never decreases.
    Frontier(u64)
}
#[cfg(feature = "durable")]
id! {
    /// The number of a subgroup's messages that a member has made durable since the group began:
    /// `n` means the first `n` in delivery order (DUR-1). It continues across views and does not
    /// count nulls.
    DurableCount(u64)
}
id! {
    /// A count of messages in one sender's ring, not counting nulls; message `p` is in slot `p mod
    /// window`.
    Position(u64)
}
id! {
    /// The index of a slot in a ring, from zero to below the window.
    Slot(u32)
}
id! {
    /// A block's index in a message that is sent in blocks, from zero (RDM-1).
    Block(u32)
}
id! {
    /// A step of a block schedule, from zero (RDM-1).
    Step(u64)
}
id! {
    /// A group's index in the list of an overlay, from zero (TRM-1).
    GroupId(u16)
}
id! {
    /// A client's number in an overlay, from zero. At most one client has a given number at a time
    /// (TRM-7).
    ClientNumber(u16)
}
id! {
    /// The number of messages that one source has given to a group before this message: a client's
    /// ordinal, or a position in the stream that a parent passes on to its child (TRM-6).
    Ordinal(u64)
}
id! {
    /// A point in time, in nanoseconds since an arbitrary fixed point. The core has no clock: the
    /// caller passes the time of each step, and the application returns the time after an upcall.
    Time(u64)
}

impl Rank {
    /// Returns the rank as an index into a list of members.
    #[must_use]
    pub const fn index(self) -> usize {
        index_from_u16(self.0)
    }
}

impl SubgroupId {
    /// Returns the id as an index into the list of subgroups.
    #[must_use]
    pub const fn index(self) -> usize {
        index_from_u16(self.0)
    }
}

impl SenderRank {
    /// Returns the rank as an index into a list of senders.
    #[must_use]
    pub const fn index(self) -> usize {
        index_from_u16(self.0)
    }
}

impl GroupId {
    /// Returns the id as an index into the list of groups.
    #[must_use]
    pub const fn index(self) -> usize {
        index_from_u16(self.0)
    }
}

impl ClientNumber {
    /// Returns the number as an index into the list of clients.
    #[must_use]
    pub const fn index(self) -> usize {
        index_from_u16(self.0)
    }
}

impl Time {
    /// Returns the time `nanoseconds` after this one.
    #[must_use]
    pub const fn after(self, nanoseconds: u64) -> Self {
        Self(self.0.saturating_add(nanoseconds))
    }

    /// Returns the number of nanoseconds from `earlier` to this time, or zero if this time is
    /// before `earlier`.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

// If a `usize` could not hold a slot index, the conversions below would lose bits.
const _: () = assert!(usize::BITS >= u32::BITS, "addresses of 32 bits or more are needed");

/// Widens without loss; `From` cannot be called in a `const fn` yet.
#[allow(clippy::as_conversions)]
#[must_use]
pub(crate) const fn index_from_u16(value: u16) -> usize {
    value as usize
}

/// Widens without loss: the assertion above holds.
#[allow(clippy::as_conversions)]
#[must_use]
pub(crate) const fn index_from_u32(value: u32) -> usize {
    value as usize
}

/// Widens without loss: no supported target has addresses of more than 64 bits.
#[allow(clippy::as_conversions)]
#[must_use]
pub(crate) const fn u64_from_index(value: usize) -> u64 {
    value as u64
}

/// Narrows the value, or returns `None` if it does not fit.
#[allow(clippy::as_conversions)]
#[must_use]
pub(crate) const fn u16_from_index(value: usize) -> Option<u16> {
    if value <= 0xffff { Some(value as u16) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_saturate_and_never_wrap() {
        assert_eq!(Round(u64::MAX).next(), Round(u64::MAX));
        assert_eq!(Rank(u16::MAX).next(), Rank(u16::MAX));
        assert_eq!(Time(5).since(Time(9)), 0);
        assert_eq!(Time(u64::MAX).after(1), Time(u64::MAX));
    }

    #[test]
    fn index_too_large_for_a_rank_is_refused() {
        assert_eq!(u16_from_index(0xffff), Some(0xffff));
        assert_eq!(u16_from_index(0x1_0000), None);
    }
}
