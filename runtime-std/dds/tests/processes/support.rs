//! Domains whose participants are separate processes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::free_addresses::free_addresses;
use tempfile::TempDir;
use tramontane::Carrier;
use tramontane::group::ControlEndpoints;
use tramontane::shared_memory::Root;
use tramontane_dds::{Domain, Members};

/// Environment variables that configure a process.
pub const NODE: &str = "TRAMONTANE_DDS_NODE";
pub const DOMAIN: &str = "TRAMONTANE_DDS_DOMAIN";
pub const ROOT: &str = "TRAMONTANE_DDS_ROOT";
pub const DATA: &str = "TRAMONTANE_DDS_DATA";
pub const OUTSIDE: &str = "TRAMONTANE_DDS_OUTSIDE";

/// The logged topic.
pub const LOGGED: &str = "Records";

/// The prefix of a process's answers. It is needed because the test's own output is mixed with
/// them.
pub const SAID: &str = "@said ";

/// Time limit for any wait, generous enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(90);

pub const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// The files and addresses of a domain's participants.
pub struct DomainFiles {
    root: TempDir,
    folder: TempDir,
}

impl DomainFiles {
    /// Creates a domain with `nodes` nodes and these topic tables.
    pub fn new(carrier: Carrier, nodes: u32, topics: &str) -> Self {
        Self::with_lease(carrier, nodes, topics, 60_000)
    }

    /// Creates such a domain, with a lease for external participants.
    pub fn with_lease(carrier: Carrier, nodes: u32, topics: &str, lease_ms: u64) -> Self {
        let root = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let folder = tempfile::tempdir().expect("a folder");
        let addresses = free_addresses(nodes as usize).expect("free ports");
        let node = |(id, address): (usize, &SocketAddr)| match carrier {
            Carrier::Tcp => format!("{{ id = {id}, address = \"{address}\" }}"),
            _ => format!("{{ id = {id} }}"),
        };
        let nodes: Vec<String> = addresses.iter().enumerate().map(node).collect();
        let fabric = if carrier == Carrier::Tcp { "tcp" } else { "shm" };
        let text = format!(
            "client_lease_ms = {lease_ms}\n[group]\nname = \"dds-processes\"\nfabric = \"{fabric}\"\nheartbeat_ms = 20\n\
             failure_timeout_ms = 3000\nnodes = [{}]\n{topics}",
            nodes.join(", ")
        );
        let place = Self { root, folder };
        std::fs::write(place.domain(), text).expect("written");
        place
    }

    fn domain(&self) -> PathBuf {
        self.folder.path().join("domain.toml")
    }

    /// Returns the members that an external participant may connect to, with node `first` first.
    pub fn members(&self, first: usize) -> Members {
        let domain = Domain::read(&self.domain()).expect("a domain");
        let root = Root::under(self.root.path());
        let endpoints = ControlEndpoints::of(domain.group(), &root).expect("addresses");
        let mut addresses: Vec<_> = endpoints.addresses().cloned().collect();
        addresses.rotate_left(first);
        Members::at(addresses).time_limit(PATIENCE)
    }

    /// Starts a participant, which joins the domain.
    pub fn start(&self, node: u32) -> ParticipantProcess {
        self.start_as(node, false)
    }

    /// Starts an external participant, which connects to this node.
    pub fn start_outside(&self, node: u32) -> ParticipantProcess {
        self.start_as(node, true)
    }

    fn start_as(&self, node: u32, is_outside: bool) -> ParticipantProcess {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(["--exact", "role::role", "--nocapture"])
            .env(NODE, node.to_string())
            .env(DOMAIN, self.domain())
            .env(ROOT, self.root.path())
            .env(DATA, self.folder.path().join("data"))
            .env(OUTSIDE, if is_outside { "yes" } else { "" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("piped"));
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, said)) = line.split_once(SAID)
                    && sender.send(said.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        ParticipantProcess { node, child, input, said }
    }

    /// Starts these participants at the same time.
    pub fn start_all(&self, nodes: std::ops::Range<u32>) -> Vec<ParticipantProcess> {
        std::fs::create_dir_all(self.folder.path().join("data")).expect("a folder");
        let mut processes: Vec<ParticipantProcess> = nodes.map(|node| self.start(node)).collect();
        processes.iter_mut().for_each(|process| process.expect("joined").clear());
        processes
    }
}

/// A participant's process. Dropping this kills it.
pub struct ParticipantProcess {
    node: u32,
    child: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
}

impl ParticipantProcess {
    /// Sends the process a command.
    pub fn tell(&mut self, what: &str) {
        let input = self.input.as_mut().expect("piped");
        writeln!(input, "{what}").expect("it reads");
    }

    /// Waits for the next answer that begins in this way, and drops earlier answers.
    pub fn expect(&mut self, beginning: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(said) if said.starts_with(beginning) => return said,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("node {}: no {beginning}", self.node),
                Err(RecvTimeoutError::Disconnected) => panic!("node {} ended", self.node),
            }
        }
    }

    /// Sends a command and returns its answer.
    pub fn ask(&mut self, what: &str, beginning: &str) -> String {
        self.tell(what);
        self.expect(beginning)
    }

    /// Kills the process, and returns all its answers that have not been read.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("it is there");
        self.child.wait().expect("it was there");
        // The output ends with the process.
        self.said.iter().collect()
    }
}

impl Drop for ParticipantProcess {
    fn drop(&mut self) {
        // The process may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
pub fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
