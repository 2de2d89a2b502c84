//! One connection: messages with a length before them, encrypted where there is a key.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use snow::TransportState;

use super::key::SharedKey;

/// The longest message, so that it and its seal fit into one of Noise's.
pub const MESSAGE_MAX: usize = FRAME_MAX - SEAL;

/// The longest frame: its length has 16 bits.
pub(super) const FRAME_MAX: usize = 65_535;

/// What the cipher adds.
pub(super) const SEAL: usize = 16;

/// How long a call waits before it looks whether it should stop.
const SLICE: Duration = Duration::from_millis(50);

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";

/// How a message did not come or go.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelError {
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
    /// The time is up.
    #[error("too slow")]
    TimeUp,
    /// The other end closed.
    #[error("closed by the other end")]
    Closed,
    /// It cannot be deciphered, or is too long.
    #[error("not understood")]
    Garbled,
    /// The handshake shows that the other end has another key.
    #[error("another key")]
    WrongKey,
    /// The system says so.
    #[error("{0}")]
    Io(std::io::Error),
}

impl From<std::io::Error> for ChannelError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::UnexpectedEof
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
            | ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

/// How long a call may wait, and what ends it early.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience<'p> {
    pub(super) until: Instant,
    pub(super) stop: &'p AtomicBool,
}

impl Patience<'_> {
    /// At most so long from now.
    pub(super) fn within(self, most: Duration) -> Self {
        Self { until: self.until.min(Instant::now() + most), ..self }
    }

    /// The time of one wait.
    pub(super) fn slice(&self) -> Result<Duration, ChannelError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(ChannelError::Stopped);
        }
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(ChannelError::TimeUp) } else { Ok(left.min(SLICE)) }
    }
}

/// Whether an error says that the slice is over and nothing more.
fn is_pause(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads all of a buffer.
pub(super) fn read_all(
    mut stream: &TcpStream,
    into: &mut [u8],
    patience: Patience<'_>,
) -> Result<(), ChannelError> {
    let mut done = 0;
    while done < into.len() {
        stream.set_read_timeout(Some(patience.slice()?))?;
        match stream.read(&mut into[done..]) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(count) => done += count,
            Err(error) if is_pause(error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Writes all of a buffer.
pub(super) fn write_all(
    mut stream: &TcpStream,
    from: &[u8],
    patience: Patience<'_>,
) -> Result<(), ChannelError> {
    let mut done = 0;
    while done < from.len() {
        stream.set_write_timeout(Some(patience.slice()?))?;
        match stream.write(&from[done..]) {
            Ok(0) => return Err(ChannelError::Closed),
            Ok(count) => done += count,
            Err(error) if is_pause(error.kind()) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn read_frame(stream: &TcpStream, patience: Patience<'_>) -> Result<Vec<u8>, ChannelError> {
    let mut length = [0; 2];
    read_all(stream, &mut length, patience)?;
    let mut frame = vec![0; usize::from(u16::from_le_bytes(length))];
    read_all(stream, &mut frame, patience)?;
    Ok(frame)
}

/// A frame with its length before it.
pub(super) fn framed(bytes: &[u8]) -> Result<Vec<u8>, ChannelError> {
    let length = u16::try_from(bytes.len()).map_err(|_| ChannelError::Garbled)?;
    let mut frame = length.to_le_bytes().to_vec();
    frame.extend_from_slice(bytes);
    Ok(frame)
}

/// Which end begins the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Connecting,
    Accepting,
}

/// One connection, after the preambles.
#[derive(Debug)]
pub(super) struct Channel {
    stream: TcpStream,
    cipher: Option<TransportState>,
}

impl Channel {
    /// In clear.
    pub(super) const fn clear(stream: TcpStream) -> Self {
        Self { stream, cipher: None }
    }

    /// Both ends prove that they have the key. `prologue` is what was said before, which both must have heard
    /// alike.
    pub(super) fn keyed(
        stream: TcpStream,
        key: &SharedKey,
        prologue: &[u8],
        end: End,
        patience: Patience<'_>,
    ) -> Result<Self, ChannelError> {
        let cipher = match end {
            End::Connecting => connect(&stream, key, prologue, patience)?,
            End::Accepting => accept(&stream, key, prologue, patience)?,
        };
        Ok(Self { stream, cipher: Some(cipher) })
    }

    /// Sends a message of at most [`MESSAGE_MAX`].
    pub(super) fn send(&mut self, message: &[u8], patience: Patience<'_>) -> Result<(), ChannelError> {
        let frame = seal(self.cipher.as_mut(), message)?;
        write_all(&self.stream, &frame, patience)
    }

    /// Takes the next message.
    pub(super) fn receive(&mut self, patience: Patience<'_>) -> Result<Vec<u8>, ChannelError> {
        let frame = read_frame(&self.stream, patience)?;
        open(self.cipher.as_mut(), &frame)
    }

    /// Whether the other end is there, as far as can be seen without taking anything.
    pub(super) fn is_open(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return false;
        }
        let peeked = self.stream.peek(&mut [0]);
        let blocking = self.stream.set_nonblocking(false);
        let closed = match peeked {
            Ok(0) => true,
            Ok(_) => false,
            Err(error) => !is_pause(error.kind()),
        };
        !closed && blocking.is_ok()
    }

    pub(super) fn into_parts(self) -> (TcpStream, Option<TransportState>) {
        (self.stream, self.cipher)
    }
}

/// A message as a frame.
pub(super) fn seal(cipher: Option<&mut TransportState>, message: &[u8]) -> Result<Vec<u8>, ChannelError> {
    let Some(cipher) = cipher else { return framed(message) };
    let mut sealed = vec![0; message.len() + SEAL];
    let length = cipher.write_message(message, &mut sealed).map_err(|_| ChannelError::Garbled)?;
    framed(&sealed[..length])
}

/// A frame, without its length, as a message.
pub(super) fn open(cipher: Option<&mut TransportState>, frame: &[u8]) -> Result<Vec<u8>, ChannelError> {
    let Some(cipher) = cipher else { return Ok(frame.to_vec()) };
    let mut message = vec![0; frame.len()];
    let length = cipher.read_message(frame, &mut message).map_err(|_| ChannelError::Garbled)?;
    message.truncate(length);
    Ok(message)
}

fn builder<'b>(key: &'b SharedKey, prologue: &'b [u8]) -> Result<snow::Builder<'b>, snow::Error> {
    snow::Builder::new(PATTERN.parse()?).psk(0, key.bytes())?.prologue(prologue)
}

/// The first message is the connecting end's; an empty frame is the answer to one of another key.
fn connect(
    stream: &TcpStream,
    key: &SharedKey,
    prologue: &[u8],
    patience: Patience<'_>,
) -> Result<TransportState, ChannelError> {
    let garbled = |_: snow::Error| ChannelError::Garbled;
    let mut noise = builder(key, prologue).map_err(garbled)?.build_initiator().map_err(garbled)?;
    let mut message = vec![0; 256];
    let length = noise.write_message(&[], &mut message).map_err(garbled)?;
    write_all(stream, &framed(&message[..length])?, patience)?;
    let answer = read_frame(stream, patience)?;
    if answer.is_empty() || noise.read_message(&answer, &mut vec![0; answer.len()]).is_err() {
        return Err(ChannelError::WrongKey);
    }
    noise.into_transport_mode().map_err(garbled)
}

fn accept(
    stream: &TcpStream,
    key: &SharedKey,
    prologue: &[u8],
    patience: Patience<'_>,
) -> Result<TransportState, ChannelError> {
    let garbled = |_: snow::Error| ChannelError::Garbled;
    let mut noise = builder(key, prologue).map_err(garbled)?.build_responder().map_err(garbled)?;
    let first = read_frame(stream, patience)?;
    if noise.read_message(&first, &mut vec![0; first.len()]).is_err() {
        write_all(stream, &framed(&[])?, patience)?;
        return Err(ChannelError::WrongKey);
    }
    let mut message = vec![0; 256];
    let length = noise.write_message(&[], &mut message).map_err(garbled)?;
    write_all(stream, &framed(&message[..length])?, patience)?;
    noise.into_transport_mode().map_err(garbled)
}
