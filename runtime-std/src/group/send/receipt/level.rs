//! The levels that a message reaches, each a type, so that a function can require one (DUR-2).
//!
//! Each includes those before it. None is reported before it holds, and what holds once holds for
//! good.

use std::marker::PhantomData;

use tramontane_core::ids::SubgroupId;

use super::ordinal::Ordinal;

mod sealed {
    /// Which count tells about the level.
    pub trait Counted {
        const COUNT: super::Count;
    }
}
pub(crate) use self::sealed::Counted;

/// What a member counts of its own messages in a subgroup. Their order is that of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// All that were committed: nothing is counted, for a receipt stands for such a message.
    Accepted,
    /// Delivered here.
    Delivered,
    /// Durable with this member.
    Here,
    /// Durable with a majority.
    Majority,
    /// Durable with all members.
    Everywhere,
}

/// A level that a message reaches: [`Accepted`], [`Delivered`], [`DurableHere`],
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
    /// This member has the message, and sends it in its order as long as it runs.
    Accepted = Accepted;
    /// It was delivered here. So every member that goes on has received it, and delivers it too;
    /// in a subgroup without order see [`Fate::Delivered`](super::Fate::Delivered).
    Delivered = Delivered;
    /// It is in this member's log: a sync has returned for it.
    DurableHere = Here;
    /// It is in the logs of a majority of the subgroup's members: whatever happens to the group, it
    /// is not lost as long as a majority of its disks is not.
    DurableMajority = Majority;
    /// It is in the logs of all members that the subgroup has.
    DurableEverywhere = Everywhere;
}

/// Shows that a message has reached a level. Only a [wait](super::wait::At) for it gives one.
pub struct Reached<L: Level> {
    subgroup: SubgroupId,
    ordinal: Ordinal,
    level: PhantomData<fn() -> L>,
}

impl<L: Level> Reached<L> {
    pub(crate) const fn new(subgroup: SubgroupId, ordinal: Ordinal) -> Self {
        Self { subgroup, ordinal, level: PhantomData }
    }

    /// The subgroup that the message was sent in.
    #[must_use]
    pub const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Which message of this node it is.
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
