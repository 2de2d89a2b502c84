//! What all files of a log have in common: blocks, checksums, and how a file begins.
//!
//! # What holds
//! - A file begins with a prefix: eight bytes that say what it is, the format's version, and a
//!   check of both that no later version will change. So a newer format is told from damage.
//! - Integers are little-endian.
//! - A checksum is XXH3 with 64 bits. Within a segment its seed is made from the log, the segment's
//!   number and the incarnation that wrote it. One incarnation writes a place of a segment at most
//!   once, so what an earlier one left there, or an earlier segment in a recycled file, never
//!   passes.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The format that this version writes.
pub const FORMAT_VERSION: u32 = 1;

/// Whatever is synced by itself begins at a multiple of this, so that no later write touches a
/// block that was reported durable, and a recycled file is written without being read.
pub(crate) const BLOCK_BYTES: usize = 4096;

/// The bytes of a prefix.
pub(crate) const PREFIX_BYTES: usize = 16;

/// The largest multiple that is needed: the same offset or the next multiple of `unit`.
pub(crate) const fn round_up(bytes: usize, unit: usize) -> usize {
    bytes.div_ceil(unit) * unit
}

/// Where checksums begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    /// For files that are not recycled.
    pub(crate) const PLAIN: Self = Self(0);

    /// For what an incarnation of a log writes to a segment.
    pub(crate) fn of(log: u64, segment: u64, incarnation: u64) -> Self {
        let mut bytes = [0; 24];
        put(&mut bytes, 0, log);
        put(&mut bytes, 8, segment);
        put(&mut bytes, 16, incarnation);
        Self(xxh3_64_with_seed(&bytes, 0))
    }

    /// The checksum of some bytes.
    pub(crate) fn checksum(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

/// Stores an integer of eight bytes. The caller's buffer has room for it.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// Stores an integer of four bytes. The caller's buffer has room for it.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Stores an integer of two bytes. The caller's buffer has room for it.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// An integer of eight bytes; zero beyond the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// An integer of four bytes; zero beyond the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// An integer of two bytes; zero beyond the end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

/// What a file is.
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

/// How a file begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    /// As this version writes it.
    Known,
    /// As a later version writes it.
    Newer(u32),
    /// In neither way.
    Damaged,
}

/// Writes how a file of that kind begins.
pub(crate) fn put_prefix(bytes: &mut [u8], kind: FileKind) {
    put_prefix_of(bytes, kind, FORMAT_VERSION);
}

/// The same for any version.
pub(crate) fn put_prefix_of(bytes: &mut [u8], kind: FileKind, version: u32) {
    bytes[..8].copy_from_slice(&kind.magic());
    put_u32(bytes, 8, version);
    let check = Seed::PLAIN.checksum(&bytes[..12]).to_le_bytes();
    bytes[12..PREFIX_BYTES].copy_from_slice(&check[..4]);
}

/// Reads how a file of that kind begins.
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
    fn a_newer_version_is_told_from_damage() {
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
    fn log_segment_and_incarnation_each_change_the_seed() {
        let seeds = [Seed::of(1, 2, 3), Seed::of(2, 2, 3), Seed::of(1, 3, 3), Seed::of(1, 2, 4)];
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed), "{index}");
        }
    }
}
