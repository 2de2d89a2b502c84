//! The log of a member that is not yet running. The log receives the group's records before the
//! member counts in any majority (DUR-6).

use std::io;
use std::path::PathBuf;

use tramontane_core::ids::{SubgroupId, ViewId};
use tramontane_log::{
    Batch, CutError, Log, Noted, PushError, ReadError, ReplaceError, Sequence, SnapshotWriter,
    SystemFolder, WriteError, WrittenSnapshot,
};

use super::comparison::{
    LogPlace, READ_BYTES, common, delivered, last_place, read_records, record,
};
use super::data_error::DataError;
use super::delivered::Delivered;
use crate::group::state::noted_log::NotedLog;

/// The approximate size of the parts in which restored data is committed.
const COMMIT_BYTES: usize = 1 << 20;

/// An open log, with the messages received since it was opened.
#[derive(Debug)]
pub(crate) struct LogTakenOver {
    pub(crate) subgroup: SubgroupId,
    pub(crate) path: PathBuf,
    pub(crate) log: Log<SystemFolder>,
    /// Received messages that have not been committed yet.
    batch: Batch,
    /// The application has received exactly the records before this one. `None` if that is unknown.
    handed_over: Option<Sequence>,
    /// Whether the log neither matches the node's notes nor is an older copy of the log in the
    /// notes.
    pub(crate) is_of_another: bool,
}

/// The reason why data from a peer is not in the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TakeOverError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Cut(#[from] CutError),
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Data(#[from] DataError),
}

impl LogTakenOver {
    pub(super) fn new(
        subgroup: SubgroupId,
        path: PathBuf,
        log: Log<SystemFolder>,
        is_of_another: bool,
    ) -> Self {
        Self { subgroup, path, log, batch: Batch::new(), handed_over: None, is_of_another }
    }

    /// Returns the note about the log, which is now complete.
    pub(crate) fn note(&self) -> NotedLog {
        let Noted { log, incarnation, end } = self.log.note();
        NotedLog {
            subgroup: self.log.identity().subgroup.clone(),
            log,
            incarnation,
            end: end.0,
            majority: 0,
            everywhere: 0,
        }
    }

    /// Returns the number of the next record.
    pub(crate) fn next(&self) -> Sequence {
        self.batch.next().unwrap_or(self.log.end())
    }

    /// Returns the last valid record.
    pub(crate) fn last_place(&self) -> Result<Option<LogPlace>, TakeOverError> {
        Ok(last_place(&self.log)?)
    }

    /// Returns whether the log can continue after its first `records` records.
    pub(crate) fn has_place_for(&self, records: u64) -> bool {
        let begins_at = self.log.snapshot().map_or(self.log.first(), |state| state.sequence);
        (begins_at.max(self.log.first()).0..=self.log.end().0).contains(&records)
    }

    /// Returns the ranges of damaged records before record `records`.
    pub(crate) fn damaged_before(&self, records: u64) -> Vec<(u64, u64)> {
        let clipped = self.log.damaged().map(|(from, to)| (from.0, to.0.min(records)));
        clipped.filter(|(from, to)| from < to).collect()
    }

    /// Replaces damaged records with a peer's copies. Returns false if some copies are missing.
    pub(super) fn repair(
        &mut self,
        from: u64,
        to: u64,
        records: &[Delivered],
    ) -> Result<bool, TakeOverError> {
        let is_all = u64::try_from(records.len()).is_ok_and(|count| from + count == to);
        if is_all {
            let records: Vec<_> =
                (from..).map(Sequence).zip(records).map(|(at, of)| record(at, of)).collect();
            self.log.replace(&records)?;
        }
        Ok(is_all)
    }

    /// Sets aside the records after the first `records`. Returns their number, and the file that
    /// contains them.
    pub(super) fn cut(&mut self, records: u64) -> Result<Option<(u64, PathBuf)>, TakeOverError> {
        let count = self.log.end().0.saturating_sub(records);
        let aside = self.log.cut(Sequence(records))?;
        if self.handed_over.is_some_and(|handed_over| handed_over.0 > records) {
            self.handed_over = None;
        }
        Ok(aside.map(|name| (count, self.path.join(name))))
    }

    /// Returns whether the application has received exactly the content of the log.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over == Some(self.next())
    }

    /// Returns the state at the beginning of the log, if there is one.
    pub(crate) fn state(&self) -> Result<Option<Vec<u8>>, TakeOverError> {
        let has_one = self.log.snapshot().is_some();
        Ok(if has_one { Some(self.log.read_snapshot()?.1) } else { None })
    }

    /// Passes the records after the state to the application.
    pub(crate) fn hand_over(
        &mut self,
        mut each: impl FnMut(&Delivered),
    ) -> Result<(), TakeOverError> {
        let from = self.log.snapshot().map_or(self.log.first(), |state| state.sequence);
        let mut records = self.log.records(from.max(self.log.first()))?;
        while let Some(record) = records.read_next() {
            each(&delivered(self.subgroup, &record?));
        }
        self.handed_over = Some(self.log.end());
        Ok(())
    }

    /// Returns the number of records that this log has in common with a log that ends at `other`.
    pub(crate) fn common(&self, other: Option<LogPlace>) -> Result<Option<u64>, TakeOverError> {
        Ok(common(&self.log, other)?)
    }

    /// Reads records starting at number `from`, up to the size of one read.
    pub(crate) fn read(&self, from: u64, to: u64) -> Result<Vec<Delivered>, TakeOverError> {
        Ok(read_records(&self.log, self.subgroup, from, to, READ_BYTES)?)
    }

    /// Returns whether the log has always been empty.
    pub(super) fn is_untouched(&self) -> bool {
        self.log.end() == Sequence::ZERO && self.log.snapshot().is_none()
    }

    /// Begins to receive the application's state after the first `records` records. Once complete,
    /// the state is [installed](Self::install).
    pub(crate) fn begin_state(
        &mut self,
        records: u64,
        view: ViewId,
    ) -> Result<SnapshotWriter<SystemFolder>, TakeOverError> {
        self.batch.clear();
        self.handed_over = None;
        Ok(self.log.write_snapshot(Sequence(records), view)?)
    }

    /// Installs the complete state. The log continues after it.
    pub(crate) fn install(
        &mut self,
        state: WrittenSnapshot,
        records: u64,
    ) -> Result<(), TakeOverError> {
        self.log.install_snapshot(state)?;
        self.handed_over = Some(Sequence(records));
        Ok(())
    }

    /// Takes a message that was delivered before this node was a member.
    pub(crate) fn take(&mut self, message: &Delivered) -> Result<(), TakeOverError> {
        let record = record(self.next(), message);
        if let Err(PushError::Full) = self.batch.push(&record) {
            self.commit()?;
            self.batch.push(&record)?;
        }
        // The caller delivers the message, so the application will have it too.
        self.handed_over = self.handed_over.map(|handed_over| handed_over.plus(1));
        if self.batch.disk_bytes() >= COMMIT_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes everything received durable.
    pub(crate) fn commit(&mut self) -> Result<(), TakeOverError> {
        self.log.commit(&mut self.batch)?;
        Ok(())
    }
}

/// Writes to two destinations.
pub(crate) struct Both<'s, W>(
    pub(crate) W,
    pub(crate) Option<&'s mut SnapshotWriter<SystemFolder>>,
);

impl<W: io::Write> io::Write for Both<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        if let Some(state) = &mut self.1 {
            state.write(&bytes[..written]).map_err(io::Error::other)?;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
