//! Streams that are longer than a message, such as a snapshot. A stream is divided into messages,
//! so that each end holds only one at a time. The first byte of a message says whether the message
//! is the last, and whether the stream's sender gave up.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use super::channel::MESSAGE_MAX;
use super::session::{Session, SessionError};

/// More messages follow.
pub(super) const MORE: u8 = 0;

/// The last message of a complete stream.
pub(super) const END: u8 = 1;

/// The last message of an incomplete stream, whose sender could not read the rest.
const ABORTED: u8 = 2;

impl Session {
    /// Sends all data from `from`, and returns the number of bytes. Each message must be accepted
    /// within `step_limit`.
    ///
    /// # Errors
    /// Returns [`SessionError`]. After [`SessionError::Local`], which is reported to the other end,
    /// the session may continue. After any other error, it has ended.
    pub fn send_stream(
        &mut self,
        from: &mut impl Read,
        step_limit: Duration,
    ) -> Result<u64, SessionError> {
        let mut message = vec![MORE; MESSAGE_MAX];
        let mut total = 0;
        loop {
            let length = match fill(from, &mut message[1..]) {
                Ok(length) => length,
                Err(error) => {
                    self.send(&[ABORTED], step_limit)?;
                    return Err(SessionError::Local(error));
                }
            };
            let is_last = length + 1 < message.len();
            message[0] = if is_last { END } else { MORE };
            self.send(&message[..=length], step_limit)?;
            total += u64::try_from(length).unwrap_or(u64::MAX);
            if is_last {
                return Ok(total);
            }
        }
    }

    /// Receives such a stream, and returns the number of bytes. Each message must arrive within
    /// `step_limit`, and the stream must not exceed `bytes_max` bytes.
    ///
    /// # Errors
    /// Returns [`SessionError`]; `into` may then contain part of the stream. After
    /// [`SessionError::Aborted`], the session may continue. After any other error, it has ended,
    /// because nothing reads the data that is still being sent.
    pub fn receive_stream(
        &mut self,
        into: &mut impl Write,
        bytes_max: u64,
        step_limit: Duration,
    ) -> Result<u64, SessionError> {
        let received = self.receive_parts(into, bytes_max, step_limit);
        if !matches!(received, Ok(_) | Err(SessionError::Aborted)) {
            self.shutdown();
        }
        received
    }

    fn receive_parts(
        &mut self,
        into: &mut impl Write,
        bytes_max: u64,
        step_limit: Duration,
    ) -> Result<u64, SessionError> {
        let mut total = 0_u64;
        loop {
            let message = self.receive(step_limit)?;
            let Some((mark, part)) = message.split_first() else {
                return Err(SessionError::Malformed);
            };
            total = total.saturating_add(u64::try_from(part.len()).unwrap_or(u64::MAX));
            if total > bytes_max {
                return Err(SessionError::TooLong { limit: bytes_max });
            }
            match *mark {
                // All messages except the last are full. Shorter ones come from a different
                // program.
                MORE if message.len() == MESSAGE_MAX => {}
                END => {}
                ABORTED => return Err(SessionError::Aborted),
                _ => return Err(SessionError::Malformed),
            }
            into.write_all(part).map_err(SessionError::Local)?;
            if *mark == END {
                into.flush().map_err(SessionError::Local)?;
                return Ok(total);
            }
        }
    }
}

/// Reads until the buffer is full or nothing is left.
fn fill(from: &mut impl Read, into: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match from.read(&mut into[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
