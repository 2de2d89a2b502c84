//! The two marks of a batch: its header in front, and the same again as its trailer at the end.
//!
//! A batch is one write and one sync. That its trailer is there says that it was whole; either mark
//! alone says where it begins and ends, and what it holds, so that damage to one costs nothing.
//!
//! | at | bytes | what |
//! |---|---|---|
//! | 0 | 8 | checksum of the rest |
//! | 8 | 4 | `HEAD` or `TAIL` |
//! | 12 | 4 | what the batch is |
//! | 16 | 8 | incarnation that wrote it |
//! | 24 | 8 | where the batch begins in its segment |
//! | 32 | 8 | its bytes, with both marks: whole blocks |
//! | 40 | 8 | first sequence; of a cut, the sequence that comes next |
//! | 48 | 8 | view of the first record |
//! | 56 | 8 | number of records |

use tramontane_core::ids::ViewId;

use crate::format::{BLOCK_BYTES, Seed, put, put_u32, u32_at, u64_at};
use crate::record::Sequence;

/// The bytes of a mark.
pub(crate) const MARK_BYTES: usize = 64;

/// Where a mark stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Header,
    Trailer,
}

/// What a batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchKind {
    /// Records that follow what was there.
    Records,
    /// No records: those from a sequence on are void, and others come in their place.
    Cut,
    /// Records of earlier sequences, in place of ones that are damaged.
    Repair,
}

/// What both marks of a batch say.
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

/// Which segment of which log marks belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentKey {
    pub(crate) log: u64,
    pub(crate) number: u64,
}

impl SegmentKey {
    /// The seed of what an incarnation writes there.
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
    /// Where the batch ends.
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.length
    }

    /// The sequence after its last record.
    pub(crate) const fn next(&self) -> Sequence {
        self.first.plus(self.count)
    }

    /// The mark as bytes.
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

    /// The mark at an offset, if a sound one of that role is there whose batch lies within the
    /// segment.
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

    /// Whether the batch is whole blocks of a segment of that length.
    fn lies_in(&self, segment: usize) -> bool {
        let block = BLOCK_BYTES as u64;
        self.length >= block
            && self.length.is_multiple_of(block)
            && self.start.is_multiple_of(block)
            && self.start.checked_add(self.length).is_some_and(|end| end <= segment as u64)
    }

    /// Where the mark of that role stands.
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
    fn either_mark_says_all() {
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
    fn a_mark_counts_only_where_it_was_written() {
        let mut segment = segment();
        segment.copy_within(4096..8192, 8192);
        assert_eq!(Mark::read(&segment, 8192, Role::Header, KEY), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let whole = segment();
        for bit in 0..8 * MARK_BYTES {
            let mut segment = whole.clone();
            segment[4096 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Mark::read(&segment, 4096, Role::Header, KEY), None, "bit {bit}");
        }
    }
}
