//! The use of a connection once the members have met: a stream of bytes, with the cipher of its
//! handshake.
//!
//! With a key, the stream is cut into *records*: a length of 16 bits, followed by as many sealed
//! bytes. Each record is one message of the handshake's transport (Noise, section 5), so any record
//! that was changed, omitted, repeated or moved is detected.

use std::net::TcpStream;

use super::channel::{Channel, FRAME_MAX, SEAL};
use super::handshake::TransportState;
use super::stream::Stream;

/// Bytes of a record's header: the number of sealed bytes, 16 bits, in little-endian byte order.
pub const RECORD_HEADER: usize = 2;

/// Maximum bytes of one record, including its header.
pub const RECORD_MAX: usize = RECORD_HEADER + FRAME_MAX;

/// Maximum content of one record, in bytes.
pub const RECORD_CONTENT_MAX: usize = FRAME_MAX - SEAL;

/// A connection to another member, taken over from the mesh.
#[derive(Debug)]
pub struct Connection {
    /// The socket: it is blocking, and sends without delay.
    pub stream: TcpStream,
    /// The cipher for everything sent from now on, if the members have a key.
    pub cipher: Option<Cipher>,
}

impl Connection {
    /// Returns `None` if the connection is not over TCP, or part of a message was read from it.
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

/// Bytes that cannot be sealed or opened: too many, or not sealed by the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message is too long, or was not encrypted by the other end; connect again")]
pub struct CipherError;

impl Cipher {
    /// Seals `content` into a record at the start of `record`, and returns the record's length.
    ///
    /// # Errors
    /// If `content` is longer than [`RECORD_CONTENT_MAX`], or `record` too short for it.
    pub fn seal(&mut self, content: &[u8], record: &mut [u8]) -> Result<usize, CipherError> {
        let (header, sealed) =
            record.split_first_chunk_mut::<RECORD_HEADER>().ok_or(CipherError)?;
        let length = self.state.write_message(content, sealed).map_err(|_| CipherError)?;
        *header = u16::try_from(length).map_err(|_| CipherError)?.to_le_bytes();
        Ok(RECORD_HEADER + length)
    }

    /// Opens a record without its header into the start of `content`, and returns the content's
    /// length.
    ///
    /// # Errors
    /// If it is not the next record of the other end, or `content` is too short. Later records
    /// cannot be opened after that.
    pub fn open(&mut self, sealed: &[u8], content: &mut [u8]) -> Result<usize, CipherError> {
        self.state.read_message(sealed, content).map_err(|_| CipherError)
    }
}
