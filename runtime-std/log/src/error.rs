//! The errors of a log, with one enum per operation. Each text is one line that says what to do
//! next.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use tramontane_core::ids::ViewId;

use crate::record::Sequence;

/// The reasons why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenLogError {
    /// There is no log, and the caller did not allow one to be created.
    #[error("{} does not contain a log; check the path", path.display())]
    NoLog {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has the log open.
    #[error(
        "another process uses the log in {}; stop it, or use a different folder",
        path.display()
    )]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder is not writable.
    #[error(
        "{} cannot be written to; give the process write permission for it, or use a different \
         folder",
        path.display()
    )]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The log belongs to another group or subgroup.
    #[error(
        "{} contains the log of {found}, not of {wanted}; give each log its own folder",
        path.display()
    )]
    OtherGroup {
        /// The folder.
        path: PathBuf,
        /// The owner of the log.
        found: String,
        /// The requested owner.
        wanted: String,
    },
    /// A newer version of this program wrote the log.
    #[error("{}/{file} has format {found}, but this version reads formats up to {known}; run the version that wrote it, or a newer one", path.display())]
    NewerFormat {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The format of the file.
        found: u32,
        /// The newest known format.
        known: u32,
    },
    /// Both copies of the metadata are damaged.
    #[error("both copies of the metadata in {} are damaged; set the folder aside, and join as a new member", path.display())]
    MetadataLost {
        /// The folder.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no space is left on the disk of {}; free some space, and start again", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// The data that has been read could not be made durable.
    #[error("cannot sync {}/{file}: {source}; {}", path.display(), remedy(source, "replace the disk, or restore the file, before this member starts again"))]
    Sync {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The error reported by the system.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("cannot {action} {}/{file}: {source}; {}", path.display(), remedy(source, "check the disk and the folder's permissions"))]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The error reported by the system.
        source: io::Error,
    },
}

/// The reasons why nothing more can become durable. Every error except [`WriteError::OutOfOrder`]
/// makes the log unusable: the process must end as if it had crashed, and reopen the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The records do not follow the existing ones. Nothing has been changed.
    #[error("record {given} was added where {expected} was expected; please report this")]
    OutOfOrder {
        /// Expected sequence.
        expected: Sequence,
        /// Given sequence.
        given: Sequence,
    },
    /// The log was opened read-only.
    #[error("the log in {} was opened read-only; open it for writing", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// The disk is full. Records that are already durable are kept.
    #[error("no space is left on the disk of {}; free some space, and start this member again", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// A sync failed, so it is unknown which of its data is on the disk.
    #[error("cannot sync {}/{file}: {source}; {}", path.display(), remedy(source, "check the disk, and start this member again"))]
    Sync {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The error reported by the system.
        source: io::Error,
    },
    /// Another error of the operating system.
    #[error("cannot {action} {}/{file}: {source}; {}", path.display(), remedy(source, "check the disk, and start this member again"))]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The error reported by the system.
        source: io::Error,
    },
    /// An earlier write or sync failed.
    #[error("the log in {} failed earlier; start this member again", path.display())]
    Failed {
        /// The folder.
        path: PathBuf,
    },
}

/// The reasons why the beginning of a log was not discarded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LetGoError {
    /// No snapshot covers the records to be discarded.
    #[error("no snapshot covers the records before {wanted}; take a snapshot first")]
    NoSnapshot {
        /// The sequence up to which the log was to be discarded.
        wanted: Sequence,
    },
    /// Writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The reasons why records were not set aside and cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CutError {
    /// The sequence is beyond the end of the log, or before its first record.
    #[error(
        "the log cannot be truncated at {wanted}, because it has {}; please report this",
        RecordRange { first: *first, end: *end }
    )]
    OutOfRange {
        /// The first record of the log.
        first: Sequence,
        /// The sequence after the log's last record.
        end: Sequence,
        /// The sequence at which the log was to be cut.
        wanted: Sequence,
    },
    /// The snapshot contains records that would become void.
    #[error(
        "the snapshot at {snapshot} includes the records after {wanted}; install a peer's snapshot \
         first"
    )]
    BelowSnapshot {
        /// The sequence of the snapshot.
        snapshot: Sequence,
        /// The sequence at which the log was to be cut.
        wanted: Sequence,
    },
    /// Writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The records to be set aside could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The reasons why a record was not replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The record is not damaged. Nothing has been changed.
    #[error("record {0} is not damaged; replace only records that the log reports as damaged")]
    NotDamaged(Sequence),
    /// The records are out of order.
    #[error(transparent)]
    Push(#[from] PushError),
    /// Writing failed.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The records of a log, up to the one before `end`.
struct RecordRange {
    first: Sequence,
    end: Sequence,
}

impl std::fmt::Display for RecordRange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { first, end } = self;
        match end.0.saturating_sub(first.0) {
            0 => out.write_str("no records"),
            1 => write!(out, "only record {first}"),
            _ => write!(out, "records {first} to {}", end.0 - 1),
        }
    }
}

/// The reasons why a record was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The record precedes the first one of the log, or has not been written yet.
    #[error(
        "record {wanted} is not in the log, which has {}; ask for another one, or use a snapshot",
        RecordRange { first: *first, end: *end }
    )]
    OutOfRange {
        /// The first record of the log.
        first: Sequence,
        /// The sequence after the log's last record.
        end: Sequence,
        /// Requested record.
        wanted: Sequence,
    },
    /// The record is damaged.
    #[error("record {sequence} is damaged in {file}; replace it with a peer's")]
    Damaged {
        /// Damaged record.
        sequence: Sequence,
        /// The file.
        file: String,
    },
    /// The snapshot is damaged.
    #[error("{file} is damaged; replace it with a peer's snapshot")]
    SnapshotDamaged {
        /// The file.
        file: String,
    },
    /// There is no snapshot.
    #[error("the log in {} has no snapshot; read its records", path.display())]
    NoSnapshot {
        /// The folder.
        path: PathBuf,
    },
    /// Another error of the operating system.
    #[error("cannot read {}/{file}: {source}; {}", path.display(), remedy(source, "check the disk and the folder's permissions"))]
    Io {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// The error reported by the system.
        source: io::Error,
    },
}

/// The reasons why a record was not added to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// The record does not follow the others.
    #[error("record {given} was added where {expected} was expected; please report this")]
    OutOfOrder {
        /// Expected sequence.
        expected: Sequence,
        /// Given sequence.
        given: Sequence,
    },
    /// The record's view is older than that of the previous record.
    #[error("a record of view {given} was added after one of view {last}; please report this")]
    ViewFell {
        /// The view of the previous record.
        last: ViewId,
        /// The view of the given record.
        given: ViewId,
    },
    /// The message is too large for a record.
    #[error("a message of {bytes} bytes is too large for a log; send it in parts")]
    TooLarge {
        /// The length of the message, in bytes.
        bytes: usize,
    },
    /// The batch accepts no more records until it is written.
    #[error("the batch is full; write it first")]
    Full,
}

/// The operation that failed, and its file.
pub(crate) struct At<'a> {
    pub(crate) path: &'a std::path::Path,
    pub(crate) file: &'a str,
    pub(crate) action: &'static str,
}

/// Returns whether the error means that the disk is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || error.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
}

/// Returns the remedy for a system error. Too many open files, for example, are not the disk's
/// fault.
fn remedy(error: &io::Error, usual: &'static str) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => {
            "raise the limit of open files (ulimit -n), and start this member again"
        }
        _ => usual,
    }
}

/// Returns whether the error means that the folder is not writable.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The value of [`At::action`] for syncing a file or the folder.
pub(crate) const SYNC: &str = "sync";

impl At<'_> {
    /// Returns the error for a log that could not be opened.
    pub(crate) fn open_error(self, source: io::Error) -> OpenLogError {
        let (path, file) = (self.path.to_owned(), self.file.to_owned());
        match source {
            error if is_full(&error) => OpenLogError::NoSpace { path },
            error if is_read_only(&error) => OpenLogError::ReadOnly { path },
            source if self.action == SYNC => OpenLogError::Sync { path, file, source },
            source => OpenLogError::Io { action: self.action, path, file, source },
        }
    }

    /// Returns the error for a failed write to an open log.
    pub(crate) fn write_error(self, source: io::Error) -> WriteError {
        let (path, file) = (self.path.to_owned(), self.file.to_owned());
        match source {
            error if is_full(&error) => WriteError::NoSpace { path },
            source if self.action == SYNC => WriteError::Sync { path, file, source },
            source => WriteError::Io { action: self.action, path, file, source },
        }
    }

    /// Returns the error for a failed read.
    pub(crate) fn read_error(self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.to_owned(), file: self.file.to_owned(), source }
    }
}
