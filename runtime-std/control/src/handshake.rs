//! The handshake, in which both ends prove that they have the key, and agree on a cipher.

use super::channel::framed;
use super::deadline::{ChannelError, Deadline};
use super::hello::CipherKind;
use super::key::SharedKey;
use super::stream::Stream;
pub(super) use super::transport::TransportState;

pub(super) const fn pattern(cipher: CipherKind) -> &'static str {
    match cipher {
        CipherKind::AesGcm => "Noise_NNpsk0_25519_AESGCM_BLAKE2s",
        CipherKind::ChaChaPoly => "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s",
    }
}

/// The maximum length of a handshake message: a key and a seal. A longer message is not read from
/// an unauthenticated peer.
const HANDSHAKE_MAX: usize = 256;

/// The key, and the cipher that both ends have chosen.
type Keyed<'k> = (&'k SharedKey, CipherKind);

/// The role of an end: it begins the handshake, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeEnd {
    Connecting,
    Accepting,
}

/// Performs the handshake. `prologue` is the earlier traffic, which must be the same at both ends.
pub(super) fn handshake(
    stream: &Stream,
    key: Keyed<'_>,
    prologue: &[u8],
    end: HandshakeEnd,
    deadline: Deadline<'_>,
) -> Result<TransportState, ChannelError> {
    match end {
        HandshakeEnd::Connecting => connect(stream, key, prologue, deadline),
        HandshakeEnd::Accepting => accept(stream, key, prologue, deadline),
    }
    .and_then(|mut noise| TransportState::new(key.1, &noise.dangerously_get_raw_split(), end))
}

fn builder<'b>(
    (key, cipher): Keyed<'b>,
    prologue: &'b [u8],
) -> Result<snow::Builder<'b>, snow::Error> {
    snow::Builder::new(pattern(cipher).parse()?).psk(0, key.bytes())?.prologue(prologue)
}

/// Performs the connecting end, which sends the first message. The other end answers with an empty
/// frame if it has a different key.
fn connect(
    stream: &Stream,
    key: Keyed<'_>,
    prologue: &[u8],
    deadline: Deadline<'_>,
) -> Result<snow::HandshakeState, ChannelError> {
    let malformed = |_: snow::Error| ChannelError::Malformed;
    let mut noise =
        builder(key, prologue).map_err(malformed)?.build_initiator().map_err(malformed)?;
    send(stream, &mut noise, deadline)?;
    let answer = receive(stream, deadline)?;
    if answer.is_empty() || noise.read_message(&answer, &mut [0; HANDSHAKE_MAX]).is_err() {
        return Err(ChannelError::WrongKey);
    }
    Ok(noise)
}

fn accept(
    stream: &Stream,
    key: Keyed<'_>,
    prologue: &[u8],
    deadline: Deadline<'_>,
) -> Result<snow::HandshakeState, ChannelError> {
    let malformed = |_: snow::Error| ChannelError::Malformed;
    let mut noise =
        builder(key, prologue).map_err(malformed)?.build_responder().map_err(malformed)?;
    let first = receive(stream, deadline)?;
    if noise.read_message(&first, &mut [0; HANDSHAKE_MAX]).is_err() {
        stream.write_all(&framed(&[])?, deadline)?;
        return Err(ChannelError::WrongKey);
    }
    send(stream, &mut noise, deadline)?;
    Ok(noise)
}

fn send(
    stream: &Stream,
    noise: &mut snow::HandshakeState,
    deadline: Deadline<'_>,
) -> Result<(), ChannelError> {
    let mut message = [0; HANDSHAKE_MAX];
    let length = noise.write_message(&[], &mut message).map_err(|_| ChannelError::Malformed)?;
    stream.write_all(&framed(&message[..length])?, deadline)
}

fn receive(stream: &Stream, deadline: Deadline<'_>) -> Result<Vec<u8>, ChannelError> {
    let mut length = [0; 2];
    stream.read_all(&mut length, deadline)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > HANDSHAKE_MAX {
        return Err(ChannelError::Malformed);
    }
    let mut message = vec![0; length];
    stream.read_all(&mut message, deadline)?;
    Ok(message)
}
