//! What the parent and the participants send to each other.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_dds::TopicDescription;
use tramontane_local::crew::Role;
use tramontane_local::group::LocalPlace;
use tramontane_runtime::group::Description;

use tramontane_local::exit::{Failure, Status};

/// The topic that carries what is measured.
pub(super) const DATA: &str = "Data";

/// The topic that carries answers.
pub(super) const ANSWERS: &str = "Answers";

/// A participant.
#[derive(Debug)]
pub(super) enum PerfParticipant {}

impl Role for PerfParticipant {
    fn command() -> Vec<String> {
        vec!["perf-member".into()]
    }
    type Task = Task;
    type Order = PerfOrder;
    type Report = PerfReport;
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Throughput,
    Ping,
}

/// What a participant is to do: node 0 publishes, the others subscribe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) node: u32,
    pub(super) group: Description,
    pub(super) topics: Vec<TopicDescription>,
    /// Where they meet.
    pub(super) place: LocalPlace,
    pub(super) mode: Mode,
    /// Of each sample.
    pub(super) bytes: usize,
    /// How long to publish.
    pub(super) time: Duration,
    /// Where it logs, at the level logged.
    pub(super) data: Option<PathBuf>,
}

/// What the parent asks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerfOrder {
    /// All are there.
    Begin,
}

/// What a participant reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerfReport {
    /// It is there, and so are all others.
    Ready,
    /// It is done.
    Seen(Seen),
    /// It cannot go on.
    Failed { status: u8, text: String },
}

/// What a participant saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Samples that it wrote, or that it was handed.
    pub(super) samples: u64,
    /// From the first to the last of them.
    pub(super) elapsed: Duration,
    /// Samples that did not arrive.
    pub(super) lost: u64,
    /// Round trips, in ns.
    pub(super) round_trips_ns: Vec<u32>,
}

impl PerfReport {
    /// Passes on a failure.
    pub(super) fn check(self) -> Result<Self, Failure> {
        match self {
            Self::Failed { status, text } => Err(Failure::with_text(Status::of(status), text)),
            other => Ok(other),
        }
    }

    /// What it saw.
    pub(super) fn seen(self) -> Result<Seen, Failure> {
        match self.check()? {
            Self::Seen(seen) => Ok(seen),
            other => Err(Failure::other(
                format_args!("a participant reported {other:?} instead of a result"),
                "report this",
            )),
        }
    }
}
