//! One record: a delivered message with its place.
//!
//! On disk, 36 bytes and then the message, filled up to four bytes with zeros:
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | checksum of all that follows, the filling too |
//! | 8 | 8 | sequence |
//! | 16 | 8 | place in its view |
//! | 24 | 4 | length of the message |
//! | 28 | 4 | the node that sent it |
//! | 32 | 2 | views since the one that the batch begins in |
//! | 34 | 2 | 1 if it came as a large message |

use std::fmt;
use std::ops::Range;

use tramontane_core::ids::{NodeId, Place, ViewId};

use crate::blocks::Blocks;
use crate::format::{Seed, put, put_u16, put_u32, round_up, u16_at, u32_at, u64_at};

/// The bytes before a record's message.
pub const RECORD_HEADER_BYTES: usize = 36;

/// Records begin at multiples of this.
pub(crate) const RECORD_UNIT: usize = 4;

/// How many records of its subgroup came before one, since the group began. All members number
/// them alike, since all deliver the same messages; nulls are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The first.
    pub const ZERO: Self = Self(0);

    /// So many further on.
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
    /// Its number in the log.
    pub sequence: Sequence,
    /// The view in which it was delivered.
    pub view: ViewId,
    /// Its place in the delivery order of that view.
    pub place: Place,
    /// The node that sent it.
    pub sender: NodeId,
    /// Whether it came as a large message.
    pub is_large: bool,
    /// The message.
    pub bytes: &'r [u8],
}

/// The bytes that a record takes on disk.
pub(crate) const fn record_bytes(message: usize) -> usize {
    RECORD_HEADER_BYTES + round_up(message, RECORD_UNIT)
}

/// Appends a record whose checksum is not there yet.
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

/// Where the record at an offset lies, by its own length, if it is within the bytes.
pub(crate) fn extent(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let message = usize::try_from(u32_at(bytes, at + 24)).ok()?;
    let end = at.checked_add(record_bytes(message))?;
    (end <= bytes.len()).then_some(at..end)
}

/// Puts the checksum of the record that lies there.
pub(crate) fn seal_record(bytes: &mut [u8], at: Range<usize>, seed: Seed) {
    let checksum = seed.checksum(&bytes[at.start + 8..at.end]);
    put(bytes, at.start, checksum);
}

/// Whether the record that lies there is as it was written.
pub(crate) fn is_sound(bytes: &[u8], at: Range<usize>, seed: Seed) -> bool {
    u64_at(bytes, at.start) == seed.checksum(&bytes[at.start + 8..at.end])
}

/// The sequence that the bytes at an offset would have as a record.
pub(crate) fn sequence_at(bytes: &[u8], at: usize) -> Sequence {
    Sequence(u64_at(bytes, at + 8))
}

/// The record that lies there, and is sound, in a batch that begins in that view.
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
