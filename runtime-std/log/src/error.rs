//! What can go wrong: an enum for each operation. Each is one line that says what to do next.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;
use tramontane_core::ids::ViewId;

use crate::damage::Damage;
use crate::record::Sequence;

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is no log, and none may be made.
    #[error("{} has no log; look at the path", path.display())]
    NoLog {
        /// The folder.
        path: PathBuf,
    },
    /// Another process has it open.
    #[error("another process uses the log in {}; stop it, or give this one a folder of its own", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder cannot be written to.
    #[error("{} cannot be written to; give the process the right to write there, or take another folder", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// It is the log of another group, or of another subgroup.
    #[error("{} has the log of {found}, and not of {wanted}; give each its own folder", path.display())]
    OtherGroup {
        /// The folder.
        path: PathBuf,
        /// Whose log it is.
        found: String,
        /// Whose log was asked for.
        wanted: String,
    },
    /// A newer version of this program wrote it.
    #[error("{}/{file} has format {found}, and this version reads up to {known}; run the version that wrote it, or a newer one", path.display())]
    NewerFormat {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// Its format.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// Both copies of the metadata are damaged.
    #[error("both copies of the metadata in {} are damaged; set the folder aside, and join as a new member", path.display())]
    MetadataLost {
        /// The folder.
        path: PathBuf,
    },
    /// There is no space left.
    #[error("no space is left on the disk of {}; free some, and start again", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// What was read could not be made durable.
    #[error("cannot sync {}/{file}: {source}; {}", path.display(), remedy(source, "replace the disk, or restore the file, before this member starts again"))]
    Sync {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The operating system refused something else.
    #[error("cannot {action} {}/{file}: {source}; {}", path.display(), remedy(source, "look at the disk and at the folder's rights"))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Why nothing more can become durable. Each but [`WriteError::OutOfOrder`] makes the log unusable:
/// the process ends as if it had crashed, and opens the log anew.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Records do not follow those that are there. Nothing was changed.
    #[error("record {given} was given where {expected} comes next; please report this")]
    OutOfOrder {
        /// The sequence that comes next.
        expected: Sequence,
        /// The one that was given.
        given: Sequence,
    },
    /// The log was opened to be read alone.
    #[error("the log in {} was opened to be read; open it to be written", path.display())]
    ReadOnly {
        /// The folder.
        path: PathBuf,
    },
    /// There is no space left. What was durable stays.
    #[error("no space is left on the disk of {}; free some, and start this member again", path.display())]
    NoSpace {
        /// The folder.
        path: PathBuf,
    },
    /// A sync failed: nobody knows what of it is on the disk.
    #[error("cannot sync {}/{file}: {source}; {}", path.display(), remedy(source, "look at the disk, and start this member again"))]
    Sync {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The operating system refused something else.
    #[error("cannot {action} {}/{file}: {source}; {}", path.display(), remedy(source, "look at the disk, and start this member again"))]
    Io {
        /// What was tried.
        action: &'static str,
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// An earlier write or sync failed.
    #[error("the log in {} failed before; start this member again", path.display())]
    Failed {
        /// The folder.
        path: PathBuf,
    },
}

/// Why the beginning of a log was not let go.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LetGoError {
    /// No snapshot stands for what would be gone.
    #[error(
        "no snapshot reaches {wanted}, and the log below it is all there is; take a snapshot first"
    )]
    NoSnapshot {
        /// Up to where the log was to be let go.
        wanted: Sequence,
    },
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why records were not set aside and cut.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CutError {
    /// The log does not reach there, or no longer.
    #[error(
        "the log has records {first} to {end}, and cannot be cut at {wanted}; please report this"
    )]
    OutOfRange {
        /// The first that there is.
        first: Sequence,
        /// The one after the last.
        end: Sequence,
        /// Where it was to be cut.
        wanted: Sequence,
    },
    /// The snapshot has what would be void in it.
    #[error(
        "the snapshot at {snapshot} has the records from {wanted} on in it; take over a peer's snapshot first"
    )]
    BelowSnapshot {
        /// Where the snapshot stands.
        snapshot: Sequence,
        /// Where the log was to be cut.
        wanted: Sequence,
    },
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// What was to be set aside could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Why a record was not replaced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// That record is not damaged. Nothing was changed.
    #[error("record {0} is not damaged; replace those alone that a scrub has named")]
    NotDamaged(Sequence),
    /// The records do not come in order.
    #[error(transparent)]
    Push(#[from] PushError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Why a record was not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The log does not go back so far, or does not reach it yet.
    #[error(
        "the log has records {first} to {end}, and not {wanted}; ask for one of these, or take a snapshot"
    )]
    OutOfRange {
        /// The first that there is.
        first: Sequence,
        /// The one after the last.
        end: Sequence,
        /// The one that was asked for.
        wanted: Sequence,
    },
    /// The record is damaged.
    #[error("record {sequence} is damaged in {file}; replace it with a peer's")]
    Damaged {
        /// The record.
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
    /// The operating system refused something.
    #[error("cannot read {}/{file}: {source}; {}", path.display(), remedy(source, "look at the disk and at the folder's rights"))]
    Io {
        /// The folder.
        path: PathBuf,
        /// The file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Why a record was not added to a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// It does not follow the others.
    #[error("record {given} was given where {expected} comes next; please report this")]
    OutOfOrder {
        /// The sequence that comes next.
        expected: Sequence,
        /// The one that was given.
        given: Sequence,
    },
    /// Its view is older than that of the record before it.
    #[error("a record of view {given} was given after one of view {last}; please report this")]
    ViewFell {
        /// The view of the record before.
        last: ViewId,
        /// The one that was given.
        given: ViewId,
    },
    /// A message is too large for any record.
    #[error("a message of {bytes} bytes is too large for a log; send it in parts")]
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
    /// The batch takes no more: write it first.
    #[error("the batch is full; write it first")]
    Full,
}

/// Where an operation failed.
pub(crate) struct At<'a> {
    pub(crate) path: &'a std::path::Path,
    pub(crate) file: &'a str,
    pub(crate) action: &'static str,
}

/// Whether the disk is full.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        || error.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
}

/// What to do about an error of the system: too many open files are no fault of the disk.
fn remedy(error: &io::Error, usual: &'static str) -> &'static str {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE | Errno::NFILE) => {
            "raise the limit of open files (ulimit -n), and start this member again"
        }
        _ => usual,
    }
}

/// Whether the folder may not be written to.
fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// What `sync` and `sync the folder` are called in [`At::action`].
pub(crate) const SYNC: &str = "sync";

impl At<'_> {
    /// The error of a log that is being opened.
    pub(crate) fn open_error(self, source: io::Error) -> OpenError {
        let (path, file) = (self.path.to_owned(), self.file.to_owned());
        match source {
            error if is_full(&error) => OpenError::NoSpace { path },
            error if is_read_only(&error) => OpenError::ReadOnly { path },
            source if self.action == SYNC => OpenError::Sync { path, file, source },
            source => OpenError::Io { action: self.action, path, file, source },
        }
    }

    /// The error of a log that is open.
    pub(crate) fn write_error(self, source: io::Error) -> WriteError {
        let (path, file) = (self.path.to_owned(), self.file.to_owned());
        match source {
            error if is_full(&error) => WriteError::NoSpace { path },
            source if self.action == SYNC => WriteError::Sync { path, file, source },
            source => WriteError::Io { action: self.action, path, file, source },
        }
    }

    /// The error of a read.
    pub(crate) fn read_error(self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.path.to_owned(), file: self.file.to_owned(), source }
    }
}

/// Why a log was not looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScrubError {
    /// It could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What could be mended from the log itself was not written.
    #[error("{} places of the log are damaged, and mending them failed: {source}", damage.len())]
    Mend {
        /// What was found.
        damage: Vec<Damage>,
        /// Why it could not be mended.
        source: WriteError,
    },
}
