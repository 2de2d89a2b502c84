//! Processes of this same program, and the leash that ties each to the one that started it. The one
//! place where those are started.
//!
//! Parent and worker talk in lines: the parent's over the worker's standard input, the worker's
//! over its standard output; standard error is the parent's own.
//!
//! # No worker outlives its parent
//! However the parent ends, the kernel closes its end of the worker's input. The worker's leash
//! sees that, raises a flag that the worker's loops and waits look at, and ends the process after
//! [`GRACE`] if it has not ended by itself. So a worker leaves its group properly, and leaves no
//! files, even when the parent was killed. Two gaps are closed apart: a worker that is stopped is
//! woken when its parent dies, and one whose parent died before it asked for that finds that it has
//! another parent now.

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

/// How long a worker may go on after its parent let go of it.
pub const GRACE: Duration = Duration::from_secs(1);

/// The exit status of a worker that the leash had to end.
pub const LEASH_STATUS: i32 = 1;

/// Tells a worker who its parent is.
const PARENT: &str = "TRAMONTANE_PARENT";

/// Between two looks whether a worker has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(2);

/// A process of this program that this one started. Dropping it kills it.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
}

impl Worker {
    /// Starts this program again, with these arguments. It inherits the descriptors of `inherited`,
    /// under the same numbers, and gives back the end to read what it says.
    ///
    /// To be called from a thread that lives as long as the workers should: to the kernel that
    /// thread is the parent.
    ///
    /// # Errors
    /// What the operating system says.
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

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Says something to it, in a line.
    ///
    /// # Errors
    /// If it does not listen any more.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(input, "{line}")
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// If it is gone, or what the operating system says.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        Ok(kill_process(pid.ok_or(io::ErrorKind::NotFound)?, signal)?)
    }

    /// Lets go of it: it ends, within [`GRACE`] unless it is stopped.
    pub fn release(&mut self) {
        self.input = None;
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lets go of workers, waits until they have ended, at most a little more than [`GRACE`], and kills
/// the rest.
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

/// Descriptors that a child inherits: kept open over `exec` while this lives.
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
            // It worked the other way round; at worst a later child inherits one descriptor more.
            let _ = fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
    }
}

/// A worker's end: what its parent says, and whether it still holds on.
#[derive(Debug)]
pub struct Leash {
    lines: Receiver<String>,
    cut: Arc<AtomicBool>,
}

impl Leash {
    /// Ties this process to the one that started it.
    ///
    /// # Errors
    /// If this process is no worker, or its parent is gone already.
    pub fn attach() -> io::Result<Self> {
        let parent = std::env::var(PARENT).ok().and_then(|text| text.parse::<i32>().ok());
        // The signal wakes a worker that is stopped; everything else about the end is the input's
        // matter.
        set_parent_process_death_signal(Some(Signal::CONT))?;
        if parent.is_none() || getppid().map(|pid| pid.as_raw_nonzero().get()) != parent {
            return Err(io::Error::other("this process was not started by one of this program"));
        }
        // A terminal interrupts, or hangs up on, worker and parent alike; what follows is the
        // parent's matter.
        for signal in [SIGINT, SIGHUP] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        let cut = Arc::new(AtomicBool::new(false));
        let (sender, lines) = mpsc::channel();
        let flag = Arc::clone(&cut);
        std::thread::Builder::new().name("tramontane-leash".into()).spawn(move || {
            for line in io::stdin().lock().lines() {
                // Nobody takes it: the worker is about to end.
                let Ok(()) = line.map(|line| drop(sender.send(line))) else { break };
            }
            flag.store(true, Ordering::Relaxed);
            drop(sender);
            std::thread::sleep(GRACE);
            std::process::exit(LEASH_STATUS);
        })?;
        Ok(Self { lines, cut })
    }

    /// Whether the parent let go, or is gone.
    #[inline]
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Relaxed)
    }

    /// The flag behind [`Leash::is_cut`], to end waits with.
    #[must_use]
    pub fn flag(&self) -> &AtomicBool {
        &self.cut
    }

    /// Waits for the parent's next line; nothing once it let go.
    #[must_use]
    pub fn next_line(&self) -> Option<String> {
        self.lines.recv().ok()
    }
}
