//! The transport phase of the handshake's protocol (Noise, section 5): seals and opens messages in
//! place, so that a byte is copied only into the buffer that is sent, and out of the buffer that
//! was received.
//!
//! # Invariants
//! - Each direction of a connection has a key of its own, and a counter that starts at zero. Only
//!   this module sees either. A counter is never repeated: sealing raises it before anything else,
//!   and the last value, which Noise reserves, is refused.
//! - Opening raises the counter only if the seal is correct, so a message that was changed,
//!   omitted, repeated or moved cannot be opened.

use std::fmt;

use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::channel::{FRAME_MAX, SEAL};
use super::deadline::ChannelError;
use super::handshake::HandshakeEnd;
use super::hello::CipherKind;

/// The keys of a connection as the handshake splits them: of the connecting end's messages, and of
/// the accepting end's.
pub(super) type SplitKeys = ([u8; 32], [u8; 32]);

/// The ciphers of one end of a connection.
#[derive(Debug)]
pub(super) struct TransportState {
    sealing: Direction,
    opening: Direction,
}

impl TransportState {
    /// Creates the ciphers of one end, after the handshake.
    pub(super) fn new(
        kind: CipherKind,
        (connecting, accepting): &SplitKeys,
        end: HandshakeEnd,
    ) -> Result<Self, ChannelError> {
        let (sealing, opening) = match end {
            HandshakeEnd::Connecting => (connecting, accepting),
            HandshakeEnd::Accepting => (accepting, connecting),
        };
        let direction = |key| Direction::new(kind, key).ok_or(ChannelError::Malformed);
        Ok(Self { sealing: direction(sealing)?, opening: direction(opening)? })
    }

    /// Seals a message in place. Its last [`SEAL`] bytes receive the seal.
    pub(super) fn seal(&mut self, message: &mut [u8]) -> Result<(), ChannelError> {
        if message.len() > FRAME_MAX {
            return Err(ChannelError::Malformed);
        }
        let (content, seal) =
            message.split_last_chunk_mut::<SEAL>().ok_or(ChannelError::Malformed)?;
        let nonce = self.sealing.nonce()?;
        self.sealing.count += 1;
        let tag = self
            .sealing
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), content)
            .map_err(|_| ChannelError::Malformed)?;
        seal.copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Opens the next message in place, and returns its content.
    pub(super) fn open<'m>(&mut self, message: &'m mut [u8]) -> Result<&'m mut [u8], ChannelError> {
        if message.len() > FRAME_MAX {
            return Err(ChannelError::Malformed);
        }
        let nonce = self.opening.nonce()?;
        let content = self
            .opening
            .key
            .open_in_place(nonce, Aad::empty(), message)
            .map_err(|_| ChannelError::Malformed)?;
        self.opening.count += 1;
        Ok(content)
    }
}

/// One direction of a connection.
struct Direction {
    /// Boxed, because a key with its tables has hundreds of bytes, and connections are moved.
    key: Box<LessSafeKey>,
    kind: CipherKind,
    /// The number of messages so far.
    count: u64,
}

impl Direction {
    fn new(kind: CipherKind, key: &[u8; 32]) -> Option<Self> {
        let algorithm = match kind {
            CipherKind::AesGcm => &AES_256_GCM,
            CipherKind::ChaChaPoly => &CHACHA20_POLY1305,
        };
        let key = LessSafeKey::new(UnboundKey::new(algorithm, key).ok()?);
        Some(Self { key: Box::new(key), kind, count: 0 })
    }

    /// Returns the nonce of the next message: Noise fixes its byte order for each cipher.
    fn nonce(&self) -> Result<Nonce, ChannelError> {
        if self.count == u64::MAX {
            return Err(ChannelError::Malformed);
        }
        let count = match self.kind {
            CipherKind::AesGcm => self.count.to_be_bytes(),
            CipherKind::ChaChaPoly => self.count.to_le_bytes(),
        };
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - count.len()..].copy_from_slice(&count);
        Ok(Nonce::assume_unique_for_key(nonce))
    }
}

impl fmt::Debug for Direction {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Direction({:?}, {} messages)", self.kind, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::super::handshake::pattern;
    use super::*;

    const KINDS: [CipherKind; 2] = [CipherKind::AesGcm, CipherKind::ChaChaPoly];

    /// Returns two connected ends: one of this module, and one of the `snow` crate.
    fn ends(kind: CipherKind) -> (TransportState, snow::TransportState) {
        let builder = || {
            let parsed = pattern(kind).parse().expect("a pattern");
            snow::Builder::new(parsed).psk(0, &[7; 32]).expect("a key")
        };
        let mut connecting = builder().build_initiator().expect("built");
        let mut accepting = builder().build_responder().expect("built");
        let (mut message, mut nothing) = ([0; 256], [0; 256]);
        let length = connecting.write_message(&[], &mut message).expect("the first message");
        accepting.read_message(&message[..length], &mut nothing).expect("the same key");
        let length = accepting.write_message(&[], &mut message).expect("the second message");
        connecting.read_message(&message[..length], &mut nothing).expect("the same key");
        let keys = connecting.dangerously_get_raw_split();
        let ours = TransportState::new(kind, &keys, HandshakeEnd::Connecting).expect("created");
        (ours, accepting.into_transport_mode().expect("complete"))
    }

    fn sealed(ours: &mut TransportState, content: &[u8]) -> Vec<u8> {
        let mut message = [content, &[0; SEAL]].concat();
        ours.seal(&mut message).expect("short enough");
        message
    }

    /// The other implementation of the transport phase opens what this one seals, and the reverse.
    #[test]
    fn messages_are_those_of_noise() {
        for kind in KINDS {
            let (mut ours, mut theirs) = ends(kind);
            for length in [0, 1, 15, 16, 17, 1000, FRAME_MAX - SEAL] {
                let content: Vec<u8> = (0..length).map(|at| at.to_le_bytes()[0]).collect();
                let message = sealed(&mut ours, &content);
                let mut opened = vec![0; FRAME_MAX];
                let count = theirs.read_message(&message, &mut opened).expect("the next message");
                assert_eq!(opened[..count], content, "{kind:?}");

                let mut message = vec![0; length + SEAL];
                theirs.write_message(&content, &mut message).expect("short enough");
                assert_eq!(ours.open(&mut message).expect("the next message"), content);
            }
        }
    }

    #[test]
    fn altered_repeated_or_missing_messages_are_refused() {
        for kind in KINDS {
            let (mut ours, mut theirs) = ends(kind);
            let mut next = || {
                let mut message = vec![0; 8 + SEAL];
                theirs.write_message(b"a record", &mut message).expect("short enough");
                message
            };
            let (first, second, third) = (next(), next(), next());
            for at in 0..first.len() {
                let mut changed = first.clone();
                changed[at] ^= 1;
                assert!(ours.open(&mut changed).is_err(), "{kind:?}, byte {at}");
            }
            for length in 0..first.len() {
                assert!(ours.open(&mut first[..length].to_vec()).is_err(), "{length} bytes");
            }
            assert!(ours.open(&mut second.clone()).is_err(), "one is missing");
            assert_eq!(ours.open(&mut first.clone()).expect("the next message"), b"a record");
            assert!(ours.open(&mut first.clone()).is_err(), "repeated");
            assert!(ours.open(&mut third.clone()).is_err(), "moved");
            assert_eq!(ours.open(&mut second.clone()).expect("the next message"), b"a record");
            // An end does not accept its own messages, because each direction has its own key.
            let mut own = sealed(&mut ours, b"a record");
            assert!(ours.open(&mut own).is_err(), "reflected");
        }
    }

    #[test]
    fn equal_messages_are_sealed_differently() {
        for kind in KINDS {
            let (mut ours, _) = ends(kind);
            assert_ne!(sealed(&mut ours, &[0; 64]), sealed(&mut ours, &[0; 64]));
        }
    }

    #[test]
    fn lengths_and_counters_have_limits() {
        let (mut ours, _) = ends(CipherKind::AesGcm);
        assert!(ours.seal(&mut vec![0; FRAME_MAX + 1]).is_err());
        assert!(ours.seal(&mut [0; SEAL - 1]).is_err());
        assert!(ours.open(&mut vec![0; FRAME_MAX + 1]).is_err());
        ours.sealing.count = u64::MAX - 1;
        assert!(ours.seal(&mut [0; SEAL]).is_ok());
        assert!(ours.seal(&mut [0; SEAL]).is_err(), "the last number is reserved");
        ours.opening.count = u64::MAX;
        assert!(ours.open(&mut [0; SEAL]).is_err(), "as above");
    }

    #[test]
    fn debug_output_contains_no_key() {
        let (ours, _) = ends(CipherKind::AesGcm);
        let text = format!("{:?}", ours.sealing);
        assert_eq!(text, "Direction(AesGcm, 0 messages)");
    }
}
