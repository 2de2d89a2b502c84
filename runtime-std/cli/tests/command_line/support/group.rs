//! Groups of real processes whose membership changes. Each node has a log.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tramontane_runtime::group::{Description, OperatorClient};
use tramontane_runtime::shared_memory::Root;

use super::{LONG, ProgramEnd, TestFolder, free_addresses, send, wait_for};

/// Time limit for a node's answer.
const ANSWER: Duration = Duration::from_secs(5);

/// A group file, with its nodes' logs next to it.
pub struct GroupFile {
    pub place: TestFolder,
    pub config: String,
}

/// A group's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    SharedMemory,
    TcpWithKey,
}

impl Transport {
    pub const ALL: [Self; 2] = [Self::SharedMemory, Self::TcpWithKey];
}

impl GroupFile {
    /// Creates a group of nodes 0 to `nodes - 1`.
    pub fn of(carrier: Transport, nodes: usize) -> Self {
        let group = Self::without_file();
        // About thirty idle nodes run at the same time, and each heartbeat wakes all others of a
        // group.
        let mut text = "name = \"log\"\nheartbeat_ms = 50\nfailure_timeout_ms = 3000\n".to_owned();
        if carrier == Transport::TcpWithKey {
            group.key("key", "7f");
            text.push_str("fabric = \"tcp\"\nkey_file = \"key\"\n");
        }
        for (id, address) in free_addresses(nodes).into_iter().enumerate() {
            text.push_str(&format!("[[nodes]]\nid = {id}\n"));
            if carrier == Transport::TcpWithKey {
                text.push_str(&format!("address = \"{address}\"\n"));
            }
        }
        group.write(&text);
        group
    }

    pub fn without_file() -> Self {
        let place = TestFolder::new();
        let config = place.path().join("group.toml").to_str().expect("a path").to_owned();
        Self { place, config }
    }

    pub fn write(&self, text: &str) {
        std::fs::write(&self.config, text).expect("a file");
    }

    pub fn text(&self) -> String {
        std::fs::read_to_string(&self.config).expect("a file")
    }

    /// Writes a changed copy of the group file, and returns its path.
    pub fn variant(&self, from: &str, to: &str) -> String {
        let text = self.text();
        assert!(text.contains(from), "{from:?} is not in {text}");
        let path = self.place.file("variant.toml", text.replace(from, to).as_bytes());
        path.to_str().expect("a path").to_owned()
    }

    /// A key file.
    pub fn key(&self, name: &str, byte: &str) {
        let path = self.place.file(name, byte.repeat(32).as_bytes());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
            .expect("its owner's");
    }

    pub fn log_path(&self, id: usize) -> PathBuf {
        self.place.path().join(format!("log-{id}"))
    }

    pub fn log(&self, id: usize) -> String {
        String::from_utf8(std::fs::read(self.log_path(id)).unwrap_or_default()).expect("text")
    }

    /// Returns the current size of a log in bytes.
    pub fn log_bytes(&self, id: usize) -> u64 {
        std::fs::metadata(self.log_path(id)).map_or(0, |log| log.len())
    }

    /// Starts a node with a log.
    pub fn node(&self, id: usize, more: &[&str]) -> Node {
        let (id_text, log) = (id.to_string(), self.log_path(id));
        let log = log.to_str().expect("a path");
        let base = ["node", "--config", &self.config, "--id", &id_text, "--log", log];
        Node::start(self.place.command(&[&base[..], more].concat()))
    }

    /// Runs a command that ends: `status`, `leave`, or a node that does not start.
    pub fn run(&self, command: &str, more: &[&str]) -> ProgramEnd {
        self.place.run(&[&[command, "--config", &self.config], more].concat())
    }

    pub fn status(&self) -> Value {
        let ended = self.run("status", &["--json"]);
        serde_json::from_slice(&ended.output).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
    }

    /// Waits until these nodes report each other as the members, in any order. Asks the nodes from
    /// this process, because starting `tramontane status` each time would take at least 4 ms of
    /// processor time, many times as much as the question.
    #[track_caller]
    pub fn await_members(&self, nodes: &[u64]) {
        let description = Description::read(Path::new(&self.config)).expect("a group file");
        let operator = OperatorClient::new(&description, &Root::under(self.place.path()));
        let operator = operator.expect("addresses");
        let begin = Instant::now();
        let are_members_of = |id: u64| {
            let id = u32::try_from(id).expect("small");
            let status = operator.status(id, ANSWER, &AtomicBool::new(false));
            if begin.elapsed() > LONG - 2 * ANSWER {
                // The test is about to fail.
                eprintln!("node {id}: {status:?}");
            }
            status.is_ok_and(|status| {
                let mut members: Vec<u64> = status.members.iter().copied().map(u64::from).collect();
                members.sort_unstable();
                members == nodes
            })
        };
        wait_for("the view", || nodes.iter().all(|id| are_members_of(*id)).then_some(()));
    }

    /// Waits until all these logs have `lines` lines and are identical.
    #[track_caller]
    pub fn await_same(&self, ids: &[usize], lines: usize) -> String {
        // The end of a line may still be missing from the file.
        let whole = |log: &str| log.matches('\n').count();
        for id in ids {
            let mut last = 0;
            let start = std::time::Instant::now();
            while last < lines {
                last = whole(&self.log(*id));
                assert!(start.elapsed() < super::LONG, "log {id} has {last} lines of {lines}");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        let first = self.log(ids[0]);
        for id in ids {
            assert_eq!(self.log(*id), first, "log {id}");
        }
        assert_eq!(whole(&first), lines, "{first}");
        first
    }
}

/// Returns lines `id-from` to `id-(to - 1)`.
pub fn lines(id: usize, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| format!("{id}-{number}\n")).collect()
}

/// Returns the lines from one node in a log.
pub fn lines_of(log: &str, id: usize) -> String {
    let start = format!("{id}-");
    log.lines().filter(|line| line.starts_with(&start)).map(|line| format!("{line}\n")).collect()
}

/// Kills all nodes as a power cut would, so that none notices another's end and continues without
/// it.
pub fn kill_all(nodes: Vec<Node>) {
    for signal in [Signal::STOP, Signal::KILL] {
        nodes.iter().for_each(|node| node.signal(signal));
    }
    nodes.into_iter().for_each(Node::kill);
}

/// A node's process. Its standard error can be read while it runs.
pub struct Node {
    child: Child,
    input: Option<ChildStdin>,
    output: Arc<Mutex<String>>,
    errors: Arc<Mutex<String>>,
    readers: Vec<std::thread::JoinHandle<()>>,
}

impl Node {
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("a process");
        let (output, errors) = (Arc::default(), Arc::default());
        let readers = vec![
            follow(child.stdout.take().expect("piped"), &output),
            follow(child.stderr.take().expect("piped"), &errors),
        ];
        Self { input: child.stdin.take(), child, output, errors, readers }
    }

    pub fn write(&mut self, text: &str) {
        use std::io::Write as _;
        let input = self.input.as_mut().expect("an input");
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).expect("it reads");
    }

    pub fn end_input(&mut self) {
        self.input = None;
    }

    /// Returns the node's input, for another thread that writes for as long as the node reads.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().expect("an input")
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn errors(&self) -> String {
        self.errors.lock().expect("nobody panics").clone()
    }

    /// Returns standard error without waiting notices, which depend on the speed of the machine.
    pub fn said(&self) -> String {
        let errors = self.errors();
        errors
            .lines()
            .filter(|line| !line.contains("waiting for "))
            .map(|line| format!("{line}\n"))
            .collect()
    }

    pub fn output(&self) -> String {
        self.output.lock().expect("nobody panics").clone()
    }

    #[track_caller]
    pub fn await_errors(&self, text: &str) {
        wait_for(text, || self.errors().contains(text).then_some(()));
    }

    pub fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Kills the node, and waits until it has exited.
    pub fn kill(mut self) {
        self.signal(Signal::KILL);
        self.ended();
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }

    /// Waits for the node to exit while its input stays open. Returns the exit status and all of
    /// standard error.
    #[track_caller]
    pub fn ended(&mut self) -> (Option<i32>, String) {
        let begin = Instant::now();
        let status = wait_for("the end of a node", || {
            if begin.elapsed() > LONG - Duration::from_secs(1) {
                // The test is about to fail.
                eprintln!("it runs: {}", self.errors());
            }
            self.child.try_wait().expect("a status")
        });
        for reader in self.readers.drain(..) {
            reader.join().expect("no panic");
        }
        (status.code(), self.errors())
    }

    #[track_caller]
    pub fn assert_left(&mut self) {
        let (code, errors) = self.ended();
        assert_eq!(code, Some(0), "{errors}");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn follow(
    from: impl std::io::Read + Send + 'static,
    into: &Arc<Mutex<String>>,
) -> std::thread::JoinHandle<()> {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        // A progress bar is a line without a newline that is redrawn repeatedly.
        while let Ok(1..) = from.fill_buf().map(<[u8]>::len) {
            let part = from.buffer();
            let end = part.iter().position(|byte| [b'\n', b'\r'].contains(byte));
            let bytes = end.map_or(part.len(), |end| end + 1);
            line.extend_from_slice(&part[..bytes]);
            from.consume(bytes);
            if end.is_some() {
                into.lock().expect("nobody panics").push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        }
        into.lock().expect("nobody panics").push_str(&String::from_utf8_lossy(&line));
    })
}
