//! The levels that a message can reach. Each is a type, so that a function can require one (DUR-2).
//!
//! Each level includes the levels before it. A level is never reported before it has been reached,
//! and is never lost afterwards.

use std::marker::PhantomData;

use tramontane_core::ids::SubgroupId;

use super::ordinal::Ordinal;

mod sealed {
    /// The count that represents the level.
    pub trait Counted {
        const COUNT: super::Count;
    }
}
pub(crate) use self::sealed::Counted;

/// The counts that a member keeps for its own messages in a subgroup, in the order of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// All committed messages. Not counted, because a receipt exists only for a committed message.
    Accepted,
    /// Delivered here.
    Delivered,
    /// Durable at this member.
    Here,
    /// Durable at a majority.
    Majority,
    /// Durable at all members.
    Everywhere,
}

/// A level that a message can reach: [`Accepted`], [`Delivered`], [`DurableHere`],
/// [`DurableMajority`] or [`DurableEverywhere`].
pub trait Level: Counted + Send + Sync + 'static {}

macro_rules! levels {
    ($($(#[$doc:meta])+ $name:ident = $count:ident;)+) => {
        $(
            $(#[$doc])+
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name {}

            impl Counted for $name {
                const COUNT: Count = Count::$count;
            }

            impl Level for $name {}
        )+
    };
}

levels! {
    /// This member has the message, and sends it in order for as long as the member runs.
    Accepted = Accepted;
    /// The message has been delivered at this member, so every surviving member has received it,
    /// and delivers it too. For an unordered subgroup, see
    /// [`Fate::Delivered`](super::Fate::Delivered).
    Delivered = Delivered;
    /// The message is in this member's log, for which a sync has returned.
    DurableHere = Here;
    /// The message is in the logs of a majority of the subgroup's members. It survives anything
    /// except the loss of a majority of their disks.
    DurableMajority = Majority;
    /// The message is in the logs of all current members of the subgroup.
    DurableEverywhere = Everywhere;
}

/// Proof that a message has reached a level. Such a proof is returned only by a
/// [wait](super::wait::At) for that level.
pub struct Reached<L: Level> {
    subgroup: SubgroupId,
    ordinal: Ordinal,
    level: PhantomData<fn() -> L>,
}

impl<L: Level> Reached<L> {
    pub(crate) const fn new(subgroup: SubgroupId, ordinal: Ordinal) -> Self {
        Self { subgroup, ordinal, level: PhantomData }
    }

    /// Returns the subgroup in which the message was sent.
    #[must_use]
    pub const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Returns the message's number among this node's own messages.
    #[must_use]
    pub const fn ordinal(&self) -> Ordinal {
        self.ordinal
    }
}

impl<L: Level> Clone for Reached<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Level> Copy for Reached<L> {}

impl<L: Level> PartialEq for Reached<L> {
    fn eq(&self, other: &Self) -> bool {
        (self.subgroup, self.ordinal) == (other.subgroup, other.ordinal)
    }
}

impl<L: Level> Eq for Reached<L> {}

impl<L: Level> std::fmt::Debug for Reached<L> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Reached({:?}, {}, {:?})", L::COUNT, self.subgroup, self.ordinal)
    }
}
