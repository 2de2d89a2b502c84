//! Groups, and the memory that they need.

use core::slice;

use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};

use crate::tramontane_status::{
    self, TRAMONTANE_BAD_GROUP, TRAMONTANE_BAD_POINTER, TRAMONTANE_NOT_A_MEMBER, TRAMONTANE_OK,
};

/// Size in bytes of a cache line: rows begin on a multiple of it.
pub const TRAMONTANE_CACHE_LINE: usize = 64;
/// Size in bytes to a multiple of which the parts of a row are rounded up.
pub const TRAMONTANE_BLOCK: usize = 128;
/// Alignment of slots.
pub const TRAMONTANE_SLOT_ALIGN: usize = 16;
/// Size in bytes of a slot's header, in addition to its payload.
pub const TRAMONTANE_SLOT_HEADER: usize = 12;
/// Maximum number of subgroups in a group, in this library.
pub const TRAMONTANE_SUBGROUPS_MAX: usize = 8;

const _: () = assert!(TRAMONTANE_CACHE_LINE == tramontane_core::layout::CACHE_LINE);
const _: () = assert!(TRAMONTANE_BLOCK == tramontane_core::layout::BLOCK);
const _: () = assert!(TRAMONTANE_SLOT_ALIGN == tramontane_core::layout::SLOT_ALIGN);
const _: () = assert!(TRAMONTANE_SLOT_HEADER == tramontane_core::layout::SLOT_HEADER);

/// A subgroup: one delivery order among some members, fed by some of them.
#[repr(C)]
pub struct tramontane_subgroup {
    /// Members, by rank in the group.
    pub members: *const u16,
    /// Number of members.
    pub member_count: usize,
    /// Members that send, in sender order.
    pub senders: *const u16,
    /// Number of senders.
    pub sender_count: usize,
    /// Number of slots per sender.
    pub window: u32,
    /// Size in bytes of the largest message.
    pub message_max: u32,
    /// Whether messages are delivered on receipt, without a common order.
    pub is_unordered: bool,
}

/// A group. Every member must use the same group.
#[repr(C)]
pub struct tramontane_group {
    /// Permanent node ids of the members, in rank order.
    pub members: *const u32,
    /// Number of members.
    pub member_count: usize,
    /// The subgroups.
    pub subgroups: *const tramontane_subgroup,
    /// Number of subgroups; at most TRAMONTANE_SUBGROUPS_MAX.
    pub subgroup_count: usize,
    /// Whether cells and slots carry checks.
    pub has_checks: bool,
}

/// Returns a slice that C has passed, if it is valid.
///
/// # Safety
/// If `first` is not null, `count` items starting at `first` can be read for `'c`.
pub(crate) unsafe fn slice_of<'c, T>(first: *const T, count: usize) -> Option<&'c [T]> {
    if count == 0 {
        return Some(&[]);
    }
    let fits = count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize);
    if first.is_null() || !first.is_aligned() || !fits {
        return None;
    }
    // SAFETY: by the caller's promise; the pointer is not null, is aligned, and the range is not
    // larger than can be addressed.
    Some(unsafe { slice::from_raw_parts(first, count) })
}

/// Returns a list of ranks that C has passed.
///
/// # Safety
/// The caller's promise is that of [`slice_of`].
unsafe fn ranks<'c>(first: *const u16, count: usize) -> Option<&'c [Rank]> {
    // SAFETY: by the caller's promise; a `Rank` is a transparent `u16`.
    unsafe { slice_of(first.cast::<Rank>(), count) }
}

/// Calls `work` with a group's layout.
///
/// # Safety
/// If `group` is not null, it can be read, and so can everything that it points to.
pub(crate) unsafe fn with_layout<R>(
    group: *const tramontane_group,
    work: impl FnOnce(&Layout<'_>) -> Result<R, tramontane_status>,
) -> Result<R, tramontane_status> {
    // SAFETY: the caller's promise.
    let group = unsafe { slice_of(group, 1) }.and_then(<[_]>::first);
    let group = group.ok_or(TRAMONTANE_BAD_POINTER)?;
    // SAFETY: as above; a `NodeId` is a transparent `u32`.
    let members = unsafe { slice_of(group.members.cast::<NodeId>(), group.member_count) }
        .ok_or(TRAMONTANE_BAD_POINTER)?;
    // SAFETY: as above.
    let described =
        unsafe { slice_of(group.subgroups, group.subgroup_count) }.ok_or(TRAMONTANE_BAD_POINTER)?;
    const NONE: Subgroup<'static> = Subgroup {
        members: &[],
        senders: &[],
        window: 0,
        message_max: 0,
        delivery: Delivery::Ordered,
    };
    let mut subgroups = [NONE; TRAMONTANE_SUBGROUPS_MAX];
    let subgroups = subgroups.get_mut(..described.len()).ok_or(TRAMONTANE_BAD_GROUP)?;
    for (to, from) in subgroups.iter_mut().zip(described) {
        // SAFETY: as above.
        let lists = unsafe {
            (ranks(from.members, from.member_count), ranks(from.senders, from.sender_count))
        };
        let (Some(members), Some(senders)) = lists else { return Err(TRAMONTANE_BAD_POINTER) };
        let delivery = if from.is_unordered { Delivery::Unordered } else { Delivery::Ordered };
        *to = Subgroup {
            members,
            senders,
            window: from.window,
            message_max: from.message_max,
            delivery,
        };
    }
    let layout = Layout::new(Group { members, subgroups }).map_err(|_| TRAMONTANE_BAD_GROUP)?;
    if group.has_checks {
        return work(&layout.with_checks().map_err(|_| TRAMONTANE_BAD_GROUP)?);
    }
    work(&layout)
}

/// Writes a result to a pointer that C has passed.
///
/// # Safety
/// If `to` is not null, it can be written.
pub(crate) unsafe fn give<T>(to: *mut T, value: Result<T, tramontane_status>) -> tramontane_status {
    if to.is_null() || !to.is_aligned() {
        return TRAMONTANE_BAD_POINTER;
    }
    match value {
        Ok(value) => {
            // SAFETY: by the caller's promise; the pointer is not null and is aligned.
            unsafe { to.write(value) };
            TRAMONTANE_OK
        }
        Err(status) => status,
    }
}

/// Computes a number that two groups share only if they are the same. Members must compare it
/// before the first step.
///
/// # Safety
/// Pointers that are not null are valid, and so is everything that they point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_digest(
    group: *const tramontane_group,
    digest: *mut u64,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    unsafe { give(digest, with_layout(group, |layout| Ok(layout.digest()))) }
}

/// Computes the size in bytes of a member's row.
///
/// # Safety
/// Pointers that are not null are valid, and so is everything that they point to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_row_bytes(
    group: *const tramontane_group,
    rank: u16,
    bytes: *mut usize,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    unsafe {
        give(
            bytes,
            with_layout(group, |layout| {
                if usize::from(rank) >= layout.members() {
                    return Err(TRAMONTANE_NOT_A_MEMBER);
                }
                Ok(layout.row_bytes(Rank(rank)))
            }),
        )
    }
}
