//! The use of a connection after the members have met: a stream of bytes, with the cipher from the
//! handshake.
//!
//! If there is a key, the stream is divided into *records*: a length of 16 bits, followed by that
//! number of sealed bytes. Each record is one transport message of the handshake's protocol (Noise,
//! section 5), so any record that has been changed, omitted, repeated or moved is detected.

use std::net::TcpStream;

use super::channel::{Channel, FRAME_MAX, SEAL};
use super::handshake::TransportState;
use super::stream::Stream;

/// The size of a record's header in bytes. The header is the number of sealed bytes: 16 bits, in
/// little-endian byte order.
pub const RECORD_HEADER: usize = 2;

/// The maximum size of a record in bytes, including its header.
pub const RECORD_MAX: usize = RECORD_HEADER + FRAME_MAX;

/// The size of everything in a record except its content, in bytes: the header and the seal.
pub const RECORD_OVERHEAD: usize = RECORD_HEADER + SEAL;

/// The maximum content of a record, in bytes.
pub const RECORD_CONTENT_MAX: usize = FRAME_MAX - SEAL;

/// A connection to another member, taken from the mesh.
#[derive(Debug)]
pub struct Connection {
    /// The socket, which is blocking and sends without delay.
    pub stream: TcpStream,
    /// The cipher for everything sent from here on, if the members have a key.
    pub cipher: Option<Cipher>,
}

impl Connection {
    /// Returns `None` if the connection is not over TCP, or a message has been partly read from it.
    pub(super) fn new(channel: Channel) -> Option<Self> {
        let is_whole = channel.is_between_messages();
        match channel.into_parts() {
            (Stream::Tcp(stream), cipher) if is_whole => {
                Some(Self { stream, cipher: cipher.map(|state| Cipher { state }) })
            }
            _ => None,
        }
    }
}

/// Seals the bytes that this end sends, and opens those that it receives.
#[derive(Debug)]
pub struct Cipher {
    state: TransportState,
}

/// The error for bytes that cannot be sealed or opened: they are too many, or were not sealed by
/// the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is too long, or was not encrypted by the other end; connect again")]
pub struct CipherError;

impl Cipher {
    /// Seals a record in place. It is [`RECORD_OVERHEAD`] bytes longer than its content, which
    /// begins after [`RECORD_HEADER`] bytes. The header and the seal are written by this call.
    ///
    /// # Errors
    /// Fails if the content is longer than [`RECORD_CONTENT_MAX`], or there is no room for the
    /// header and the seal.
    pub fn seal(&mut self, record: &mut [u8]) -> Result<(), CipherError> {
        let (header, sealed) =
            record.split_first_chunk_mut::<RECORD_HEADER>().ok_or(CipherError)?;
        *header = u16::try_from(sealed.len()).map_err(|_| CipherError)?.to_le_bytes();
        self.state.seal(sealed).map_err(|_| CipherError)
    }

    /// Opens a record without its header in place, and returns its content, with which the record
    /// begins.
    ///
    /// # Errors
    /// Fails if this is not the next record from the other end. The bytes are then of no use.
    pub fn open<'r>(&mut self, sealed: &'r mut [u8]) -> Result<&'r mut [u8], CipherError> {
        self.state.open(sealed).map_err(|_| CipherError)
    }
}
