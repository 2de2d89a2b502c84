//! The driver's options, and the progress that it reports.

use std::path::PathBuf;
use std::time::Duration;

use super::feature::Feature;

/// The options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The adapter's command, as in a shell.
    pub adapter: String,
    /// The hosts of the nodes, assigned in turn; this host if there are none. In the adapter's
    /// command `{host}` stands for a node's host, and `{node}` for its name.
    pub hosts: Vec<String>,
    /// Number of nodes, from 1 to [`NODES_MAX`](super::NODES_MAX).
    pub nodes: usize,
    /// The names of the scenarios to run; all if there are none.
    pub scenarios: Vec<String>,
    /// This program as it was called, for the command that repeats a scenario.
    pub program: String,
    /// The seed of the plans.
    pub seed: u64,
    /// Number of seeds, starting at `seed`, with which all scenarios run.
    pub repeat: u64,
    /// Time during which the scenarios run repeatedly with new seeds, instead of `repeat`.
    pub soak: Option<Duration>,
    /// Whether the first failure or broken adapter ends the run.
    pub until_failed: bool,
    /// Maximum number of rounds of a scenario that has several.
    pub rounds_max: usize,
    /// The required features. If one of them is missing, no scenario runs.
    pub require: Vec<Feature>,
    /// The numbers of the random faults to inject; if absent, all faults are injected.
    pub faults: Option<Vec<usize>>,
    /// Time limit for an answer, a delivery or a shutdown.
    pub deadline: Duration,
    /// Number of messages that a sender sends, if the scenario does not set it.
    pub messages: u64,
    /// The folder for histories and logs.
    pub output: PathBuf,
}

/// The progress of a run.
#[derive(Clone, Copy, Debug)]
pub enum RunProgress {
    /// A scenario begins.
    Scenario {
        /// Its name.
        name: &'static str,
        /// Number of scenarios before this one.
        place: usize,
        /// Number of scenarios.
        of: usize,
    },
    /// Messages that have been sent in the scenario.
    Sent {
        /// Number of messages sent so far.
        done: u64,
        /// Number of messages in total, unless a fault reduces it.
        of: u64,
        /// Number of deliveries so far.
        deliveries: u64,
    },
}
