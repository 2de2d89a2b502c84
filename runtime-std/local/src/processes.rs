//! Worker processes that run this same program, and the leash that ties each to its parent. All of
//! them are started in this module.
//!
//! Parent and worker exchange lines: the parent writes to the worker's standard input, and the
//! worker to its standard output. They share standard error.
//!
//! # No worker outlives its parent
//! However the parent ends, the kernel closes its end of the worker's input. The worker's leash
//! notices this, sets a flag that the worker's loops and waits check, and ends the process after
//! [`GRACE`] unless it has already exited. So a worker leaves its group properly, and leaves no
//! files, even if the parent was killed. Two gaps are closed separately: a stopped worker is woken
//! when its parent dies, and a worker whose parent died before the worker asked to be woken finds
//! that it has a different parent.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::BorrowedFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{
    Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal,
};
use signal_hook::consts::{SIGHUP, SIGINT};

/// Time that a worker may continue after its parent has released it.
pub const GRACE: Duration = Duration::from_secs(1);

/// The exit status of a worker that its leash had to end.
pub const LEASH_STATUS: i32 = 1;

/// Environment variable that holds the process id of a worker's parent.
const PARENT: &str = "TRAMONTANE_PARENT";

/// Interval between checks whether a worker has exited.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A process of this program, started by this process. Dropping it kills the process.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
}

impl Worker {
    /// Starts another process of this program with these arguments. The process inherits the
    /// descriptors in `inherited` under the same numbers. Returns the reading end of its output.
    ///
    /// Call this from a thread that lives as long as the workers should, because the kernel regards
    /// that thread as the parent.
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn start<S: AsRef<OsStr>>(
        arguments: &[S],
        inherited: &[BorrowedFd<'_>],
    ) -> io::Result<(Self, ChildStdout)> {
        let _lent = Inherited::lend(inherited)?;
        let mut child = Command::new(std::env::current_exe()?)
            .args(arguments)
            .env(PARENT, getpid().as_raw_nonzero().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let worker = Self { child, input };
        let output = output.ok_or_else(|| io::Error::other("a worker without an output"))?;
        Ok((worker, output))
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the worker a line.
    ///
    /// # Errors
    /// Fails if the worker no longer reads its input.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}")
    }

    /// Sends the worker a signal.
    ///
    /// # Errors
    /// Fails if the worker has exited, or if the operating system reports another error.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(pid.ok_or(io::ErrorKind::NotFound)?, signal)?)
    }

    /// Releases the worker: it exits within [`GRACE`] unless it is stopped.
    pub fn release(&mut self) {
        self.input = None;
    }

    /// Returns the exit status, if the worker has exited.
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both calls fail only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Releases workers, waits until they have exited, for little longer than [`GRACE`], and kills the
/// rest.
pub fn dismiss(workers: &mut Vec<Worker>) {
    for worker in workers.iter_mut() {
        worker.release();
    }
    let until = Instant::now() + GRACE + GRACE / 4;
    while Instant::now() < until {
        if workers.iter_mut().all(|worker| !matches!(worker.ended(), Ok(None))) {
            break;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    workers.clear();
}

/// Descriptors that a child inherits. They stay open over `exec` until this is dropped.
struct Inherited<'f>(&'f [BorrowedFd<'f>]);

impl<'f> Inherited<'f> {
    fn lend(descriptors: &'f [BorrowedFd<'f>]) -> io::Result<Self> {
        let lent = Self(descriptors);
        for descriptor in descriptors {
            fcntl_setfd(descriptor, fcntl_getfd(descriptor)?.difference(FdFlags::CLOEXEC))?;
        }
        Ok(lent)
    }
}

impl Drop for Inherited<'_> {
    fn drop(&mut self) {
        for descriptor in self.0 {
            // The opposite call has succeeded before. At worst, a later child inherits one more
            // descriptor.
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
    }
}

/// A worker's end: receives its parent's lines, and notices when the parent releases it.
#[derive(Debug)]
pub struct Leash {
    lines: Receiver<String>,
    cut: Arc<AtomicBool>,
}

impl Leash {
    /// Ties this process to its parent.
    ///
    /// # Errors
    /// Fails if this process is not a worker, or if its parent has already exited.
    pub fn attach() -> io::Result<Self> {
        let parent = std::env::var(PARENT).ok().and_then(|text| text.parse::<i32>().ok());
        // The signal wakes a stopped worker. The closed input does the rest.
        set_parent_process_death_signal(Some(Signal::CONT))?;
        if parent.is_none() || getppid().map(|pid| pid.as_raw_nonzero().get()) != parent {
            return Err(io::Error::other("this process was not started by this program"));
        }
        // A terminal sends SIGINT or SIGHUP to both worker and parent. The parent decides what
        // follows.
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let cut = Arc::new(AtomicBool::new(false));
        let (sender, lines) = mpsc::channel();
        let flag = Arc::clone(&cut);
        std::thread::Builder::new().name("tramontane-leash".into()).spawn(move || {
            for line in io::stdin().lock().lines() {
                // Nothing receives the line, because the worker is about to end.
                let Ok(()) = line.map(|line| drop(sender.send(line))) else { break };
            }
            flag.store(true, Ordering::Relaxed);
            drop(sender);
            std::thread::sleep(GRACE);
            std::process::exit(LEASH_STATUS);
        })?;
        Ok(Self { lines, cut })
    }

    /// Returns whether the parent has released this worker or has exited.
    #[inline]
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// Returns the flag of [`Leash::is_cut`], which can be used to end waits.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.cut
    }

    /// Waits for the parent's next line. Returns `None` once the parent has released this worker.
    #[must_use]
    pub fn next_line(&self) -> Option<String> {
        self.lines.recv().ok()
    }
}
