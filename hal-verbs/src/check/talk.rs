//! The exchange of frames between the two ends, in order.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A side channel to the other end that is ordered and reliable.
pub trait Talk {
    /// Sends a frame.
    ///
    /// # Errors
    /// Fails if the other end has exited.
    fn tell(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Waits for the next frame.
    ///
    /// # Errors
    /// Fails if the other end has exited, or is silent for too long.
    fn hear(&mut self) -> io::Result<Vec<u8>>;
}

/// Time limit for any check at the other end.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum length of a frame in bytes.
const FRAME_MAX: usize = 4096;

/// Frames over TCP: a length of two bytes, followed by the bytes.
#[derive(Debug)]
pub struct TcpTalk {
    stream: TcpStream,
}

impl TcpTalk {
    /// Wraps an established connection.
    ///
    /// # Errors
    /// Fails if the socket's options cannot be set.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream })
    }
}

impl Talk for TcpTalk {
    fn tell(&mut self, frame: &[u8]) -> io::Result<()> {
        let length = u16::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend_from_slice(frame);
        self.stream.write_all(&bytes)
    }

    fn hear(&mut self) -> io::Result<Vec<u8>> {
        let mut length = [0; 2];
        self.stream.read_exact(&mut length)?;
        let length = usize::from(u16::from_le_bytes(length));
        if length > FRAME_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
        }
        let mut frame = vec![0; length];
        self.stream.read_exact(&mut frame)?;
        Ok(frame)
    }
}
