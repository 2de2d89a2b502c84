//! One record: a delivered message with its position.
//!
//! On disk, a record is 36 bytes followed by the message, padded with zeros to a multiple of four
//! bytes:
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | checksum of everything after it, including the padding |
//! | 8 | 8 | sequence |
//! | 16 | 8 | position in its view |
//! | 24 | 4 | length of the message |
//! | 28 | 4 | node that sent it |
//! | 32 | 2 | number of views since the first view of the batch |
//! | 34 | 2 | 1 if it was a large message |

use std::fmt;
use std::ops::Range;

use tramontane_core::ids::{NodeId, Place, ViewId};

use crate::blocks::Blocks;
use crate::format::{Seed, put, put_u16, put_u32, round_up, u16_at, u32_at, u64_at};

/// The number of bytes before a record's message.
pub const RECORD_HEADER_BYTES: usize = 36;

/// The alignment of records, in bytes.
pub(crate) const RECORD_UNIT: usize = 4;

/// The number of records of the subgroup before this one since the group began. All members use the
/// same numbers, because all of them deliver the same messages; nulls are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The first sequence.
    pub const ZERO: Self = Self(0);

    /// Returns the sequence `count` records later.
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A delivered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'r> {
    /// The number of the record in the log.
    pub sequence: Sequence,
    /// The view in which the message was delivered.
    pub view: ViewId,
    /// The position in the delivery order of that view.
    pub place: Place,
    /// The node that sent the message.
    pub sender: NodeId,
    /// Whether this was a large message.
    pub is_large: bool,
    /// The message.
    pub bytes: &'r [u8],
}

/// Returns the number of bytes that a record takes on disk.
pub(crate) const fn record_bytes(message: usize) -> usize {
    RECORD_HEADER_BYTES + round_up(message, RECORD_UNIT)
}

/// Appends a record, without its checksum.
pub(crate) fn put_record(bytes: &mut Blocks, record: &Record<'_>, length: u32, views: u16) {
    let mut header = [0; RECORD_HEADER_BYTES];
    put(&mut header, 8, record.sequence.0);
    put(&mut header, 16, record.place.get());
    put_u32(&mut header, 24, length);
    put_u32(&mut header, 28, record.sender.get());
    put_u16(&mut header, 32, views);
    put_u16(&mut header, 34, u16::from(record.is_large));
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(record.bytes);
    bytes.resize(round_up(bytes.len(), RECORD_UNIT), 0);
}

/// Returns the byte range of the record at an offset, derived from its length field, if it is
/// within the bytes.
pub(crate) fn extent(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let message = usize::try_from(u32_at(bytes, at + 24)).ok()?;
    let end = at.checked_add(record_bytes(message))?;
    (end <= bytes.len()).then_some(at..end)
}

/// Stores the checksum of the record in that range.
pub(crate) fn seal_record(bytes: &mut [u8], at: Range<usize>, seed: Seed) {
    let checksum = seed.checksum(&bytes[at.start + 8..at.end]);
    put(bytes, at.start, checksum);
}

/// Returns whether the record in that range is intact.
pub(crate) fn is_sound(bytes: &[u8], at: Range<usize>, seed: Seed) -> bool {
    u64_at(bytes, at.start) == seed.checksum(&bytes[at.start + 8..at.end])
}

/// Returns the sequence field of the bytes at an offset.
pub(crate) fn sequence_at(bytes: &[u8], at: usize) -> Sequence {
    Sequence(u64_at(bytes, at + 8))
}

/// Returns the intact record in that range, in a batch that begins in the given view.
pub(crate) fn record_at(bytes: &[u8], at: Range<usize>, first_view: ViewId) -> Record<'_> {
    let start = at.start;
    let length = u32_at(bytes, start + 24) as usize;
    let message = start + RECORD_HEADER_BYTES;
    Record {
        sequence: sequence_at(bytes, start),
        view: ViewId(first_view.get().saturating_add(u64::from(u16_at(bytes, start + 32)))),
        place: Place(u64_at(bytes, start + 16)),
        sender: NodeId(u32_at(bytes, start + 28)),
        is_large: u16_at(bytes, start + 34) != 0,
        bytes: &bytes[message..message + length],
    }
}
