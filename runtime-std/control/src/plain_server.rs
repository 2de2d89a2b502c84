//! Serves short connections of a protocol without a greeting or a key, such as HTTP.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;

use super::connection_limit::{ConnectionLimit, Permit, accept_connections};
use super::deadline::{ChannelError, Deadline};
use super::listener::Listener;
use super::stream::Stream;

/// A connection that is closed when its time limit has passed.
#[derive(Debug)]
pub struct PlainConnection<'s> {
    stream: Stream,
    permit: &'s Permit<'s>,
    deadline: Deadline<'s>,
}

impl PlainConnection<'_> {
    /// Reads at least one byte.
    ///
    /// # Errors
    /// Fails if the connection ends first.
    pub fn read(&self, into: &mut [u8]) -> Result<usize> {
        self.stream.read(into, self.deadline).map_err(io_error)
    }

    /// Writes all bytes.
    ///
    /// # Errors
    /// Fails if the connection ends first.
    pub fn write_all(&self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes, self.deadline).map_err(io_error)
    }

    /// Notes that the other end has sent its request, so that the connection is not closed to make
    /// room for others. Returns false if too many others have done so.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.permit.become_known(0)
    }
}

fn io_error(error: ChannelError) -> Error {
    match error {
        ChannelError::Io(error) => error,
        error => Error::new(ErrorKind::ConnectionAborted, error.to_string()),
    }
}

/// Calls `serve` for each connection, on a separate thread. At most `connections_max` connections
/// that have sent no request are open at a time, and as many that have, each for at most
/// `time_limit`. If one more connects, the host with the most silent connections loses its oldest
/// one. The server ends with the process.
///
/// # Errors
/// Fails with the system's error if no thread is available, or the socket cannot be used in this
/// way.
pub fn serve_plain(
    listener: Listener,
    connections_max: usize,
    time_limit: Duration,
    serve: impl Fn(&PlainConnection<'_>) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    listener.set_nonblocking()?;
    let take_all = move || {
        let limit = ConnectionLimit::new(connections_max, connections_max);
        let receive = |stream, address, permit: &Permit<'_>| {
            let deadline = Deadline::new(time_limit, permit.stop());
            if let Err(error) = serve(&PlainConnection { stream, permit, deadline }) {
                tracing::debug!(%address, %error, "a plain connection ended early");
            }
        };
        std::thread::scope(|scope| accept_connections(scope, &listener, &limit, &receive));
    };
    std::thread::Builder::new().name("tramontane-plain".into()).spawn(take_all).map(drop)
}
