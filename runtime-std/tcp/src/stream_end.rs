//! The ways in which the stream from a peer ends.

use std::io;

/// The end of a stream.
#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The other end has closed the stream.
    Closed,
    /// The received data is invalid.
    Malformed(&'static str),
    /// The system has reported an error.
    Broken(io::Error),
}
