//! The log of a member that is not up yet: it takes over what the group has, before the member
//! counts in any majority (DUR-6).

use std::io;
use std::path::PathBuf;

use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::{
    Batch, CutError, Log, PushError, Record, Recovery, Sequence, SnapshotWriter, SystemFolder,
    WriteError, WrittenSnapshot,
};

use crate::group::join_messages::Delivered;

/// What was restored is committed in parts of about so many bytes.
const COMMIT_BYTES: usize = 1 << 20;

/// A log, and what is known of it since it was opened.
#[derive(Debug)]
pub(in crate::group) struct LogTakenOver {
    pub(in crate::group) subgroup: SubgroupId,
    pub(in crate::group) path: PathBuf,
    pub(in crate::group) log: Log<SystemFolder>,
    pub(in crate::group) recovery: Recovery,
    /// Messages that came and are not committed yet.
    pub(super) batch: Batch,
}

/// Why what a peer sent is not in the log.
#[derive(Debug, thiserror::Error)]
pub(in crate::group) enum TakeOverError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Cut(#[from] CutError),
    #[error(transparent)]
    Push(#[from] PushError),
}

impl LogTakenOver {
    /// Whether nothing was ever in it.
    pub(super) fn is_untouched(&self) -> bool {
        self.log.end() == Sequence::ZERO && self.log.snapshot().is_none()
    }

    /// A state of the application is about to come, as it is after so many records. What is written
    /// to it is [installed](Self::install) when it is whole.
    pub(in crate::group) fn begin_state(
        &mut self,
        records: u64,
        view: ViewId,
    ) -> Result<SnapshotWriter<SystemFolder>, TakeOverError> {
        self.batch.clear();
        Ok(self.log.write_snapshot(Sequence(records), view)?)
    }

    /// The state came as a whole: the log goes on behind it.
    pub(in crate::group) fn install(
        &mut self,
        state: WrittenSnapshot,
        records: u64,
    ) -> Result<(), TakeOverError> {
        if self.log.end() > Sequence(records) {
            // An earlier attempt took over more, of a member that was ahead: it comes again.
            self.log.cut(Sequence(records))?;
        }
        Ok(self.log.install_snapshot(state)?)
    }

    /// A message came that was delivered before this node was a member.
    pub(in crate::group) fn take(&mut self, message: &Delivered) -> Result<(), TakeOverError> {
        let record = Record {
            sequence: self.batch.next().unwrap_or(self.log.end()),
            view: ViewId(message.view),
            place: Place(message.place),
            sender: NodeId(message.sender),
            bytes: &message.payload,
        };
        if let Err(PushError::Full) = self.batch.push(&record) {
            self.commit()?;
            self.batch.push(&record)?;
        }
        if self.batch.disk_bytes() >= COMMIT_BYTES {
            self.commit()?;
        }
        Ok(())
    }

    /// Makes durable what came.
    pub(in crate::group) fn commit(&mut self) -> Result<(), TakeOverError> {
        self.log.commit(&mut self.batch)?;
        Ok(())
    }
}

/// Writes to two places.
pub(in crate::group) struct Both<'s, W>(
    pub(in crate::group) W,
    pub(in crate::group) Option<&'s mut SnapshotWriter<SystemFolder>>,
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
