//! Group commit: a thread makes all records appended since its last sync durable, with one write
//! and one sync (DUR-3).
//!
//! # Invariants
//! - The thread never waits for more records. All records appended during a sync share the next
//!   one.
//! - Appending does not wait for the disk. It fails once the bounded memory is full; the caller
//!   must then stop delivering until there is room, which slows down the senders.
//! - After a failed write or sync the thread ends, and no more records are accepted.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::batch::Batch;
use crate::error::{PushError, WriteError};
use crate::layer::FileLayer;
use crate::log::Log;
use crate::record::{Record, Sequence};

/// The limits of a group commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupCommitOptions {
    /// The number of bytes that may wait for the disk. A single larger message is still accepted if
    /// nothing else is waiting.
    pub waiting_bytes_max: usize,
}

impl Default for GroupCommitOptions {
    fn default() -> Self {
        Self { waiting_bytes_max: 8 << 20 }
    }
}

/// The reasons why a record was not appended.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// The bounded memory is full. Append the record again once more records are durable.
    #[error("the log's memory is full; append the record again once more records are durable")]
    Full,
    /// The record is out of order or too large.
    #[error(transparent)]
    Push(PushError),
    /// Nothing more can become durable.
    #[error("{0}")]
    Stopped(Arc<WriteError>),
}

/// The records that are waiting for the disk.
struct WaitingRecords {
    batch: Batch,
    next: Sequence,
    is_ending: bool,
    failed: Option<Arc<WriteError>>,
}

struct SharedLog<L: FileLayer> {
    waiting: Mutex<WaitingRecords>,
    changed: Condvar,
    durable: AtomicU64,
    commits: AtomicU64,
    log: Mutex<Log<L>>,
}

/// A log, and the thread that commits to it.
pub struct GroupCommit<L: FileLayer + 'static> {
    shared: Arc<SharedLog<L>>,
    options: GroupCommitOptions,
    thread: Option<JoinHandle<()>>,
}

impl<L: FileLayer + 'static> fmt::Debug for GroupCommit<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupCommit").field("durable", &self.durable()).finish_non_exhaustive()
    }
}

impl<L: FileLayer> SharedLog<L> {
    fn waiting(&self) -> MutexGuard<'_, WaitingRecords> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self) -> MutexGuard<'_, Log<L>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits waiting records until the end. Runs on the thread.
    fn commit_all(&self, mut became_durable: impl FnMut(Sequence)) {
        let mut batch = Batch::new();
        loop {
            {
                let is_idle =
                    |waiting: &mut WaitingRecords| waiting.batch.is_empty() && !waiting.is_ending;
                let waited = self.changed.wait_while(self.waiting(), is_idle);
                let mut waiting = waited.unwrap_or_else(PoisonError::into_inner);
                if waiting.batch.is_empty() {
                    return;
                }
                std::mem::swap(&mut waiting.batch, &mut batch);
            }
            let committed = self.log().commit(&mut batch);
            let mut waiting = self.waiting();
            match committed {
                Ok(end) => {
                    self.durable.store(end.0, Ordering::Release);
                    self.commits.fetch_add(1, Ordering::Relaxed);
                }
                Err(error) => waiting.failed = Some(Arc::new(error)),
            }
            let is_over = waiting.failed.is_some();
            drop(waiting);
            self.changed.notify_all();
            became_durable(Sequence(self.durable.load(Ordering::Acquire)));
            if is_over {
                return;
            }
        }
    }
}

impl<L: FileLayer + 'static> GroupCommit<L> {
    /// Starts the thread. It calls `became_durable` with the new frontier after each sync, and once
    /// more with the last frontier when nothing more can become durable.
    pub fn start(
        log: Log<L>,
        options: GroupCommitOptions,
        became_durable: impl FnMut(Sequence) + Send + 'static,
    ) -> std::io::Result<Self>
    where
        L::File: 'static,
        L::Lock: 'static,
    {
        let next = log.end();
        let waiting = WaitingRecords { batch: Batch::new(), next, is_ending: false, failed: None };
        let shared = Arc::new(SharedLog {
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            durable: AtomicU64::new(next.0),
            commits: AtomicU64::new(0),
            log: Mutex::new(log),
        });
        let thread = std::thread::Builder::new().name("tramontane-log".into()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.commit_all(became_durable)
        })?;
        Ok(Self { shared, options, thread: Some(thread) })
    }

    /// Appends a record. The record is copied, and becomes durable together with all other waiting
    /// records.
    pub fn append(&self, record: &Record<'_>) -> Result<(), AppendError> {
        let mut waiting = self.shared.waiting();
        if let Some(failed) = &waiting.failed {
            return Err(AppendError::Stopped(Arc::clone(failed)));
        }
        if record.sequence != waiting.next {
            let (expected, given) = (waiting.next, record.sequence);
            return Err(AppendError::Push(PushError::OutOfOrder { expected, given }));
        }
        let was_empty = waiting.batch.is_empty();
        let bytes = waiting.batch.disk_bytes_with(record.bytes.len());
        if !was_empty && bytes > self.options.waiting_bytes_max {
            return Err(AppendError::Full);
        }
        waiting.batch.push(record).map_err(|error| match error {
            PushError::Full => AppendError::Full,
            error => AppendError::Push(error),
        })?;
        waiting.next = record.sequence.plus(1);
        drop(waiting);
        if was_empty {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    /// Returns the durable frontier. All records before it are durable in this log.
    #[must_use]
    pub fn durable(&self) -> Sequence {
        Sequence(self.shared.durable.load(Ordering::Acquire))
    }

    /// Returns the number of bytes waiting for the disk, excluding those being written.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        let waiting = self.shared.waiting();
        if waiting.batch.is_empty() { 0 } else { waiting.batch.disk_bytes() }
    }

    /// Returns the sequence that the next record must have.
    #[must_use]
    pub fn next(&self) -> Sequence {
        self.shared.waiting().next
    }

    /// Returns the number of writes, each with a sync.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Returns the reason why nothing more can become durable, if there is one.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<WriteError>> {
        self.shared.waiting().failed.clone()
    }

    /// Waits, for at most `timeout`, until all records before a sequence are durable. Returns
    /// whether they are.
    pub fn wait_durable(&self, end: Sequence, timeout: Duration) -> Result<bool, AppendError> {
        let is_waiting =
            |waiting: &mut WaitingRecords| self.durable() < end && waiting.failed.is_none();
        let waited =
            self.shared.changed.wait_timeout_while(self.shared.waiting(), timeout, is_waiting);
        let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &waiting.failed {
            _ if self.durable() >= end => Ok(true),
            Some(failed) => Err(AppendError::Stopped(Arc::clone(failed))),
            None => Ok(false),
        }
    }

    /// Calls `work` with the log between two commits, for example to read, to install a snapshot,
    /// or to discard records. Waiting records are not in the log yet.
    pub fn with_log<R>(&self, work: impl FnOnce(&mut Log<L>) -> R) -> R {
        work(&mut self.shared.log())
    }

    /// Commits the waiting records, and ends the thread. Returns the error if the commit fails.
    pub fn end(mut self) -> Result<(), AppendError> {
        self.join();
        self.failure().map_or(Ok(()), |failed| Err(AppendError::Stopped(failed)))
    }

    fn join(&mut self) {
        self.shared.waiting().is_ending = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // If the caller's function panicked, the thread has ended, and nothing more becomes
            // durable.
            let _ = thread.join();
        }
    }
}

impl<L: FileLayer + 'static> Drop for GroupCommit<L> {
    fn drop(&mut self) {
        self.join();
    }
}
