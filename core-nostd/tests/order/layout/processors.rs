//! Layouts for processors with a different cache line size or byte order.

use proptest::prelude::*;
use tramontane_core::ids::{NodeId, Rank, SubgroupId};
use tramontane_core::layout::{ByteOrder, DigestMismatch, Group, Layout, LineSize};
use tramontane_core::storage::RowStorage;

use super::{group, lent};

const SIZES: [LineSize; 2] = [LineSize::Bytes64, LineSize::Bytes128];

/// Returns the offsets of the parts of a row: the header, channels, control blocks, rings, and the
/// two parts of the view columns.
fn parts(layout: &Layout<'_>, rank: Rank) -> Vec<usize> {
    let mut starts = vec![0];
    #[cfg(feature = "blocks")]
    starts
        .extend((0..layout.channels()).filter_map(|channel| {
            layout.channel_offset(tramontane_core::fabric::Channel(channel))
        }));
    for id in 0..layout.group().subgroups.len() {
        let id = SubgroupId(id as u16);
        starts.extend(layout.control_offset(rank, id));
        starts.extend(layout.ring(rank, id).map(|ring| ring.offset));
    }
    #[cfg(feature = "views")]
    {
        use tramontane_core::layout::ViewColumn;
        starts.extend(layout.view_offset(rank, ViewColumn::Heartbeat));
        starts.extend(layout.view_offset(rank, ViewColumn::Suspicions(0)));
    }
    starts
}

proptest! {
    /// Each part occupies lines that no other part shares, for every line size.
    #[test]
    fn row_parts_share_no_cache_line((size, drawn) in group()) {
        let members: Vec<NodeId> = (0..u32::from(size)).map(NodeId).collect();
        let subgroups = lent(&drawn);
        let group = Group { members: &members, subgroups: &subgroups };
        #[cfg(feature = "views")]
        let layout = Layout::with_views(group).expect("a good group");
        #[cfg(not(feature = "views"))]
        let layout = Layout::new(group).expect("a good group");
        #[cfg(feature = "blocks")]
        let layout = layout.with_large(&[SubgroupId(0)]).expect("it is there");
        for line in SIZES {
            let layout = layout.with_line_size(line).expect("it fits");
            let checked = layout.with_checks().expect("it fits");
            prop_assert_eq!(checked.line_size(), line);
            for (layout, rank) in [layout, checked].iter().flat_map(|layout| {
                (0..size).map(move |rank| (layout, Rank(rank)))
            }) {
                let starts = parts(layout, rank);
                prop_assert!(starts.is_sorted());
                for start in &starts {
                    prop_assert_eq!(start % line.bytes(), 0);
                }
                let mut lines: Vec<_> = starts.iter().map(|start| start / line.bytes()).collect();
                lines.dedup();
                prop_assert_eq!(lines.len(), starts.len(), "two parts in one line");
                prop_assert!(layout.row_bytes(rank).is_multiple_of(line.bytes()));
            }
        }
    }

    /// A processor that differs in either property is refused, and the error names the difference.
    #[test]
    fn incompatible_processor_is_refused_with_the_difference((size, drawn) in group()) {
        let members: Vec<NodeId> = (0..u32::from(size)).map(NodeId).collect();
        let subgroups = lent(&drawn);
        let group = Group { members: &members, subgroups: &subgroups };
        let small = Layout::new(group).expect("a good group");
        let large = small.with_line_size(LineSize::Bytes128).expect("it fits");
        let (own, other) = match ByteOrder::OWN {
            ByteOrder::Little => (ByteOrder::Little, ByteOrder::Big),
            ByteOrder::Big => (ByteOrder::Big, ByteOrder::Little),
        };
        prop_assert_eq!(small.digest(), small.digest_of(own));
        for (ours, theirs) in [(small, large), (large, small)] {
            prop_assert_eq!(ours.compare_digest(ours.digest()), Ok(()));
            let refused = |digest| ours.compare_digest(digest).err();
            prop_assert_eq!(refused(ours.digest_of(other)), Some(DigestMismatch::ByteOrder));
            prop_assert_eq!(refused(theirs.digest()), Some(DigestMismatch::LineSize));
            let both = theirs.digest_of(other);
            prop_assert_eq!(refused(both), Some(DigestMismatch::ByteOrderAndLineSize));
            prop_assert_eq!(refused(!ours.digest()), Some(DigestMismatch::Layout));
        }
    }
}

#[test]
fn row_memory_is_aligned_to_largest_cache_line() {
    let rows = [const { RowStorage::<2>::new() }; 3];
    assert!(rows.iter().all(|row| std::ptr::from_ref(row).addr().is_multiple_of(128)));
    assert_eq!(size_of_val(&rows), 3 * 128);
}

/// A cell is read in the processor's byte order, so bytes from a processor with the other order
/// would be read as a different number. The refusal above prevents this.
#[test]
fn cell_in_foreign_byte_order_reads_differently() {
    let row = RowStorage::<2>::new();
    let counted = 3_u64;
    row.writer().apply(0, &counted.swap_bytes().to_ne_bytes()).expect("in the row");
    assert_eq!(row.reader().cell(0).expect("in the row").load(), counted.swap_bytes());
    assert_ne!(counted, counted.swap_bytes());
}
