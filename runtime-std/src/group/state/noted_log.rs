//! What is noted of a log.

use serde::{Deserialize, Serialize};
use tramontane_log::{Noted, Sequence};

/// A log of a node, as it was at least.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NotedLog {
    pub(crate) subgroup: String,
    /// The number that tells it from any other log.
    pub(crate) log: u64,
    /// How often it was opened to be written.
    pub(crate) incarnation: u64,
    /// So many records were durable in it.
    pub(crate) end: u64,
    /// So many were seen to be durable at a majority.
    pub(crate) majority: u64,
    /// So many were seen to be durable at all members of the subgroup in the view.
    pub(crate) everywhere: u64,
}

impl NotedLog {
    /// The same as the log itself has it.
    pub(crate) const fn noted(&self) -> Noted {
        Noted { log: self.log, incarnation: self.incarnation, end: Sequence(self.end) }
    }
}
