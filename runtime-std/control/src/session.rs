//! A session between two processes: messages in both directions on one connection.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::channel::{Channel, MESSAGE_MAX};
use super::connection::Connection;
use super::deadline::{ChannelError, Deadline, NEVER};
use super::queued_session::QueuedSession;

/// The reason why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The time limit has passed. If the call was receiving a message, it may be repeated.
    #[error(
        "the other end does not respond; allow more time, or check the process and the network"
    )]
    TimeUp,
    /// The other end has closed the session or been lost, or this end failed earlier.
    #[error("the other end closed the connection; connect again")]
    Closed,
    /// This end is stopping, because its control server is being closed or its caller was
    /// interrupted.
    #[error("this process is ending the session; connect again later")]
    Stopped,
    /// The other end sent invalid data.
    #[error(
        "the other end sent data that this program does not understand; run the same version \
         everywhere"
    )]
    Malformed,
    /// The message exceeds the allowed length. If it was being received, the connection is closed.
    #[error("the message is longer than {limit} bytes; send less, or raise the limit")]
    TooLong {
        /// The maximum number of bytes.
        limit: u64,
    },
    /// The other end could not read the rest of the data for the stream that it was sending.
    #[error(
        "the other end could not read the data that it was sending; check its log, and ask again"
    )]
    Aborted,
    /// This end cannot read the data to send, or cannot write the received data.
    #[error("cannot read the data to be sent, or cannot write the received data: {0}")]
    Local(std::io::Error),
    /// Another error reported by the system.
    #[error("the connection failed: {0}; connect again")]
    Io(std::io::Error),
}

impl From<ChannelError> for SessionError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Stopped => Self::Stopped,
            ChannelError::TimeUp => Self::TimeUp,
            ChannelError::Closed => Self::Closed,
            ChannelError::Malformed | ChannelError::WrongKey => Self::Malformed,
            ChannelError::Io(error) => Self::Io(error),
        }
    }
}

/// One end of a session. The session ends when this is dropped.
#[derive(Debug)]
pub struct Session {
    /// `None` once the session has ended. A message may have been partly sent or received, so
    /// nothing after it could be decoded.
    channel: Option<Channel>,
    stop: Option<Arc<AtomicBool>>,
}

impl Session {
    /// Creates a session. `stop` ends its calls when it becomes true.
    pub(super) const fn new(channel: Channel, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { channel: Some(channel), stop }
    }

    /// Replaces the stop flag. Once the new flag becomes true, calls end with
    /// [`SessionError::Stopped`]. The previous flag is ignored.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Sends a message of at most [`MESSAGE_MAX`] bytes. The other end may receive the message even
    /// if this call times out.
    ///
    /// # Errors
    /// Returns [`SessionError`]. After any error except [`SessionError::TooLong`], the session has
    /// ended.
    pub fn send(&mut self, message: &[u8], time_limit: Duration) -> Result<(), SessionError> {
        if message.len() > MESSAGE_MAX {
            return Err(SessionError::TooLong {
                limit: u64::try_from(MESSAGE_MAX).unwrap_or(u64::MAX),
            });
        }
        let sent = self.attempt(time_limit, |channel, deadline| channel.send(message, deadline));
        if sent.is_err() {
            self.shutdown();
        }
        sent
    }

    /// Receives the next message.
    ///
    /// # Errors
    /// Returns [`SessionError`]. After [`SessionError::TimeUp`], nothing is lost, and the message
    /// may still arrive. After any other error, the session has ended.
    pub fn receive(&mut self, time_limit: Duration) -> Result<Vec<u8>, SessionError> {
        let received = self.attempt(time_limit, Channel::receive);
        if !matches!(received, Ok(_) | Err(SessionError::TimeUp)) {
            self.shutdown();
        }
        received
    }

    fn attempt<T>(
        &mut self,
        time_limit: Duration,
        call: impl FnOnce(&mut Channel, Deadline<'_>) -> Result<T, ChannelError>,
    ) -> Result<T, SessionError> {
        let channel = self.channel.as_mut().ok_or(SessionError::Closed)?;
        let stop = self.stop.as_deref().unwrap_or(&NEVER);
        Ok(call(channel, Deadline::new(time_limit, stop))?)
    }

    /// Returns whether the other end seems to be connected, without consuming any data.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.stream().is_open())
    }

    /// Returns the connection, for use as a stream. Returns `None` if the session is not over TCP,
    /// or a message has been partly received. All earlier traffic has been read.
    #[must_use]
    pub fn into_connection(self) -> Option<Connection> {
        self.channel.and_then(Connection::new)
    }

    /// Returns the socket, which is closed at the other end when that end's process ends. Returns
    /// `None` if the session has ended.
    #[must_use]
    pub fn into_socket(self) -> Option<OwnedFd> {
        self.channel.map(|channel| channel.into_parts().0.into())
    }

    /// Converts this to a session whose calls never block. Returns `None` if the session has ended,
    /// or a message has been partly received.
    #[must_use]
    pub fn into_queued(self) -> Option<QueuedSession> {
        let channel = self.channel.filter(Channel::is_between_messages)?;
        let (stream, cipher) = channel.into_parts();
        Some(QueuedSession::new(stream, cipher))
    }

    /// Ends the session in both directions. The other end notices this even if it is sending and
    /// waiting for room.
    pub fn shutdown(&mut self) {
        // Shutting down only the socket would not wake an end that waits for room.
        self.channel = None;
    }
}
