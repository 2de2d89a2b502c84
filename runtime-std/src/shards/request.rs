//! What other threads ask of the one that drives a replica.

use super::calls::Meeting;
use super::snapshot::{Snapshot, SnapshotOrder};

/// One request.
#[derive(Debug)]
pub(super) enum Request {
    /// What came of a meeting.
    Meeting(Meeting),
    /// Another replica wants to know what this one knows.
    Snapshot(SnapshotOrder),
    /// What another replica knew, or nothing: then it is asked for again.
    Restore(Option<Snapshot>),
}

impl From<Meeting> for Request {
    fn from(meeting: Meeting) -> Self {
        Self::Meeting(meeting)
    }
}
