//! The parts of the core for hosts: plans of a view's rows, and block memory.

use core::hint::black_box;

use tramontane_core::fabric::*;
use tramontane_core::ids::*;
use tramontane_core::layout::*;

pub fn call() {
    plans();
    #[cfg(feature = "blocks")]
    blocks::call();
}

fn plans() {
    let (members, sizes) = (black_box([NodeId(7), NodeId(9)]), black_box([100, 200]));
    let plan = ViewPlan::with_sizes(black_box(ViewId(1)), black_box(Rank(1)), &members, &sizes, 5);
    show(&black_box(plan.with_blocks()));
    let ranks = [Rank(0), Rank(1)];
    let subgroups = [Subgroup {
        members: black_box(&ranks),
        senders: black_box(&ranks),
        window: black_box(4),
        message_max: black_box(100),
        delivery: black_box(Delivery::Ordered),
    }];
    let group = Group { members: black_box(&members), subgroups: black_box(&subgroups) };
    if let Ok(layout) = Layout::new(black_box(group)) {
        show(&black_box(ViewPlan::of_layout(black_box(ViewId(2)), black_box(Rank(0)), &layout)));
    }
}

fn show(plan: &ViewPlan<'_>) {
    black_box((plan.view(), plan.own(), plan.members(), plan.digest(), plan.has_blocks()));
    black_box(plan.row_bytes(black_box(Rank(1))));
}

#[cfg(feature = "blocks")]
mod blocks {
    use super::super::debug;
    use super::*;
    use core::ptr::NonNull;
    use tramontane_core::memory::{BlockMemory, BlockPages, Line, OutOfBlock};

    /// Static memory, such as a partition would have.
    struct Static(&'static [Line]);

    // SAFETY: the lines are static, 64 bytes each, and written only atomically.
    unsafe impl BlockPages for Static {
        fn base(&self) -> NonNull<u8> {
            NonNull::from(self.0).cast()
        }

        fn bytes(&self) -> usize {
            512
        }
    }

    pub fn call() {
        static LINES: [Line; 8] = [const { Line::new() }; 8];
        let pages = black_box(Static(&LINES));
        let mut regions = Regions::new();
        let region = regions.take(black_box(7_u8), |gone| *gone == black_box(3));
        debug(region);
        black_box(Regions::<u8>::default());
        let Ok(region) = region else { return };
        black_box(regions.get(region));
        black_box(regions.take_this(black_box(Region(2)), 9, |gone| *gone == black_box(3)));
        let mut memory = black_box(BlockMemory::new(region, &pages));
        black_box((memory.region(), memory.area(black_box(8)), memory.bytes(), memory.base()));
        let _ = black_box(memory.write(black_box(8), black_box(&[7; 40][..])));
        let _ = black_box(memory.read(black_box(8), black_box(&mut [0; 40][..])));
        // SAFETY: nothing else knows of this memory.
        let _ = black_box(unsafe { memory.slice(black_box(8), black_box(16)) });
        // SAFETY: as above.
        let _ = black_box(unsafe { memory.slice_mut(black_box(8), black_box(16)) });
        let memory = black_box(memory.map(|pages| pages));
        debug((&memory, black_box(OutOfBlock)));
    }
}
