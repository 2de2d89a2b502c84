//! What two members say to each other first.

use tramontane_core::ids::{NodeId, ViewId};

use super::error::Refusal;

/// The version of everything in this module, and of what fabrics exchange over it.
pub(super) const VERSION: u16 = 1;

/// The preamble's first bytes.
const MAGIC: &[u8; 8] = b"tramontn";

/// The preamble's size, the same for ever.
pub(super) const PREAMBLE_BYTES: usize = 16;

/// What crosses in clear before anything else: program, version, and whether there is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preamble {
    version: u16,
    keyed: bool,
}

impl Preamble {
    pub(super) const fn own(keyed: bool) -> Self {
        Self { version: VERSION, keyed }
    }

    pub(super) fn encode(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10] = u8::from(self.keyed);
        bytes
    }

    /// None if another program speaks.
    pub(super) fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Option<Self> {
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        bytes.starts_with(MAGIC).then_some(Self { version, keyed: bytes[10] != 0 })
    }

    /// Whether the two can go on.
    pub(super) fn check(self, other: Option<Self>) -> Result<(), Refusal> {
        match other {
            Some(other) if other.version == self.version => {
                if other.keyed == self.keyed {
                    Ok(())
                } else {
                    Err(Refusal::KeyMode)
                }
            }
            _ => Err(Refusal::Version),
        }
    }
}

/// Who speaks, and what it believes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) view: ViewId,
    pub(super) digest: u64,
    pub(super) node: NodeId,
    /// Another one each time a process starts.
    pub(super) incarnation: u64,
}

const HELLO_BYTES: usize = 28;

impl Hello {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HELLO_BYTES);
        bytes.extend_from_slice(&self.view.0.to_le_bytes());
        bytes.extend_from_slice(&self.digest.to_le_bytes());
        bytes.extend_from_slice(&self.node.0.to_le_bytes());
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes
    }

    /// None if it is not one.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (view, rest) = bytes.split_first_chunk()?;
        let (digest, rest) = rest.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let (incarnation, rest) = rest.split_first_chunk()?;
        rest.is_empty().then_some(Self {
            view: ViewId(u64::from_le_bytes(*view)),
            digest: u64::from_le_bytes(*digest),
            node: NodeId(u32::from_le_bytes(*node)),
            incarnation: u64::from_le_bytes(*incarnation),
        })
    }

    /// Whether both believe the same.
    pub(super) fn check(&self, other: &Self) -> Result<(), Refusal> {
        if other.digest != self.digest {
            Err(Refusal::Digest)
        } else if other.view != self.view {
            Err(Refusal::View)
        } else {
            Ok(())
        }
    }
}

/// A verdict as a byte: zero is consent.
pub(super) fn encode_verdict(verdict: Result<(), Refusal>) -> u8 {
    #[allow(clippy::as_conversions, reason = "the number that the enum declares")]
    verdict.err().map_or(0, |refusal| refusal as u8)
}

/// None if it is not one.
pub(super) fn decode_verdict(bytes: &[u8]) -> Option<Result<(), Refusal>> {
    match bytes {
        [0] => Some(Ok(())),
        [raw] => Refusal::from_raw(*raw).map(Err),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_survive_the_wire_and_nothing_else_does() {
        let hello = Hello { view: ViewId(1), digest: u64::MAX, node: NodeId(7), incarnation: 99 };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Some(hello));
        for length in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..length]), None);
        }
        assert_eq!(Hello::decode(&[0; HELLO_BYTES + 1]), None);
    }

    #[test]
    fn preambles_tell_program_version_and_key_apart() {
        let own = Preamble::own(true);
        assert_eq!(own.check(Preamble::decode(&own.encode())), Ok(()));
        assert_eq!(own.check(Some(Preamble::own(false))), Err(Refusal::KeyMode));
        assert_eq!(own.check(Some(Preamble { version: VERSION + 1, keyed: true })), Err(Refusal::Version));
        assert_eq!(own.check(Preamble::decode(b"GET / HTTP/1.1\r\n")), Err(Refusal::Version));
    }

    #[test]
    fn verdicts_survive_the_wire() {
        for verdict in [Ok(()), Err(Refusal::Digest), Err(Refusal::Key)] {
            assert_eq!(decode_verdict(&[encode_verdict(verdict)]), Some(verdict));
        }
        assert_eq!(decode_verdict(&[200]), None);
        assert_eq!(decode_verdict(&[]), None);
    }
}
