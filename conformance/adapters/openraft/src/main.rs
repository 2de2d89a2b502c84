//! `tramontane-openraft`: one member of a log that openraft replicates, for the conformance suite.
//!
//! | file | contents |
//! |---|---|
//! | `types` | the contents of the log |
//! | `log`, `machine` | the parts that openraft leaves to its users: storage and the state machine |
//! | `network`, `requests` | messages between servers and senders |
//! | `node` | the driver's `init` |
//! | `sending`, `delivery` | messages into the log, and out of it |
//! | `protocol` | the adapter protocol, shared with the reference adapter |
//!
//! All groups share one log. A node that is a member of a group has a server; a client has none.

mod delivery;
mod log;
mod machine;
mod network;
mod node;
#[path = "../../protocol.rs"]
mod protocol;
mod requests;
mod sending;
mod types;

use std::collections::BTreeMap;
use std::io::BufRead as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use openraft::{BasicNode, Config, SnapshotPolicy};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use delivery::{Delivery, Place};
use node::Node;
use protocol::{Command, Init, Line, halt, payload, say};
use sending::{Asking, Job};
use types::{Raft, Record};

/// The version of openraft in `Cargo.toml`.
const VERSION: &str = "0.9.25";

/// The claimed features; the README of this crate gives the reasons.
const FEATURES: &[&str] = &[
    "crash",
    "leave",
    "join",
    "restart",
    "durable",
    "pause",
    "suspension",
    "network",
    "several-groups",
    "order-across-groups",
    "outside-senders",
    "empty-messages",
    "large-messages",
];

/// Longer than openraft's default, because many nodes share two processors here.
const HEARTBEAT_MS: u64 = 200;
const ELECTION_MS: std::ops::Range<u64> = 800..1600;

/// Interval between checks whether the log has a leader.
const PAUSE: Duration = Duration::from_millis(20);

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(Command::Init(init)) = command() else { halt("done", "there was no init") };
    if init.protocol != protocol::VERSION {
        refuse("only protocol 1 is known");
    }
    match run(init).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tramontane-openraft: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the next command. An invalid command is logged and skipped.
fn command() -> Option<Command> {
    for line in std::io::stdin().lock().lines() {
        match serde_json::from_str(&line.ok()?) {
            Ok(command) => return Some(command),
            Err(error) => eprintln!("skipping an invalid command: {error}"),
        }
    }
    None
}

fn refuse(text: &str) -> ! {
    say(&Line::Error { code: "unsupported", definite: true, message: None, text });
    halt("done", text)
}

async fn run(init: Init) -> Result<(), Failure> {
    let node = Arc::new(Node::new(init));
    let pause_ms = Arc::new(AtomicU64::new(0));
    let raft = if node.groups().is_empty() {
        None
    } else {
        Some(start_server(&node, Arc::clone(&pause_ms)).await?)
    };
    say(&Line::InitOk { name: "openraft log", version: VERSION, features: FEATURES });
    let (jobs, to_do) = unbounded_channel();
    tokio::spawn(Asking::new(Arc::clone(&node), raft).run(to_do));
    tokio::task::spawn_blocking(move || obey(&node, &pause_ms, &jobs)).await?;
    halt("done", "")
}

/// Starts the node's server, and returns when the log has a leader and the node is a voter.
async fn start_server(node: &Arc<Node>, pause_ms: Arc<AtomicU64>) -> Result<Raft, Failure> {
    let storage = node.init.storage.join("openraft");
    std::fs::create_dir_all(&storage)?;
    let (handed, records) = channel();
    let delivered = node.groups().into_iter().map(|group| (group, 0)).collect();
    let delivery = Delivery { delivered, place: Place::open(&storage)?, pause_ms };
    std::thread::spawn(move || delivery.run(&records));
    let config = Config {
        cluster_name: "conformance".to_owned(),
        heartbeat_interval: HEARTBEAT_MS,
        election_timeout_min: ELECTION_MS.start,
        election_timeout_max: ELECTION_MS.end,
        snapshot_policy: SnapshotPolicy::Never,
        replication_lag_threshold: u64::MAX,
        ..Config::default()
    };
    let (log, machine) = (log::Log::open(&storage)?, machine::Machine::new(handed));
    let config = Arc::new(config.validate()?);
    let raft = Raft::new(node.id, config, network::Peers, log, machine).await?;
    let (listener, address) = node.listen().await?;
    tokio::spawn(network::serve(listener, raft.clone()));
    if node.init.join {
        let id = node.id;
        let join = || network::Request::Join { id, address: address.clone() };
        Asking::new(Arc::clone(node), Some(raft.clone())).until_done(join).await;
    } else if node.present().first() == Some(&node.id) && !raft.is_initialized().await? {
        let mut members = BTreeMap::new();
        for id in node.present() {
            members.insert(id, BasicNode { addr: node.address(id).await });
        }
        raft.initialize(members).await?;
    }
    while raft.current_leader().await.is_none() {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(raft)
}

/// Executes the driver's commands until `stop` or the end of standard input.
fn obey(node: &Node, pause_ms: &AtomicU64, jobs: &UnboundedSender<Job>) {
    while let Some(command) = command() {
        let job = match command {
            Command::Multicast { message, groups, bytes } => {
                let payload = payload(&message, bytes);
                Job::Send(Record { message, sender: node.init.node.clone(), groups, payload })
            }
            Command::Pause { ms } => {
                pause_ms.fetch_add(ms, Ordering::Relaxed);
                say(&Line::Ok { message: None });
                continue;
            }
            Command::Leave => Job::Leave,
            Command::Stop => break,
            Command::Init(_) | Command::Stats | Command::Unknown => {
                let text = "no such command here";
                say(&Line::Error { code: "unsupported", definite: true, message: None, text });
                continue;
            }
        };
        if jobs.send(job).is_err() {
            break;
        }
    }
}
