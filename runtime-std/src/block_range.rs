//! Ranges of block memory, whichever fabric's it is.

/// A range outside its block memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a range outside the block memory; compare with its bytes()")]
pub struct OutOfMemory;

/// Whether a range lies in a block memory of so many bytes.
pub(crate) fn check(offset: usize, length: usize, bytes: usize) -> Result<(), OutOfMemory> {
    match offset.checked_add(length) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(OutOfMemory),
    }
}
