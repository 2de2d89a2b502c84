//! The parent's end of a crew.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::BorrowedFd;
use std::process::ChildStdout;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::de::DeserializeOwned;

use super::end::End;
use super::role::{Assignment, Role};
use crate::interrupt::{Interrupted, Interrupts};
use crate::processes::{self, dismiss};

/// Time that the kernel may take to end a process that has closed its output: the kernel first
/// shuts down the connections of RDMA devices.
const END_MAX: Duration = Duration::from_secs(2);

/// Interval between checks whether a process has exited.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// Interval between checks whether the parent has been interrupted.
const TICK: Duration = Duration::from_millis(50);

/// Time allowed for the other workers to report why they cannot continue, after one of them has
/// ended early.
const AFTERMATH: Duration = Duration::from_millis(800);

/// A worker of a crew, identified by the number of workers that were started before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerId(usize);

impl WorkerId {
    /// Returns the number of workers that were started before this one. This is its rank if each
    /// member was started once and in order.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// The settings with which a worker is started.
#[derive(Debug, Default)]
pub struct Launch<'f> {
    /// Descriptors that the worker inherits under the same numbers, such as the socket at which
    /// others meet it.
    pub inherited: Vec<BorrowedFd<'f>>,
    /// The processor on which the worker runs, by number.
    pub processor: Option<usize>,
}

/// An event from a worker.
#[derive(Debug)]
pub enum WorkerEvent<M> {
    /// The worker sent a report.
    Report(M),
    /// The worker ended. No further event follows.
    Ended(End),
}

/// The reason that a crew did not finish its work.
#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    /// The operating system did not start a process or a thread.
    #[error("cannot start a process: {0}")]
    Start(io::Error),
    /// A worker cannot be reached: it has ended, or is about to.
    #[error("cannot reach process {pid}: {source}")]
    Unreachable {
        /// Process id of the worker; zero if the crew has no such worker.
        pid: u32,
        /// The operating system's error.
        source: io::Error,
    },
    /// A worker ended without a report.
    #[error("worker {worker} (process {pid}) {end} without a result; see its message above")]
    Ended {
        /// Index of the worker in starting order, from zero.
        worker: usize,
        /// Process id of the worker.
        pid: u32,
        /// The worker's end.
        end: End,
    },
    /// Workers did not report in time.
    #[error(
        "{missing} workers returned no result within {limit:?}; check their output, or reduce the \
         load of this machine"
    )]
    TimedOut {
        /// Number of workers that have not reported.
        missing: usize,
        /// The time limit.
        limit: Duration,
    },
    /// This process was interrupted.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// The worker processes of one run. Dropping the crew ends them all.
///
/// The crew must stay on the thread that created it, because the kernel regards that thread as the
/// parent of the workers.
#[derive(Debug)]
pub struct Crew<R: Role> {
    workers: BTreeMap<WorkerId, processes::Worker>,
    started: usize,
    sender: Sender<(WorkerId, Option<R::Report>)>,
    receiver: Receiver<(WorkerId, Option<R::Report>)>,
}

impl<R: Role> Default for Crew<R> {
    /// Without workers.
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { workers: BTreeMap::new(), started: 0, sender, receiver }
    }
}

impl<R: Role> Crew<R> {
    /// Starts another worker.
    ///
    /// # Errors
    /// [`CrewError::Start`].
    pub fn start(&mut self, task: &R::Task, launch: &Launch<'_>) -> Result<WorkerId, CrewError> {
        let assignment = Assignment { processor: launch.processor, task };
        let assignment =
            serde_json::to_string(&assignment).map_err(|error| CrewError::Start(error.into()))?;
        let mut arguments = R::command();
        arguments.push(assignment);
        let (worker, output) =
            processes::Worker::start(&arguments, &launch.inherited).map_err(CrewError::Start)?;
        let id = WorkerId(self.started);
        self.started += 1;
        self.workers.insert(id, worker);
        receive::<R::Report>(id, output, self.sender.clone()).map_err(CrewError::Start)?;
        Ok(id)
    }

    /// Sends an order to a worker.
    ///
    /// # Errors
    /// [`CrewError::Unreachable`].
    pub fn order(&mut self, id: WorkerId, order: &R::Order) -> Result<(), CrewError> {
        let pid = self.pid(id);
        let sent = match self.workers.get_mut(&id) {
            Some(worker) => serde_json::to_string(order)
                .map_err(io::Error::from)
                .and_then(|line| worker.tell(&line)),
            None => Err(io::ErrorKind::NotFound.into()),
        };
        sent.map_err(|source| CrewError::Unreachable { pid, source })
    }

    /// Sends a signal to a worker.
    ///
    /// # Errors
    /// [`CrewError::Unreachable`].
    pub fn signal(&self, id: WorkerId, signal: Signal) -> Result<(), CrewError> {
        let worker = self.workers.get(&id).ok_or_else(|| io::ErrorKind::NotFound.into());
        worker
            .and_then(|worker| worker.signal(signal))
            .map_err(|source| CrewError::Unreachable { pid: self.pid(id), source })
    }

    /// Returns the process id of a worker; zero if the crew has no such worker.
    #[must_use]
    pub fn pid(&self, id: WorkerId) -> u32 {
        self.workers.get(&id).map_or(0, processes::Worker::pid)
    }

    /// Kills a worker, if it is still running, and forgets it. Its earlier reports may still
    /// arrive.
    pub fn remove(&mut self, id: WorkerId) {
        self.workers.remove(&id);
    }

    /// Returns the next event of any worker, or `None` if there is none within `timeout`.
    ///
    /// Returns up to two seconds later if a worker has closed its output but does not exit.
    pub fn next(&mut self, timeout: Duration) -> Option<(WorkerId, WorkerEvent<R::Report>)> {
        let (id, report) = self.receiver.recv_timeout(timeout).ok()?;
        let event = match report {
            Some(report) => WorkerEvent::Report(report),
            None => WorkerEvent::Ended(End(self.workers.get_mut(&id).and_then(exit_status))),
        };
        Some((id, event))
    }

    /// Waits for one report from each started worker, and returns them in starting order. A
    /// worker's later reports replace its first.
    ///
    /// # Errors
    /// Fails if a worker ended without a report, the time limit passed, or this process was
    /// interrupted.
    pub fn reports(
        &mut self,
        limit: Duration,
        interrupts: &Interrupts,
    ) -> Result<Vec<R::Report>, CrewError> {
        let start = Instant::now();
        let mut reports = BTreeMap::new();
        while reports.len() < self.started {
            interrupts.check()?;
            if start.elapsed() >= limit {
                let missing = self.started - reports.len();
                return Err(CrewError::TimedOut { missing, limit });
            }
            match self.next(TICK) {
                Some((id, WorkerEvent::Report(report))) => drop(reports.insert(id, report)),
                Some((id, WorkerEvent::Ended(end))) if !reports.contains_key(&id) => {
                    let cause = self.first_cause(id, end);
                    // A terminal interrupts all processes, so the signal that ended the worker may
                    // have reached this process too.
                    interrupts.check()?;
                    return Err(cause);
                }
                Some((_, WorkerEvent::Ended(_))) | None => {}
            }
        }
        Ok(reports.into_values().collect())
    }

    /// Finds the cause after one worker has ended early: other workers then end too, because they
    /// lose a peer. Returns the worker that was killed, if there is one, and otherwise the first
    /// that ended.
    fn first_cause(&mut self, id: WorkerId, end: End) -> CrewError {
        let mut cause = (id, end);
        let until = Instant::now() + AFTERMATH;
        let mut running = self.workers.len().saturating_sub(1);
        let was_killed = |end: &End| end.0.is_some_and(|status| status.code().is_none());
        while running > 0 && !was_killed(&cause.1) {
            let Some(left) = until.checked_duration_since(Instant::now()) else { break };
            if let Some((id, WorkerEvent::Ended(end))) = self.next(left) {
                running -= 1;
                if was_killed(&end) {
                    cause = (id, end);
                }
            }
        }
        let (id, end) = cause;
        CrewError::Ended { worker: id.0, pid: self.pid(id), end }
    }
}

impl<R: Role> Drop for Crew<R> {
    fn drop(&mut self) {
        let mut workers: Vec<_> = std::mem::take(&mut self.workers).into_values().collect();
        dismiss(&mut workers);
    }
}

/// Reads a worker's reports in a separate thread.
fn receive<M: DeserializeOwned + Send + 'static>(
    id: WorkerId,
    output: ChildStdout,
    sender: Sender<(WorkerId, Option<M>)>,
) -> io::Result<()> {
    std::thread::Builder::new().name("tramontane-crew".into()).spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                // The crew has been dropped, so nothing needs the remaining reports.
                Ok(report) => {
                    if sender.send((id, Some(report))).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    tracing::warn!(worker = id.0, %error, "a worker sent an invalid report");
                }
            }
        }
        let _ = sender.send((id, None));
    })?;
    Ok(())
}

/// Returns the exit status of a process that has closed its output, once the kernel has ended it.
fn exit_status(worker: &mut processes::Worker) -> Option<std::process::ExitStatus> {
    let until = Instant::now() + END_MAX;
    loop {
        match worker.ended() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
            Ok(None) | Err(_) => return None,
        }
    }
}
