//! The log of a member that is not up yet: it takes over what the group has, before the member
//! counts in any majority (DUR-6).

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

/// What was restored is committed in parts of about so many bytes.
const COMMIT_BYTES: usize = 1 << 20;

/// A log that is open, and what came since.
#[derive(Debug)]
pub(crate) struct LogTakenOver {
    pub(crate) subgroup: SubgroupId,
    pub(crate) path: PathBuf,
    pub(crate) log: Log<SystemFolder>,
    /// Messages that came and are not committed yet.
    batch: Batch,
    /// The application was handed all before this, and nothing else; nothing if that is not known.
    handed_over: Option<Sequence>,
    /// It is not the log that this node noted, or an older copy of that.
    pub(crate) is_of_another: bool,
}

/// Why what a peer sent is not in the log.
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

    /// What is to be noted of it: it has all that it is to have.
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

    /// The number of the next record.
    pub(crate) fn next(&self) -> Sequence {
        self.batch.next().unwrap_or(self.log.end())
    }

    /// Its last sound record.
    pub(crate) fn last_place(&self) -> Result<Option<LogPlace>, TakeOverError> {
        Ok(last_place(&self.log)?)
    }

    /// Whether it can go on behind so many records.
    pub(crate) fn has_place_for(&self, records: u64) -> bool {
        let begins_at = self.log.snapshot().map_or(self.log.first(), |state| state.sequence);
        (begins_at.max(self.log.first()).0..=self.log.end().0).contains(&records)
    }

    /// The damaged records before that number.
    pub(crate) fn damaged_before(&self, records: u64) -> Vec<(u64, u64)> {
        let clipped = self.log.damaged().map(|(from, to)| (from.0, to.0.min(records)));
        clipped.filter(|(from, to)| from < to).collect()
    }

    /// Puts a peer's records in the place of damaged ones. False if they are not these.
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

    /// Sets the records from a number on aside. Gives how many that are, and the file that has
    /// them.
    pub(super) fn cut(&mut self, records: u64) -> Result<Option<(u64, PathBuf)>, TakeOverError> {
        let count = self.log.end().0.saturating_sub(records);
        let aside = self.log.cut(Sequence(records))?;
        if self.handed_over.is_some_and(|handed_over| handed_over.0 > records) {
            self.handed_over = None;
        }
        Ok(aside.map(|name| (count, self.path.join(name))))
    }

    /// Whether the application has been handed all of it, and nothing else.
    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over == Some(self.next())
    }

    /// The state that it begins with, if it has one.
    pub(crate) fn state(&self) -> Result<Option<Vec<u8>>, TakeOverError> {
        let has_one = self.log.snapshot().is_some();
        Ok(if has_one { Some(self.log.read_snapshot()?.1) } else { None })
    }

    /// Hands over the records behind the state.
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

    /// How many records it has in common with one that ends there.
    pub(crate) fn common(&self, other: Option<LogPlace>) -> Result<Option<u64>, TakeOverError> {
        Ok(common(&self.log, other)?)
    }

    /// Records from a number on: as many as are read at a time.
    pub(crate) fn read(&self, from: u64, to: u64) -> Result<Vec<Delivered>, TakeOverError> {
        Ok(read_records(&self.log, self.subgroup, from, to, READ_BYTES)?)
    }

    /// Whether nothing was ever in it.
    pub(super) fn is_untouched(&self) -> bool {
        self.log.end() == Sequence::ZERO && self.log.snapshot().is_none()
    }

    /// A state of the application is about to come, as it is after so many records. What is written
    /// to it is [installed](Self::install) when it is whole.
    pub(crate) fn begin_state(
        &mut self,
        records: u64,
        view: ViewId,
    ) -> Result<SnapshotWriter<SystemFolder>, TakeOverError> {
        self.batch.clear();
        self.handed_over = None;
        Ok(self.log.write_snapshot(Sequence(records), view)?)
    }

    /// The state came as a whole: the log goes on behind it.
    pub(crate) fn install(
        &mut self,
        state: WrittenSnapshot,
        records: u64,
    ) -> Result<(), TakeOverError> {
        self.log.install_snapshot(state)?;
        self.handed_over = Some(Sequence(records));
        Ok(())
    }

    /// A message came that was delivered before this node was a member.
    pub(crate) fn take(&mut self, message: &Delivered) -> Result<(), TakeOverError> {
        let record = record(self.next(), message);
        if let Err(PushError::Full) = self.batch.push(&record) {
            self.commit()?;
            self.batch.push(&record)?;
        }
        // The caller hands it over.
        self.handed_over = self.handed_over.map(|handed_over| handed_over.plus(1));
        if self.batch.disk_bytes() >= COMMIT_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes durable what came.
    pub(crate) fn commit(&mut self) -> Result<(), TakeOverError> {
        self.log.commit(&mut self.batch)?;
        Ok(())
    }
}

/// Writes to two places.
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
