//! Kernel commands that views need: registering memory, and creating, bringing up and destroying
//! queue pairs. Each takes from microseconds to a second, and a view of 64 members needs several
//! hundred. Therefore workers run them. The polling thread hands in jobs and collects their
//! outcomes.
//!
//! | file | subject |
//! |---|---|
//! | `jobs` | jobs and their outcomes |
//! | `workers` | running jobs, on threads of the site or on the calling thread |
//! | `lanes` | running jobs in virtual time, without threads |
//!
//! # Invariants
//! - A job owns the objects that it works on, and returns those that are still in use. So nothing
//!   is posted to an object that a worker has, and no object is subject to two commands at once.
//! - Each job has exactly one outcome, even if its worker fails.
//! - Ending a view keeps memory as long as the device may access it: queue pairs are destroyed
//!   before registrations end, and registrations keep their pages.
//! - The polling thread takes a lock when it hands in a job, but never when it checks for outcomes.
//!   It checks only while a job is outstanding.
//!
//! # Kernel calls of the polling thread
//! One command stays on the polling thread: it destroys the queue pair of each peer that is cut
//! while its row's connection works. Nothing from such a peer may land after
//! [`cut`](tramontane_core::fabric::Fabric::cut) has returned, and only the device can ensure that.
//! A connection with a failed request is in the error state, in which nothing lands. A connection
//! that has not been brought up yet leads nowhere. While a connection is being brought up, the peer
//! does not know about it, so a correct peer does not write. Regions call the kernel on the polling
//! thread too: a grant registers memory, a revocation ends the registration, and a connection that
//! a refused write broke is re-established.

mod jobs;
#[cfg(feature = "fake")]
mod lanes;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) use jobs::{Job, JobOutcome, Remains};
use workers::Reply;
pub(crate) use workers::{JobQueue, Workers};

/// The commands of one view.
#[derive(Debug)]
pub(crate) struct Commands {
    place: JobQueue,
    outcomes: Receiver<JobOutcome>,
    sender: Sender<JobOutcome>,
    /// Number of jobs whose outcomes have not been collected.
    out: usize,
    is_over: Arc<AtomicBool>,
}

impl Commands {
    pub(crate) fn new(place: JobQueue) -> Self {
        let (sender, outcomes) = channel();
        Self { place, outcomes, sender, out: 0, is_over: Arc::default() }
    }

    /// Returns whether jobs are complete before [`Commands::hand_in`] returns.
    pub(crate) const fn is_at_once(&self) -> bool {
        self.place.is_at_once()
    }

    /// Hands in a job.
    pub(crate) fn hand_in(&mut self, job: Job) {
        self.out += 1;
        let reply = Reply::new(self.sender.clone(), job.peer(), Arc::clone(&self.is_over));
        self.place.hand_in(job, reply);
    }

    /// Returns whether no job is outstanding.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        self.out == 0
    }

    /// Returns the outcome of a completed job, if there is one.
    pub(crate) fn next_outcome(&mut self) -> Option<JobOutcome> {
        self.place.go_on();
        let outcome = self.outcomes.try_recv().ok()?;
        self.out -= 1;
        Some(outcome)
    }

    /// Stops jobs from creating more objects: outstanding jobs return once their current command is
    /// complete.
    pub(crate) fn make_nothing_more(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
