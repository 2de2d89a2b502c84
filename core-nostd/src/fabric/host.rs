//! The host's half of the seam: what a program with an operating system needs of its fabric beside
//! [`Fabric`].
//!
//! A partition lends static memory and is stepped by its schedule. On a host the fabric makes the
//! memory, since it alone knows whether that is mapped, registered with a device, or plain; and a
//! member that finds no work sleeps until its fabric or a thread of its own process wakes it.
//!
//! Order of calls: [`HostFabric::rows`] for a view, [`Fabric::open`] with exactly that memory, and
//! from then on as [`fabric`](super) says. Memory for blocks is made at any time, by any
//! thread (`HostBlocks::block_store`).
//!
//! Requirement: FAB-2.

use core::time::Duration;

use super::seam::{Fabric, ViewMemory};
use crate::ids::{NodeId, Rank, ViewId};
use crate::layout::{CACHE_LINE, Layout};
use crate::memory::{Row, RowWriter};

/// Which rows a view has: whose, and how long each is. All members of the view make the same plan,
/// but for their own rank.
#[derive(Clone, Copy, Debug)]
pub struct ViewPlan<'v> {
    view: ViewId,
    own: Rank,
    members: &'v [NodeId],
    sizes: Sizes<'v>,
    digest: u64,
    has_blocks: bool,
}

/// Where the sizes of rows are.
#[derive(Clone, Copy, Debug)]
enum Sizes<'v> {
    OfLayout(Layout<'v>),
    /// By rank, in bytes.
    Listed(&'v [usize]),
}

impl<'v> ViewPlan<'v> {
    /// The rows of a layout, for the member of rank `own`; with blocks, if the layout has channels
    /// for them.
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

    /// Rows of so many bytes each, by rank, for cells without a layout. A member without a size has
    /// a row without bytes. `digest` is a number that other plans of the same members do not have:
    /// two members are ready for each other only by plans of one digest.
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

    /// The same rows, for members between which blocks go.
    #[must_use]
    pub const fn with_blocks(self) -> Self {
        Self { has_blocks: true, ..self }
    }

    /// The view.
    #[must_use]
    pub const fn view(&self) -> ViewId {
        self.view
    }

    /// This member's rank in it.
    #[must_use]
    pub const fn own(&self) -> Rank {
        self.own
    }

    /// The members' node ids, in rank order.
    #[must_use]
    pub const fn members(&self) -> &'v [NodeId] {
        self.members
    }

    /// Bytes of a member's row: whole cache lines. Zero if there is no such member.
    #[must_use]
    pub fn row_bytes(&self, rank: Rank) -> usize {
        let bytes = match &self.sizes {
            Sizes::OfLayout(layout) => layout.row_bytes(rank),
            Sizes::Listed(sizes) => sizes.get(rank.index()).copied().unwrap_or(0),
        };
        bytes.checked_next_multiple_of(CACHE_LINE).unwrap_or(usize::MAX)
    }

    /// What tells this plan from others.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    /// Whether blocks go between the members.
    #[must_use]
    pub const fn has_blocks(&self) -> bool {
        self.has_blocks
    }
}

/// The rows of one view at one member, with what keeps them: mapped, registered or allocated as
/// long as a clone of this is there.
pub trait ViewRows: Clone + Send + Sync + 'static {
    /// This member's rank.
    fn own(&self) -> Rank;

    /// The members' node ids, in rank order.
    fn members(&self) -> &[NodeId];

    /// The own row, to be written.
    fn row(&self) -> RowWriter<'_>;

    /// All rows in rank order, the own one included. All zero at first; a peer's row stays so until
    /// that peer is ready.
    fn rows(&self) -> &[Row<'_>];

    /// What [`Fabric::open`] is called with.
    fn memory(&self) -> ViewMemory<'_> {
        ViewMemory { own: self.own(), members: self.members(), row: self.row(), rows: self.rows() }
    }
}

/// Wakes the member that sleeps in this process, if it does.
pub trait LocalBell: Clone + Send + Sync + 'static {
    /// Rings if the member sleeps or is about to; what was stored before is seen when it wakes.
    /// Cheap enough for every message.
    fn ring_if_asleep(&self);
}

/// A fabric that makes its memory, and that a host can sleep on.
pub trait HostFabric: Fabric {
    /// The bell that application threads of this process ring.
    type Bell: LocalBell;

    /// The rows of a view.
    type Rows: ViewRows;

    /// Why there is no memory.
    type MemoryError: core::error::Error + Send + Sync + 'static;

    /// Makes fresh memory for a view (VIE-11). [`Fabric::open`] takes exactly this, once. Dropped
    /// before that, it leaves nothing behind. May take a while for large rows; waits for nobody.
    ///
    /// # Errors
    /// Whatever keeps the fabric from making it: no memory, a plan without this member, a view
    /// that has its memory already.
    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Self::Rows, Self::MemoryError>;

    /// A bell for another thread.
    fn local_bell(&self) -> Self::Bell;

    /// Sleeps until a bell rings, at most so long. Only after [`Fabric::arm`] said yes and one more
    /// look for work found none. True if a bell rang.
    fn sleep(&mut self, timeout: Duration) -> bool;

    /// After how long without work a polling member does best to sleep: 1 ms, as in Spindle II-D.
    fn idle_time(&self) -> Duration {
        Duration::from_millis(1)
    }

    /// Looks whether peers are still there. A system call a peer: for a timer, not for a loop. What
    /// it finds comes out of [`Fabric::poll`]. True if one is newly lost.
    fn check_peers(&mut self) -> bool;

    /// Tells the peers that this member leaves on purpose. Without it, going counts as a failure. A
    /// fabric over a network waits, at most half a second, until what was posted has arrived.
    fn leave(&mut self);
}

impl<F: HostFabric + ?Sized> HostFabric for &mut F {
    type Bell = F::Bell;
    type Rows = F::Rows;
    type MemoryError = F::MemoryError;

    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<F::Rows, F::MemoryError> {
        (**self).rows(plan)
    }

    fn local_bell(&self) -> F::Bell {
        (**self).local_bell()
    }

    fn sleep(&mut self, timeout: Duration) -> bool {
        (**self).sleep(timeout)
    }

    fn idle_time(&self) -> Duration {
        (**self).idle_time()
    }

    fn check_peers(&mut self) -> bool {
        (**self).check_peers()
    }

    fn leave(&mut self) {
        (**self).leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both members of a pair plan the same rows, and each its own place in them.
    #[test]
    fn a_plan_of_a_layout_has_its_rows_and_what_tells_it_from_others() {
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
