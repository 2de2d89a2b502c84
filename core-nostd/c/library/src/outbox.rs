//! Sending: reserve a slot, build the message in it, commit. Any thread may do this, even while
//! another thread steps the node.

use core::mem::MaybeUninit;
use core::ptr;

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::{Outbox, Reservation, ReserveError};

use crate::layout::{give, slice_of};
use crate::node::tramontane_node;
use crate::tramontane_status::{
    self, TRAMONTANE_BAD_POINTER, TRAMONTANE_FULL, TRAMONTANE_NO_SLOT, TRAMONTANE_NOT_A_MEMBER,
    TRAMONTANE_OK, TRAMONTANE_TOO_LARGE,
};

/// Maximum number of words in an outbox.
pub const TRAMONTANE_OUTBOX_WORDS: usize = 16;
/// Maximum number of words in a reservation.
pub const TRAMONTANE_SLOT_WORDS: usize = 20;

const _: () = assert!(size_of::<Outbox<'_>>() <= TRAMONTANE_OUTBOX_WORDS * 8);
const _: () = assert!(size_of::<Reservation<'_>>() <= TRAMONTANE_SLOT_WORDS * 8);
const _: () = assert!(align_of::<Outbox<'_>>() <= 8 && align_of::<Reservation<'_>>() <= 8);

/// The sending end of one subgroup. Copies of an outbox, and the threads that use them, share this
/// end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tramontane_outbox {
    /// Words that are private to the library.
    pub words: [MaybeUninit<u64>; TRAMONTANE_OUTBOX_WORDS],
}

/// A slot in which a message is being built. It must not be copied.
#[repr(C)]
pub struct tramontane_slot {
    /// Payload to fill in; null once the slot has been committed or dropped.
    pub payload: *mut u8,
    /// Payload length in bytes.
    pub length: usize,
    /// Words that are private to the library.
    pub words: [MaybeUninit<u64>; TRAMONTANE_SLOT_WORDS],
}

/// Returns the outbox of a subgroup that the node sends in.
///
/// # Safety
/// `node` comes from tramontane_open and is not being stepped; `outbox` is valid. The outbox is not
/// used for longer than the node's memory exists.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_outbox_of(
    node: *const tramontane_node,
    subgroup: u16,
    outbox: *mut tramontane_outbox,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    let Some(tramontane_node(node)) = (unsafe { node.as_ref() }) else {
        return TRAMONTANE_BAD_POINTER;
    };
    let found = node.outbox(SubgroupId(subgroup)).ok_or(TRAMONTANE_NOT_A_MEMBER).map(|found| {
        let words = [MaybeUninit::uninit(); TRAMONTANE_OUTBOX_WORDS];
        let mut outbox = tramontane_outbox { words };
        // SAFETY: the words are large enough and sufficiently aligned, by the assertions above.
        unsafe { outbox.words.as_mut_ptr().cast::<Outbox<'static>>().write(found) };
        outbox
    });
    // SAFETY: the caller's promise.
    unsafe { give(outbox, found) }
}

/// Reserves a slot for a message of `length` bytes. It never waits.
///
/// # Safety
/// `outbox` comes from tramontane_outbox_of; `slot` is valid, and contains no slot in which a
/// message is being built.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_reserve(
    outbox: *const tramontane_outbox,
    length: usize,
    slot: *mut tramontane_slot,
) -> tramontane_status {
    // SAFETY: the caller's promise.
    let Some([outbox]) = (unsafe { slice_of(outbox, 1) }) else { return TRAMONTANE_BAD_POINTER };
    if slot.is_null() || !slot.is_aligned() {
        return TRAMONTANE_BAD_POINTER;
    }
    // SAFETY: `tramontane_outbox_of` has written an outbox to these words, and an outbox can be
    // copied.
    let outbox = unsafe { outbox.words.as_ptr().cast::<Outbox<'static>>().read() };
    let mut reservation = match outbox.reserve(length) {
        Ok(reservation) => reservation,
        Err(ReserveError::Full | ReserveError::Contended) => return TRAMONTANE_FULL,
        Err(ReserveError::TooLarge { .. }) => return TRAMONTANE_TOO_LARGE,
    };
    let payload = ptr::from_mut(reservation.payload()).cast::<u8>();
    let words = [MaybeUninit::uninit(); TRAMONTANE_SLOT_WORDS];
    let mut built = tramontane_slot { payload, length, words };
    // SAFETY: the words are large enough and sufficiently aligned, by the assertions above; the
    // slot belongs to the caller and is valid.
    unsafe {
        built.words.as_mut_ptr().cast::<Reservation<'static>>().write(reservation);
        slot.write(built);
    }
    TRAMONTANE_OK
}

/// Takes the reservation out of a slot, once.
///
/// # Safety
/// `slot` is null, or comes from tramontane_reserve.
unsafe fn taken(slot: *mut tramontane_slot) -> Result<Reservation<'static>, tramontane_status> {
    if slot.is_null() || !slot.is_aligned() {
        return Err(TRAMONTANE_BAD_POINTER);
    }
    // SAFETY: the caller's promise.
    let slot = unsafe { &mut *slot };
    if slot.payload.is_null() {
        return Err(TRAMONTANE_NO_SLOT);
    }
    slot.payload = ptr::null_mut();
    // SAFETY: `tramontane_reserve` has written a reservation to these words, and it has not been
    // taken before.
    Ok(unsafe { slot.words.as_ptr().cast::<Reservation<'static>>().read() })
}

/// Commits the message that has been built, so that the next step sends it.
///
/// # Safety
/// `slot` comes from tramontane_reserve; its payload is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_commit(slot: *mut tramontane_slot) -> tramontane_status {
    // SAFETY: the caller's promise.
    match unsafe { taken(slot) } {
        Ok(reservation) => {
            reservation.commit();
            TRAMONTANE_OK
        }
        Err(status) => status,
    }
}

/// Gives a slot back: no message is sent in its place.
///
/// # Safety
/// The caller's promise is that of tramontane_commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tramontane_drop(slot: *mut tramontane_slot) -> tramontane_status {
    // SAFETY: the caller's promise.
    match unsafe { taken(slot) } {
        Ok(reservation) => {
            drop(reservation);
            TRAMONTANE_OK
        }
        Err(status) => status,
    }
}
