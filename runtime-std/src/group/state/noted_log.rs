//! A node's record of how far its logs had reached.

use serde::{Deserialize, Serialize};
use tramontane_log::{Noted, Sequence};

/// A lower bound of the state of a node's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedLog {
    pub(crate) subgroup: String,
    /// The number that identifies the log.
    pub(crate) log: u64,
    /// The number of times that the log has been opened for writing.
    pub(crate) incarnation: u64,
    /// The number of durable records.
    pub(crate) end: u64,
    /// The number of records reported as durable at a majority.
    pub(crate) majority: u64,
    /// The number of records reported as durable at all members of the subgroup in the view.
    pub(crate) everywhere: u64,
}

impl NotedLog {
    /// Returns the note in the log's own form.
    pub(crate) const fn noted(&self) -> Noted {
        Noted { log: self.log, incarnation: self.incarnation, end: Sequence(self.end) }
    }
}
