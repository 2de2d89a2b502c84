//! The levels that a message reaches, each a type, so that a function can require one (DUR-2).
//!
//! Each includes the levels before it. None is reported before it holds, and a level once reached
//! is never lost.

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

/// The counts that a member keeps of its own messages in a subgroup, in the order of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// All committed messages. Not counted, because a receipt exists only for such a message.
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
    /// This member has the message, and sends it in order as long as it runs.
    Accepted = Accepted;
    /// The message was delivered here, so every surviving member has received it, and delivers it
    /// too. For a subgroup without order see [`Fate::Delivered`](super::Fate::Delivered).
    Delivered = Delivered;
    /// The message is in this member's log: a sync has returned for it.
    DurableHere = Here;
    /// The message is in the logs of a majority of the subgroup's members: it survives anything but
    /// the loss of a majority of their disks.
    DurableMajority = Majority;
    /// The message is in the logs of all present members of the subgroup.
    DurableEverywhere = Everywhere;
}

/// Proof that a message has reached a level. Only a [wait](super::wait::At) for the level returns
/// one.
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

    /// Returns the number of the message among this node's own.
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
