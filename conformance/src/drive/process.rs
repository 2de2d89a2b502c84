//! Members' processes. Only this module starts, suspends and kills them.
//!
//! # No process outlives the driver
//! Each process leads its own process group, which is killed as a whole when its [`Process`] is
//! dropped: at the end of a scenario, after an error, and when the driver panics. If the driver
//! itself is killed, the kernel kills the leader, and the leader's children reach the end of their
//! input. A leader is never reaped before its group has been killed, so its id cannot have been
//! reused.
//!
//! A process that has left its group may serve several members, and runs until the scenario ends.
//! Then a [`Mark`] kills it: an environment variable that all of these processes inherit.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, getppid, kill_process, kill_process_group,
    set_parent_process_death_signal, waitid,
};

use super::lines::{self, Clock, ReceivedItem};

/// Limit of a member's log in bytes.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// The last line of a log that reached its limit.
const LOG_CUT: &[u8] = b"\n[the rest of the log is not kept]\n";

/// Time limit for a log to be completely written.
const LOG_WAIT: Duration = Duration::from_millis(500);

/// Interval between checks whether a process has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The environment variable that identifies the processes of a scenario.
const MARK: &str = "TRAMONTANE_CONFORMANCE_SCENARIO";

/// Maximum number of searches for marked processes. More than one is needed because one process may
/// start another meanwhile.
const LOOKS_MAX: usize = 200;

/// A mark on all processes of a scenario, both members and processes that they started. Dropping it
/// kills those that are still running.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// Creates a unique mark.
    pub(super) fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    /// Returns the processes that have the mark, without zombies.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("{MARK}={}", self.0);
        let is_marked = |pid: &Pid| {
            let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
            let environment = environment.unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter_map(Pid::from_raw).filter(is_marked).collect()
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        for _ in 0..LOOKS_MAX {
            let processes = self.processes();
            if processes.is_empty() {
                return;
            }
            for process in processes {
                // This fails only if the process has exited or belongs to another user.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

/// A member's process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: Pid,
    /// Whether the leader has been reaped: its id may have been reused.
    reaped: bool,
    /// The channel to the thread that writes commands. A member that does not read blocks only that
    /// thread.
    commands: Option<Sender<String>>,
    log: Option<JoinHandle<()>>,
}

/// The process to start, and the destination of its output.
pub(super) struct ProcessStart<'s> {
    pub(super) command: &'s [String],
    pub(super) mark: &'s Mark,
    pub(super) node: usize,
    pub(super) inc: u32,
    /// The file to which the process's log is appended.
    pub(super) log: &'s Path,
    pub(super) clock: Clock,
    pub(super) received: SyncSender<ReceivedItem>,
}

impl Process {
    /// Starts a process. Must be called from a thread that lives as long as the driver, because the
    /// kernel treats that thread as the parent.
    ///
    /// # Errors
    /// Fails with the system's error, usually because there is no such program.
    pub(super) fn start(start: ProcessStart<'_>) -> io::Result<Self> {
        let (program, arguments) =
            start.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let log = File::options().create(true).append(true).open(start.log)?;
        let mut command = Command::new(program);
        command.args(arguments).env(MARK, &start.mark.0).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        die_with_parent(&mut command);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(errors)) = pipes else {
            return Err(io::Error::other("a process without pipes"));
        };
        let (commands, to_write) = mpsc::channel::<String>();
        // An error below drops the process and so kills it.
        let group = Pid::from_child(&child);
        let mut process = Self { child, group, reaped: false, commands: Some(commands), log: None };
        let ProcessStart { node, inc, clock, received, .. } = start;
        spawn("commands", move || write_all(input, &to_write))?;
        spawn("output", move || lines::read(output, node, inc, clock, &received))?;
        process.log = Some(spawn("log", move || keep(errors, log))?);
        Ok(process)
    }

    /// Sends a command. If the process no longer reads, this shows in its output.
    pub(super) fn send(&self, line: String) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(line);
        }
    }

    /// Suspends the process and its children.
    pub(super) fn suspend(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::STOP)?)
    }

    /// Resumes the process and its children.
    pub(super) fn resume(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::CONT)?)
    }

    /// Kills the process and its children without waiting.
    pub(super) fn strike(&self) {
        // This fails only if the group has no process left.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Kills the process and its children, and waits until the process has exited. Returns its exit
    /// status, if the system reports it.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        if !self.reaped {
            self.strike();
        }
        self.reaped = true;
        self.commands = None;
        self.child.wait().ok()
    }

    /// Waits up to `time`; returns whether the process has exited.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            // The process stays a zombie, so that its id cannot be reused yet.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(self.group), options) {
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Waits until the process's log so far is in the file. The wait is limited, because the
    /// process may continue to log.
    pub(super) fn await_log(&self) {
        let until = Instant::now() + LOG_WAIT;
        while self.log.as_ref().is_some_and(|log| !log.is_finished()) && Instant::now() < until {
            std::thread::sleep(LOOK_INTERVAL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        // The last lines often explain why the process ended. A process that has left the group may
        // hold the log open.
        self.await_log();
    }
}

/// Makes the kernel kill the process when the driver ends for any reason.
fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent has already exited, the signal would never be sent.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: between fork and exec the closure only makes two system calls: it takes no lock, and
    // allocates nothing.
    unsafe {
        command.pre_exec(in_child);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("member-{name}")).spawn(work)
}

/// Writes commands until there are no more, or the process no longer reads.
fn write_all(mut input: impl Write, commands: &mpsc::Receiver<String>) {
    for line in commands {
        if input.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// Writes a log up to its limit, then continues to read, so that the member is not blocked.
fn keep(mut errors: impl Read, mut log: File) {
    let mut buffer = vec![0; 64 << 10];
    let mut left = LOG_BYTES_MAX;
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        if left == 0 {
            continue;
        }
        let part = &buffer[..count.min(usize::try_from(left).unwrap_or(usize::MAX))];
        left -= part.len() as u64;
        // If the log cannot be written, it is lost. A full disk is reported when the history is
        // written.
        let written = log.write_all(part);
        if left == 0 || written.is_err() {
            let _ = log.write_all(LOG_CUT);
            left = 0;
        }
    }
}
