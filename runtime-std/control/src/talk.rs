//! A conversation of two processes: messages, each way, on one connection.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::channel::{Channel, MESSAGE_MAX};
use super::connection::Connection;
use super::patience::{ChannelError, NEVER, Patience};

/// How a message did not come or go.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TalkError {
    /// The time was up. A message that was waited for may be waited for again.
    #[error("the other end does not go on; is it stopped? Allow more time, or look at the network")]
    TimeUp,
    /// The other end closed, or is gone; or this end failed before.
    #[error("the other end is gone; connect again")]
    Closed,
    /// This end was told to stop: the door that it came through is being closed, or whoever talks
    /// was interrupted.
    #[error("this process ends the talk; come again later")]
    Stopped,
    /// The other end sent what makes no sense.
    #[error(
        "the other end sent what this program does not understand; run the same one everywhere"
    )]
    Garbled,
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

impl From<ChannelError> for TalkError {
    fn from(error: ChannelError) -> Self {
        match error {
            ChannelError::Stopped => Self::Stopped,
            ChannelError::TimeUp => Self::TimeUp,
            ChannelError::Closed => Self::Closed,
            ChannelError::Garbled | ChannelError::WrongKey => Self::Garbled,
            ChannelError::Io(error) => Self::Io(error),
        }
    }
}

/// One end of a conversation. It ends when this is dropped.
#[derive(Debug)]
pub struct Talk {
    /// None once the talk is at its end: part of a message may have been sent or taken, and nothing
    /// that comes after it can be understood.
    channel: Option<Channel>,
    stop: Option<Arc<AtomicBool>>,
}

impl Talk {
    /// `stop` ends its calls when it becomes true.
    pub(super) const fn new(channel: Channel, stop: Option<Arc<AtomicBool>>) -> Self {
        Self { channel: Some(channel), stop }
    }

    /// Its calls end, with [`TalkError::Stopped`], once this becomes true; no other flag counts any
    /// more.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Sends a message of at most [`MESSAGE_MAX`] bytes. The other end may get it even if the time
    /// was up.
    ///
    /// # Errors
    /// [`TalkError`]. After any but [`TalkError::TooLong`] the talk is at its end.
    pub fn send(&mut self, message: &[u8], time_limit: Duration) -> Result<(), TalkError> {
        if message.len() > MESSAGE_MAX {
            return Err(TalkError::TooLong {
                limit: u64::try_from(MESSAGE_MAX).unwrap_or(u64::MAX),
            });
        }
        let sent = self.attempt(time_limit, |channel, patience| channel.send(message, patience));
        if sent.is_err() {
            self.shutdown();
        }
        sent
    }

    /// Takes the next message.
    ///
    /// # Errors
    /// [`TalkError`]. After [`TalkError::TimeUp`] nothing is lost: the message may still come.
    /// After any other the talk is at its end.
    pub fn receive(&mut self, time_limit: Duration) -> Result<Vec<u8>, TalkError> {
        let received = self.attempt(time_limit, Channel::receive);
        if !matches!(received, Ok(_) | Err(TalkError::TimeUp)) {
            self.shutdown();
        }
        received
    }

    fn attempt<T>(
        &mut self,
        time_limit: Duration,
        call: impl FnOnce(&mut Channel, Patience<'_>) -> Result<T, ChannelError>,
    ) -> Result<T, TalkError> {
        let channel = self.channel.as_mut().ok_or(TalkError::Closed)?;
        let stop = self.stop.as_deref().unwrap_or(&NEVER);
        Ok(call(channel, Patience::new(time_limit, stop))?)
    }

    /// Whether the other end is there, as far as can be seen without taking anything.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.channel.as_ref().is_some_and(|channel| channel.stream().is_open())
    }

    /// The connection itself, to be used as a stream; none unless it is one over TCP, and whole.
    /// Nothing of what was said so far is left to be read.
    #[must_use]
    pub fn into_connection(self) -> Option<Connection> {
        self.channel.and_then(Connection::new)
    }

    /// Ends the talk, both ways. Whoever still sends is told so, even if it waits for room.
    pub fn shutdown(&mut self) {
        // A mere shutdown of the socket says nothing to an end that waits for room.
        self.channel = None;
    }
}
