//! Replaces the handshake in a build without keys. No connection has a cipher:
//! [`SharedKey::from_file`] refuses keys, and a handshake fails with a key created in any other
//! way.

use super::deadline::{ChannelError, Deadline};
use super::hello::CipherKind;
use super::key::SharedKey;
use super::stream::Stream;

/// The role of an end: it begins the handshake, or answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeEnd {
    Connecting,
    Accepting,
}

/// A cipher, which no connection has in this build.
#[derive(Debug)]
pub(super) enum TransportState {}

impl TransportState {
    pub(super) fn seal(&mut self, _: &mut [u8]) -> Result<(), ChannelError> {
        match *self {}
    }

    pub(super) fn open<'m>(&mut self, _: &'m mut [u8]) -> Result<&'m mut [u8], ChannelError> {
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
