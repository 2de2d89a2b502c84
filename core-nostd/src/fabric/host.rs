//! The host's half of the fabric interface: what a program with an operating system needs in
//! addition to [`Fabric`].
//!
//! A partition lends static memory and is stepped by its schedule. On a host the fabric allocates
//! the memory, because only the fabric knows whether the memory must be mapped, registered with a
//! device, or plain. A member that finds no work sleeps until its fabric or a thread of its own
//! process wakes it.
//!
//! Order of calls: [`HostFabric::rows`] for a view, then [`Fabric::open`] with exactly that memory,
//! then as described in [`fabric`](super). Any thread may allocate block memory at any time
//! (`HostBlocks::block_store`).
//!
//! Requirements: FAB-2, REL-1.

use core::time::Duration;

use super::seam::{Fabric, ViewMemory};
#[cfg(feature = "relays")]
use crate::ids::u16_from_index;
use crate::ids::{NodeId, Rank, ViewId};
#[cfg(feature = "relays")]
use crate::layout::RelayedRing;
use crate::layout::{CACHE_LINE, Layout};
use crate::memory::{Row, RowWriter};

/// The rows of a view: their owners and lengths. All members of the view create the same plan,
/// except for their own rank.
#[derive(Clone, Copy, Debug)]
pub struct ViewPlan<'v> {
    view: ViewId,
    own: Rank,
    members: &'v [NodeId],
    sizes: Sizes<'v>,
    digest: u64,
    has_blocks: bool,
}

/// Source of the row sizes.
#[derive(Clone, Copy, Debug)]
enum Sizes<'v> {
    OfLayout(Layout<'v>),
    /// Row sizes in bytes, by rank.
    Listed(&'v [usize]),
}

impl<'v> ViewPlan<'v> {
    /// Plans the rows of a layout for the member with rank `own`, with blocks if the layout has
    /// channels for them.
    #[must_use]
    pub const fn of_layout(view: ViewId, own: Rank, layout: &Layout<'v>) -> Self {
        Self {
            view,
            own,
            members: layout.group().members,
            sizes: Sizes::OfLayout(*layout),
            digest: layout.digest(),
            has_blocks: layout.has_channels(),
        }
    }

    /// Plans rows for cells without a layout: row `r` has `row_bytes[r]` bytes. A member without an
    /// entry gets an empty row. `digest` must differ from the digests of all other plans of the
    /// same members, because two members become ready for each other only if their plans have equal
    /// digests.
    #[must_use]
    pub const fn with_sizes(
        view: ViewId,
        own: Rank,
        members: &'v [NodeId],
        row_bytes: &'v [usize],
        digest: u64,
    ) -> Self {
        Self { view, own, members, sizes: Sizes::Listed(row_bytes), digest, has_blocks: false }
    }

    /// Adds to the plan that members exchange blocks.
    #[must_use]
    pub const fn with_blocks(self) -> Self {
        Self { has_blocks: true, ..self }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.view
    }

    /// Returns this member's rank in the view.
    #[must_use]
    pub const fn own(&self) -> Rank {
        self.own
    }

    /// Returns the members' node ids, in rank order.
    #[must_use]
    pub const fn members(&self) -> &'v [NodeId] {
        self.members
    }

    /// Returns the size in bytes of a member's row, rounded up to whole cache lines, or zero if
    /// there is no such member.
    #[must_use]
    pub fn row_bytes(&self, rank: Rank) -> usize {
        let bytes = match &self.sizes {
            Sizes::OfLayout(layout) => layout.row_bytes(rank),
            Sizes::Listed(sizes) => sizes.get(rank.index()).copied().unwrap_or(0),
        };
        bytes.checked_next_multiple_of(CACHE_LINE).unwrap_or(usize::MAX)
    }

    /// Returns the rings that members pass on to each other (REL-1). A fabric that promises
    /// [`RELAYS`](super::Promises::RELAYS) accepts writes of copies of rows only within them.
    #[cfg(feature = "relays")]
    pub fn relayed(&self) -> impl Iterator<Item = RelayedRing> {
        let layout = match &self.sizes {
            Sizes::OfLayout(layout) => Some(layout),
            Sizes::Listed(_) => None,
        };
        let members = u16_from_index(self.members.len()).unwrap_or(u16::MAX);
        layout.into_iter().flat_map(move |layout| {
            (0..members).flat_map(move |member| layout.relayed_to(Rank(member)))
        })
    }

    /// Returns the digest that distinguishes this plan from others.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns whether the members exchange blocks.
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.has_blocks
    }
}

/// The rows of one view at one member. The memory stays mapped, registered or allocated as long as
/// a clone of this value exists.
pub trait ViewRows: Clone + Send + Sync + 'static {
    /// Returns this member's rank.
    fn own(&self) -> Rank;

    /// Returns the members' node ids, in rank order.
    fn members(&self) -> &[NodeId];

    /// Returns the local row, for writing.
    fn row(&self) -> RowWriter<'_>;

    /// Returns all rows in rank order, including the local row. All rows are zero at first, and a
    /// peer's row remains zero until that peer is ready.
    fn rows(&self) -> &[Row<'_>];

    /// Returns the memory to pass to [`Fabric::open`].
    fn memory(&self) -> ViewMemory<'_> {
        ViewMemory { own: self.own(), members: self.members(), row: self.row(), rows: self.rows() }
    }
}

/// Wakes the sleeping member of this process.
pub trait LocalBell: Clone + Send + Sync + 'static {
    /// Rings the bell if the member sleeps or is about to sleep; the member then sees everything
    /// that was stored before the call. The call is cheap enough to make for every message.
    fn ring_if_asleep(&self);
}

/// A fabric that allocates its memory and that a member on a host can sleep on.
pub trait HostFabric: Fabric {
    /// Bell that application threads of this process ring.
    type Bell: LocalBell;

    /// Rows of a view.
    type Rows: ViewRows;

    /// Reason why the memory could not be allocated.
    type MemoryError: core::error::Error + Send + Sync + 'static;

    /// Allocates fresh memory for a view (VIE-11). [`Fabric::open`] accepts exactly this memory,
    /// once. If the memory is dropped before that, it is freed completely. The call may take a
    /// while for large rows, but never waits for another member.
    ///
    /// # Errors
    /// Fails if anything prevents the fabric from allocating the rows: too little memory, a plan
    /// that does not contain this member, or a view that already has its memory.
    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Self::Rows, Self::MemoryError>;

    /// Returns a bell that another thread can ring.
    fn local_bell(&self) -> Self::Bell;

    /// Sleeps until a bell rings, for at most `timeout`. Call it only after [`Fabric::arm`]
    /// returned true and one more poll found no work. Returns true if a bell rang.
    fn sleep(&mut self, timeout: Duration) -> bool;

    /// Returns the idle time after which a polling member should sleep: 1 ms, as in Spindle II-D.
    fn idle_time(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// Checks whether the peers are still alive, with one system call per peer. Call it from a
    /// timer, not in a loop. Losses are reported by [`Fabric::poll`]. Returns true if this call
    /// found a newly lost peer.
    fn check_peers(&mut self) -> bool;

    /// Tells the peers that this member leaves on purpose. Without this call, the end of its
    /// process counts as a failure. A fabric over a network waits up to half a second for its posts
    /// to arrive.
    fn leave(&mut self);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both members of a pair plan the same rows, but each plan has the member's own rank.
    #[test]
    fn plan_matches_the_rows_and_digest_of_layout() {
        let members = [NodeId(1), NodeId(2)];
        let ranks = [Rank(0), Rank(1)];
        let subgroup = |message_max| {
            [crate::layout::Subgroup {
                members: &ranks,
                senders: &ranks[..1],
                window: 4,
                message_max,
                delivery: crate::layout::Delivery::Ordered,
            }]
        };
        let (short, long) = (subgroup(16), subgroup(17));
        let of = |subgroups| Layout::new(crate::layout::Group { members: &members, subgroups });
        let layout = of(&short).expect("a good group");
        let plans = ranks.map(|own| ViewPlan::of_layout(ViewId(7), own, &layout));
        for (plan, own) in plans.iter().zip(ranks) {
            assert_eq!((plan.view(), plan.own(), plan.members()), (ViewId(7), own, &members[..]));
            assert_eq!((plan.digest(), plan.has_blocks()), (layout.digest(), false));
            for rank in ranks {
                assert_eq!(plan.row_bytes(rank), layout.row_bytes(rank));
            }
        }
        let other = ViewPlan::of_layout(ViewId(7), Rank(0), &of(&long).expect("a good group"));
        assert_ne!(plans[0].digest(), other.digest());
        assert_eq!(ViewPlan::with_sizes(ViewId(7), Rank(0), &members, &[64], 5).digest(), 5);
        #[cfg(feature = "blocks")]
        {
            let channels = Layout::of_channels(&members, 2).expect("two members");
            assert!(ViewPlan::of_layout(ViewId(7), Rank(0), &channels).has_blocks());
        }
    }

    #[test]
    fn planned_rows_are_whole_cache_lines() {
        let members = [NodeId(1), NodeId(2)];
        let plan = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, &[1, 128, 64], 5);
        let bytes = [0, 1, 7].map(|rank| plan.row_bytes(Rank(rank)));
        assert_eq!(bytes, [64, 128, 0]);
        assert!(!plan.has_blocks() && plan.with_blocks().has_blocks());
        let huge = ViewPlan::with_sizes(ViewId(1), Rank(0), &members, &[usize::MAX], 5);
        assert_eq!(huge.row_bytes(Rank(0)), usize::MAX, "which no fabric can make");
    }
}
