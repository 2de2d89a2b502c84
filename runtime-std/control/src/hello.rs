//! The first messages exchanged by the two ends of a connection.

use tramontane_core::ids::{NodeId, ViewId};

use super::refusal::Refusal;

/// The version of everything that the two ends of a connection exchange: the greeting, and the
/// later traffic of fabrics. Programs of different versions refuse each other, so the version must
/// increase whenever any byte changes.
pub const VERSION: u16 = 12;

/// The first bytes of the preamble.
const MAGIC: &[u8; 8] = b"tramontn";

/// The size of the preamble in bytes, which never changes.
pub(super) const PREAMBLE_BYTES: usize = 16;

/// The unencrypted data sent before anything else: the program, its version, whether there is a
/// key, and whether the processor has instructions for AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Preamble {
    version: u16,
    keyed: bool,
    has_aes: bool,
}

impl Preamble {
    pub(super) fn own(keyed: bool) -> Self {
        Self { version: VERSION, keyed, has_aes: has_aes() }
    }

    /// Returns the preamble of a keyed process, on a processor with or without AES.
    #[cfg(test)]
    pub(super) const fn with_aes(has_aes: bool) -> Self {
        Self { version: VERSION, keyed: true, has_aes }
    }

    /// Returns the fastest cipher that both ends support. The handshake covers both preambles, so
    /// nobody on the path can change the choice.
    pub(super) fn cipher(self, other: Self) -> CipherKind {
        if self.has_aes && other.has_aes { CipherKind::AesGcm } else { CipherKind::ChaChaPoly }
    }

    pub(super) fn encode(self) -> [u8; PREAMBLE_BYTES] {
        let mut bytes = [0; PREAMBLE_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_le_bytes());
        bytes[10] = u8::from(self.keyed);
        bytes[11] = u8::from(self.has_aes);
        bytes
    }

    /// Decodes a preamble. Returns `None` if it is from another program.
    pub(super) fn decode(bytes: &[u8; PREAMBLE_BYTES]) -> Option<Self> {
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        let (keyed, has_aes) = (bytes[10] != 0, bytes[11] != 0);
        bytes.starts_with(MAGIC).then_some(Self { version, keyed, has_aes })
    }

    /// Checks whether the two ends can continue.
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

/// A cipher for connections with a key. Each cipher takes a key of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CipherKind {
    /// AES-256-GCM, which is two to three times as fast as ChaCha20 on a processor with
    /// instructions for it.
    AesGcm,
    /// ChaCha20-Poly1305, which is fast on every processor, and uses no tables that leak through
    /// the cache.
    ChaChaPoly,
}

/// Returns whether this processor encrypts with AES fast and in constant time.
fn has_aes() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The purpose of a client's connection. The numbers are part of the protocol, so they never
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Start the group together with all other members. Used only by
    /// [`Mesh::join`](super::Mesh::join).
    Meet = 0,
    /// Connect a member to another member.
    Peer = 1,
    /// Join the running group as a new member.
    Join = 2,
    /// Serve an operator, who is not a member and may have any node id.
    Ask = 3,
    /// Serve an external client that publishes, subscribes or asks. Such a client is not a member,
    /// and has no group file and therefore no digest. Its rights follow from the key, if there is
    /// one.
    Client = 4,
    /// Ask another node during a restart.
    Restart = 5,
}

impl Purpose {
    const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            0 => Self::Meet,
            1 => Self::Peer,
            2 => Self::Join,
            3 => Self::Ask,
            4 => Self::Client,
            5 => Self::Restart,
            _ => return None,
        })
    }
}

/// The connecting process, its purpose, and its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) purpose: Purpose,
    /// Used by members that meet. All others leave it at zero, because views change during a
    /// session.
    pub(super) view: ViewId,
    pub(super) digest: u64,
    pub(super) node: NodeId,
    /// A number that is different for each start of a process.
    pub(super) incarnation: u64,
}

const HELLO_BYTES: usize = 29;

impl Hello {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HELLO_BYTES);
        #[allow(clippy::as_conversions, reason = "the number that the enum declares")]
        bytes.push(self.purpose as u8);
        bytes.extend_from_slice(&self.view.0.to_le_bytes());
        bytes.extend_from_slice(&self.digest.to_le_bytes());
        bytes.extend_from_slice(&self.node.0.to_le_bytes());
        bytes.extend_from_slice(&self.incarnation.to_le_bytes());
        bytes
    }

    /// Decodes a hello. Returns `None` if the bytes are not a hello.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (purpose, rest) = bytes.split_first()?;
        let (view, rest) = rest.split_first_chunk()?;
        let (digest, rest) = rest.split_first_chunk()?;
        let (node, rest) = rest.split_first_chunk()?;
        let (incarnation, rest) = rest.split_first_chunk()?;
        let purpose = Purpose::from_raw(*purpose)?;
        rest.is_empty().then_some(Self {
            purpose,
            view: ViewId(u64::from_le_bytes(*view)),
            digest: u64::from_le_bytes(*digest),
            node: NodeId(u32::from_le_bytes(*node)),
            incarnation: u64::from_le_bytes(*incarnation),
        })
    }

    /// Checks whether both ends agree, as far as the other end's purpose requires.
    pub(super) fn check(&self, other: &Self) -> Result<(), Refusal> {
        if self.purpose != Purpose::Client && other.digest != self.digest {
            Err(Refusal::Digest)
        } else if other.purpose == Purpose::Meet && other.view != self.view {
            Err(Refusal::View)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_hellos_decode() {
        let (view, digest) = (ViewId(1), u64::MAX);
        let hello = Hello { purpose: Purpose::Ask, view, digest, node: NodeId(7), incarnation: 99 };
        let all = [
            Purpose::Meet,
            Purpose::Peer,
            Purpose::Join,
            Purpose::Ask,
            Purpose::Client,
            Purpose::Restart,
        ];
        for purpose in all {
            let hello = Hello { purpose, ..hello };
            assert_eq!(Hello::decode(&hello.encode()), Some(hello));
        }
        let mut bytes = hello.encode();
        for length in 0..bytes.len() {
            assert_eq!(Hello::decode(&bytes[..length]), None);
        }
        bytes[0] = 6;
        assert_eq!(Hello::decode(&bytes), None);
        assert_eq!(Hello::decode(&[0; HELLO_BYTES + 1]), None);
    }

    /// If these bytes change, the version must increase, and the expected bytes must be updated.
    #[test]
    fn greeting_encoding_matches_its_version() {
        let hello = Hello {
            purpose: Purpose::Join,
            view: ViewId(0x0102_0304_0506_0708),
            digest: 0x1112_1314_1516_1718,
            node: NodeId(0x2122_2324),
            incarnation: 0x3132_3334_3536_3738,
        };
        assert_eq!(VERSION, 12);
        let preamble = Preamble { version: VERSION, keyed: true, has_aes: true };
        assert_eq!(preamble.encode(), *b"tramontn\x0c\x00\x01\x01\x00\x00\x00\x00");
        assert_eq!(
            hello.encode(),
            b"\x02\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11\
              \x24\x23\x22\x21\x38\x37\x36\x35\x34\x33\x32\x31"
        );
    }

    #[test]
    fn preambles_distinguish_program_version_and_key() {
        let own = Preamble::own(true);
        assert_eq!(own.check(Preamble::decode(&own.encode())), Ok(()));
        assert_eq!(own.check(Some(Preamble::own(false))), Err(Refusal::KeyMode));
        assert_eq!(
            own.check(Some(Preamble { version: VERSION + 1, ..own })),
            Err(Refusal::Version)
        );
        assert_eq!(own.check(Preamble::decode(b"GET / HTTP/1.1\r\n")), Err(Refusal::Version));
    }

    #[test]
    fn aes_requires_processor_support_at_both_ends() {
        let [with, without] =
            [true, false].map(|has_aes| Preamble { version: VERSION, keyed: true, has_aes });
        assert_eq!(with.cipher(with), CipherKind::AesGcm);
        for (one, other) in [(with, without), (without, with), (without, without)] {
            assert_eq!(one.cipher(other), CipherKind::ChaChaPoly);
        }
    }
}
