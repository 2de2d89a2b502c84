//! What a run is to do.

use std::path::PathBuf;
use std::time::Duration;

use tramontane_runtime::shards::Description;

/// A run of the demo.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) overlay: Description,
    pub(super) clients: u16,
    pub(super) duration: Duration,
    pub(super) kill_interval: Duration,
    /// Transfers a second, of all clients.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// Where histories go.
    pub(super) folder: PathBuf,
    pub(super) join_timeout: Duration,
}
