//! The messages between the parent and the participants.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_dds::TopicDescription;
use tramontane_local::crew::Role;
use tramontane_local::group::LocalPlace;
use tramontane_runtime::group::Description;

use tramontane_local::exit::{Failure, Status};

/// The topic of the measured samples.
pub(super) const DATA: &str = "Data";

/// The topic of the answers.
pub(super) const ANSWERS: &str = "Answers";

/// A participant.
#[derive(Debug)]
pub(super) enum PerfParticipant {}

impl Role for PerfParticipant {
    fn command() -> Vec<String> {
        vec!["perf-member".into()]
    }
    type Task = PerfTask;
    type Order = PerfOrder;
    type Report = PerfReport;
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Throughput,
    Ping,
}

/// The task of a participant: node 0 publishes, the others subscribe.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PerfTask {
    pub(super) node: u32,
    pub(super) group: Description,
    pub(super) topics: Vec<TopicDescription>,
    /// The place where the participants meet.
    pub(super) place: LocalPlace,
    pub(super) mode: Mode,
    /// Size of each sample in bytes.
    pub(super) bytes: usize,
    /// Duration of the publishing.
    pub(super) time: Duration,
    /// The folder for the participant's log, at the level logged.
    pub(super) data: Option<PathBuf>,
}

/// A message from the parent.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerfOrder {
    /// Every participant is ready, so the measurement may begin.
    Begin,
}

/// A message from a participant.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PerfReport {
    /// This participant has joined and sees all others.
    Ready,
    /// This participant has finished.
    Seen(PerfFigures),
    /// This participant cannot continue.
    Failed { status: u8, text: String },
}

/// A participant's observations.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct PerfFigures {
    /// Number of samples that the participant wrote or received.
    pub(super) samples: u64,
    /// The time from the first of those samples to the last.
    pub(super) elapsed: Duration,
    /// Number of samples that did not arrive.
    pub(super) lost: u64,
    /// Round-trip times in ns.
    pub(super) round_trips_ns: Vec<u32>,
}

impl PerfReport {
    /// Converts a failure report to an error.
    pub(super) fn check(self) -> Result<Self, Failure> {
        match self {
            Self::Failed { status, text } => Err(Failure::with_text(Status::of(status), text)),
            other => Ok(other),
        }
    }

    /// Returns the observations.
    pub(super) fn seen(self) -> Result<PerfFigures, Failure> {
        match self.check()? {
            Self::Seen(seen) => Ok(seen),
            other => Err(Failure::other(
                format_args!("a participant reported {other:?} instead of a result"),
                "report this",
            )),
        }
    }
}
