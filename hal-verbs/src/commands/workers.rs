//! The workers that run jobs, which are threads of the site. Without workers, the calling thread
//! runs the jobs.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use tramontane_core::ids::Rank;

#[cfg(feature = "fake")]
use super::lanes::Lanes;
use super::{Job, JobOutcome};
use crate::adapter::Context;

/// Number of workers of a site. There are several, so that one fruitless search of the kernel for a
/// path, which takes a second, does not delay the other peers.
const THREADS: usize = 4;

/// The destination of a job's outcome.
#[derive(Debug)]
pub(super) struct Reply {
    sender: Sender<JobOutcome>,
    peer: Option<Rank>,
    is_over: Arc<AtomicBool>,
    /// The descriptor that wakes a sleeping thread.
    news: Option<Arc<OwnedFd>>,
    is_sent: bool,
}

impl Reply {
    pub(super) const fn new(
        sender: Sender<JobOutcome>,
        peer: Option<Rank>,
        is_over: Arc<AtomicBool>,
    ) -> Self {
        Self { sender, peer, is_over, news: None, is_sent: false }
    }

    pub(super) fn send(&mut self, outcome: JobOutcome) {
        self.is_sent = true;
        // If the view no longer exists, nothing receives the outcome, and the objects are dropped
        // here.
        let _ = self.sender.send(outcome);
        if let Some(news) = &self.news {
            // This fails only if 2^64 - 1 outcomes are waiting.
            let _ = rustix::io::write(news, &1_u64.to_ne_bytes());
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_sent {
            self.send(JobOutcome::Abandoned(self.peer));
        }
    }
}

/// A job, and the destination of its outcome.
#[derive(Debug)]
pub(super) struct Task {
    job: Job,
    reply: Reply,
}

impl Task {
    fn run(self) {
        let Self { job, mut reply } = self;
        let outcome = job.run(&reply.is_over);
        reply.send(outcome);
    }

    /// Runs the job, and keeps its outcome.
    #[cfg(feature = "fake")]
    pub(super) fn finish(self) -> (Reply, JobOutcome) {
        let outcome = self.job.run(&self.reply.is_over);
        (self.reply, outcome)
    }
}

/// The queue to which jobs are submitted.
#[derive(Clone, Debug)]
pub(crate) struct JobQueue(Way);

#[derive(Clone, Debug)]
enum Way {
    AtOnce,
    Threads(Arc<WaitingJobs>),
    #[cfg(feature = "fake")]
    Lanes(Arc<Lanes>),
}

impl Way {
    fn go_on(&self) {
        #[cfg(feature = "fake")]
        if let Self::Lanes(lanes) = self {
            lanes.go_on();
        }
    }
}

/// Jobs that are waiting for a thread.
#[derive(Debug)]
struct WaitingJobs {
    waiting: Mutex<Waiting>,
    more: Condvar,
    news: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Waiting {
    tasks: VecDeque<Task>,
    is_closed: bool,
}

impl WaitingJobs {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next job, or `None` once all are done and no more will come.
    fn next(&self) -> Option<Task> {
        let is_idle = |waiting: &mut Waiting| waiting.tasks.is_empty() && !waiting.is_closed;
        let waiting = self.more.wait_while(self.waiting(), is_idle);
        waiting.unwrap_or_else(PoisonError::into_inner).tasks.pop_front()
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            // A job that panics is reported by its reply, and the remaining jobs are still run.
            let _ = catch_unwind(AssertUnwindSafe(|| task.run()));
        }
    }
}

impl JobQueue {
    pub(super) const fn is_at_once(&self) -> bool {
        matches!(self.0, Way::AtOnce)
    }

    pub(super) fn go_on(&self) {
        self.0.go_on();
    }

    pub(super) fn hand_in(&self, job: Job, mut reply: Reply) {
        let queue = match &self.0 {
            Way::Threads(queue) => queue,
            Way::AtOnce => return Task { job, reply }.run(),
            #[cfg(feature = "fake")]
            Way::Lanes(lanes) => {
                reply.news = Some(Arc::clone(lanes.news()));
                return lanes.hand_in(Task { job, reply });
            }
        };
        reply.news = Some(Arc::clone(&queue.news));
        let mut waiting = queue.waiting();
        if waiting.is_closed {
            drop(waiting);
            return Task { job, reply }.run();
        }
        waiting.tasks.push_back(Task { job, reply });
        drop(waiting);
        queue.more.notify_one();
    }
}

/// The threads of a site, which end with it. Each finishes its current command. Jobs that destroy
/// objects are still run, but jobs that create objects are not.
#[derive(Debug)]
pub(crate) struct Workers {
    way: Way,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Creates no workers: the thread that submits a job runs it.
    pub(crate) const fn at_once() -> Self {
        Self { way: Way::AtOnce, threads: Vec::new() }
    }

    /// Starts threads, or lanes for a device in virtual time.
    ///
    /// # Errors
    /// Fails if the system has no descriptor or thread left.
    pub(crate) fn start(context: &Context) -> io::Result<Self> {
        #[cfg(feature = "fake")]
        if let Some(time) = context.virtual_time() {
            let way = Way::Lanes(Arc::new(Lanes::new(time, THREADS)?));
            return Ok(Self { way, threads: Vec::new() });
        }
        let _ = context;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let waiting = Waiting { tasks: VecDeque::new(), is_closed: false };
        let queue = Arc::new(WaitingJobs {
            waiting: Mutex::new(waiting),
            more: Condvar::new(),
            news: Arc::new(eventfd(0, flags)?),
        });
        let mut workers = Self { way: Way::Threads(Arc::clone(&queue)), threads: Vec::new() };
        for _ in 0..THREADS {
            let queue = Arc::clone(&queue);
            let thread = std::thread::Builder::new().name("verbs commands".into());
            workers.threads.push(thread.spawn(move || queue.work())?);
        }
        Ok(workers)
    }

    /// Returns the queue to which views submit their jobs.
    pub(crate) fn place(&self) -> JobQueue {
        JobQueue(self.way.clone())
    }

    /// Runs due jobs if there are no threads to run them.
    pub(crate) fn go_on(&self) {
        self.way.go_on();
    }

    /// Returns a descriptor that becomes readable when a job is done, or `None` if jobs are run
    /// immediately.
    pub(crate) fn news(&self) -> Option<BorrowedFd<'_>> {
        match &self.way {
            Way::AtOnce => None,
            Way::Threads(queue) => Some(queue.news.as_fd()),
            #[cfg(feature = "fake")]
            Way::Lanes(lanes) => Some(lanes.news().as_fd()),
        }
    }

    /// Returns whether a job has been done since the last call.
    pub(crate) fn take_news(&self) -> bool {
        self.news().is_some_and(|news| rustix::io::read(news, &mut [0; 8]).is_ok())
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let Way::Threads(queue) = &self.way else { return };
        queue.waiting().is_closed = true;
        queue.more.notify_all();
        for thread in self.threads.drain(..) {
            // The thread catches the panics of its jobs.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn unfinished_job_is_reported_as_abandoned() {
        let (sender, outcomes) = channel();
        for peer in [None, Some(Rank(3))] {
            drop(Reply::new(sender.clone(), peer, Arc::default()));
            let outcome = outcomes.try_recv().expect("an outcome");
            assert!(matches!(outcome, JobOutcome::Abandoned(told) if told == peer), "{outcome:?}");
        }
    }
}
