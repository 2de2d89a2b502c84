//! The process of a participant.

use std::time::{Duration, Instant};

use tramontane_dds::{DataWriter, Domain, DomainParticipant, TypeSupport};
use tramontane_local::crew::Worker;
use tramontane_runtime::group::{Forming, StartOptions};

use super::messages::{Mode, PerfFigures, PerfParticipant, PerfReport, PerfTask};
use super::{pinging, publishing};
use tramontane_local::exit::{Failure, Status};

/// Time limit for matching writers and readers to appear.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a participant, and reports failures to its parent.
pub(crate) fn run(task: &str) -> Result<(), Failure> {
    let (task, worker) = Worker::<PerfParticipant>::attach(task)
        .map_err(|error| Failure::usage(error, "start it with 'tramontane-dds perf'"))?;
    let Err(failure) = take_part(&task, &worker) else { return Ok(()) };
    let (status, text) = (failure.status.code(), failure.text().to_owned());
    // If the parent has exited, the report is lost.
    let _ = worker.report(&PerfReport::Failed { status, text });
    Err(Failure::silent(failure.status))
}

fn take_part(task: &PerfTask, worker: &Worker<PerfParticipant>) -> Result<(), Failure> {
    let (group, options) = task.place.start(task.group.clone(), task.node)?;
    let domain = Domain::of(group, task.topics.clone())?;
    // The participant's folder is new, and the group exists only for this run.
    let forming = Forming { new_group: true, ..options.forming };
    let options = StartOptions { data: task.data.clone(), forming, ..options };
    let participant = DomainParticipant::join(&domain, options)?;
    match task.mode {
        Mode::Throughput => publishing::run(&participant, task, worker),
        Mode::Ping => pinging::run(&participant, task, worker),
    }
}

/// Reports that this participant is ready, and waits until it may begin. Returns `false` if it was
/// released instead.
pub(super) fn begin(worker: &Worker<PerfParticipant>) -> Result<bool, Failure> {
    report(worker, &PerfReport::Ready)?;
    Ok(worker.next_order().is_some())
}

/// Reports the observations, and stays until the parent releases this process. If it left earlier,
/// the participants that are still counting would lose a peer.
pub(super) fn finish(worker: &Worker<PerfParticipant>, seen: PerfFigures) -> Result<(), Failure> {
    report(worker, &PerfReport::Seen(seen))?;
    worker.wait_for_release();
    Ok(())
}

/// Waits until a writer has `count` readers.
pub(super) fn wait_for_readers<T: TypeSupport>(
    writer: &DataWriter<T>,
    count: u32,
) -> Result<(), Failure> {
    let started = Instant::now();
    while writer.publication_matched_status().current_count < count {
        if started.elapsed() > PATIENCE {
            let what = format_args!("not all {count} subscribers appeared within {PATIENCE:?}");
            return Err(Failure::new(Status::Group, what, "check why the subscribers are delayed"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Reads every byte, as a program would. The sum keeps the compiler from removing the reads.
#[inline]
pub(super) fn read(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| sum.wrapping_add(u64::from(*byte)))
}

/// Returns the number at the beginning of a sample.
pub(super) fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |number| u64::from_ne_bytes(*number))
}

fn report(worker: &Worker<PerfParticipant>, report: &PerfReport) -> Result<(), Failure> {
    worker.report(report).map_err(|error| Failure::output(&error))
}

/// Returns observations without any samples.
pub(super) const fn nothing() -> PerfFigures {
    PerfFigures { samples: 0, elapsed: Duration::ZERO, lost: 0, round_trips_ns: Vec::new() }
}
