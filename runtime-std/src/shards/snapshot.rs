//! The snapshot that a replica receives from a voter of its group when it has lost its memory or is
//! far behind. It contains the core's counts, and the application's state at the same moment.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};

use tramontane_control::{Identity, Session, SessionError};
use tramontane_core::tram::ReplicaId;

use super::calls::open_join;
use super::messages::{JoinReply, JoinRequest, PATIENCE, REPLY_MAX};
use super::places::Places;
use super::request::Request;
use crate::group::ControlEndpoints;
use crate::requests::Requests;
use crate::session_messages::{receive_message, send_message};

/// The maximum size of an application's state, in bytes.
pub(super) const STATE_MAX: u64 = 1 << 40;

/// A snapshot that the driving thread has taken.
pub(super) struct TakenSnapshot {
    pub(super) cells: Vec<u64>,
    pub(super) state: Box<dyn Read + Send>,
}

impl std::fmt::Debug for TakenSnapshot {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Taken").field("cells", &self.cells.len()).finish_non_exhaustive()
    }
}

/// A snapshot that was received from another replica.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) cells: Vec<u64>,
    pub(super) state: Vec<u8>,
}

/// The sender on which a requested snapshot is delivered.
pub(super) type SnapshotOrder = SyncSender<Option<TakenSnapshot>>;

/// Creates a channel for one snapshot.
pub(super) fn order() -> (SnapshotOrder, Receiver<Option<TakenSnapshot>>) {
    sync_channel(1)
}

/// Sends this replica's state to another replica, if this one is a voter.
pub(super) fn give(
    session: &mut Session,
    requests: Option<&Requests<Request>>,
) -> Result<(), SessionError> {
    let (order, taken) = order();
    let is_asked = requests.is_some_and(|requests| requests.ask(Request::Snapshot(order)));
    let taken = if is_asked { taken.recv_timeout(PATIENCE) } else { Ok(None) };
    match taken {
        Ok(Some(TakenSnapshot { cells, state })) => {
            let count = cells.len() as u64;
            send_message(session, &JoinReply::Snapshot { cells: count }, PATIENCE)?;
            let cells: Vec<u8> = cells.into_iter().flat_map(u64::to_le_bytes).collect();
            session.send_stream(&mut cells.as_slice().chain(state), PATIENCE).map(|_| ())
        }
        Ok(None) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            send_message(session, &JoinReply::NoSnapshot, PATIENCE)
        }
    }
}

/// The replicas from which a snapshot can be taken.
pub(super) struct SnapshotSources {
    pub(super) own: ReplicaId,
    pub(super) identity: Identity,
    pub(super) endpoints: ControlEndpoints,
    pub(super) places: Places,
    pub(super) is_over: Arc<AtomicBool>,
}

impl SnapshotSources {
    /// Asks the other replicas of the group in turn. Returns `None` if none has a snapshot now.
    pub(super) fn take(&self) -> Option<Snapshot> {
        let others = self.places.replicas_of(self.own.group).filter(|other| *other != self.own);
        for other in others {
            match self.take_from(other) {
                Ok(Some(snapshot)) => return Some(snapshot),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(from = %self.places.name(other), %error, "no snapshot");
                }
            }
        }
        None
    }

    fn take_from(&self, other: ReplicaId) -> Result<Option<Snapshot>, SessionError> {
        let node = self.places.node(other);
        let opened = open_join(&self.identity, &self.endpoints, node, PATIENCE, &self.is_over);
        let Ok(opened) = opened else { return Ok(None) };
        let mut session = opened.session;
        session.stop_with(Arc::clone(&self.is_over));
        send_message(&mut session, &JoinRequest::Snapshot, PATIENCE)?;
        let JoinReply::Snapshot { cells } = receive_message(&mut session, REPLY_MAX, PATIENCE * 2)?
        else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        session.receive_stream(&mut bytes, STATE_MAX, PATIENCE)?;
        let count = usize::try_from(cells).unwrap_or(usize::MAX);
        let (cells, state) = bytes.as_chunks::<8>().0.split_at_checked(count).map_or_else(
            || Err(SessionError::Malformed),
            |(cells, _)| Ok((cells, bytes.get(count * 8..).unwrap_or_default())),
        )?;
        let cells = cells.iter().map(|cell| u64::from_le_bytes(*cell)).collect();
        Ok(Some(Snapshot { cells, state: state.to_vec() }))
    }
}
