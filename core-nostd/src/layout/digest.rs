//! A digest of a layout. Members compare their digests before the first write, to detect that their
//! layouts differ.
//!
//! FNV-1a over 64 bits. It protects against mistakes, not against forgery.
//!
//! Requirement: LAY-2.

/// The digest so far.
#[derive(Clone, Copy)]
pub(crate) struct Digest(u64);

impl Digest {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds eight bytes, lowest byte first.
    pub(crate) const fn with(self, value: u64) -> Self {
        let mut digest = self.0;
        let mut rest: &[u8] = &value.to_le_bytes();
        // bound: eight bytes
        while let [byte, tail @ ..] = rest {
            digest = (digest ^ widen(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            rest = tail;
        }
        Self(digest)
    }

    pub(crate) const fn get(self) -> u64 {
        self.0
    }
}

#[allow(clippy::as_conversions)]
const fn widen(byte: u8) -> u64 {
    byte as u64
}
