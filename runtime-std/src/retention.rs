//! Bounded logs: after a snapshot of the application, older records can be discarded (DUR-8,
//! TRM-5).
//!
//! A snapshot is taken after `keep_bytes` bytes of records have been appended since the last one,
//! and is written in a separate thread while the log continues. The snapshot takes effect once a
//! majority has all records that it covers, because records that were never ordered can be cut off
//! a log but cannot be removed from a state. The records before the *previous* snapshot are then
//! discarded. So, apart from the snapshot, a log keeps at least about `keep_bytes` bytes of records
//! and at most twice as many, plus those appended while a snapshot is written.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};

use tramontane_core::ids::{DurableCount, ViewId};
use tramontane_log::{
    GroupCommit, LetGoError, Log, Options, Sequence, SystemFolder, WriteError, WrittenSnapshot,
};

/// The size of the parts in which a state is written.
const PART_BYTES: usize = 256 << 10;

/// The minimum size of a segment, and the unit of segment sizes, in bytes.
const SEGMENT_BYTES_MIN: u64 = 64 << 10;
const BLOCK_BYTES: u64 = 4 << 10;

/// Returns the options of a log that keeps `keep_bytes` bytes of records. Only whole segments are
/// discarded, so they are smaller than that.
pub(crate) fn log_options(keep_bytes: Option<u64>) -> Options {
    let mut options = Options::default();
    if let Some(keep_bytes) = keep_bytes {
        let bytes = (keep_bytes / 4).next_multiple_of(BLOCK_BYTES);
        options.segment_bytes = bytes.clamp(SEGMENT_BYTES_MIN, options.segment_bytes);
    }
    options
}

/// The state from which a log decides when to take a snapshot and which records to discard.
pub(crate) struct Retention {
    /// The number of record bytes after which a snapshot is taken; never if `None`.
    keep_bytes: Option<u64>,
    /// The number of record bytes appended since the last snapshot.
    bytes: u64,
    under_way: Option<PendingSnapshot>,
}

/// A snapshot that is being written, or that waits until a majority has the records that it covers.
struct PendingSnapshot {
    records: DurableCount,
    written: Receiver<Option<WrittenSnapshot>>,
    ready: Option<WrittenSnapshot>,
}

impl Retention {
    pub(crate) fn new(keep_bytes: Option<u64>, log: &Log<SystemFolder>) -> Self {
        let last = log.snapshot().map_or(log.first(), |snapshot| snapshot.sequence);
        Self { keep_bytes, bytes: log.bytes_from(last), under_way: None }
    }

    /// Counts an appended record of `bytes` bytes.
    #[inline]
    pub(crate) const fn appended(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Returns whether a snapshot is to be taken now.
    pub(crate) fn wants_snapshot(&self) -> bool {
        self.under_way.is_none() && self.keep_bytes.is_some_and(|keep| self.bytes >= keep)
    }

    /// Begins to write the state that follows from the first `records` records.
    pub(crate) fn begin(
        &mut self,
        log: &Arc<GroupCommit<SystemFolder>>,
        records: DurableCount,
        view: ViewId,
        state: Box<dyn Read + Send>,
    ) -> std::io::Result<()> {
        let (sender, written) = channel();
        let log = Arc::clone(log);
        std::thread::Builder::new().name("tramontane-snapshot".into()).spawn(move || {
            let snapshot = write(&log, Sequence(records.0), view, state);
            if let Err(error) = &snapshot {
                // The log remains unchanged, and another snapshot is taken later.
                tracing::warn!(%error, "a snapshot cannot be written");
            }
            // A member that has ended no longer needs the snapshot.
            let _ = sender.send(snapshot.ok());
        })?;
        self.bytes = 0;
        self.under_way = Some(PendingSnapshot { records, written, ready: None });
        Ok(())
    }

    /// Waits until no snapshot is being written, and drops one that has not taken effect.
    pub(crate) fn drop_under_way(&mut self) {
        if let Some(PendingSnapshot { written, ready: None, .. }) = self.under_way.take() {
            // The thread may have failed.
            let _ = written.recv();
        }
    }

    /// Discards records once a snapshot has been written and a majority has all records that it
    /// covers. Records from `needed` on are kept.
    pub(crate) fn finish(
        &mut self,
        log: &GroupCommit<SystemFolder>,
        majority: DurableCount,
        needed: Sequence,
    ) -> Result<(), LetGoError> {
        let Some(under_way) = &mut self.under_way else { return Ok(()) };
        if under_way.ready.is_none() {
            match under_way.written.try_recv() {
                Ok(Some(snapshot)) => under_way.ready = Some(snapshot),
                Err(TryRecvError::Empty) => {}
                Ok(None) | Err(TryRecvError::Disconnected) => self.under_way = None,
            }
            return Ok(());
        }
        let is_safe = majority >= under_way.records && log.durable().0 >= under_way.records.0;
        if let Some(snapshot) = under_way.ready.take_if(|_| is_safe) {
            self.under_way = None;
            log.with_log(|log| {
                let before = log.snapshot();
                log.install_snapshot(snapshot)?;
                before.map_or(Ok(()), |before| log.let_go_below(before.sequence.min(needed)))
            })?;
        }
        Ok(())
    }
}

/// The reason why a snapshot is not written.
#[derive(Debug, thiserror::Error)]
enum SnapshotError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("the application's state cannot be read: {0}")]
    State(std::io::Error),
}

fn write(
    log: &GroupCommit<SystemFolder>,
    records: Sequence,
    view: ViewId,
    mut state: Box<dyn Read + Send>,
) -> Result<WrittenSnapshot, SnapshotError> {
    let mut snapshot = log.with_log(|log| log.write_snapshot(records, view))?;
    let mut part = vec![0; PART_BYTES];
    loop {
        match state.read(&mut part).map_err(SnapshotError::State)? {
            0 => return Ok(snapshot.finish()?),
            bytes => snapshot.write(&part[..bytes])?,
        }
    }
}
