//! The processes of a group's nodes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::client::{PATIENCE, TestClient};

/// A group, and the folder in which its nodes meet.
pub(crate) struct TestGroup {
    folder: TempDir,
    options: Vec<String>,
}

/// A running node.
pub(crate) struct TestNode {
    child: Child,
    pub(crate) address: SocketAddr,
    errors: Receiver<String>,
}

impl TestGroup {
    /// Creates a group of three nodes with these fields in its subgroup.
    pub(crate) fn new(fields: &str) -> Self {
        Self::of(3, fields)
    }

    pub(crate) fn of(nodes: u32, fields: &str) -> Self {
        let folder = TempDir::new().expect("a folder");
        let ids: Vec<_> = (0..nodes).map(|id| format!("{{ id = {id} }}")).collect();
        let text = format!(
            "name = \"redis\"\nfailure_timeout_ms = 2000\nnodes = [{}]\n[[subgroups]]\n\
             name = \"keys\"\nwindow = 16\nmessage_max = 16384\n{fields}\n",
            ids.join(", ")
        );
        fs::write(folder.path().join("redis.toml"), text).expect("a file");
        Self { folder, options: Vec::new() }
    }

    /// Makes silent nodes count as dead only after a long time, for requests that take a while on a
    /// busy machine.
    pub(crate) fn patient(self) -> Self {
        let file = self.folder.path().join("redis.toml");
        let text = fs::read_to_string(&file).expect("a file");
        let text = text.replace("failure_timeout_ms = 2000", "failure_timeout_ms = 10000");
        fs::write(file, text).expect("a file");
        self
    }

    /// Adds options for all nodes.
    pub(crate) fn with(mut self, options: &[&str]) -> Self {
        self.options = options.iter().map(|option| (*option).to_owned()).collect();
        self
    }

    /// Starts a node without waiting for it.
    pub(crate) fn spawn(&self, id: u32) -> Child {
        let state = format!("state-{id}");
        let mut command = Command::new(crate::PROGRAM);
        command.current_dir(self.folder.path()).env("TRAMONTANE_SHM_DIR", self.folder.path());
        command.args(["--config", "redis.toml", "--id", &id.to_string(), "--state", &state]);
        command.args(["--listen", "127.0.0.1:0"]).args(&self.options);
        command.stderr(Stdio::piped()).spawn().expect("the program starts")
    }

    /// Waits until a node serves clients.
    pub(crate) fn await_node(mut child: Child) -> TestNode {
        let (sender, errors) = channel();
        let lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test may no longer read them.
                let _ = sender.send(line);
            }
        });
        let mut told = Vec::new();
        let started = Instant::now();
        let address = loop {
            let left = PATIENCE.saturating_sub(started.elapsed());
            let Ok(line) = errors.recv_timeout(left) else {
                panic!("the node serves no clients: {told:?}, {:?}", child.try_wait());
            };
            if let Some((_, address)) = line.split_once(" serves Redis clients at ") {
                break address.parse().expect("an address");
            }
            told.push(line);
        };
        TestNode { child, address, errors }
    }

    pub(crate) fn start(&self, id: u32) -> TestNode {
        Self::await_node(self.spawn(id))
    }

    /// Starts several nodes at once.
    pub(crate) fn start_all(&self, ids: &[u32]) -> Vec<TestNode> {
        let children: Vec<_> = ids.iter().map(|id| self.spawn(*id)).collect();
        children.into_iter().map(Self::await_node).collect()
    }
}

impl TestNode {
    pub(crate) fn client(&self) -> TestClient {
        TestClient::connect(self.address)
    }

    /// Kills the node.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }

    /// Asks the node to end, and returns its status and its errors.
    pub(crate) fn end(mut self) -> (ExitStatus, Vec<String>) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it runs");
        let status = self.child.wait().expect("it ends");
        (status, self.errors.try_iter().collect())
    }

    /// Returns the resident memory of the node's process, in bytes.
    /// Returns the greatest number of bytes of memory that the process has had.
    pub(crate) fn peak_memory(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(path).expect("it runs");
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
        let kilobytes = peak.trim().split(' ').next().expect("a number");
        kilobytes.parse::<usize>().expect("a number") << 10
    }

    pub(crate) fn memory(&self) -> usize {
        let path = format!("/proc/{}/statm", self.child.id());
        let text = fs::read_to_string(path).expect("it runs");
        let pages = text.split(' ').nth(1).expect("a field");
        pages.parse::<usize>().expect("a number") * rustix::param::page_size()
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds.
pub(crate) fn await_that(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
