//! A segment: a file of the log. Its first block is a header, followed by batches.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 16 | prefix |
//! | 16 | 8 | checksum of the rest of the block |
//! | 24 | 8 | the log |
//! | 32 | 8 | the segment's number |
//! | 40 | 8 | incarnation that created it |
//! | 48 | 8 | next sequence |

use crate::format::{
    BLOCK_BYTES, FileKind, PREFIX_BYTES, Prefix, Seed, put, put_prefix, read_prefix, u64_at,
};
use crate::mark::SegmentKey;
use crate::record::Sequence;

/// The prefix of the names of segments.
const NAME: &str = "segment-";

/// The prefix of the names of files that can become segments.
const SPARE_NAME: &str = "spare-";

/// Returns the file name of a segment.
pub(crate) fn segment_name(number: u64) -> String {
    format!("{NAME}{number:08}")
}

/// Returns the file name of a spare, which used to be a segment.
pub(crate) fn spare_name(number: u64) -> String {
    format!("{SPARE_NAME}{number:08}")
}

/// Returns the number of the segment with that file name.
pub(crate) fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix(NAME)?.parse().ok()
}

/// Returns whether a file is a spare.
pub(crate) fn is_spare(name: &str) -> bool {
    name.starts_with(SPARE_NAME)
}

/// The content of a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) key: SegmentKey,
    pub(crate) incarnation: u64,
    pub(crate) first: Sequence,
}

/// The result of reading a segment's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadHeader {
    Sound(SegmentHeader),
    Damaged,
    Newer(u32),
}

impl SegmentHeader {
    /// Encodes the first block of the segment.
    pub(crate) fn encode(&self) -> [u8; BLOCK_BYTES] {
        let mut block = [0; BLOCK_BYTES];
        put_prefix(&mut block, FileKind::Segment);
        let fields = [self.key.log, self.key.number, self.incarnation, self.first.0];
        for (index, field) in fields.into_iter().enumerate() {
            put(&mut block, PREFIX_BYTES + 8 + 8 * index, field);
        }
        let checksum = Seed::PLAIN.checksum(&block[PREFIX_BYTES + 8..]);
        put(&mut block, PREFIX_BYTES, checksum);
        block
    }

    /// Reads the header of the expected segment.
    pub(crate) fn read(segment: &[u8], key: SegmentKey) -> ReadHeader {
        match read_prefix(segment, FileKind::Segment) {
            Prefix::Newer(version) => return ReadHeader::Newer(version),
            Prefix::Damaged => return ReadHeader::Damaged,
            Prefix::Known => {}
        }
        let Some(block) = segment.get(..BLOCK_BYTES) else { return ReadHeader::Damaged };
        let field = |index: usize| u64_at(block, PREFIX_BYTES + 8 + 8 * index);
        let header = Self {
            key: SegmentKey { log: field(0), number: field(1) },
            incarnation: field(2),
            first: Sequence(field(3)),
        };
        let checksum = Seed::PLAIN.checksum(&block[PREFIX_BYTES + 8..]);
        if u64_at(block, PREFIX_BYTES) == checksum && header.key == key {
            ReadHeader::Sound(header)
        } else {
            ReadHeader::Damaged
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segment_header_is_valid_only_for_its_log() {
        let key = SegmentKey { log: 5, number: 12 };
        let header = SegmentHeader { key, incarnation: 2, first: Sequence(77) };
        let block = header.encode();
        assert_eq!(SegmentHeader::read(&block, key), ReadHeader::Sound(header));
        for other in [SegmentKey { log: 6, ..key }, SegmentKey { number: 13, ..key }] {
            assert_eq!(SegmentHeader::read(&block, other), ReadHeader::Damaged);
        }
        for bit in (0..8 * BLOCK_BYTES).filter(|bit| *bit < 512 || bit % 97 == 0) {
            let mut flipped = block;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::read(&flipped, key), ReadHeader::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn segment_names_contain_their_numbers() {
        assert_eq!(segment_number(&segment_name(123)), Some(123));
        assert_eq!(segment_number(&segment_name(1 << 40)), Some(1 << 40));
        assert_eq!(segment_number(&spare_name(123)), None);
        assert!(is_spare(&spare_name(0)) && !is_spare(&segment_name(0)));
    }
}
