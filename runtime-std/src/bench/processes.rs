//! An experiment's processes: started together, pinned one after the other, and heard in the end.

use std::io::Read as _;
use std::process::ChildStdout;

use super::BenchError;
use super::worker::{Outcome, Task};
use crate::local::{Carrier, LocalGroup};
use crate::process::{Worker, dismiss};
use crate::rdma::{DeviceOptions, PostCounts};
use crate::shared_memory::Root;

/// Which processor each process stays on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One after the other on each processor.
    Spread,
    /// Wherever the operating system wants.
    Free,
}

/// How an experiment's processes are started.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    /// What carries their writes.
    pub carrier: Carrier,
    /// Over which device, if that is RDMA.
    pub device: &'s DeviceOptions,
    /// On which processors.
    pub placement: Placement,
}

/// Runs one process a member of the task's group, and returns what each saw, by rank.
///
/// # Errors
/// The first process's that failed.
pub fn run(task: &Task, start: &Start<'_>) -> Result<Vec<Outcome>, BenchError> {
    // A wrong group is told once, and not by each process.
    task.group.with_layout(|_| ())?;
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let group = LocalGroup::new(start.carrier, task.group.members.len(), "bench", start.device)?;
    let mut workers = Vec::new();
    let mut outputs = Vec::new();
    for (rank, node) in task.group.members.iter().enumerate() {
        let task = Task {
            place: group.place(rank),
            node: *node,
            processor: (start.placement == Placement::Spread).then_some(rank % processors),
            ..task.clone()
        };
        let json =
            serde_json::to_string(&task).map_err(|error| BenchError::Setup(error.to_string()))?;
        let inherited: Vec<_> = group.inherited(rank).into_iter().collect();
        let (worker, output) = Worker::start(&["bench", "worker", &json], &inherited)
            .map_err(|error| BenchError::Setup(format!("cannot start a process: {error}")))?;
        workers.push(worker);
        outputs.push(output);
    }
    // Only the members' sockets stay: a member that ends is not to leave one that still answers.
    drop(group);
    let outcomes = outputs.into_iter().map(outcome_of).collect();
    dismiss(&mut workers);
    // Only what a killed process may have left.
    Root::from_env().sweep()?;
    outcomes
}

fn outcome_of(mut output: ChildStdout) -> Result<Outcome, BenchError> {
    let mut text = String::new();
    output.read_to_string(&mut text).map_err(|error| BenchError::Setup(error.to_string()))?;
    serde_json::from_str(&text).map_err(|_| {
        BenchError::Setup("a process of the experiment failed; it says why above".into())
    })
}

/// What the fabric counted at each member; empty if it does not count.
#[must_use]
pub fn counts_of(outcomes: &[Outcome]) -> Vec<PostCounts> {
    outcomes.iter().filter_map(|outcome| outcome.counts).collect()
}

/// The median of some numbers; zero of none.
#[must_use]
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => (sorted[half - 1] + sorted[half]) / 2.0,
        (half, _) => sorted[half],
    }
}

/// A median with the smallest and the largest.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of some numbers.
    #[must_use]
    pub fn of(numbers: &[f64]) -> Self {
        Self {
            median: median(numbers),
            min: numbers.iter().copied().fold(f64::INFINITY, f64::min),
            max: numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(Spread::of(&[2.0, 8.0, 4.0]), Spread { median: 4.0, min: 2.0, max: 8.0 });
        assert_eq!(Spread::of(&[-2.0, -8.0]), Spread { median: -5.0, min: -8.0, max: -2.0 });
    }
}
