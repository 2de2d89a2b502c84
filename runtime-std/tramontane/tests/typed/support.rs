//! A group whose members have copies of a ledger, which can be made slow or made to panic.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tramontane::serde::{Deserialize, Serialize};
use tramontane::shared_memory::Root;
use tramontane::typed::{NotStarted, ReplicatedOptions};
use tramontane::{Description, NotAnswered, Proposal, Replicated, StartOptions, StateMachine};

/// Maximum time for any operation, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The slots of each sender.
pub const WINDOW: u32 = 8;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
pub enum SumCommand {
    Add(u64),
    /// Adds the length.
    Text(String),
    /// Panics at all members.
    Panic,
}

/// Holds up the member whose gate is closed.
#[derive(Debug, Default)]
pub struct Gate {
    closed: Mutex<()>,
    is_waiting: AtomicBool,
}

impl Gate {
    pub fn close(&self) -> MutexGuard<'_, ()> {
        self.closed.lock().expect("nobody panics with it")
    }

    pub fn await_waiting(&self) {
        await_that("a member is held up", || self.is_waiting.load(Ordering::Relaxed));
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(crate = "tramontane::serde")]
pub struct SumLedger {
    pub sum: u64,
    pub commands: u64,
    #[serde(skip)]
    gate: Arc<Gate>,
}

impl StateMachine for SumLedger {
    type Command = SumCommand;
    /// The number of the command, and the sum after it.
    type Answer = (u64, u64);

    fn apply(&mut self, command: SumCommand) -> (u64, u64) {
        self.gate.is_waiting.store(true, Ordering::Relaxed);
        drop(self.gate.close());
        self.gate.is_waiting.store(false, Ordering::Relaxed);
        self.sum += match command {
            SumCommand::Add(value) => value,
            SumCommand::Text(text) => text.len() as u64,
            SumCommand::Panic => panic!("told to"),
        };
        self.commands += 1;
        (self.commands, self.sum)
    }
}

pub type SumMember = Replicated<SumLedger>;

/// A group, and the folders of its members.
pub struct SumGroup {
    pub description: Description,
    pub limits: ReplicatedOptions,
    root: TempDir,
    data: Option<TempDir>,
}

impl SumGroup {
    pub fn of(nodes: u32) -> Self {
        let mut description = Description::local("ledger", nodes, WINDOW, 64);
        description.heartbeat_ms = 10;
        description.failure_timeout_ms = 10_000;
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        Self { description, limits: ReplicatedOptions::default(), root, data: None }
    }

    /// Makes each member log the commands.
    pub fn logged(mut self) -> Self {
        self.description.subgroups[0].logged = true;
        self.data = Some(tempfile::tempdir().expect("a folder"));
        self
    }

    pub fn options(&self, node: u32) -> StartOptions<'static> {
        StartOptions {
            root: Root::under(self.root.path()),
            time_limit: PATIENCE,
            data: self.data_of(node),
            ..StartOptions::new(node)
        }
    }

    fn data_of(&self, node: u32) -> Option<PathBuf> {
        self.data.as_ref().map(|data| data.path().join(format!("data-{node}")))
    }

    pub fn start(&self, node: u32) -> Result<(SumMember, Arc<Gate>), NotStarted> {
        let ledger = SumLedger::default();
        let gate = Arc::clone(&ledger.gate);
        let (description, options) = (self.description.clone(), self.options(node));
        Ok((Replicated::start_with(description, options, self.limits, ledger)?, gate))
    }

    /// Starts all these nodes at the same time.
    pub fn start_all<const N: usize>(&self, nodes: [u32; N]) -> [(SumMember, Arc<Gate>); N] {
        std::thread::scope(|scope| {
            let starting = nodes.map(|node| scope.spawn(move || self.start(node)));
            starting.map(|starting| starting.join().expect("no panic").expect("it starts"))
        })
    }

    /// Makes each node remember its membership, so that it can restart.
    pub fn remembered(mut self) -> Self {
        for node in &mut self.description.nodes {
            node.state = Some(self.root.path().join(format!("state-{}", node.id)));
        }
        self
    }
}

/// Waits until a condition holds.
pub fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A minimal executor, which knows nothing of the group.
pub fn block_on<F: Future>(future: F) -> F::Output {
    struct WakeThread(Thread);
    impl Wake for WakeThread {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(WakeThread(std::thread::current())));
    let mut future = pin!(future);
    let started = Instant::now();
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(PATIENCE),
        }
        assert!(started.elapsed() < PATIENCE, "nobody wakes it");
    }
}

/// Proposes `count` commands without waiting.
pub fn propose(member: &SumMember, count: u64) -> Vec<Proposal<(u64, u64)>> {
    (0..count).map(|_| member.propose(SumCommand::Add(1))).collect()
}

/// Waits for each proposal in a thread of its own, so that each waits before the end comes.
pub fn outcomes(
    proposals: Vec<Proposal<(u64, u64)>>,
    end: impl FnOnce(),
) -> Vec<Result<(u64, u64), NotAnswered>> {
    std::thread::scope(|scope| {
        let waits: Vec<_> = proposals
            .into_iter()
            .enumerate()
            .map(|(number, proposal)| {
                scope.spawn(move || match number % 2 {
                    0 => proposal.wait(PATIENCE),
                    _ => block_on(proposal),
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(20));
        end();
        waits.into_iter().map(|wait| wait.join().expect("it ends")).collect()
    })
}
