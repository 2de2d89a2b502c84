//! What is asked of the driver, and what it tells meanwhile.

use std::path::PathBuf;
use std::time::Duration;

use super::feature::Feature;

/// What is to be driven, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The adapter's command, as one would write it in a shell.
    pub adapter: String,
    /// The hosts of the nodes, in turns; this one, if there are none. In the adapter's command
    /// `{host}` stands for a node's host, and `{node}` for its name.
    pub hosts: Vec<String>,
    /// How many nodes there are, from 1 to [`NODES_MAX`](super::NODES_MAX).
    pub nodes: usize,
    /// The names of the scenarios to run; all if there are none.
    pub scenarios: Vec<String>,
    /// What decides the plans.
    pub seed: u64,
    /// With how many seeds, from that one on, all scenarios are played.
    pub repeat: u64,
    /// How long they are played with ever new seeds instead.
    pub soak: Option<Duration>,
    /// Whether the first failure ends the run.
    pub until_failed: bool,
    /// How many rounds of a scenario are played at most, where it has several.
    pub rounds_max: usize,
    /// The features without which nothing is to be played.
    pub require: Vec<Feature>,
    /// Of the faults that chance draws, the numbers of those that are to come; all, if not said.
    pub faults: Option<Vec<usize>>,
    /// How long an answer, a delivery or an end may take.
    pub deadline: Duration,
    /// How many messages a sender sends where that does not matter.
    pub messages: u64,
    /// The folder for histories and logs.
    pub output: PathBuf,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// A scenario begins.
    Scenario {
        /// Its name.
        name: &'static str,
        /// How many were run before.
        place: usize,
        /// How many there are.
        of: usize,
    },
    /// Messages were sent in it.
    Sent {
        /// How many.
        done: u64,
        /// How many there will be, unless a fault takes some away.
        of: u64,
        /// How many deliveries there were.
        deliveries: u64,
    },
}
