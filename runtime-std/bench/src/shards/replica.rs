//! The process of a replica: its application does nothing with messages, and reports its first
//! delivery as the leader.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Reporter, Role, Worker};
use tramontane_runtime::shards::{
    Delivered, Description, Places, ShardApplication, StartOptions, start,
};

use super::load::broken;
use crate::error::BenchError;
use crate::experiment::Kind;

/// Interval between checks whether the replica counts in quorums or has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// The process of a replica.
#[derive(Debug)]
pub(super) enum ReplicaProcess {}

impl Role for ReplicaProcess {
    fn command() -> Vec<String> {
        Kind::ShardReplica.command()
    }
    type Task = ReplicaTask;
    type Order = ();
    type Report = ReplicaReport;
}

/// The identity of a process's replica.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ReplicaTask {
    pub(super) overlay: Description,
    pub(super) name: String,
    pub(super) data: Option<PathBuf>,
}

/// A report of a replica's process to the run that started it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReplicaReport {
    /// The replica counts in quorums.
    Votes,
    /// The replica has led since the given time.
    Leads { at_ns: u64 },
    /// The replica has delivered its first message as the leader.
    Delivers { at_ns: u64 },
    /// The replica cannot continue.
    Failed(String),
}

/// An application that does nothing with messages, and reports when its replica leads.
struct LeaderReporter {
    reporter: Reporter<ReplicaReport>,
    has_not_delivered: bool,
}

impl LeaderReporter {
    /// Sends a report. The parent may have exited; then the report is lost.
    fn report(&self, report: &ReplicaReport) {
        let _ = self.reporter.send(report);
    }
}

impl ShardApplication for LeaderReporter {
    fn deliver(&mut self, _message: &Delivered<'_>) -> u8 {
        if std::mem::take(&mut self.has_not_delivered) {
            self.report(&ReplicaReport::Delivers { at_ns: now_ns() });
        }
        0
    }

    fn leads(&mut self, _term: u64) {
        self.has_not_delivered = true;
        self.report(&ReplicaReport::Leads { at_ns: now_ns() });
    }
}

/// Runs the replica until the parent releases it.
///
/// # Errors
/// Fails with [`BenchError`], which has already been reported to the parent.
pub(crate) fn run(task: &str) -> Result<(), BenchError> {
    let (task, worker) = Worker::<ReplicaProcess>::attach(task)?;
    let outcome = serve(&task, &worker);
    if let Err(error) = &outcome {
        worker.report(&ReplicaReport::Failed(error.to_string()))?;
    }
    outcome
}

fn serve(task: &ReplicaTask, worker: &Worker<ReplicaProcess>) -> Result<(), BenchError> {
    let overlay = task.overlay.overlay().map_err(|error| broken(&error))?;
    let places = Places::new(&task.overlay, overlay);
    let replica = places.replica_named(&task.name).map_err(|error| broken(&error))?;
    let application = LeaderReporter { reporter: worker.reporter(), has_not_delivered: false };
    let mut options = StartOptions::default();
    options.cancel = worker.released();
    options.data.clone_from(&task.data);
    let running =
        start(&task.overlay, replica, options, application).map_err(|error| broken(&error))?;
    let mut votes = false;
    while !worker.is_released() {
        if let Some(stopped) = running.stopped() {
            return Err(stopped.into());
        }
        if !votes && running.status().state.counts() {
            votes = true;
            worker.report(&ReplicaReport::Votes)?;
        }
        std::thread::sleep(if votes { LOOK_PAUSE * 20 } else { LOOK_PAUSE });
    }
    running.close();
    Ok(())
}
