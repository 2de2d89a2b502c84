//! The processes of `bench durable`, and their reports.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::durable::events::{
    DurableMember, DurableOrder, DurableReport, DurableTask, MessageDigest,
};
use crate::error::BenchError;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Crew, CrewError, Launch, WorkerEvent, WorkerId};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::group::Description;

/// Interval between checks for a signal.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Interval between heartbeats, which also determines the failure timeout. It is long, because
/// members share processors with the logs of other members.
const HEARTBEAT_MS: u64 = 50;
const FAILURE_TIMEOUT_MS: u64 = 10_000;

/// Number of slots per sender.
const WINDOW: u32 = 100;

/// All members of the group.
pub(super) struct Processes<'i> {
    crew: Crew<DurableMember>,
    tasks: Vec<DurableTask>,
    running: Vec<WorkerId>,
    interrupts: &'i Interrupts,
}

impl<'i> Processes<'i> {
    /// Starts members without earlier state.
    pub(super) fn start(
        nodes: u16,
        message_bytes: u32,
        memory: &Path,
        disk: &Path,
        interrupts: &'i Interrupts,
    ) -> Result<Self, BenchError> {
        let description = Description::builder("bench-durable")
            .nodes(nodes.into())
            .window(WINDOW)
            .message_max(message_bytes)
            .heartbeat_ms(HEARTBEAT_MS, FAILURE_TIMEOUT_MS)
            .logged()
            .build()?;
        let task = |node: u32| DurableTask {
            description: description.clone(),
            node,
            message_bytes,
            memory: memory.to_owned(),
            data: data_of(disk, node),
            is_first_start: true,
        };
        let tasks = (0..u32::from(nodes)).map(task).collect();
        let mut all = Self { crew: Crew::default(), tasks, running: Vec::new(), interrupts };
        all.start_all()?;
        Ok(all)
    }

    /// Starts one process per node, and waits until all are members.
    fn start_all(&mut self) -> Result<(), BenchError> {
        self.running.clear();
        for task in &self.tasks {
            self.running.push(self.crew.start(task, &Launch::default())?);
        }
        self.await_all(|report| match report {
            DurableReport::Joined { at_ns } => Some(at_ns),
            _ => None,
        })?;
        Ok(())
    }

    /// Has each process send. Returns the time until everything was durable everywhere, and the
    /// number of syncs that a member needed.
    pub(super) fn send(
        &mut self,
        messages: u64,
        total: u64,
    ) -> Result<(Duration, u64), BenchError> {
        self.order(DurableOrder::Send { messages, total })?;
        let sent = self.await_all(|report| match report {
            DurableReport::Sent { from_ns, until_ns, syncs } => Some((from_ns, until_ns, syncs)),
            _ => None,
        })?;
        let from_ns = sent.iter().map(|sent| sent.0).min().unwrap_or_default();
        let until_ns = sent.iter().map(|sent| sent.1).max().unwrap_or_default();
        let syncs: u64 = sent.iter().map(|sent| sent.2).sum();
        let members = u64::try_from(sent.len()).unwrap_or(1).max(1);
        Ok((Duration::from_nanos(until_ns.saturating_sub(from_ns)), syncs / members))
    }

    /// Returns the deliveries of all members.
    ///
    /// # Errors
    /// Fails with [`BenchError::Broken`] if they differ.
    pub(super) fn delivered(&mut self) -> Result<MessageDigest, BenchError> {
        self.order(DurableOrder::Tell)?;
        let all = self.await_all(|report| match report {
            DurableReport::Delivered(delivered) => Some(delivered),
            _ => None,
        })?;
        let first = all.first().copied().unwrap_or_default();
        if all.iter().any(|delivered| *delivered != first) {
            return Err(BenchError::Broken(format!(
                "members delivered different messages: {all:?}"
            )));
        }
        Ok(first)
    }

    /// Kills all processes at once.
    pub(super) fn kill(&mut self) -> Result<(), BenchError> {
        for worker in &self.running {
            self.crew.signal(*worker, Signal::KILL)?;
        }
        for worker in self.running.drain(..) {
            self.crew.remove(worker);
        }
        Ok(())
    }

    /// Restarts all processes on their logs. Returns the time until all were members.
    pub(super) fn restart(&mut self) -> Result<Duration, BenchError> {
        for task in &mut self.tasks {
            task.is_first_start = false;
        }
        let began_ns = now_ns();
        self.start_all()?;
        Ok(Duration::from_nanos(now_ns() - began_ns))
    }

    fn order(&mut self, order: DurableOrder) -> Result<(), BenchError> {
        for worker in &self.running {
            self.crew.order(*worker, &order)?;
        }
        Ok(())
    }

    /// Waits for one report of each running process, by node.
    fn await_all<T>(
        &mut self,
        pick: impl Fn(DurableReport) -> Option<T>,
    ) -> Result<Vec<T>, BenchError> {
        let mut found = BTreeMap::new();
        while found.len() < self.running.len() {
            self.interrupts.check().map_err(CrewError::from)?;
            let Some((worker, event)) = self.crew.next(LOOK_PAUSE) else { continue };
            let Some(node) = self.running.iter().position(|other| *other == worker) else {
                // The process was killed.
                continue;
            };
            match event {
                WorkerEvent::Report(DurableReport::Failed(why)) => {
                    return Err(BenchError::Setup(why));
                }
                WorkerEvent::Report(report) => {
                    found.extend(pick(report).map(|found| (node, found)))
                }
                WorkerEvent::Ended(end) => {
                    return Err(BenchError::Setup(format!("node {node} ended: {end}")));
                }
            }
        }
        Ok(found.into_values().collect())
    }
}

fn data_of(disk: &Path, node: u32) -> PathBuf {
    disk.join(format!("data-{node}"))
}
