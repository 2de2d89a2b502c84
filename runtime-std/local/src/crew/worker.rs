//! A worker's end of a crew.

use std::io;
use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use rustix::thread::{CpuSet, sched_setaffinity};
use serde::Serialize;

use super::role::{Assignment, Role};
use crate::processes::Leash;

/// The reason that this process is not a worker.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The argument is not an assignment.
    #[error("not a task: {0}")]
    Task(serde_json::Error),
    /// This program did not start the process.
    #[error(transparent)]
    Parent(io::Error),
    /// The process may not run on its assigned processor.
    #[error("cannot run on processor {processor}: {source}")]
    Processor {
        /// By number.
        processor: usize,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A worker's connection to its parent.
#[derive(Debug)]
pub struct Worker<R: Role> {
    leash: Leash,
    role: PhantomData<fn() -> R>,
}

impl<R: Role> Worker<R> {
    /// Reads the assignment, ties this process to its parent, and moves it to its processor. Call
    /// it before other threads are started, because threads inherit the processor.
    ///
    /// # Errors
    /// [`AttachError`].
    pub fn attach(assignment: &str) -> Result<(R::Task, Self), AttachError> {
        let Assignment { processor, task } =
            serde_json::from_str(assignment).map_err(AttachError::Task)?;
        let leash = Leash::attach().map_err(AttachError::Parent)?;
        if let Some(processor) = processor {
            let mut set = CpuSet::new();
            set.set(processor);
            sched_setaffinity(None, &set)
                .map_err(|source| AttachError::Processor { processor, source: source.into() })?;
        }
        Ok((task, Self { leash, role: PhantomData }))
    }

    /// Waits for the parent's next order. Returns `None` once the parent has released this worker.
    /// An invalid order is logged and skipped.
    #[must_use]
    pub fn next_order(&self) -> Option<R::Order> {
        loop {
            match serde_json::from_str(&self.leash.next_line()?) {
                Ok(order) => return Some(order),
                Err(error) => tracing::warn!(%error, "the parent sent an invalid order"),
            }
        }
    }

    /// Waits until the parent releases this worker, or the parent exits.
    pub fn wait_for_release(&self) {
        while self.leash.next_line().is_some() {}
    }

    /// Returns whether the parent has released this worker or has exited, so that the worker must
    /// end.
    #[inline]
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.leash.is_cut()
    }

    /// Returns the flag of [`Worker::is_released`], which can be used to end waits.
    #[must_use]
    pub fn released(&self) -> &AtomicBool {
        self.leash.flag()
    }

    /// Returns a report sender that any thread can use.
    #[must_use]
    pub const fn reporter(&self) -> Reporter<R::Report> {
        Reporter(PhantomData)
    }

    /// Sends a report.
    ///
    /// # Errors
    /// Sends a report: see [`Reporter::send`].
    pub fn report(&self, report: &R::Report) -> io::Result<()> {
        self.reporter().send(report)
    }
}

/// Sends a worker's reports.
#[derive(Debug)]
pub struct Reporter<M>(PhantomData<fn(&M)>);

impl<M> Clone for Reporter<M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Reporter<M> {}

/// Held while a line is written, because a long line is written in parts and several threads write.
static OUTPUT: Mutex<()> = Mutex::new(());

impl<M: Serialize> Reporter<M> {
    /// Sends a complete report. Does not take the standard library's lock on the output, which the
    /// command may hold.
    ///
    /// # Errors
    /// Fails if the parent no longer reads its input.
    pub fn send(self, report: &M) -> io::Result<()> {
        let mut line = serde_json::to_vec(report)?;
        line.push(b'\n');
        let _turn = OUTPUT.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = &line[..];
        while !rest.is_empty() {
            match rustix::io::write(rustix::stdio::stdout(), rest) {
                Ok(count) => rest = &rest[count..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
