//! From `init` to `init_ok`: a daemon, a connection for each group, and everyone there.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::cpg::{Address, Connection, CorosyncError, GroupName, Inbox};
use crate::daemon::{Daemon, DaemonError, Settings};
use crate::group::{Deliveries, Group, Notice};
use crate::member::Member;
use crate::members::Members;
use crate::protocol::{self, Init, Line, tell};
use crate::views::{Numbering, Registry};
use crate::{Event, Events};

/// Between two tries of what Corosync cannot do yet.
const RETRY: Duration = Duration::from_millis(5);

/// What is claimed with either daemon: what cpg_join(3), cpg_leave(3) and cpg_mcast_joined(3)
/// promise, or what a process can do by itself (be slow, be suspended).
///
/// - `several-groups`: a process may have several connections, and a connection one group.
/// - Not `order-across-groups`: cpg_join(3) "may only be called once for each handle", so no
///   message is for two.
/// - Not `outside-senders`: the groups are closed.
/// - Not `restart`, `durable`: CPG stores nothing. Not `stats`: see `conformance/docs/corosync.md`.
const FEATURES: &[&str] = &[
    "views",
    "crash",
    "leave",
    "join",
    "pause",
    "several-groups",
    "suspension",
    "empty-messages",
    "large-messages",
];

/// What is claimed besides where each member has its own daemon.
const NETWORK: &str = "network";

/// Which daemon is used.
#[derive(Clone, Debug)]
pub enum Daemons {
    /// One that runs already, for all members.
    Shared,
    /// Each member's own.
    Own(Settings),
}

/// Why there is no member.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// CPG cannot do that.
    #[error("{0}")]
    Unsupported(String),
    /// It should have been possible.
    #[error("{0}")]
    Failed(String),
}

impl Refusal {
    /// For programs.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unsupported(_) => "unsupported",
            Self::Failed(_) => "failed",
        }
    }
}

fn failed(what: &str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal::Failed(format!("{what}: {error}"))
}

fn refused(what: &str) -> impl FnOnce(CorosyncError) -> Refusal {
    move |error| Refusal::Failed(format!("{what}: {error}"))
}

/// Starts the daemon, if it is to be this member's own.
///
/// # Errors
/// What CPG cannot do is found out before.
pub fn daemon(daemons: &Daemons, init: &Init) -> Result<Option<Daemon>, Refusal> {
    if init.protocol != protocol::VERSION {
        return Err(Refusal::Unsupported(format!("version {} of the protocol", init.protocol)));
    }
    let outsider = init.groups.iter().find(|group| {
        let sends = group.senders.contains(&init.node);
        sends && !group.members.contains(&init.node)
    });
    if let Some(group) = outsider {
        return Err(Refusal::Unsupported(format!(
            "{} is closed: senders are members",
            group.group
        )));
    }
    match daemons {
        Daemons::Shared => Ok(None),
        Daemons::Own(settings) => match Daemon::start(init, settings) {
            Ok(daemon) => Ok(Some(daemon)),
            Err(error @ DaemonError::SharedAddress(_)) => {
                Err(Refusal::Unsupported(error.to_string()))
            }
            Err(error) => Err(Refusal::Failed(error.to_string())),
        },
    }
}

/// Joins the groups that name this node, and answers `init`.
///
/// # Errors
/// The daemon cannot be reached in time, or refuses.
pub fn join(
    init: &Init,
    daemons: &Daemons,
    mut daemon: Option<Daemon>,
    events: &Sender<Event>,
    inbox: Events,
) -> Result<Member, Refusal> {
    let deadline = Instant::now() + Duration::from_millis(init.limits.deadline_ms) / 2;
    let members = Members::open(&init.shared).map_err(failed("the run's folder"))?;
    let pause_ms = Arc::new(AtomicU64::new(0));
    let mut groups = Vec::new();
    let mut expected = HashMap::new();
    for group in init.groups.iter().filter(|group| group.members.contains(&init.node)) {
        let (connection, incoming) = connect(&mut daemon, deadline)?;
        let nodeid = connection.nodeid().map_err(refused("cpg_local_get"))?;
        let myself = Address { nodeid, pid: std::process::id() };
        members.register(myself, &init.node).map_err(failed("the run's folder"))?;
        let registry = Registry::new(&init.shared, &group.group, time_left(deadline));
        let deliveries = Deliveries {
            group: group.group.clone(),
            myself,
            members: members.clone(),
            numbering: Numbering::new(myself, registry),
            pause_ms: Arc::clone(&pause_ms),
            notices: events.clone(),
            over: false,
        };
        let joined =
            Group::new(group.group.clone(), corosync_name(init, &group.group)?, connection);
        patiently(deadline, || joined.join()).map_err(refused("cpg_join"))?;
        thread::spawn(move || deliveries.run(incoming));
        expected.insert(group.group.clone(), expected_members(init, group));
        groups.push(joined);
    }
    let mut waiting = Vec::new();
    gather(expected, deadline, &inbox, &mut waiting)?;
    let (version, features) = (version(), features(daemons));
    let ready = Line::InitOk { name: "corosync-cpg", version: &version, features: &features };
    tell(&ready).map_err(failed("the driver"))?;
    Ok(Member::new(groups, daemon, pause_ms, inbox, waiting))
}

/// How many members a group has before this one is ready: all, or, where it joins a running group,
/// it and another.
fn expected_members(init: &Init, group: &protocol::Group) -> usize {
    if init.join { group.members.len().min(2) } else { group.members.len() }
}

fn features(daemons: &Daemons) -> Vec<&'static str> {
    let network = matches!(daemons, Daemons::Own(_)).then_some(NETWORK);
    FEATURES.iter().copied().chain(network).collect()
}

fn time_left(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

/// Groups of different runs have different names: a daemon that outlives a run keeps its groups
/// apart.
fn corosync_name(init: &Init, group: &str) -> Result<GroupName, Refusal> {
    let run = Sha256::digest(init.shared.as_os_str().as_encoded_bytes());
    let name = format!("{:02x}{:02x}{:02x}{:02x}/{group}", run[0], run[1], run[2], run[3]);
    GroupName::new(&name).ok_or_else(|| Refusal::Unsupported(format!("{group} is too long a name")))
}

fn patiently(
    deadline: Instant,
    mut attempt: impl FnMut() -> Result<(), CorosyncError>,
) -> Result<(), CorosyncError> {
    loop {
        match attempt() {
            Err(CorosyncError::TRY_AGAIN) if Instant::now() < deadline => thread::sleep(RETRY),
            outcome => return outcome,
        }
    }
}

/// Connects as soon as the daemon lets one: it says all sorts of things while it starts.
fn connect(daemon: &mut Option<Daemon>, deadline: Instant) -> Result<(Connection, Inbox), Refusal> {
    loop {
        match Connection::open() {
            Ok(connection) => return Ok(connection),
            Err(error) if Instant::now() >= deadline => {
                return Err(refused("cpg_model_initialize")(error));
            }
            Err(_) if daemon.as_mut().is_some_and(Daemon::is_gone) => {
                return Err(Refusal::Failed(
                    "corosync ended; see corosync.log in the storage folder".to_owned(),
                ));
            }
            Err(_) => thread::sleep(RETRY),
        }
    }
}

/// Waits until each group has as many members as it will have. If some do not come, the run begins
/// without them: what follows are views without them, and the suite can tell. Commands that come
/// meanwhile are kept.
fn gather(
    mut expected: HashMap<String, usize>,
    deadline: Instant,
    inbox: &Events,
    waiting: &mut Vec<Event>,
) -> Result<(), Refusal> {
    let mut unseen: Vec<String> = expected.keys().cloned().collect();
    while !expected.is_empty() {
        match inbox.recv_timeout(time_left(deadline)) {
            Ok(Event::Notice(Notice::View { group, members })) => {
                unseen.retain(|name| *name != group);
                if expected.get(&group).is_some_and(|wanted| members >= *wanted) {
                    expected.remove(&group);
                }
            }
            Ok(Event::Notice(Notice::Lost(text))) => return Err(Refusal::Failed(text)),
            Ok(other) => waiting.push(other),
            Err(RecvTimeoutError::Timeout) if unseen.is_empty() => return Ok(()),
            Err(_) => {
                return Err(Refusal::Failed(format!("no view of {} came", unseen.join(", "))));
            }
        }
    }
    Ok(())
}

/// What the daemon says of itself: "Corosync Cluster Engine, version '3.1.7'".
fn version() -> String {
    let said =
        Command::new("corosync").arg("-v").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    said.split('\'').nth(1).unwrap_or("unknown").to_owned()
}
