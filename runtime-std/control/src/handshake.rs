//! Both ends prove that they have the key, and agree on a cipher.

use snow::TransportState;

use super::channel::framed;
use super::key::SharedKey;
use super::patience::{ChannelError, Patience};
use super::stream::Stream;

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// The longest message of the handshake: a key and a seal. Nothing longer is taken from a stranger.
const HANDSHAKE_MAX: usize = 256;

/// Which end begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Connecting,
    Accepting,
}

/// Shakes hands. `prologue` is what was said before, which both must have heard alike.
pub(super) fn shake(
    stream: &Stream,
    key: &SharedKey,
    prologue: &[u8],
    end: End,
    patience: Patience<'_>,
) -> Result<TransportState, ChannelError> {
    match end {
        End::Connecting => connect(stream, key, prologue, patience),
        End::Accepting => accept(stream, key, prologue, patience),
    }
}

fn builder<'b>(key: &'b SharedKey, prologue: &'b [u8]) -> Result<snow::Builder<'b>, snow::Error> {
    snow::Builder::new(PATTERN.parse()?).psk(0, key.bytes())?.prologue(prologue)
}

/// The first message is the connecting end's; an empty frame is the answer to one of another key.
fn connect(
    stream: &Stream,
    key: &SharedKey,
    prologue: &[u8],
    patience: Patience<'_>,
) -> Result<TransportState, ChannelError> {
    let garbled = |_: snow::Error| ChannelError::Garbled;
    let mut noise = builder(key, prologue).map_err(garbled)?.build_initiator().map_err(garbled)?;
    send(stream, &mut noise, patience)?;
    let answer = receive(stream, patience)?;
    if answer.is_empty() || noise.read_message(&answer, &mut [0; HANDSHAKE_MAX]).is_err() {
        return Err(ChannelError::WrongKey);
    }
    noise.into_transport_mode().map_err(garbled)
}

fn accept(
    stream: &Stream,
    key: &SharedKey,
    prologue: &[u8],
    patience: Patience<'_>,
) -> Result<TransportState, ChannelError> {
    let garbled = |_: snow::Error| ChannelError::Garbled;
    let mut noise = builder(key, prologue).map_err(garbled)?.build_responder().map_err(garbled)?;
    let first = receive(stream, patience)?;
    if noise.read_message(&first, &mut [0; HANDSHAKE_MAX]).is_err() {
        stream.write_all(&framed(&[])?, patience)?;
        return Err(ChannelError::WrongKey);
    }
    send(stream, &mut noise, patience)?;
    noise.into_transport_mode().map_err(garbled)
}

fn send(
    stream: &Stream,
    noise: &mut snow::HandshakeState,
    patience: Patience<'_>,
) -> Result<(), ChannelError> {
    let mut message = [0; HANDSHAKE_MAX];
    let length = noise.write_message(&[], &mut message).map_err(|_| ChannelError::Garbled)?;
    stream.write_all(&framed(&message[..length])?, patience)
}

fn receive(stream: &Stream, patience: Patience<'_>) -> Result<Vec<u8>, ChannelError> {
    let mut length = [0; 2];
    stream.read_all(&mut length, patience)?;
    let length = usize::from(u16::from_le_bytes(length));
    if length > HANDSHAKE_MAX {
        return Err(ChannelError::Garbled);
    }
    let mut message = vec![0; length];
    stream.read_all(&mut message, patience)?;
    Ok(message)
}
