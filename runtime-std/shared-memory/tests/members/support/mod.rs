//! Helpers for the tests of the shared-memory fabric: folders, layouts, members, and child
//! processes.

// Each test program uses only some of these helpers.
#![allow(dead_code)]

pub mod blocks;
pub mod descriptors;
pub mod views;

use std::io::{BufRead, BufReader, Write as _};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Fabric as _, HostFabric as _, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_shared_memory::{Error, GroupName, Mappings, Residence, Root, SharedMemory};

/// A time limit longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// The view id that all tests use.
pub const VIEW: ViewId = ViewId(0);

/// Never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A folder in shared memory for one test, removed when dropped.
pub struct SharedFolder(PathBuf);

impl SharedFolder {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path =
            PathBuf::from(format!("/dev/shm/tramontane-test-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a folder in /dev/shm");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn root(&self) -> Root {
        Root::under(&self.0)
    }

    /// Returns every path under this folder.
    pub fn contents(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                }
                found.push(entry.path());
            }
        }
        found
    }

    #[track_caller]
    pub fn assert_empty(&self) {
        assert_eq!(self.contents(), Vec::<PathBuf>::new(), "left behind");
    }
}

impl Drop for SharedFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns a layout of `members` members with ids 10, 11, ..., and one subgroup in which all send.
pub fn layout(members: u16, window: u32, message_max: u32) -> Layout<'static> {
    let ids: Vec<NodeId> = (0..members).map(|rank| NodeId(10 + u32::from(rank))).collect();
    let ranks: &[Rank] = (0..members).map(Rank).collect::<Vec<_>>().leak();
    let subgroup = Subgroup {
        members: ranks,
        senders: ranks,
        window,
        message_max,
        delivery: Delivery::Ordered,
    };
    Layout::new(Group { members: ids.leak(), subgroups: vec![subgroup].leak() }).expect("a layout")
}

/// Returns the layout for tests that need no particular one.
pub fn small(members: u16) -> Layout<'static> {
    layout(members, 8, 100)
}

pub fn name(text: &str) -> GroupName {
    GroupName::new(text).expect("a group's name")
}

/// A member of a group, with the memory of its view.
pub struct MappedMember {
    pub mappings: Mappings,
    pub fabric: SharedMemory,
}

impl Deref for MappedMember {
    type Target = Mappings;

    fn deref(&self) -> &Mappings {
        &self.mappings
    }
}

impl MappedMember {
    /// Opens the view.
    pub fn open(mut self) -> Self {
        self.fabric.open(VIEW, &self.mappings.memory()).expect("it opens");
        self
    }

    /// Returns whether all peers' rows have arrived, after one more check.
    pub fn is_ready(&mut self) -> bool {
        self.fabric.check_peers();
        let (own, members) = (self.mappings.own(), self.mappings.members().len());
        let mut others = (0..).map(Rank).take(members).filter(|rank| *rank != own);
        others.all(|rank| self.fabric.ready(VIEW, rank))
    }

    /// Waits until all peers' rows have arrived, and discards the events up to then.
    #[track_caller]
    pub fn await_peers(mut self) -> Self {
        let started = Instant::now();
        while !self.is_ready() {
            assert!(started.elapsed() < LONG, "a row never comes");
            std::thread::yield_now();
        }
        self.poll_away();
        self
    }

    /// Discards all pending events.
    pub fn poll_away(&mut self) {
        while self.fabric.poll().is_some() {}
    }
}

/// Claims a node's id, and allocates the memory of the planned view.
pub fn make(root: &Root, group: &str, plan: &ViewPlan<'_>) -> Result<MappedMember, Error> {
    // Counts the starts in this process. The process id makes the incarnations unique across
    // processes.
    static STARTS: AtomicU32 = AtomicU32::new(0);
    let start = u64::from(STARTS.fetch_add(1, Ordering::Relaxed));
    let incarnation = (u64::from(std::process::id()) << 32) | (start + 1);
    let node = *plan.members().get(plan.own().index()).unwrap_or(&NodeId(99));
    let residence =
        Residence::claim(root, &name(group), node, plan.digest(), incarnation, LONG, &NEVER)?;
    let mut fabric = SharedMemory::for_residence(&Arc::new(residence));
    Ok(MappedMember { mappings: fabric.rows(plan)?, fabric })
}

/// Starts one member and opens the view, without waiting for the others.
pub fn join(
    root: &Root,
    group: &str,
    layout: &Layout<'_>,
    own: u16,
) -> Result<MappedMember, Error> {
    make(root, group, &ViewPlan::of_layout(VIEW, Rank(own), layout)).map(MappedMember::open)
}

/// Starts one member, and waits for the rows of all members.
#[track_caller]
pub fn meet(root: &Root, group: &str, layout: &Layout<'_>, own: u16) -> MappedMember {
    join(root, group, layout, own).expect("it starts").await_peers()
}

/// Starts all members of a group, each with the rows of all members.
pub fn join_all(root: &Root, group: &str, layout: &Layout<'_>) -> Vec<MappedMember> {
    let ranks = 0..u16::try_from(layout.members()).expect("few");
    let mut members: Vec<MappedMember> =
        ranks.map(|rank| join(root, group, layout, rank).expect("it starts")).collect();
    await_all(&mut members);
    members
}

/// Waits until all members have the rows of all members.
#[track_caller]
pub fn await_all(members: &mut [MappedMember]) {
    let started = Instant::now();
    // Each member checks, even after one that is not ready.
    while members.iter_mut().filter_map(|member| (!member.is_ready()).then_some(())).count() > 0 {
        assert!(started.elapsed() < LONG, "a row never comes");
    }
    members.iter_mut().for_each(MappedMember::poll_away);
}

/// Another process that plays one "role", which is a test of the same program that does nothing
/// unless it is requested.
pub struct RoleProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl RoleProcess {
    /// Starts a role of the module at that path, which `module_path!()` returns.
    pub fn start(module: &str, role: &str, arguments: &str) -> Self {
        let (_program, module) = module.split_once("::").expect("a module of the program");
        let role = format!("{module}::{role}");
        Self::spawn(Command::new(std::env::current_exe().expect("this program")), &role, arguments)
    }

    /// Starts a role after a shell has run a command for the process.
    pub fn start_after(shell: &str, module: &str, role: &str, arguments: &str) -> Self {
        let (_program, module) = module.split_once("::").expect("a module of the program");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")]);
        command.arg(std::env::current_exe().expect("this program"));
        Self::spawn(command, &format!("{module}::{role}"), arguments)
    }

    fn spawn(mut command: Command, role: &str, arguments: &str) -> Self {
        let mut child = command
            .args(["--exact", role, "--nocapture", "--test-threads=1"])
            .env("TRAMONTANE_ROLE", arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, input, output }
    }

    /// Reads until the role prints a line with this word, and returns the rest of that line.
    #[track_caller]
    pub fn expect(&mut self, word: &str) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            let bytes = self.output.read_line(&mut line).expect("output");
            assert!(bytes > 0, "the role ended without saying {word}");
            // The test harness may have begun the line.
            if let Some((_, rest)) = line.split_once(word) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Lets the role continue or end.
    pub fn release(&mut self) {
        drop(self.input.take());
    }

    /// Sends a signal by its name, without the `SIG`.
    pub fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.expect("kill").success());
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("ended");
    }

    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.release();
        self.child.wait().expect("ended")
    }
}

impl Drop for RoleProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the arguments of a role, or `None` in an ordinary test run. Called in a role.
pub fn role() -> Option<Vec<String>> {
    let arguments = std::env::var("TRAMONTANE_ROLE").ok()?;
    Some(arguments.split(' ').map(str::to_owned).collect())
}

/// Prints a line for the test. Called in a role.
pub fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{text}").and_then(|()| output.flush()).expect("output");
}

/// Waits until the test releases the role. Called in a role.
pub fn wait_for_release() {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
}
