//! Requests from other threads to the thread that drives a replica.

use super::calls::Meeting;
use super::snapshot::{Snapshot, SnapshotOrder};

/// One request.
#[derive(Debug)]
pub(super) enum Request {
    /// The result of a meeting.
    Meeting(Meeting),
    /// Another replica asks for this one's state.
    Snapshot(SnapshotOrder),
    /// Another replica's state. If `None`, the state is requested again.
    Restore(Option<Snapshot>),
}

impl From<Meeting> for Request {
    fn from(meeting: Meeting) -> Self {
        Self::Meeting(meeting)
    }
}
