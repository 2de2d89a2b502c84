//! What a connection is good for once the members have met: a stream of bytes, with the cipher of
//! its handshake.
//!
//! Where there is a key, the stream is cut into *records*: a length of 16 bits, and as many sealed
//! bytes. Each is one message of the handshake's own transport (Noise, 5), so a record that was
//! changed, left out, repeated or moved is noticed, whoever did it.

use std::net::TcpStream;

use super::channel::{Channel, FRAME_MAX, SEAL};
use super::handshake::TransportState;
use super::stream::Stream;

/// What precedes a record's sealed bytes: how many they are, 16 bits, least byte first.
pub const RECORD_HEADER: usize = 2;

/// The most bytes of one record, its header included.
pub const RECORD_MAX: usize = RECORD_HEADER + FRAME_MAX;

/// The most bytes that one record carries.
pub const RECORD_CONTENT_MAX: usize = FRAME_MAX - SEAL;

/// A connection to another member, taken over from the mesh.
#[derive(Debug)]
pub struct Connection {
    /// The socket: it blocks, and sends without waiting for more.
    pub stream: TcpStream,
    /// What everything on it is sealed with from now on, if the members have a key.
    pub cipher: Option<Cipher>,
}

impl Connection {
    /// None if it is not one over TCP, or a part of a message was read from it.
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

/// Seals what one end says, and opens what it hears.
#[derive(Debug)]
pub struct Cipher {
    state: TransportState,
}

/// Bytes that cannot be sealed or opened: too many, or not what the other end sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not what the other end sealed, or too many")]
pub struct CipherError;

impl Cipher {
    /// Puts `content` into a record at the start of `record`, and gives the record's length.
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

    /// Opens a record without its header into the start of `content`, and gives the content's
    /// length.
    ///
    /// # Errors
    /// If it is not the next record of the other end, or `content` is too short. Nothing that comes
    /// later can be opened then.
    pub fn open(&mut self, sealed: &[u8], content: &mut [u8]) -> Result<usize, CipherError> {
        self.state.read_message(sealed, content).map_err(|_| CipherError)
    }
}
