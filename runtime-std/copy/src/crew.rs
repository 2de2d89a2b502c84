//! A copy on this machine: this process sends, and starts a receiver for each destination.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::group::Job;
use super::messages::{CopyMessage, failure_of};
use super::receiving::receive;
use super::report::CopyReport;
use super::sending::{CopyError, send};
use super::{BlockOptions, CopyCommand, nested};
use tramontane_local::crew::{Crew, Launch, Role, Worker, WorkerEvent, WorkerId};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group::{LocalError, LocalGroup, LocalPlace};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::group::{Description, StartOptions};
use tramontane_runtime::shared_memory::Root;

/// Interval between checks whether the sending member has ended.
const TICK: Duration = Duration::from_millis(10);

/// Time allowed for receivers to report their failures after the copy has failed.
const LAST_REPORT_MAX: Duration = Duration::from_secs(8);

/// A receiver of a copy. It reports [`CopyMessage::Placed`] or [`CopyMessage::Failed`] when it
/// ends.
#[derive(Debug)]
enum ReceiverRole {}

impl Role for ReceiverRole {
    fn command() -> Vec<String> {
        vec!["--member".into()]
    }
    type Task = ReceiverTask;
    type Order = ();
    type Report = CopyMessage;
}

/// A receiver's task.
#[derive(Debug, Serialize, Deserialize)]
struct ReceiverTask {
    place: LocalPlace,
    nodes: u32,
    own: u32,
    to: PathBuf,
    blocks: BlockOptions,
    join_timeout: Duration,
    stall_timeout: Duration,
}

impl ReceiverTask {
    fn new(arguments: &CopyCommand, place: LocalPlace, own: u32, to: &Path) -> Self {
        Self {
            place,
            nodes: u32::try_from(arguments.to.len()).unwrap_or(u32::MAX).saturating_add(1),
            own,
            to: to.to_path_buf(),
            blocks: arguments.blocks,
            join_timeout: arguments.join.join_timeout,
            stall_timeout: arguments.stall_timeout,
        }
    }

    /// Returns the member's task in the copy. Takes ownership of its inherited descriptor.
    fn job(&self) -> Result<Job, Failure> {
        let group = Description::local("copy", self.nodes, 1, 0);
        let (group, options) = self.place.start(group, self.own)?;
        Ok(Job {
            sender: 0,
            options: StartOptions { time_limit: self.join_timeout, ..options },
            stall: self.stall_timeout,
            blocks: self.blocks.of(group.fabric, &group)?,
            group,
        })
    }
}

/// Copies into directories on this machine.
pub(super) fn copy(
    arguments: &CopyCommand,
    interrupts: &Interrupts,
) -> Result<CopyReport, Failure> {
    nested::refuse(&arguments.files, &arguments.to)?;
    nested::refuse_twice(&arguments.to)?;
    Root::from_env().sweep()?;
    let places = &arguments.to;
    let fabric = arguments.fabric.unwrap_or_default();
    let group = LocalGroup::new(fabric, places.len() + 1, "copy", &arguments.device.options())?;
    let cancel = Arc::new(AtomicBool::new(false));
    interrupts.raise_too(&cancel)?;
    let mut receivers = Receivers::start(arguments, &group)?;
    let own_place = group.own_place(0).map_err(LocalError::from)?;
    let mut job = ReceiverTask::new(arguments, own_place, 0, Path::new("")).job()?;
    // Only the members' sockets are left open.
    drop(group);
    let is_over = AtomicBool::new(false);
    let copied = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                receivers.take_event(TICK);
                // A receiver that fails before it has met the others is not waited for.
                cancel.fetch_or(receivers.cause.is_some(), Ordering::Relaxed);
            }
        });
        let copied = send(&mut job, &arguments.files, &cancel, &|| Ok(interrupts.check()?));
        is_over.store(true, Ordering::Relaxed);
        copied
    });
    let copied = match copied {
        Err(CopyError::Nowhere(failure)) => Err(receivers.cause_of(failure, interrupts)),
        copied => {
            drop(receivers);
            copied.map_err(Failure::from)
        }
    };
    Root::from_env().sweep()?;
    Ok(CopyReport { places: places.clone(), ..copied? })
}

/// Ranks the causes for which receivers end. The first in this order is the cause of the copy's
/// failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The receiver itself failed.
    Cause,
    /// The receiver was killed.
    Killed,
    /// The receiver lost another member.
    Consequence,
}

/// The receivers of a copy, each a separate process.
struct Receivers<'p> {
    crew: Crew<ReceiverRole>,
    places: &'p [PathBuf],
    /// Number of receivers that have not ended.
    running: usize,
    /// Receivers that have reported or ended.
    heard: BTreeSet<WorkerId>,
    /// The cause of the copy's failure, as far as known.
    cause: Option<(Rank, Failure)>,
}

impl<'p> Receivers<'p> {
    fn start(arguments: &'p CopyCommand, group: &LocalGroup) -> Result<Self, Failure> {
        let mut crew = Crew::default();
        for (own, to) in (1_u32..).zip(&arguments.to) {
            let rank = own as usize;
            let inherited = group.inherited(rank).into_iter().collect();
            let task = ReceiverTask::new(arguments, group.place(rank), own, to);
            crew.start(&task, &Launch { inherited, processor: None })?;
        }
        let (places, heard) = (arguments.to.as_slice(), BTreeSet::new());
        Ok(Self { crew, places, running: places.len(), heard, cause: None })
    }

    /// Waits for one event for at most `timeout`, and records it.
    fn take_event(&mut self, timeout: Duration) {
        let Some((worker, event)) = self.crew.next(timeout) else { return };
        let place = self.places.get(worker.index()).map(|place| place.display().to_string());
        let place = place.unwrap_or_default();
        let is_first = self.heard.insert(worker);
        match event {
            WorkerEvent::Report(CopyMessage::Failed { status, text }) => {
                let failure = failure_of(&place, status, &text);
                let is_consequence =
                    matches!(failure.status, Status::PeerLost | Status::Interrupted);
                self.failed(if is_consequence { Rank::Consequence } else { Rank::Cause }, failure);
            }
            WorkerEvent::Report(_) => {}
            WorkerEvent::Ended(end) => {
                self.running -= 1;
                if is_first {
                    let what = format!("the process for {place} {end}");
                    let advice = "check its output and the system log, and copy again";
                    self.failed(Rank::Killed, Failure::peer_lost(what, advice));
                }
            }
        }
    }

    fn failed(&mut self, rank: Rank, failure: Failure) {
        if self.cause.as_ref().is_none_or(|(known, _)| rank < *known) {
            self.cause = Some((rank, failure));
        }
    }

    /// Finds the cause of a failure, rather than its consequences: a receiver's own failure takes
    /// precedence over the loss of another receiver.
    fn cause_of(mut self, failure: Failure, interrupts: &Interrupts) -> Failure {
        if let Err(interrupted) = interrupts.check() {
            return interrupted.into();
        }
        if !matches!(failure.status, Status::PeerLost | Status::Interrupted | Status::Group) {
            return failure;
        }
        let until = Instant::now() + LAST_REPORT_MAX;
        while self.running > 0 && !matches!(self.cause, Some((Rank::Cause, _))) {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            self.take_event(left);
        }
        self.cause.map_or(failure, |(_, failure)| failure)
    }
}

/// Runs a receiver, and reports its end to its parent.
pub(crate) fn run_member(task: &str) -> Result<(), Failure> {
    let (task, worker) = Worker::<ReceiverRole>::attach(task)
        .map_err(|error| Failure::usage(error, "start it with 'tramontane-copy'"))?;
    let received = task.job().and_then(|mut job| receive(&mut job, &task.to, worker.released()));
    let (report, outcome) = match received {
        Ok(received) => (CopyMessage::Placed { files: received.files }, Ok(())),
        Err(failure) => (CopyMessage::failed(&failure), Err(Failure::silent(failure.status))),
    };
    // If the parent has exited, the report is not needed.
    let _ = worker.report(&report);
    outcome
}
