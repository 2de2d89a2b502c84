//! A connection that carries messages with a length prefix, encrypted if there is a key.
//!
//! A call never reads beyond the requested message. If its time limit passes in the middle of a
//! message, the received part is kept, and the next call continues from there.

use super::deadline::{ChannelError, Deadline};
use super::handshake::TransportState;
use super::stream::Stream;

/// The maximum length of a message, chosen so that the message and its seal fit into a Noise
/// message.
pub const MESSAGE_MAX: usize = FRAME_MAX - SEAL;

/// The maximum length of a frame, whose length field has 16 bits.
pub(super) const FRAME_MAX: usize = 65_535;

/// The number of bytes added by the cipher.
pub(super) const SEAL: usize = 16;

/// The size of the length prefix of each frame, in bytes.
const LENGTH_BYTES: usize = 2;

/// One connection, after the preambles have been exchanged.
#[derive(Debug)]
pub(super) struct Channel {
    stream: Stream,
    cipher: Option<TransportState>,
    incoming: Incoming,
}

impl Channel {
    /// Creates a channel, which is encrypted if there is a cipher.
    pub(super) const fn new(stream: Stream, cipher: Option<TransportState>) -> Self {
        Self { stream, cipher, incoming: Incoming::new() }
    }

    /// Sends a message of at most [`MESSAGE_MAX`] bytes. If this fails, later messages cannot be
    /// decoded.
    pub(super) fn send(
        &mut self,
        message: &[u8],
        deadline: Deadline<'_>,
    ) -> Result<(), ChannelError> {
        let frame = seal(self.cipher.as_mut(), message)?;
        self.stream.write_all(&frame, deadline)
    }

    /// Receives the next message. After a timeout, it may be called again.
    pub(super) fn receive(&mut self, deadline: Deadline<'_>) -> Result<Vec<u8>, ChannelError> {
        let frame = self.incoming.frame(&self.stream, deadline)?;
        open(self.cipher.as_mut(), frame)
    }

    pub(super) const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns whether no message has been partly received.
    pub(super) const fn is_between_messages(&self) -> bool {
        self.incoming.filled == 0
    }

    pub(super) fn into_parts(self) -> (Stream, Option<TransportState>) {
        (self.stream, self.cipher)
    }
}

/// A frame, as far as it has been received.
#[derive(Debug)]
struct Incoming {
    bytes: Vec<u8>,
    filled: usize,
}

impl Incoming {
    const fn new() -> Self {
        Self { bytes: Vec::new(), filled: 0 }
    }

    /// Reads until the frame is complete.
    fn frame(&mut self, stream: &Stream, deadline: Deadline<'_>) -> Result<&[u8], ChannelError> {
        self.fill(stream, LENGTH_BYTES, deadline)?;
        let whole = LENGTH_BYTES + usize::from(u16::from_le_bytes([self.bytes[0], self.bytes[1]]));
        self.fill(stream, whole, deadline)?;
        self.filled = 0;
        Ok(&self.bytes[LENGTH_BYTES..whole])
    }

    /// Reads until `count` bytes are available.
    fn fill(
        &mut self,
        stream: &Stream,
        count: usize,
        deadline: Deadline<'_>,
    ) -> Result<(), ChannelError> {
        if self.bytes.len() < count {
            self.bytes.resize(count, 0);
        }
        while self.filled < count {
            self.filled += stream.read(&mut self.bytes[self.filled..count], deadline)?;
        }
        Ok(())
    }
}

/// Returns a frame with its length prefix.
pub(super) fn framed(bytes: &[u8]) -> Result<Vec<u8>, ChannelError> {
    let length = u16::try_from(bytes.len()).map_err(|_| ChannelError::Malformed)?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Puts a message into a frame, encrypted if there is a cipher.
pub(super) fn seal(
    cipher: Option<&mut TransportState>,
    message: &[u8],
) -> Result<Vec<u8>, ChannelError> {
    let Some(cipher) = cipher else { return framed(message) };
    let mut frame = framed(&[message, &[0; SEAL]].concat())?;
    cipher.seal(&mut frame[LENGTH_BYTES..])?;
    Ok(frame)
}

/// Decrypts a frame without its length prefix into a message.
pub(super) fn open(
    cipher: Option<&mut TransportState>,
    frame: &[u8],
) -> Result<Vec<u8>, ChannelError> {
    let Some(cipher) = cipher else { return Ok(frame.to_vec()) };
    let mut message = frame.to_vec();
    let length = cipher.open(&mut message)?.len();
    message.truncate(length);
    Ok(message)
}
