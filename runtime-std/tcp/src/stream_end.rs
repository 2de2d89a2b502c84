//! The ways in which the stream from a peer ends.

use std::io;

/// The end of a stream.
#[derive(Debug)]
pub(super) enum End {
    /// The other end closed it.
    Closed,
    /// The received bytes make no sense.
    Malformed(&'static str),
    /// The system reports an error.
    Broken(io::Error),
}
