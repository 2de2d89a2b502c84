//! Structured messages in a session.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_control::{Session, SessionError};

/// Sends a message. Each part of the message may take up to `patience`.
pub(crate) fn send_message<T: Serialize>(
    session: &mut Session,
    what: &T,
    patience: Duration,
) -> Result<(), SessionError> {
    let bytes = postcard::to_stdvec(what).map_err(|_| SessionError::Malformed)?;
    session.send_stream(&mut bytes.as_slice(), patience).map(|_| ())
}

/// Receives the next message, of at most `bytes_max` bytes.
pub(crate) fn receive_message<T: for<'d> Deserialize<'d>>(
    session: &mut Session,
    bytes_max: u64,
    patience: Duration,
) -> Result<T, SessionError> {
    let mut bytes = Vec::new();
    session.receive_stream(&mut bytes, bytes_max, patience)?;
    postcard::from_bytes(&bytes).map_err(|_| SessionError::Malformed)
}
