//! The processes of an experiment: they are started together, one per member, and each returns one
//! outcome.

use std::time::Duration;

use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentMember, ExperimentProcess, Task};
use tramontane_local::crew::{Crew, Launch};
use tramontane_local::group::LocalGroup;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

/// The placement of processes on processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Pinned to the processors in turn.
    Spread,
    /// Chosen by the operating system.
    Free,
}

/// The settings with which an experiment's processes are started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'s> {
    /// The fabric.
    pub(crate) carrier: Carrier,
    /// The device to use if the fabric is RDMA.
    pub(crate) device: &'s DeviceOptions,
    /// The placement on processors.
    pub(crate) placement: Placement,
    /// The signals that end the processes early.
    pub(crate) interrupts: &'s Interrupts,
}

/// Runs one process per member of the group, and returns their outcomes by rank. An experiment
/// takes as long as its arguments request: only a signal ends it early.
///
/// # Errors
/// Fails if the group is invalid, if a process failed, or if this process was interrupted.
pub(crate) fn run<E: Experiment>(
    group: &Description,
    experiment: &E,
    start: &Start<'_>,
) -> Result<Vec<E::Outcome>, BenchError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let meeting = LocalGroup::new(start.carrier, group.nodes.len(), "bench", start.device)?;
    let mut crew = Crew::<ExperimentProcess<E>>::default();
    for (index, rank) in (0..group.nodes.len()).zip(0..) {
        let member = ExperimentMember { place: meeting.place(index), rank, group: group.clone() };
        let launch = Launch {
            inherited: meeting.inherited(index).into_iter().collect(),
            processor: (start.placement == Placement::Spread).then_some(index % processors),
        };
        crew.start(&Task { member, experiment: experiment.clone() }, &launch)?;
    }
    // Only the members keep their sockets: when a member exits, no other process may still answer
    // for it.
    drop(meeting);
    let outcomes = crew.reports(Duration::MAX, start.interrupts);
    drop(crew);
    // Removes only the remains of killed processes.
    Root::from_env().sweep()?;
    Ok(outcomes?)
}
