//! The processes of `bench views`, and what they say.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::ChildStdout;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;
use tramontane_fixtures::random::Random;

use super::logs::{Delivered, Who};
use super::member::{LEAVE, MESSAGE_BYTES, Part, Said, now_ns};
use crate::bench::BenchError;
use crate::bench::command::Views;
use crate::group::{Description, NodeDescription, Visits};
use crate::local::Carrier;
use crate::process::Worker;
use crate::shared_memory::Root;

/// Slots of each sender.
const WINDOW: u32 = 100;

/// Between two looks at the clock.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// One view, as far as its members have told of it.
#[derive(Debug, Default)]
struct Known {
    members: Vec<u32>,
    /// Who installed it, and when it first delivered in it.
    installed: BTreeMap<Who, Option<u64>>,
}

/// What was checked in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checked {
    pub(super) views: u64,
    pub(super) messages: u64,
    pub(super) promised: u64,
    pub(super) removed_by_mistake: u64,
}

/// All processes.
pub(super) struct Crew {
    template: Part,
    folder: TempDir,
    random: Random,
    workers: BTreeMap<u32, Worker>,
    /// The start of each node that runs, or ran last.
    starts: BTreeMap<u32, u32>,
    /// Who was made to go, or has ended.
    is_going: BTreeSet<Who>,
    ended: BTreeMap<Who, u64>,
    views: BTreeMap<u64, Known>,
    checked: Checked,
    delivered: Delivered,
    sender: Sender<(Who, Option<Said>)>,
    receiver: Receiver<(Who, Option<Said>)>,
}

impl Crew {
    /// Starts all members, and waits until they are in a view together.
    pub(super) fn start(arguments: &Views) -> Result<Self, BenchError> {
        let setup =
            |error: std::io::Error| BenchError::Setup(format!("cannot make a folder: {error}"));
        let folder = tempfile::Builder::new()
            .prefix("tramontane-views-")
            .tempdir_in("/dev/shm")
            .map_err(setup)?;
        let description =
            describe(arguments).map_err(|error| BenchError::Setup(error.to_string()))?;
        let template = Part {
            description,
            node: 0,
            start: 0,
            folder: folder.path().to_path_buf(),
            pace_us: arguments.pace_us,
        };
        let (sender, receiver) = channel();
        let mut crew = Self {
            template,
            folder,
            random: Random::stream(arguments.seed, "bench views"),
            workers: BTreeMap::new(),
            starts: BTreeMap::new(),
            is_going: BTreeSet::new(),
            ended: BTreeMap::new(),
            views: BTreeMap::new(),
            checked: Checked::default(),
            delivered: Delivered::default(),
            sender,
            receiver,
        };
        for node in 0..u32::from(arguments.nodes) {
            crew.start_one(node, 0)?;
        }
        crew.await_all_in(super::PATIENCE)?;
        Ok(crew)
    }

    fn start_one(&mut self, node: u32, start: u32) -> Result<(), BenchError> {
        let part = Part { node, start, ..self.template.clone() };
        let json =
            serde_json::to_string(&part).map_err(|error| BenchError::Setup(error.to_string()))?;
        let (worker, output) = Worker::start(&["bench", "view-member", &json], &[])
            .map_err(|error| BenchError::Setup(format!("cannot start a process: {error}")))?;
        self.workers.insert(node, worker);
        self.starts.insert(node, start);
        listen((node, start), output, self.sender.clone());
        Ok(())
    }

    pub(super) fn start_again(&mut self, node: u32) -> Result<(), BenchError> {
        let start = self.starts.get(&node).map_or(0, |start| start + 1);
        self.workers.remove(&node);
        self.start_one(node, start)
    }

    pub(super) fn now_ns(&self) -> u64 {
        now_ns()
    }

    /// A number below `below`.
    pub(super) fn draw(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    /// One of the nodes, at random.
    pub(super) fn pick(&mut self) -> u32 {
        let nodes: Vec<u32> = self.starts.keys().copied().collect();
        nodes[self.random.index(nodes.len())]
    }

    fn who(&self, node: u32) -> Who {
        (node, self.starts.get(&node).copied().unwrap_or(0))
    }

    fn signal(&mut self, node: u32, signal: Signal) -> Result<(), BenchError> {
        let worker = self
            .workers
            .get_mut(&node)
            .ok_or_else(|| BenchError::Setup("no such process".into()))?;
        worker
            .signal(signal)
            .map_err(|error| BenchError::Setup(format!("cannot send a signal: {error}")))
    }

    pub(super) fn kill(&mut self, node: u32) -> Result<(), BenchError> {
        self.is_going.insert(self.who(node));
        self.signal(node, Signal::KILL)
    }

    pub(super) fn stop(&mut self, node: u32) -> Result<(), BenchError> {
        self.is_going.insert(self.who(node));
        self.signal(node, Signal::STOP)
    }

    pub(super) fn resume(&mut self, node: u32) -> Result<(), BenchError> {
        self.signal(node, Signal::CONT)
    }

    pub(super) fn leave(&mut self, node: u32) -> Result<(), BenchError> {
        self.is_going.insert(self.who(node));
        let worker = self
            .workers
            .get_mut(&node)
            .ok_or_else(|| BenchError::Setup("no such process".into()))?;
        worker
            .tell(LEAVE)
            .map_err(|error| BenchError::Setup(format!("a process does not listen: {error}")))
    }

    /// Waits for the first delivery of every member that stays, in a view without that node: when they were, in ns.
    pub(super) fn await_delivery_without(
        &mut self,
        gone: u32,
        since_ns: u64,
        patience: Duration,
    ) -> Result<Vec<u64>, BenchError> {
        self.await_that("the others do not go on without it", patience, |crew| {
            let stays: Vec<Who> = crew
                .starts
                .keys()
                .filter(|node| **node != gone)
                .map(|node| crew.who(*node))
                .collect();
            let (_, known) = crew.views.last_key_value()?;
            if known.members.contains(&gone) {
                return None;
            }
            let first = |who: &Who| {
                known.installed.get(who).copied().flatten().filter(|at| *at >= since_ns)
            };
            stays.iter().map(first).collect()
        })
    }

    /// Waits until a process has said its last word: when that was, in ns.
    pub(super) fn await_end(&mut self, node: u32, patience: Duration) -> Result<u64, BenchError> {
        let who = self.who(node);
        self.await_that("it does not end", patience, |crew| crew.ended.get(&who).copied())
    }

    /// Waits until all nodes are in one view, and have delivered in it.
    pub(super) fn await_all_in(&mut self, patience: Duration) -> Result<(), BenchError> {
        self.await_that("not all are in one view", patience, |crew| {
            let (_, known) = crew.views.last_key_value()?;
            let is_in =
                |node: &u32| known.installed.get(&crew.who(*node)).is_some_and(Option::is_some);
            crew.starts.keys().all(is_in).then_some(())
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
            if started.elapsed() > patience {
                let last = self.views.last_key_value();
                let statuses =
                    Visits::new(&self.template.description, &Root::under(self.folder.path()))
                        .map(|visits| visits.statuses(LOOK_PAUSE * 10, &AtomicBool::new(false)));
                let processes: BTreeMap<u32, String> = self
                    .workers
                    .iter()
                    .map(|(node, worker)| (*node, state_of(worker.pid())))
                    .collect();
                return Err(BenchError::Broken(format!(
                    "{what} in {patience:?}; the last view: {last:?}; starts: {:?}; processes: {processes:?}; nodes: {statuses:?}",
                    self.starts
                )));
            }
            match self.receiver.recv_timeout(LOOK_PAUSE) {
                Ok((who, said)) => self.note(who, said)?,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn note(&mut self, who: Who, said: Option<Said>) -> Result<(), BenchError> {
        match said {
            Some(Said::View { id, members }) => {
                let known = self.views.entry(id).or_default();
                if !known.installed.is_empty() && known.members != members {
                    return Err(BenchError::Broken(format!(
                        "view {id} has {members:?} and {:?}",
                        known.members
                    )));
                }
                known.members = members;
                known.installed.insert(who, None);
            }
            Some(Said::Delivered { view, at_ns }) => {
                self.views.entry(view).or_default().installed.insert(who, Some(at_ns));
            }
            Some(Said::Broken(what)) => return Err(BenchError::Broken(what)),
            Some(Said::Ended { at_ns, why, .. }) => {
                self.ended.insert(who, at_ns);
                if self.is_going.insert(who) {
                    // Nobody asked for it: it was slower than the failure timeout, and is let in again.
                    self.checked.removed_by_mistake += 1;
                    tracing::warn!(?who, why, "a member was taken for dead");
                    self.start_again(who.0)?;
                }
            }
            // The end of its output. A killed process says nothing else.
            None => {
                self.ended.entry(who).or_insert_with(now_ns);
                if !self.is_going.contains(&who) && self.starts.get(&who.0) == Some(&who.1) {
                    return Err(BenchError::Broken(format!(
                        "{who:?} ended; if it could, it says why above"
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
                return Err(BenchError::Broken(format!("after view {view} came view {next_id}")));
            }
            let members: Vec<Who> = known.installed.keys().copied().collect();
            let goes_on: Vec<Who> =
                members.iter().copied().filter(|who| next.installed.contains_key(who)).collect();
            self.checked.messages +=
                self.delivered.compare(self.folder.path(), view, &members, &goes_on)?;
            self.checked.views += 1;
            self.checked.promised = self.delivered.promised;
        }
        Ok(())
    }

    /// Ends all, and checks what is left.
    pub(super) fn end(mut self) -> Result<Checked, BenchError> {
        self.check_logs()?;
        let mut workers: Vec<Worker> = std::mem::take(&mut self.workers).into_values().collect();
        crate::process::dismiss(&mut workers);
        Ok(self.checked)
    }
}

/// Hears one process, in a thread of its own.
fn listen(who: Who, output: ChildStdout, sender: Sender<(Who, Option<Said>)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Ok(said) = serde_json::from_str(&line)
                && sender.send((who, Some(said))).is_err()
            {
                return;
            }
        }
        // Nobody listens any more when the experiment is over.
        let _ = sender.send((who, None));
    });
}

fn describe(arguments: &Views) -> Result<Description, Box<dyn std::error::Error>> {
    let mut description =
        Description::local("views", u32::from(arguments.nodes), WINDOW, MESSAGE_BYTES);
    description.failure_timeout_ms = arguments.failure_timeout_ms;
    description.heartbeat_ms = arguments.heartbeat_ms;
    if arguments.fabric != Carrier::SharedMemory {
        description.fabric = arguments.fabric;
        // Free at this moment, all of them at once; whoever is started again needs the same one.
        let sockets = description.nodes.iter().map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let sockets = sockets.collect::<std::io::Result<Vec<_>>>()?;
        let address = |(node, socket): (&NodeDescription, &TcpListener)| {
            let address: SocketAddr = socket.local_addr()?;
            Ok::<_, std::io::Error>(NodeDescription {
                id: node.id,
                address: Some(address),
                state: None,
            })
        };
        description.nodes =
            description.nodes.iter().zip(&sockets).map(address).collect::<Result<_, _>>()?;
    }
    description.complete()?;
    Ok(description)
}

/// What the system says that each thread of a process is doing: for a report of what should not be.
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
