//! Substitutes for the handshake in a build without keys. No connection has a cipher:
//! [`SharedKey::from_file`] refuses keys, and a handshake with a key made in another way fails.

use super::deadline::{ChannelError, Deadline};
use super::hello::CipherKind;
use super::key::SharedKey;
use super::stream::Stream;

/// The end that begins, or the end that answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeEnd {
    Connecting,
    Accepting,
}

/// A cipher, which no connection has in this build.
#[derive(Debug)]
pub(super) enum TransportState {}

impl TransportState {
    pub(super) fn write_message(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, ChannelError> {
        match *self {}
    }

    pub(super) fn read_message(&mut self, _: &[u8], _: &mut [u8]) -> Result<usize, ChannelError> {
        match *self {}
    }
}

pub(super) fn handshake(
    _: &Stream,
    _: (&SharedKey, CipherKind),
    _: &[u8],
    _: HandshakeEnd,
    _: Deadline<'_>,
) -> Result<TransportState, ChannelError> {
    Err(ChannelError::Malformed)
}
