//! One process of an experiment: it runs its task, reports, and stays until all processes have
//! reported.

use crate::blocks::limit::CopyLimit;
use crate::blocks::task::BlockTask;
use crate::command::WorkerArguments as Arguments;
use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentProcess, Kind};
use crate::load::Paced;
use crate::member::{Idling, LowRate, Sending};
use crate::mesh::BareMesh;
use crate::probe::{BareRing, HandOff};
use crate::{durable, shards, views};
use tramontane_local::crew::Worker;

/// Runs a task.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(arguments: &Arguments) -> Result<(), BenchError> {
    let task = &arguments.task;
    match arguments.kind {
        Kind::HandOff => serve::<HandOff>(task),
        Kind::BareRing => serve::<BareRing>(task),
        Kind::BareMesh => serve::<BareMesh>(task),
        Kind::Sending => serve::<Sending>(task),
        Kind::LowRate => serve::<LowRate>(task),
        Kind::Paced => serve::<Paced>(task),
        Kind::Idling => serve::<Idling>(task),
        Kind::Blocks => serve::<BlockTask>(task),
        Kind::CopyLimit => serve::<CopyLimit>(task),
        Kind::ViewMember => views::member::run(task),
        Kind::DurableMember => durable::member::run(task),
        Kind::ShardReplica => shards::replica::run(task),
    }
}

fn serve<E: Experiment>(task: &str) -> Result<(), BenchError> {
    let (task, worker) = Worker::<ExperimentProcess<E>>::attach(task)?;
    let (outcome, running) = task.experiment.run(&task.member)?;
    worker.report(&outcome)?;
    worker.wait_for_release();
    drop(running);
    Ok(())
}
