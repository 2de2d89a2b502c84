//! A session of two processes: messages, each way, on one connection.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::channel::{Channel, MESSAGE_MAX};
use super::connection::Connection;
use super::deadline::{ChannelError, Deadline, NEVER};
use super::queued_session::QueuedSession;

/// How a message did not come or go.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The time was up. A message that was waited for may be waited for again.
    #[error("the other end does not go on; is it stopped? Allow more time, or look at the network")]
    TimeUp,
    /// The other end closed, or is gone; or this end failed before.
    #[error("the other end is gone; connect again")]
    Closed,
    /// This end was told to stop: its control server is being closed, or its caller was
    /// interrupted.
    #[error("this process ends the session; come again later")]
    Stopped,
    /// The other end sent what makes no sense.
    #[error(
        "the other end sent what this program does not understand; run the same one everywhere"
    )]
    Malformed,
    /// More than may be sent or received; if received, the connection is closed.
    #[error("more than {limit} bytes are to be sent or received; send less, or allow more")]
    TooLong {
        /// What may be.
        limit: u64,
    },
    /// The other end could not read on what it was sending.
    #[error("the other end could not read what it was sending; look at its log, and ask again")]
    Aborted,
    /// What was to be sent cannot be read, or what came cannot be written, here.
    #[error("cannot read or write here what is sent: {0}")]
    Local(std::io::Error),
    /// The system refused something else.
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
    /// None once the session is at its end: part of a message may have been sent or taken, and
    /// nothing that comes after it can be understood.
    channel: Option<Channel>,
    stop: Option<Arc<AtomicBool>>,
}

impl Session {
    /// `stop` ends its calls when it becomes true.
    pub(super) const fn new(channel: Channel, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { channel: Some(channel), stop }
    }

    /// Its calls end, with [`SessionError::Stopped`], once this becomes true; no other flag counts
    /// any more.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Sends a message of at most [`MESSAGE_MAX`] bytes. The other end may get it even if the time
    /// was up.
    ///
    /// # Errors
    /// [`SessionError`]. After any but [`SessionError::TooLong`] the session is at its end.
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

    /// Takes the next message.
    ///
    /// # Errors
    /// [`SessionError`]. After [`SessionError::TimeUp`] nothing is lost: the message may still
    /// come. After any other the session is at its end.
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

    /// Whether the other end is there, as far as can be seen without taking anything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.stream().is_open())
    }

    /// The connection itself, to be used as a stream; none unless it is one over TCP, and whole.
    /// Nothing that was sent so far is left to be read.
    #[must_use]
    pub fn into_connection(self) -> Option<Connection> {
        self.channel.and_then(Connection::new)
    }

    /// The same session with calls that never wait; none if it is at its end, or if a part of a
    /// message was taken.
    #[must_use]
    pub fn into_queued(self) -> Option<QueuedSession> {
        let channel = self.channel.filter(Channel::is_between_messages)?;
        let (stream, cipher) = channel.into_parts();
        Some(QueuedSession::new(stream, cipher))
    }

    /// Ends the session, both ways. The other end is told so, even if it sends and waits for room.
    pub fn shutdown(&mut self) {
        // A mere shutdown of the socket says nothing to an end that waits for room.
        self.channel = None;
    }
}
