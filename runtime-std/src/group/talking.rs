//! Structured messages on a talk.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_control::{Talk, TalkError};

/// Says something. Each part of it may take as long as `patience`.
pub(super) fn say<T: Serialize>(
    talk: &mut Talk,
    what: &T,
    patience: Duration,
) -> Result<(), TalkError> {
    let bytes = postcard::to_stdvec(what).map_err(|_| TalkError::Garbled)?;
    talk.send_stream(&mut bytes.as_slice(), patience).map(|_| ())
}

/// Hears something, of at most `bytes_max`.
pub(super) fn hear<T: for<'d> Deserialize<'d>>(
    talk: &mut Talk,
    bytes_max: u64,
    patience: Duration,
) -> Result<T, TalkError> {
    let mut bytes = Vec::new();
    talk.receive_stream(&mut bytes, bytes_max, patience)?;
    postcard::from_bytes(&bytes).map_err(|_| TalkError::Garbled)
}
