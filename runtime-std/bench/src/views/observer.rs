//! The processes of `bench views`, and the state of the group according to their reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tramontane_fixtures::random::Random;

use crate::command::Views;
use crate::error::BenchError;
use crate::views::events::{
    Incarnation, MESSAGE_BYTES, ViewMember, ViewsOrder, ViewsReport, ViewsTask,
};
use crate::views::logs::SurvivorDeliveries;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Crew, CrewError, Launch, WorkerEvent, WorkerId};
use tramontane_local::free_addresses::free_addresses;
use tramontane_local::group::LocalError;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, OperatorClient};
use tramontane_runtime::shared_memory::Root;

/// Time limit for any wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Number of slots per sender.
const WINDOW: u32 = 100;

/// Interval between checks of the clock.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// One view, as reported by its members so far.
#[derive(Debug, Default)]
struct ReportedView {
    members: Vec<u32>,
    /// The processes that installed the view, each with the time of its first delivery in the view,
    /// in ns.
    installed: BTreeMap<Incarnation, Option<u64>>,
}

/// The results of the final checks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) views: u64,
    pub(super) messages: u64,
    pub(super) promised: u64,
    pub(super) removed_by_mistake: u64,
}

/// All processes, and their reports.
pub(super) struct Observer<'i> {
    /// The first field, so that all processes have exited when the folder is removed.
    crew: Crew<ViewMember>,
    template: ViewsTask,
    folder: TempDir,
    random: Random,
    interrupts: &'i Interrupts,
    /// The current or latest process of each node.
    running: BTreeMap<u32, LatestProcess>,
    processes: BTreeMap<WorkerId, Incarnation>,
    /// The processes that have been ordered to depart or have ended.
    is_going: BTreeSet<Incarnation>,
    /// The end of each process, in ns.
    ended: BTreeMap<Incarnation, u64>,
    views: BTreeMap<u64, ReportedView>,
    checked: Checked,
    delivered: SurvivorDeliveries,
}

/// The latest process of a node.
#[derive(Clone, Copy, Debug)]
struct LatestProcess {
    worker: WorkerId,
    own: Incarnation,
}

impl<'i> Observer<'i> {
    /// Starts all members, and waits until they are in a view together.
    pub(super) fn start(arguments: &Views, interrupts: &'i Interrupts) -> Result<Self, BenchError> {
        let setup =
            |error: std::io::Error| BenchError::Setup(format!("cannot create a folder: {error}"));
        let folder = tempfile::Builder::new()
            .prefix("tramontane-views-")
            .tempdir_in("/dev/shm")
            .map_err(setup)?;
        let template = ViewsTask {
            description: describe(arguments)?,
            own: Incarnation { node: 0, start: 0 },
            folder: folder.path().to_path_buf(),
            pace_us: arguments.pace_us,
        };
        let mut observer = Self {
            template,
            folder,
            random: Random::stream(arguments.seed, "bench views"),
            interrupts,
            crew: Crew::default(),
            running: BTreeMap::new(),
            processes: BTreeMap::new(),
            is_going: BTreeSet::new(),
            ended: BTreeMap::new(),
            views: BTreeMap::new(),
            checked: Checked::default(),
            delivered: SurvivorDeliveries::default(),
        };
        for node in 0..u32::from(arguments.nodes) {
            observer.start_one(Incarnation { node, start: 0 })?;
        }
        observer.await_all_in(PATIENCE)?;
        Ok(observer)
    }

    fn start_one(&mut self, own: Incarnation) -> Result<(), BenchError> {
        let task = ViewsTask { own, ..self.template.clone() };
        let worker = self.crew.start(&task, &Launch::default())?;
        self.processes.insert(worker, own);
        self.running.insert(own.node, LatestProcess { worker, own });
        Ok(())
    }

    pub(super) fn start_again(&mut self, node: u32) -> Result<(), BenchError> {
        let LatestProcess { worker, own } = self.of_node(node)?;
        self.crew.remove(worker);
        self.start_one(Incarnation { node, start: own.start + 1 })
    }

    /// Returns a random number below `below`.
    pub(super) fn draw(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// Returns a random node.
    pub(super) fn pick(&mut self) -> u32 {
        let nodes: Vec<u32> = self.running.keys().copied().collect();
        nodes[self.random.index(nodes.len())]
    }

    fn of_node(&self, node: u32) -> Result<LatestProcess, BenchError> {
        let running = self.running.get(&node).copied();
        running.ok_or_else(|| BenchError::Setup(format!("node {node} was never started")))
    }

    pub(super) fn kill(&mut self, node: u32) -> Result<(), BenchError> {
        self.make_go(node, |crew, worker| crew.signal(worker, Signal::KILL))
    }

    pub(super) fn stop(&mut self, node: u32) -> Result<(), BenchError> {
        self.make_go(node, |crew, worker| crew.signal(worker, Signal::STOP))
    }

    pub(super) fn leave(&mut self, node: u32) -> Result<(), BenchError> {
        self.make_go(node, |crew, worker| crew.order(worker, &ViewsOrder::Leave))
    }

    pub(super) fn resume(&mut self, node: u32) -> Result<(), BenchError> {
        let running = self.of_node(node)?;
        Ok(self.crew.signal(running.worker, Signal::CONT)?)
    }

    fn make_go(
        &mut self,
        node: u32,
        how: impl FnOnce(&mut Crew<ViewMember>, WorkerId) -> Result<(), CrewError>,
    ) -> Result<(), BenchError> {
        let running = self.of_node(node)?;
        self.is_going.insert(running.own);
        Ok(how(&mut self.crew, running.worker)?)
    }

    /// Waits for the first delivery of every remaining member in a view without the given node.
    /// Returns the times, in ns.
    pub(super) fn await_delivery_without(
        &mut self,
        gone: u32,
        since_ns: u64,
        patience: Duration,
    ) -> Result<Vec<u64>, BenchError> {
        self.await_that("the others do not continue without it", patience, |observer| {
            let stays = observer.running.values().filter(|running| running.own.node != gone);
            let (_, known) = observer.views.last_key_value()?;
            if known.members.contains(&gone) {
                return None;
            }
            let first = |running: &LatestProcess| {
                let at_ns = known.installed.get(&running.own).copied().flatten();
                at_ns.filter(|at_ns| *at_ns >= since_ns)
            };
            stays.map(first).collect()
        })
    }

    /// Waits until a process has ended. Returns the time, in ns.
    pub(super) fn await_end(&mut self, node: u32, patience: Duration) -> Result<u64, BenchError> {
        let own = self.of_node(node)?.own;
        self.await_that("it does not end", patience, |observer| observer.ended.get(&own).copied())
    }

    /// Waits until all nodes are in one view and have delivered in it.
    pub(super) fn await_all_in(&mut self, patience: Duration) -> Result<(), BenchError> {
        self.await_that("not all are in one view", patience, |observer| {
            let (_, known) = observer.views.last_key_value()?;
            let is_in = |running: &LatestProcess| {
                known.installed.get(&running.own).is_some_and(Option::is_some)
            };
            observer.running.values().all(is_in).then_some(())
        })
    }

    fn await_that<T>(
        &mut self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Self) -> Option<T>,
    ) -> Result<T, BenchError> {
        let started = Instant::now();
        loop {
            if let Some(found) = is_so(self) {
                return Ok(found);
            }
            self.interrupts.check().map_err(CrewError::from)?;
            if started.elapsed() > patience {
                return Err(BenchError::Broken(self.stuck(what, patience)));
            }
            if let Some((worker, event)) = self.crew.next(LOOK_PAUSE) {
                let noted = self.note(worker, event);
                // A terminal interrupts all processes, so the process may have ended because of the
                // same signal.
                self.interrupts.check().map_err(CrewError::from)?;
                noted?;
            }
        }
    }

    /// Describes the state of a group that does not make progress.
    fn stuck(&self, what: &str, patience: Duration) -> String {
        let last = self.views.last_key_value();
        let statuses =
            OperatorClient::new(&self.template.description, &Root::under(self.folder.path()))
                .map(|visits| visits.statuses(LOOK_PAUSE * 10, &AtomicBool::new(false)));
        let processes: BTreeMap<u32, String> = self
            .running
            .iter()
            .map(|(node, running)| (*node, state_of(self.crew.pid(running.worker))))
            .collect();
        format!(
            "{what} within {patience:?}; last view: {last:?}; running: {:?}; processes: \
             {processes:?}; nodes: {statuses:?}",
            self.running
        )
    }

    fn note(
        &mut self,
        worker: WorkerId,
        event: WorkerEvent<ViewsReport>,
    ) -> Result<(), BenchError> {
        let Some(own) = self.processes.get(&worker).copied() else { return Ok(()) };
        match event {
            WorkerEvent::Report(ViewsReport::View { id, members }) => {
                let known = self.views.entry(id).or_default();
                if !known.installed.is_empty() && known.members != members {
                    return Err(BenchError::Broken(format!(
                        "view {id} has members {members:?} at one process and {:?} at another",
                        known.members
                    )));
                }
                known.members = members;
                known.installed.insert(own, None);
            }
            WorkerEvent::Report(ViewsReport::Delivered { view, at_ns }) => {
                self.views.entry(view).or_default().installed.insert(own, Some(at_ns));
            }
            WorkerEvent::Report(ViewsReport::Broken(what)) => return Err(BenchError::Broken(what)),
            WorkerEvent::Report(ViewsReport::Ended { at_ns, why, .. }) => {
                self.ended.insert(own, at_ns);
                if self.is_going.insert(own) {
                    // The process was slower than the failure timeout, so it rejoins.
                    self.checked.removed_by_mistake += 1;
                    tracing::warn!(?own, why, "a running member was removed");
                    self.start_again(own.node)?;
                }
            }
            WorkerEvent::Ended(end) => {
                self.ended.entry(own).or_insert_with(now_ns);
                let is_last = self.running.get(&own.node).is_some_and(|last| last.own == own);
                if !self.is_going.contains(&own) && is_last {
                    return Err(BenchError::Broken(format!(
                        "process {own:?} {end}; see its message above"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Compares the logs of all views but the last.
    pub(super) fn check_logs(&mut self) -> Result<(), BenchError> {
        while self.views.len() > 1 {
            let Some((view, known)) = self.views.pop_first() else { break };
            let next = self.views.first_key_value().map(|(id, known)| (*id, known));
            let Some((next_id, next)) = next else { break };
            if next_id != view + 1 {
                return Err(BenchError::Broken(format!(
                    "view {next_id} follows view {view}, but the numbers must be consecutive"
                )));
            }
            let members: Vec<Incarnation> = known.installed.keys().copied().collect();
            let goes_on: Vec<Incarnation> =
                members.iter().copied().filter(|own| next.installed.contains_key(own)).collect();
            self.checked.messages +=
                self.delivered.compare(self.folder.path(), view, &members, &goes_on)?;
            self.checked.views += 1;
            self.checked.promised = self.delivered.promised;
        }
        Ok(())
    }

    /// Ends all processes, and checks the remaining logs.
    pub(super) fn end(mut self) -> Result<Checked, BenchError> {
        self.check_logs()?;
        Ok(self.checked)
    }
}

fn describe(arguments: &Views) -> Result<Description, BenchError> {
    let group = Description::builder("views").nodes(arguments.nodes.into());
    let group = group.window(WINDOW).message_max(MESSAGE_BYTES).fabric(arguments.fabric);
    let group = group.heartbeat_ms(arguments.heartbeat_ms, arguments.failure_timeout_ms);
    let count = if arguments.fabric == Carrier::SharedMemory { 0 } else { arguments.nodes };
    // A restarted node needs the same port again.
    let addresses = free_addresses(count as usize).map_err(LocalError::from)?;
    Ok(group.addresses(&addresses).build()?)
}

/// Returns the system's description of each thread of a process, to be included in the report of an
/// unexpected state.
fn state_of(pid: u32) -> String {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return "ended".into() };
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).unwrap_or_default().trim().to_owned()
    };
    let state = |thread: std::fs::DirEntry| {
        let (name, waits) = (read(&thread.path().join("comm")), read(&thread.path().join("wchan")));
        format!("{name} in {waits}")
    };
    threads.flatten().map(state).collect::<Vec<_>>().join(", ")
}
