//! The one copy of a block: from the sender's memory into the receiver's, by the receiver's processor.

use std::ptr::NonNull;

/// Bytes that are copied at a time: so few that other channels, and whoever polls, do not wait long.
pub(super) const PIECE_BYTES: usize = 256 * 1024;

/// Copies bytes from memory that another process may write meanwhile: then it yields some mix, as hardware does that
/// reads late. When it returns, all that was stored is visible before whatever the caller stores.
///
/// # Safety
/// So many bytes can be read from `source` and written at `target`, which do not overlap; nobody of this process touches
/// `target` meanwhile.
pub(super) unsafe fn copy(source: NonNull<u8>, target: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { source.copy_to_nonoverlapping(target, bytes) };
}
