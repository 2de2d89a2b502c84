//! An experiment's processes: started together, one a member, and each gives one outcome.

use std::time::Duration;

use crate::error::BenchError;
use crate::experiment::{Experiment, Member, Process, Task};
use tramontane_local::crew::{Crew, Launch};
use tramontane_local::group::LocalGroup;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

/// Which processor each process stays on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// One after the other on each processor.
    Spread,
    /// Wherever the operating system wants.
    Free,
}

/// How an experiment's processes are started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start<'s> {
    /// What carries their writes.
    pub(crate) carrier: Carrier,
    /// Over which device, if that is RDMA.
    pub(crate) device: &'s DeviceOptions,
    /// On which processors.
    pub(crate) placement: Placement,
    /// What ends them early.
    pub(crate) interrupts: &'s Interrupts,
}

/// Runs one process a member of the group, and returns what each saw, by rank. An experiment takes
/// as long as its arguments ask for: there is no limit but a signal.
///
/// # Errors
/// The group is wrong, a process failed, or this one was interrupted.
pub(crate) fn run<E: Experiment>(
    group: &Description,
    experiment: &E,
    start: &Start<'_>,
) -> Result<Vec<E::Outcome>, BenchError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let meeting = LocalGroup::new(start.carrier, group.nodes.len(), "bench", start.device)?;
    let mut crew = Crew::<Process<E>>::default();
    for (index, rank) in (0..group.nodes.len()).zip(0..) {
        let member = Member { place: meeting.place(index), rank, group: group.clone() };
        let launch = Launch {
            inherited: meeting.inherited(index).into_iter().collect(),
            processor: (start.placement == Placement::Spread).then_some(index % processors),
        };
        crew.start(&Task { member, experiment: experiment.clone() }, &launch)?;
    }
    // Only the members' sockets stay: a member that ends must not leave one that still answers.
    drop(meeting);
    let outcomes = crew.reports(Duration::MAX, start.interrupts);
    drop(crew);
    // Only what a killed process may have left.
    Root::from_env().sweep()?;
    Ok(outcomes?)
}
