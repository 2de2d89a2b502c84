//! How the stream from a peer ends.

use std::io;

/// How a stream ended.
#[derive(Debug)]
pub(super) enum End {
    /// The other end closed it.
    Closed,
    /// What came makes no sense.
    Malformed(&'static str),
    /// The system reports an error.
    Broken(io::Error),
}
