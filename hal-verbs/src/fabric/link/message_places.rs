//! Slots for messages about blocks, in the memory of their connection.

use crate::adapter::MemoryRegion;
use crate::protocol::Name;
use crate::protocol::blocks::{MESSAGE_BYTES, MESSAGES_MAX};

/// The distance between the slots of two messages: a cache line.
pub(super) const PLACE_BYTES: usize = 64;

/// Slots of a connection: one per receive, and one for the outgoing message.
#[allow(clippy::as_conversions, reason = "a small number, in a constant")]
const PLACES: usize = MESSAGES_MAX as usize + 1;

/// Number of bytes that a connection for blocks needs for its messages.
pub(crate) const MESSAGE_MEMORY_BYTES: usize = PLACES * PLACE_BYTES;

/// Returns the memory that a receive on a connection for blocks fills.
pub(super) fn receive_range(
    source: &MemoryRegion,
    messages: usize,
    name: Name,
) -> (&MemoryRegion, usize, usize) {
    let place = messages.saturating_add(place_of(name));
    (source, place, MESSAGE_BYTES)
}

/// Returns the offset of a receive's message.
pub(super) fn place_of(name: Name) -> usize {
    let number = usize::try_from(name.number_from(0)).unwrap_or(usize::MAX);
    number.saturating_mul(PLACE_BYTES)
}
