//! Structured messages in a session, and questions to several processes at once.

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

/// Asks all nodes at the same time, each in a thread of its own, and returns their answers in the
/// order of the nodes. `lost` is the answer of a thread that panicked.
pub(crate) fn ask_each<N: Copy + Send, A: Send>(
    nodes: impl IntoIterator<Item = N>,
    ask: impl Fn(N) -> A + Sync,
    lost: impl Fn() -> A,
) -> Vec<(N, A)> {
    let ask = &ask;
    std::thread::scope(|scope| {
        let spawn = |node| (node, scope.spawn(move || ask(node)));
        let asked: Vec<_> = nodes.into_iter().map(spawn).collect();
        let answers = asked.into_iter();
        answers.map(|(node, asked)| (node, asked.join().unwrap_or_else(|_| lost()))).collect()
    })
}
