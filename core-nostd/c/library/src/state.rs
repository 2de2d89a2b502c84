//! A range of bytes, divided into the parts that a node borrows.

use core::ptr::NonNull;

use tramontane_core::layout::StateSizes;
use tramontane_core::memory::Row;
use tramontane_core::multicast::{Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::Node;
use tramontane_core::smc::{HandOffCells, ReadyFlag};

use crate::node::{
    TRAMONTANE_HANDOFF_BYTES, TRAMONTANE_LINK_BYTES, TRAMONTANE_MEMBER_BYTES,
    TRAMONTANE_NODE_BYTES, TRAMONTANE_READY_BYTES, TRAMONTANE_ROW_REF_BYTES,
    TRAMONTANE_SENDER_BYTES, TRAMONTANE_STATE_ALIGN, TRAMONTANE_SUBGROUP_BYTES,
};

// The numbers in the header are those of the largest target.
const _: () = assert!(size_of::<Node<'_>>() <= TRAMONTANE_NODE_BYTES);
const _: () = assert!(size_of::<SubgroupState>() <= TRAMONTANE_SUBGROUP_BYTES);
const _: () = assert!(size_of::<Row<'_>>() <= TRAMONTANE_ROW_REF_BYTES);
const _: () = assert!(size_of::<SenderState>() <= TRAMONTANE_SENDER_BYTES);
const _: () = assert!(size_of::<MemberState>() <= TRAMONTANE_MEMBER_BYTES);
const _: () = assert!(size_of::<Link>() <= TRAMONTANE_LINK_BYTES);
const _: () = assert!(size_of::<HandOffCells>() <= TRAMONTANE_HANDOFF_BYTES);
const _: () = assert!(size_of::<ReadyFlag>() <= TRAMONTANE_READY_BYTES);
const _: () = assert!(align_of::<HandOffCells>() <= TRAMONTANE_STATE_ALIGN);

/// Returns the number of bytes for state of these sizes and for the rows of `members` members.
pub(crate) fn bytes(sizes: &StateSizes, members: usize) -> Option<usize> {
    let parts = [
        (1, TRAMONTANE_NODE_BYTES),
        (members, TRAMONTANE_ROW_REF_BYTES),
        (sizes.subgroups, TRAMONTANE_SUBGROUP_BYTES),
        (sizes.senders, TRAMONTANE_SENDER_BYTES),
        (sizes.members, TRAMONTANE_MEMBER_BYTES),
        (sizes.links, TRAMONTANE_LINK_BYTES),
        (sizes.handoffs, TRAMONTANE_HANDOFF_BYTES),
        (sizes.ready, TRAMONTANE_READY_BYTES),
    ];
    let mut sum = TRAMONTANE_STATE_ALIGN;
    for (count, bytes) in parts {
        sum = sum.checked_add(bytes.checked_mul(count)?)?;
    }
    Some(sum)
}

/// The remaining part of the range.
pub(crate) struct Rest {
    at: NonNull<u8>,
    left: usize,
}

impl Rest {
    /// Starts with a whole range.
    ///
    /// # Safety
    /// The range can be written, and nothing else uses it as long as any slice cut from it is used.
    pub(crate) const unsafe fn new(at: NonNull<u8>, left: usize) -> Self {
        Self { at, left }
    }

    /// Cuts off a slice of items that `make` creates.
    pub(crate) fn cut<'m, T>(
        &mut self,
        count: usize,
        mut make: impl FnMut(usize) -> Option<T>,
    ) -> Option<&'m mut [T]> {
        let skip = self.at.as_ptr().align_offset(align_of::<T>());
        let bytes = count.checked_mul(size_of::<T>())?;
        let used = skip.checked_add(bytes)?;
        let left = self.left.checked_sub(used)?;
        // SAFETY: `skip` and `used` are inside the range, as the caller of `new` promised.
        let (first, at) = unsafe { (self.at.add(skip).cast::<T>(), self.at.add(used)) };
        for index in 0..count {
            let item = make(index)?;
            // SAFETY: aligned and inside the range, as above.
            unsafe { first.add(index).write(item) };
        }
        (self.at, self.left) = (at, left);
        // SAFETY: all items have been written, and no other slice is cut from the same bytes.
        Some(unsafe { NonNull::slice_from_raw_parts(first, count).as_mut() })
    }
}
