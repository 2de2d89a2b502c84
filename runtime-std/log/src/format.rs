//! Features common to all files of a log: blocks, checksums, and the file prefix.
//!
//! # Invariants
//! - A file begins with a prefix. It consists of eight bytes that identify the kind of file, the
//!   version of the format, and a checksum of both, which no later version will change. So a newer
//!   format can be distinguished from damage.
//! - Integers are little-endian.
//! - A checksum is a 64-bit XXH3 hash. Within a segment, its seed is derived from the log, the
//!   segment's number and the incarnation that wrote the data. One incarnation writes each offset
//!   of a segment at most once, so data of an earlier incarnation, or of an earlier segment in a
//!   recycled file, never passes as valid.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The format that this version writes.
pub const FORMAT_VERSION: u32 = 1;

/// The alignment of everything that is synced separately. It ensures that no later write touches a
/// block that has been reported as durable, and that a recycled file can be written without being
/// read.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// The size of a prefix, in bytes.
pub(crate) const PREFIX_BYTES: usize = 16;

/// Rounds `bytes` up to a multiple of `unit`.
pub(crate) const fn round_up(bytes: usize, unit: usize) -> usize {
    bytes.div_ceil(unit) * unit
}

/// The seed of a file's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    /// The seed for files that are not recycled.
    pub(crate) const PLAIN: Self = Self(0);

    /// Returns the seed for data that one incarnation of a log writes to a segment.
    pub(crate) fn of(log: u64, segment: u64, incarnation: u64) -> Self {
        let mut bytes = [0; 24];
        put(&mut bytes, 0, log);
        put(&mut bytes, 8, segment);
        put(&mut bytes, 16, incarnation);
        Self(xxh3_64_with_seed(&bytes, 0))
    }

    /// Returns the checksum of some bytes.
    pub(crate) fn checksum(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

/// Stores an eight-byte integer. The caller's buffer must have room for it.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Stores a four-byte integer. The caller's buffer must have room for it.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Stores a two-byte integer. The caller's buffer must have room for it.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Reads an eight-byte integer. Returns zero beyond the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// Reads a four-byte integer. Returns zero beyond the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Reads a two-byte integer. Returns zero beyond the end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Metadata,
    Segment,
    Snapshot,
}

impl FileKind {
    const fn magic(self) -> [u8; 8] {
        match self {
            Self::Metadata => *b"TRAMmeta",
            Self::Segment => *b"TRAMsegm",
            Self::Snapshot => *b"TRAMsnap",
        }
    }
}

/// The prefix of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// A prefix of a known version.
    Known,
    /// A prefix of a later version.
    Newer(u32),
    /// Neither.
    Damaged,
}

/// Writes the prefix for a file of that kind.
pub(crate) fn put_prefix(bytes: &mut [u8], kind: FileKind) {
    put_prefix_of(bytes, kind, FORMAT_VERSION);
}

/// Writes the prefix with the given version.
pub(crate) fn put_prefix_of(bytes: &mut [u8], kind: FileKind, version: u32) {
    bytes[..8].copy_from_slice(&kind.magic());
    put_u32(bytes, 8, version);
    let check = Seed::PLAIN.checksum(&bytes[..12]).to_le_bytes();
    bytes[12..PREFIX_BYTES].copy_from_slice(&check[..4]);
}

/// Reads the prefix of a file of that kind.
pub(crate) fn read_prefix(bytes: &[u8], kind: FileKind) -> Prefix {
    let version = u32_at(bytes, 8);
    let mut expected = [0; PREFIX_BYTES];
    put_prefix_of(&mut expected, kind, version);
    if !bytes.starts_with(&expected) {
        Prefix::Damaged
    } else if version > FORMAT_VERSION {
        Prefix::Newer(version)
    } else {
        Prefix::Known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_version_is_distinguished_from_damage() {
        let mut bytes = [0; PREFIX_BYTES];
        put_prefix(&mut bytes, FileKind::Segment);
        assert_eq!(read_prefix(&bytes, FileKind::Segment), Prefix::Known);
        assert_eq!(read_prefix(&bytes, FileKind::Snapshot), Prefix::Damaged);
        for bit in 0..8 * PREFIX_BYTES {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_prefix(&flipped, FileKind::Segment), Prefix::Damaged, "bit {bit}");
        }
        put_prefix_of(&mut bytes, FileKind::Segment, FORMAT_VERSION + 1);
        assert_eq!(read_prefix(&bytes, FileKind::Segment), Prefix::Newer(FORMAT_VERSION + 1));
        assert_eq!(read_prefix(&bytes[..9], FileKind::Segment), Prefix::Damaged);
    }

    #[test]
    fn checksum_seed_depends_on_log_segment_and_incarnation() {
        let seeds = [Seed::of(1, 2, 3), Seed::of(2, 2, 3), Seed::of(1, 3, 3), Seed::of(1, 2, 4)];
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed), "{index}");
        }
    }
}
