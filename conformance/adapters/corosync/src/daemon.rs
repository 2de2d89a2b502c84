//! A daemon of this member's own: the member stands for a whole node.
//!
//! The daemon lives in this process's network namespace, with `/run` and `/dev/shm` of its own (it
//! keeps its process number and its connections' memory there). It dies with this process: a kill
//! of the member kills the node. Its state is in the node's storage folder, so that ring numbers
//! rise over restarts.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::protocol::Init;

/// How long the daemon may take to end when asked, before it is ended.
const FAREWELL: Duration = Duration::from_millis(1500);

/// What daemons have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a silent node is waited for.
    pub token_ms: u64,
    /// For each node a process in whose network it may be, if its address is not its own.
    pub networks: Vec<u32>,
}

/// A running daemon.
#[derive(Debug)]
pub struct Daemon {
    process: Child,
}

/// Why no daemon was started.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// All daemons of one network namespace would take each other's connections.
    #[error(
        "a daemon of one's own needs an address of one's own, and {0} is shared: give each node a network namespace, or use --daemon shared"
    )]
    SharedAddress(String),
    /// The node is not in the list.
    #[error("{0} is not among the nodes")]
    Unlisted(String),
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> DaemonError {
    move |source| DaemonError::System { what, source }
}

impl Daemon {
    /// Starts the daemon of `init.node`.
    ///
    /// This must be called before any thread is started: the daemon's life is bound to the calling
    /// thread's, and other threads would keep the old `/run`.
    ///
    /// # Errors
    /// See [`DaemonError`].
    pub fn start(init: &Init, settings: &Settings) -> Result<Self, DaemonError> {
        let addresses = addresses(init, settings)?;
        let state = state_folder(init);
        fs::create_dir_all(&state).map_err(system("the daemon's folder"))?;
        let configuration_file = state.join("corosync.conf");
        fs::write(&configuration_file, configuration(init, &addresses, settings))
            .map_err(system("the configuration"))?;
        let log = File::options().create(true).append(true).open(state.join("corosync.log"));
        let log = log.map_err(system("the daemon's log"))?;
        enter_own_mounts().map_err(system("a mount namespace"))?;
        let mut command = Command::new("corosync");
        command
            .arg("-f")
            .arg("-c")
            .arg(configuration_file)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command.stderr(log);
        // SAFETY: the closure makes one system call and touches no memory that another thread may
        // hold.
        unsafe { command.pre_exec(die_with_parent) };
        let process = command.spawn().map_err(system("corosync"))?;
        Ok(Self { process })
    }

    /// Ends it at once, so that the other daemons hear nothing of it for as long as they wait for a
    /// silent node.
    pub fn kill(&mut self) {
        // Both fail only where the process is gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Whether the daemon has ended.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.is_gone() {
            return;
        }
        if let Ok(pid) = libc::pid_t::try_from(self.process.id()) {
            // SAFETY: the process is this one's child, and was not waited for to its end, so the
            // number is its.
            unsafe { libc::kill(pid, libc::SIGTERM) };
        }
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline && !self.is_gone() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }
}

/// The nodes' addresses: those of `init`, or, if they are nobody's own, those of the networks that
/// were made for the nodes beforehand, after going into this node's.
fn addresses(init: &Init, settings: &Settings) -> Result<Vec<String>, DaemonError> {
    let place = init.nodes.iter().position(|node| node.node == init.node);
    let place = place.ok_or_else(|| DaemonError::Unlisted(init.node.clone()))?;
    let own = &init.nodes[place].address;
    if !own.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
        return Ok(init.nodes.iter().map(|node| node.address.clone()).collect());
    }
    let holder =
        settings.networks.get(place).ok_or_else(|| DaemonError::SharedAddress(own.clone()))?;
    let network =
        File::open(format!("/proc/{holder}/ns/net")).map_err(system("the node's network"))?;
    // SAFETY: an open file, and no memory.
    checked(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })
        .map_err(system("the node's network"))?;
    Ok((1..=init.nodes.len()).map(|number| format!("10.113.1.{number}")).collect())
}

fn state_folder(init: &Init) -> PathBuf {
    init.storage.join("corosync")
}

/// One ring of all nodes. `token` decides how soon a silent node is taken for gone: 1 s for any
/// number of nodes, not 3 s and more, so that a suite takes minutes. The rest is as Corosync has
/// it.
fn configuration(init: &Init, addresses: &[String], settings: &Settings) -> String {
    let named = (1..).zip(init.nodes.iter().zip(addresses));
    let nodes: String = named
        .map(|(id, (node, address))| {
            format!(
                "  node {{\n    nodeid: {id}\n    name: {}\n    ring0_addr: {address}\n  }}\n",
                node.node
            )
        })
        .collect();
    let token_ms = settings.token_ms;
    let state = state_folder(init);
    let state = state.display();
    format!(
        "totem {{\n  version: 2\n  cluster_name: conformance\n  transport: knet\n  crypto_cipher: none\n  \
         crypto_hash: none\n  token: {token_ms}\n  token_coefficient: 0\n}}\nnodelist {{\n{nodes}}}\nsystem {{\n  sched_rr: no\n  \
         state_dir: {state}\n}}\nlogging {{\n  to_syslog: no\n  to_stderr: yes\n}}\n"
    )
}

/// Gives this process mounts of its own, and empty `/run` and `/dev/shm` in them.
fn enter_own_mounts() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(c"none", c"/", c"", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"corosync", c"/run", c"tmpfs", 0)?;
    mount(c"corosync", c"/dev/shm", c"tmpfs", 0)
}

fn mount(source: &CStr, target: &CStr, kind: &CStr, flags: libc::c_ulong) -> io::Result<()> {
    // SAFETY: three live strings with their ends, and no data.
    checked(unsafe {
        libc::mount(source.as_ptr(), target.as_ptr(), kind.as_ptr(), flags, std::ptr::null())
    })
}

fn die_with_parent() -> io::Result<()> {
    // SAFETY: no memory is involved.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
