//! The participants and all sizes, known at compile time.

use tramontane_core::ids::{NodeId, Rank, SubgroupId, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, StateSizes, Subgroup};
use tramontane_core::storage::lines;

/// One of the two partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhichPartition {
    /// The first.
    A,
    /// The second.
    B,
}

impl WhichPartition {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// Returns the other partition.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// Returns the partition's permanent node id in the group.
    #[must_use]
    pub const fn node(self) -> NodeId {
        match self {
            Self::A => NodeId(1),
            Self::B => NodeId(2),
        }
    }

    /// Returns the partition's index in lists of both partitions.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// The members of a view, in rank order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// Both partitions; the given one has rank 0.
    Both(WhichPartition),
    /// Only the given partition.
    Alone(WhichPartition),
}

impl Members {
    /// Converts a list of node ids, or returns `None` if the list does not belong to this group.
    #[must_use]
    pub fn of(nodes: &[NodeId]) -> Option<Self> {
        let channel =
            |node| WhichPartition::BOTH.into_iter().find(|channel| channel.node() == node);
        match nodes {
            [one] => Some(Self::Alone(channel(*one)?)),
            [first, second] => {
                let first = channel(*first)?;
                (first.other().node() == *second).then_some(Self::Both(first))
            }
            _ => None,
        }
    }

    /// Returns the rank of a channel, if it is a member.
    #[must_use]
    pub fn rank(self, channel: WhichPartition) -> Option<Rank> {
        match self {
            Self::Both(first) => Some(Rank(u16::from(first != channel))),
            Self::Alone(one) => (one == channel).then_some(Rank(0)),
        }
    }

    /// Returns the channel that has a rank.
    #[must_use]
    pub const fn channel(self, rank: Rank) -> WhichPartition {
        match (self, rank) {
            (Self::Both(first) | Self::Alone(first), Rank(0)) => first,
            (Self::Both(first) | Self::Alone(first), _) => first.other(),
        }
    }

    /// Returns the number of members.
    #[must_use]
    pub const fn count(self) -> usize {
        match self {
            Self::Both(_) => 2,
            Self::Alone(_) => 1,
        }
    }

    /// Returns the layout of a view with these members.
    #[must_use]
    pub const fn layout(self) -> Layout<'static> {
        match self {
            Self::Both(WhichPartition::A) => PAIR,
            Self::Both(WhichPartition::B) => PAIR_REVERSED,
            Self::Alone(WhichPartition::A) => ALONE_A,
            Self::Alone(WhichPartition::B) => ALONE_B,
        }
    }
}

/// Largest message in bytes: more than a port's message holds.
pub const MESSAGE_MAX: usize = 200;

/// Maximum number of messages from one member that may be in flight.
pub const WINDOW: usize = 8;

/// The only subgroup.
pub const ORDERS: SubgroupId = SubgroupId(0);

/// View in which two fresh partitions begin.
pub const FIRST_VIEW: ViewId = ViewId(1);

const RANKS: [Rank; 2] = [Rank(0), Rank(1)];
const BOTH_SEND: [Subgroup<'static>; 1] = [subgroup(&RANKS)];
const ONE_SENDS: [Subgroup<'static>; 1] = [subgroup(&[Rank(0)])];

const fn subgroup(members: &'static [Rank]) -> Subgroup<'static> {
    Subgroup {
        members,
        senders: members,
        window: WINDOW as u32,
        message_max: MESSAGE_MAX as u32,
        delivery: Delivery::Ordered,
    }
}

const fn laid_out(
    members: &'static [NodeId],
    subgroups: &'static [Subgroup<'static>],
) -> Layout<'static> {
    let group = Group { members, subgroups };
    #[cfg(feature = "views")]
    let layout = Layout::with_views(group);
    #[cfg(not(feature = "views"))]
    let layout = Layout::new(group);
    match layout {
        Ok(layout) => layout,
        Err(_) => panic!("the group is wrong: this is the compiler speaking"),
    }
}

/// Layout of the view with both partitions, in which they begin.
pub const PAIR: Layout<'static> = laid_out(&[NodeId(1), NodeId(2)], &BOTH_SEND);
const PAIR_REVERSED: Layout<'static> = laid_out(&[NodeId(2), NodeId(1)], &BOTH_SEND);
const ALONE_A: Layout<'static> = laid_out(&[NodeId(1)], &ONE_SENDS);
const ALONE_B: Layout<'static> = laid_out(&[NodeId(2)], &ONE_SENDS);

/// Digest that the two partitions compare before they begin, so that programs of different groups
/// do not connect.
pub const DIGEST: u64 = PAIR.digest();

/// Sizes of the state of a member in a pair; a single member needs less. Both members have the same
/// sizes.
pub const SIZES: StateSizes = PAIR.state_sizes(Rank(0));

/// Number of cache lines in a row.
pub const LINES: usize = lines(PAIR.row_bytes(Rank(0)));

/// Size in bytes of the largest write: the columns of a view, or one or two slots.
pub const WRITE_BYTES: usize = 512;

const _: () = assert!(PAIR.row_bytes(Rank(0)) == PAIR.row_bytes(Rank(1)), "members are alike");
const _: () = assert!(ALONE_A.row_bytes(Rank(0)) <= LINES * 64, "a row serves for either view");
