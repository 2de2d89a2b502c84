//! Helpers shared by the command-line tests: separate folders in shared memory, and processes that
//! do not outlive a test.

// Each test program uses only some of these helpers.
#![allow(dead_code)]

pub mod group;
pub mod overlay;
pub mod small_disk;
pub mod terminal;

use std::io::{ErrorKind, Read, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Longer than any step takes on a busy machine.
pub const LONG: Duration = Duration::from_secs(120);

/// Bounds of the pause between two looks at what a test waits for.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// A folder in shared memory for one test, removed on drop.
pub struct TestFolder(TempDir);

impl TestFolder {
    pub fn new() -> Self {
        Self(
            tempfile::Builder::new()
                .prefix("tramontane-cli-")
                .tempdir_in("/dev/shm")
                .expect("a folder"),
        )
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file in the folder, next to the groups.
    pub fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// Returns the files that groups left behind. The views that nodes store next to their logs are
    /// meant to stay.
    pub fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.path()).expect("a folder");
        let folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir());
        folders.filter(|path| path.extension().is_none_or(|ending| ending != "state")).collect()
    }

    /// Returns the number of members that have joined, over all groups. Each has a file.
    pub fn members(&self) -> usize {
        let below = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
        let groups = self.left().into_iter().flat_map(|root| below(&root).collect::<Vec<_>>());
        let files = groups.flat_map(|group| below(&group.path()).collect::<Vec<_>>());
        files.filter(|file| file.file_name().to_string_lossy().starts_with("member-")).count()
    }

    #[track_caller]
    pub fn assert_empty(&self) {
        assert_eq!(self.left(), Vec::<PathBuf>::new(), "left behind");
    }

    /// Removes the groups' files, as cleaners of `/dev/shm` do. Returns whether there were any.
    pub fn clean(&self) -> bool {
        clean(self.path())
    }

    /// Removes the groups' files repeatedly, until the value is dropped.
    pub fn cleaner(&self, pause: Duration) -> Cleaner {
        let (path, is_over) = (self.path().to_owned(), Arc::<AtomicBool>::default());
        let end = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut times = 0;
            while !end.load(Ordering::Relaxed) {
                std::thread::sleep(pause);
                times += u32::from(clean(&path));
            }
            times
        });
        Cleaner { is_over, thread: Some(thread) }
    }

    /// Returns a command for the program, with its groups in this folder.
    pub fn command<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(crate::PROGRAM);
        command.args(arguments).env("TRAMONTANE_SHM_DIR", self.path()).env_remove("TRAMONTANE_LOG");
        command
    }

    /// Runs the program to its end without input.
    #[track_caller]
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> ProgramEnd {
        RunningProgram::start(self.command(arguments)).wait()
    }

    /// Starts it.
    #[track_caller]
    pub fn start<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> RunningProgram {
        RunningProgram::start(self.command(arguments))
    }
}

fn clean(place: &Path) -> bool {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let is_root = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tramontane-"))
    };
    let roots = entries.map(|entry| entry.path()).filter(is_root);
    roots.filter(|root| remove(root)).count() > 0
}

/// Removes a folder in which files may appear during the removal. Returns whether it was there.
fn remove(folder: &Path) -> bool {
    loop {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {}
            removed => return removed.is_ok(),
        }
    }
}

/// A process that removes files repeatedly.
pub struct Cleaner {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<u32>>,
}

impl Cleaner {
    /// Ends the process, and returns the number of times that it removed files.
    pub fn end(mut self) -> u32 {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.take().map_or(0, |thread| thread.join().expect("no panic"))
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the name of the program.
fn program_name() -> &'static str {
    crate::PROGRAM.rsplit('/').next().unwrap_or(crate::PROGRAM)
}

/// The exit status and output of a process.
#[derive(Debug)]
pub struct ProgramEnd {
    pub status: ExitStatus,
    pub output: Vec<u8>,
    pub errors: String,
}

impl ProgramEnd {
    #[track_caller]
    pub fn succeeded(self) -> Vec<u8> {
        assert!(self.status.success(), "{self:?}");
        assert_eq!(self.errors, "");
        self.output
    }

    /// Asserts that the process failed with this status, and with one line on standard error that
    /// contains these words.
    #[track_caller]
    pub fn failed(&self, status: i32, words: &[&str]) {
        assert_eq!(self.status.code(), Some(status), "{}", self.errors);
        assert!(
            self.errors.starts_with(&format!("{}: ", program_name()))
                && self.errors.ends_with('\n'),
            "{:?}",
            self.errors
        );
        assert_eq!(self.errors.matches('\n').count(), 1, "{:?}", self.errors);
        assert!(self.errors.contains("; "), "it does not say what to do: {}", self.errors);
        for word in words {
            assert!(self.errors.contains(word), "{word:?} is not in {:?}", self.errors);
        }
    }
}

impl ProgramEnd {
    /// Does the same as [`ProgramEnd::failed`], for a command that has already written other lines
    /// to standard error.
    #[track_caller]
    pub fn failed_at_last(&self, status: i32, words: &[&str]) {
        let last = self.errors.lines().last().unwrap_or_default();
        let errors = format!("{last}\n");
        Self { status: self.status, output: Vec::new(), errors }.failed(status, words);
    }

    /// Does the same as [`ProgramEnd::failed`], for a command that has also printed output.
    #[track_caller]
    pub fn failed_after_output(&self, status: i32, words: &[&str]) {
        assert!(!self.output.is_empty(), "{self:?}");
        self.failed(status, words);
    }
}

/// A running process whose output is read as it is written. It is killed with the test.
pub struct RunningProgram {
    child: Child,
    output: Option<OutputReader>,
    errors: Option<OutputReader>,
    /// Number of output bytes that have already been awaited.
    seen: usize,
}

impl RunningProgram {
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let output = child.stdout.take().map(OutputReader::start);
        let errors = child.stderr.take().map(OutputReader::start);
        Self { child, output, errors, seen: 0 }
    }

    /// Writes to the process's input.
    pub fn write(&mut self, bytes: &[u8]) {
        let input = self.child.stdin.as_mut().expect("an input");
        input.write_all(bytes).and_then(|()| input.flush()).expect("it reads");
    }

    /// Closes the process's input.
    pub fn end_input(&mut self) {
        drop(self.child.stdin.take());
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Waits until the process's output equals `bytes`.
    #[track_caller]
    pub fn await_output(&self, bytes: &[u8]) {
        let output = self.output.as_ref().expect("it is still read");
        wait_for("the output", || (*output.bytes.lock().expect("no panic") == bytes).then_some(()));
    }

    /// Waits until the process has written something since the last call.
    #[track_caller]
    pub fn await_more_output(&mut self) {
        let output = self.output.as_ref().expect("it is still read");
        let seen = self.seen;
        let count = || output.bytes.lock().expect("no panic").len();
        self.seen = wait_for("more output", || Some(count()).filter(|count| *count > seen));
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }

    /// Closes the input, waits for the end, and returns the output.
    #[track_caller]
    pub fn wait(mut self) -> ProgramEnd {
        self.end_input();
        self.wait_with_input()
    }

    /// Does the same as [`RunningProgram::wait`], with the input left open.
    #[track_caller]
    pub fn wait_with_input(&mut self) -> ProgramEnd {
        self.wait_within(LONG)
    }

    /// Does the same as [`RunningProgram::wait_with_input`], for a process that takes a minute to
    /// notice that it is stuck.
    #[track_caller]
    pub fn wait_patiently(&mut self) -> ProgramEnd {
        self.wait_within(3 * LONG)
    }

    #[track_caller]
    fn wait_within(&mut self, limit: Duration) -> ProgramEnd {
        let status =
            wait_within(limit, "the end of a process", || self.child.try_wait().expect("a status"));
        let take = |reader: &mut Option<OutputReader>| {
            reader.take().map(OutputReader::end).unwrap_or_default()
        };
        let (output, errors) = (take(&mut self.output), take(&mut self.errors));
        ProgramEnd { status, output, errors: String::from_utf8_lossy(&errors).into_owned() }
    }
}

impl Drop for RunningProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A thread that reads what a process writes.
struct OutputReader {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: JoinHandle<()>,
}

impl OutputReader {
    fn start(mut from: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&bytes);
        let thread = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut piece) {
                into.lock().expect("no panic").extend_from_slice(&piece[..count]);
            }
        });
        Self { bytes, thread }
    }

    /// Returns everything that was read, once the process has closed its output.
    fn end(self) -> Vec<u8> {
        self.thread.join().expect("no panic");
        std::mem::take(&mut *self.bytes.lock().expect("no panic"))
    }
}

/// Returns addresses that are currently unused, formatted as in files and arguments.
pub fn free_addresses(count: usize) -> Vec<String> {
    let addresses = tramontane_local::free_addresses::free_addresses(count).expect("free ports");
    addresses.iter().map(ToString::to_string).collect()
}

/// Calls `run` for each case, `most` of them at the same time, because most cases only wait for
/// processes. Panics if a case does.
pub fn concurrently<T: Sync>(most: usize, cases: &[T], run: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let take = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            run(case);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..most {
            scope.spawn(take);
        }
    });
}

/// Returns the seeds of random runs: `count` of them, unless the environment chooses others.
pub fn random_seeds(count: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let first = number("TRAMONTANE_SEED").unwrap_or(1);
    first..first + number("TRAMONTANE_SEEDS").unwrap_or(count)
}

/// Waits until `look` returns a value. After each call, it sleeps for four times as long as the
/// call took: many start a process, and would otherwise slow down the awaited processes.
#[track_caller]
pub fn wait_for<T>(what: &str, look: impl FnMut() -> Option<T>) -> T {
    wait_within(LONG, what, look)
}

#[track_caller]
fn wait_within<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        let looked = Instant::now();
        if let Some(value) = look() {
            return value;
        }
        assert!(start.elapsed() < limit, "{what} did not come");
        std::thread::sleep((4 * looked.elapsed()).clamp(PAUSE_MIN, PAUSE_MAX));
    }
}

/// Sends a signal. After [`Signal::STOP`], waits until every thread of the process has stopped.
/// Until then, a thread could still receive a message that the others then deliver.
pub fn send(pid: u32, signal: Signal) {
    let id = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    // The process may have exited.
    let _ = kill_process(id, signal);
    if signal == Signal::STOP {
        wait_for("a process that stops", || is_stopped(pid).then_some(()));
    }
}

/// Returns whether all threads of a process have stopped or ended.
fn is_stopped(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return true };
    threads.flatten().all(|thread| {
        let status = std::fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_none_or(|state| ["T", "t", "Z", "X"].iter().any(|is| state.trim().starts_with(is)))
    })
}

/// Returns the live child processes of `parent`.
pub fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        state_and_parent(*pid).is_some_and(|(state, of)| of == parent && state != 'Z')
    })
    .collect()
}

/// Returns whether a process is alive, and not a zombie.
pub fn is_alive(pid: u32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| state != 'Z')
}

fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The fields follow the name, which may contain anything but ends with the last parenthesis.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
