//! The two marks of a batch: its header at the beginning, and a copy as its trailer at the end.
//!
//! A batch is one write and one sync. Its trailer shows that the batch is complete. Each mark alone
//! gives the batch's beginning, end and content, so that damage to one mark loses nothing.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 8 | checksum of the rest |
//! | 8 | 4 | `HEAD` or `TAIL` |
//! | 12 | 4 | kind of the batch |
//! | 16 | 8 | incarnation that wrote it |
//! | 24 | 8 | offset of the batch in its segment |
//! | 32 | 8 | bytes of the batch with both marks: whole blocks |
//! | 40 | 8 | first sequence; for a cut, the next sequence |
//! | 48 | 8 | view of the first record |
//! | 56 | 8 | number of records |

use tramontane_core::ids::ViewId;

use crate::format::{BLOCK_BYTES, Seed, put, put_u32, u32_at, u64_at};
use crate::record::Sequence;

/// The size of a mark, in bytes.
pub(crate) const MARK_BYTES: usize = 64;

/// The position of a mark in its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Header,
    Trailer,
}

/// The kind of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// Records that follow the existing ones.
    Records,
    /// No records. Existing records from a sequence onwards are void, and others replace them.
    Cut,
    /// Records with earlier sequences, which replace damaged ones.
    Repair,
}

/// The content of both marks of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) kind: BatchKind,
    pub(crate) incarnation: u64,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) first: Sequence,
    pub(crate) view: ViewId,
    pub(crate) count: u64,
}

/// The log and segment to which marks belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    pub(crate) log: u64,
    pub(crate) number: u64,
}

impl SegmentKey {
    /// Returns the seed for an incarnation's data in the segment.
    pub(crate) fn seed(self, incarnation: u64) -> Seed {
        Seed::of(self.log, self.number, incarnation)
    }
}

impl Role {
    const fn word(self) -> u32 {
        match self {
            Self::Header => u32::from_le_bytes(*b"HEAD"),
            Self::Trailer => u32::from_le_bytes(*b"TAIL"),
        }
    }
}

impl BatchKind {
    const ALL: [Self; 3] = [Self::Records, Self::Cut, Self::Repair];

    const fn word(self) -> u32 {
        match self {
            Self::Records => 1,
            Self::Cut => 2,
            Self::Repair => 3,
        }
    }
}

impl Mark {
    /// Returns the end offset of the batch.
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.length
    }

    /// Returns the sequence after the batch's last record.
    pub(crate) const fn next(&self) -> Sequence {
        self.first.plus(self.count)
    }

    /// Encodes the mark.
    pub(crate) fn encode(&self, role: Role, key: SegmentKey) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        put_u32(&mut bytes, 8, role.word());
        put_u32(&mut bytes, 12, self.kind.word());
        let rest = [self.incarnation, self.start, self.length, self.first.0, self.view.get()];
        for (index, value) in rest.into_iter().chain([self.count]).enumerate() {
            put(&mut bytes, 16 + 8 * index, value);
        }
        let checksum = key.seed(self.incarnation).checksum(&bytes[8..]);
        put(&mut bytes, 0, checksum);
        bytes
    }

    /// Reads the mark at an offset. Returns it only if it is intact and has that role, and its
    /// batch is within the segment.
    pub(crate) fn read(segment: &[u8], at: usize, role: Role, key: SegmentKey) -> Option<Self> {
        let bytes = segment.get(at..at + MARK_BYTES)?;
        let word = u32_at(bytes, 12);
        let kind = BatchKind::ALL.into_iter().find(|kind| kind.word() == word)?;
        let [incarnation, start, length, first, view, count] =
            [16, 24, 32, 40, 48, 56].map(|at| u64_at(bytes, at));
        let is_sound = u32_at(bytes, 8) == role.word()
            && u64_at(bytes, 0) == key.seed(incarnation).checksum(&bytes[8..]);
        let mark = Self {
            kind,
            incarnation,
            start,
            length,
            first: Sequence(first),
            view: ViewId(view),
            count,
        };
        (is_sound && mark.lies_in(segment.len()) && mark.at(role) == at as u64).then_some(mark)
    }

    /// Returns whether the batch consists of whole blocks within a segment of that length.
    fn lies_in(&self, segment: usize) -> bool {
        let block = BLOCK_BYTES as u64;
        self.length >= block
            && self.length.is_multiple_of(block)
            && self.start.is_multiple_of(block)
            && self.start.checked_add(self.length).is_some_and(|end| end <= segment as u64)
    }

    /// Returns the offset of the mark with that role.
    pub(crate) const fn at(&self, role: Role) -> u64 {
        match role {
            Role::Header => self.start,
            Role::Trailer => self.end() - MARK_BYTES as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: SegmentKey = SegmentKey { log: 7, number: 3 };

    fn mark() -> Mark {
        let (first, view) = (Sequence(100), ViewId(4));
        let (start, length) = (4096, 8192);
        Mark { kind: BatchKind::Records, incarnation: 5, start, length, first, view, count: 9 }
    }

    fn segment() -> Vec<u8> {
        let mut segment = vec![0; 5 * BLOCK_BYTES];
        for role in [Role::Header, Role::Trailer] {
            let at = mark().at(role) as usize;
            segment[at..at + MARK_BYTES].copy_from_slice(&mark().encode(role, KEY));
        }
        segment
    }

    #[test]
    fn either_mark_suffices_to_describe_the_batch() {
        let segment = segment();
        for role in [Role::Header, Role::Trailer] {
            let at = mark().at(role) as usize;
            assert_eq!(Mark::read(&segment, at, role, KEY), Some(mark()));
            for key in [SegmentKey { log: 8, ..KEY }, SegmentKey { number: 4, ..KEY }] {
                assert_eq!(Mark::read(&segment, at, role, key), None);
            }
        }
        let at = mark().at(Role::Header) as usize;
        assert_eq!(Mark::read(&segment, at, Role::Trailer, KEY), None);
        assert_eq!(Mark::read(&segment[..at + 4096], at, Role::Header, KEY), None, "too short");
    }

    #[test]
    fn mark_is_valid_only_at_its_original_position() {
        let mut segment = segment();
        segment.copy_within(4096..8192, 8192);
        assert_eq!(Mark::read(&segment, 8192, Role::Header, KEY), None);
    }

    #[test]
    fn flipped_bit_of_a_mark_is_detected() {
        let whole = segment();
        for bit in 0..8 * MARK_BYTES {
            let mut segment = whole.clone();
            segment[4096 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::read(&segment, 4096, Role::Header, KEY), None, "bit {bit}");
        }
    }
}
