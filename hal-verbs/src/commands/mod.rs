//! Commands to the kernel that views need: registrations, and queue pairs that are made, brought up
//! and ended. Each takes as long as the kernel and the device like, from microseconds to a second,
//! and a view of 64 members needs several hundred. So workers carry them out. The polling thread
//! hands in jobs and takes their outcomes.
//!
//! | file | subject |
//! |---|---|
//! | `jobs` | what a job does, and what comes of it |
//! | `workers` | who does it: threads of the site, or the calling thread |
//! | `lanes` | the same work in virtual time, where there is no thread |
//!
//! # Invariants
//! - A job owns what it works on, and gives back what is used on. So nothing that a worker has is
//!   posted to, and no object is under two commands at once.
//! - Each job has one outcome, also where its worker fails.
//! - What ends keeps memory as long as the device may reach it: queue pairs go before
//!   registrations, and registrations keep their pages.
//! - The polling thread takes a lock when it hands in a job, never when it looks for outcomes; and
//!   it looks only while a job is out.
//!
//! # What is still asked of the kernel in the polling thread
//! The end of one queue pair, for each peer that is cut while its row's connection works: nothing
//! of it may land once [`cut`](tramontane_core::fabric::Fabric::cut) has returned, and only the
//! device can see to that. A connection of which a request failed is in error, where nothing lands.
//! One that no worker has brought up yet leads nowhere. Of one that is being brought up its peer
//! was not told, so no peer that keeps the rules writes. Regions ask
//! there too: a grant registers memory and a revoke ends that, unless keys are windows; and a
//! connection that a refused write broke is made anew.

mod jobs;
#[cfg(feature = "fake")]
mod lanes;
mod workers;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) use jobs::{Connection, Job, Outcome, Remains};
use workers::Reply;
pub(crate) use workers::{Place, Workers};

/// The commands of one view.
#[derive(Debug)]
pub(crate) struct Commands {
    place: Place,
    outcomes: Receiver<Outcome>,
    sender: Sender<Outcome>,
    /// Jobs whose outcome was not taken.
    out: usize,
    is_over: Arc<AtomicBool>,
}

impl Commands {
    pub(crate) fn new(place: Place) -> Self {
        let (sender, outcomes) = channel();
        Self { place, outcomes, sender, out: 0, is_over: Arc::default() }
    }

    /// Whether jobs are done before [`Commands::hand_in`] returns.
    pub(crate) const fn is_at_once(&self) -> bool {
        self.place.is_at_once()
    }

    /// Hands in a job.
    pub(crate) fn hand_in(&mut self, job: Job) {
        self.out += 1;
        let reply = Reply::new(self.sender.clone(), job.peer(), Arc::clone(&self.is_over));
        self.place.hand_in(job, reply);
    }

    /// Whether no job is out.
    #[inline]
    pub(crate) const fn is_idle(&self) -> bool {
        self.out == 0
    }

    /// What came of a job, if one is done.
    pub(crate) fn next_outcome(&mut self) -> Option<Outcome> {
        self.place.go_on();
        let outcome = self.outcomes.try_recv().ok()?;
        self.out -= 1;
        Some(outcome)
    }

    /// Nothing is to be made any more: jobs that are out come back once their command is done.
    pub(crate) fn make_nothing_more(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
