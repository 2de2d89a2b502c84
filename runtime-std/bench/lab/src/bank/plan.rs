//! The plan of a run.

use std::path::PathBuf;
use std::time::Duration;

use tramontane_runtime::shards::Description;

/// A run of the demo.
#[derive(Debug)]
pub(super) struct BankPlan {
    pub(super) overlay: Description,
    pub(super) clients: u16,
    pub(super) duration: Duration,
    pub(super) kill_interval: Duration,
    /// Number of transfers per second by all clients together.
    pub(super) rate: f64,
    pub(super) seed: u64,
    /// The folder for histories.
    pub(super) folder: PathBuf,
    pub(super) join_timeout: Duration,
}
