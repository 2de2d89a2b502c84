//! What the tests of the shared-memory fabric have in common: places, layouts, members, child
//! processes.

// Each test program uses its own part of it.
#![allow(dead_code)]

pub mod blocks;
pub mod views;

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use tramontane_core::fabric::{Fabric as _, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup};
use tramontane_shared_memory::{Error, GroupName, Mappings, Rendezvous, Root, SharedMemory};

/// Longer than anything here takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(30);

/// The view of all tests.
pub const VIEW: ViewId = ViewId(0);

/// Never set.
pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A folder in shared memory for one test, gone with it.
pub struct Place(PathBuf);

impl Place {
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

    /// Every path under this place.
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

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A layout of `members` members with ids 10, 11, ..., one subgroup, all senders.
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

/// The layout of tests that do not care.
pub fn small(members: u16) -> Layout<'static> {
    layout(members, 8, 100)
}

pub fn name(text: &str) -> GroupName {
    GroupName::new(text).expect("a group's name")
}

/// One member joins.
pub fn join(
    root: &Root,
    group: &str,
    layout: &Layout<'_>,
    own: u16,
    limit: Duration,
) -> Result<Mappings, Error> {
    Rendezvous::new(root, &name(group), layout, Rank(own))?.join(limit, &NEVER)
}

/// All members of a group join, each in a thread of its own.
pub fn join_all(root: &Root, group: &str, layout: &Layout<'_>) -> Vec<Mappings> {
    std::thread::scope(|scope| {
        let members: Vec<_> = (0..layout.members())
            .map(|rank| {
                let rank = u16::try_from(rank).expect("a rank");
                scope.spawn(move || join(root, group, layout, rank, LONG).expect("it joins"))
            })
            .collect();
        members.into_iter().map(|member| member.join().expect("no panic")).collect()
    })
}

/// An open fabric, with what follows from opening already polled away.
pub fn open(mappings: &Mappings) -> SharedMemory {
    let mut fabric = SharedMemory::new(mappings);
    fabric.open(VIEW, &mappings.memory()).expect("it opens");
    while fabric.poll().is_some() {}
    fabric
}

/// Another process, running one "role": a test of the same program that does nothing unless it is
/// asked to.
pub struct Role {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Role {
    /// Plays a role of the module at that path, which `module_path!()` gives.
    pub fn start(module: &str, role: &str, arguments: &str) -> Self {
        let (_program, module) = module.split_once("::").expect("a module of the program");
        let role = format!("{module}::{role}");
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", &role, "--nocapture", "--test-threads=1"])
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

    /// Reads on until the role says something with this word, and gives the rest of that line.
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

    /// Lets it go on, or end.
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

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// In a role: what it was asked to do, in words; none if it runs as a test like any other.
pub fn role() -> Option<Vec<String>> {
    let arguments = std::env::var("TRAMONTANE_ROLE").ok()?;
    Some(arguments.split(' ').map(str::to_owned).collect())
}

/// In a role: says something to the test.
pub fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{text}").and_then(|()| output.flush()).expect("output");
}

/// In a role: waits until the test lets it go on.
pub fn wait_for_release() {
    let mut line = String::new();
    let _ = std::io::stdin().lock().read_line(&mut line);
}
