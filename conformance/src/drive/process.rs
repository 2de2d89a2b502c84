//! Members' processes: the one place where they are started, suspended and killed.
//!
//! # No process outlives the driver
//! Each is the leader of a process group of its own, which is killed as a whole, the leader's
//! children included, when its [`Process`] is dropped: at the end of a scenario, after an error,
//! and when the driver panics. If the driver itself is killed, the kernel kills the leader;
//! children of it find their input at its end. A leader is never reaped before its group was
//! killed, so that its number cannot be another's.
//!
//! A process that has left its group may serve several members, and lives until the scenario ends.
//! Then a [`Mark`] kills it, which all of them inherit in their environment.

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

use super::lines::{self, Clock, Received};

/// So much of a member's log is kept.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// What stands in a log for the rest of it.
const LOG_CUT: &[u8] = b"\n[the log goes on, and is not kept]\n";

/// How long a log may take to be whole in its file.
const LOG_WAIT: Duration = Duration::from_millis(500);

/// Between two looks whether something has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// The variable by which the processes of a scenario are known.
const MARK: &str = "TRAMONTANE_CONFORMANCE_SCENARIO";

/// Marked processes are looked for so often at most: one may start another meanwhile.
const LOOKS_MAX: usize = 200;

/// What marks all processes of a scenario, members and what they have started. Those that are left
/// are killed when it is dropped.
#[derive(Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// Another than all before.
    pub(super) fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        Self(format!("{}-{number}", std::process::id()))
    }

    /// The processes that have it, zombies left out.
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
                // It fails only if it is gone, or another user's.
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
    /// Whether the leader is gone for good: its number may be another's by now.
    reaped: bool,
    /// To the thread that writes commands: a member that does not read makes only that thread wait.
    commands: Option<Sender<String>>,
    log: Option<JoinHandle<()>>,
}

/// Which process is started, and what becomes of what it says.
pub(super) struct Start<'s> {
    pub(super) command: &'s [String],
    pub(super) mark: &'s Mark,
    pub(super) node: usize,
    pub(super) inc: u32,
    /// The file to which its log is added.
    pub(super) log: &'s Path,
    pub(super) clock: Clock,
    pub(super) received: SyncSender<Received>,
}

impl Process {
    /// Starts a process. To be called from the thread that lives as long as the driver does: to the
    /// kernel that thread is the parent.
    ///
    /// # Errors
    /// What the system says, most often that there is no such program.
    pub(super) fn start(start: Start<'_>) -> io::Result<Self> {
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
        // From here on an error kills it.
        let group = Pid::from_child(&child);
        let mut process = Self { child, group, reaped: false, commands: Some(commands), log: None };
        let Start { node, inc, clock, received, .. } = start;
        spawn("commands", move || write_all(input, &to_write))?;
        spawn("output", move || lines::read(output, node, inc, clock, &received))?;
        process.log = Some(spawn("log", move || keep(errors, log))?);
        Ok(process)
    }

    /// Sends a command. That the process no longer reads shows in its output.
    pub(super) fn send(&self, line: String) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(line);
        }
    }

    /// Suspends the process and its children.
    pub(super) fn suspend(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::STOP)?)
    }

    /// Resumes them.
    pub(super) fn resume(&self) -> io::Result<()> {
        Ok(kill_process_group(self.group, Signal::CONT)?)
    }

    /// Kills them, and waits for nothing.
    pub(super) fn strike(&self) {
        // It fails only if nobody of the group is left.
        let _ = kill_process_group(self.group, Signal::KILL);
    }

    /// Kills them, and waits until the process is gone. Returns how it ended, if the system reports
    /// it.
    pub(super) fn kill(&mut self) -> Option<ExitStatus> {
        if !self.reaped {
            self.strike();
        }
        self.reaped = true;
        self.commands = None;
        self.child.wait().ok()
    }

    /// Whether the process has ended; waits so long at most.
    pub(super) fn ends_within(&self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            // It stays a zombie: its number must not be given to another yet.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(self.group), options) {
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return true,
            }
        }
    }

    /// Waits until all that it logged is in its file, and not for ever: it may go on to log.
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
        // What it said last is often why it ended. A process that left the group may hold the log
        // open.
        self.await_log();
    }
}

/// Has the kernel kill the process when the driver ends in whatever way.
fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended before that, and then nobody would ever be told.
        if getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::NotConnected.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls and does nothing else: it
    // takes no lock, and allocates nothing.
    unsafe {
        command.pre_exec(in_child);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(format!("member-{name}")).spawn(work)
}

/// Writes commands until there are no more, or nobody reads them.
fn write_all(mut input: impl Write, commands: &mpsc::Receiver<String>) {
    for line in commands {
        if input.write_all(line.as_bytes()).is_err() {
            return;
        }
    }
}

/// Keeps a log, and reads on when enough of it is kept, so that the member does not wait.
fn keep(mut errors: impl Read, mut log: File) {
    let mut buffer = vec![0; 64 << 10];
    let mut left = LOG_BYTES_MAX;
    while let Ok(count @ 1..) = errors.read(&mut buffer) {
        if left == 0 {
            continue;
        }
        let part = &buffer[..count.min(usize::try_from(left).unwrap_or(usize::MAX))];
        left -= part.len() as u64;
        // A log that cannot be written is lost; the history tells when the disk is full.
        let written = log.write_all(part);
        if left == 0 || written.is_err() {
            let _ = log.write_all(LOG_CUT);
            left = 0;
        }
    }
}
