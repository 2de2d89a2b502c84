//! The durable log of one subgroup: what its member delivered, on disk (DUR-1 to DUR-9).
//!
//! | module | subject |
//! |---|---|
//! | `layer` | the file operations, as a trait, and the operating system's |
//! | `format` | blocks, checksums, and how files begin |
//! | `record`, `mark`, `batch` | a record; the two marks of a batch; a batch that is being filled |
//! | `segment` | the header and the name of a file of the log |
//! | `scan` | batches and records in the bytes of a segment, however damaged |
//! | `index` | which records there are, and where |
//! | `metadata` | whose log it is, where it begins, and named values of the group |
//! | `snapshot` | states of the application, below which the log may go |
//! | `noted` | what a log's owner noted of it elsewhere, and whether it is still that log |
//! | `examine` | reading a whole log: what is there, what is damaged, where it goes on |
//! | `open`, `log`, `read` | opening a log; committing to it; reading records |
//! | `cut`, `scrub` | records that the group went on without; damage that is named and put right |
//! | `group_commit` | a thread that makes durable whatever was appended since its last sync |
//! | `damage`, `error` | what is damaged; what can go wrong, an enum for each operation |
//! | `power_loss` | a disk for tests that loses what was not synced (feature `power-loss`) |
//!
//! # What it keeps
//! - **Order on disk.** A batch is one write and one sync. It carries two equal marks, one in front
//!   and one at its end, and begins at a block of its own: no write touches a block that was
//!   reported durable.
//! - **Durable means synced.** [`Log::end`] is never ahead of what a sync has returned for, the
//!   folder's sync for a new file too. A sync that failed makes the log unusable. The next process
//!   writes the last batch again before it calls it durable.
//! - **Recovery.** A last batch without its trailer is torn, and left out, unless its owner noted
//!   that it was durable ([`Noted`]). Everything else that is damaged is named, and never served: a
//!   peer has it ([`Log::replace`]). Where both marks of the last batch are damaged, the log ends
//!   before it: only the note, and the peers, know then that it once had more ([`Fit`]).
//! - **Nothing old comes back.** The seed of every checksum has the log, the segment and the
//!   incarnation in it. So what a recycled file had before, and what a torn batch left behind the
//!   end, never passes.
//! - **Bounded disk.** A snapshot lets the log below it go; its segments are used again.
//!
//! What a record's place and view mean, who counts in which majority, and what is restarted with
//! what, are the runtime's and the core's affairs.

#![forbid(unsafe_code)]

mod batch;
mod blocks;
mod cut;
mod damage;
mod error;
mod examine;
mod format;
mod group_commit;
mod index;
mod layer;
mod log;
mod mark;
mod metadata;
mod noted;
mod open;
#[cfg(feature = "power-loss")]
pub mod power_loss;
mod read;
mod record;
mod scan;
mod scrub;
mod segment;
mod snapshot;

pub use batch::Batch;
pub use damage::{Damage, Damaged};
pub use error::{
    CutError, LetGoError, OpenError, PushError, ReadError, ReplaceError, ScrubError, WriteError,
};
pub use format::FORMAT_VERSION;
pub use group_commit::{AppendError, GroupCommit, GroupCommitOptions};
pub use layer::{Access, FileLayer, LayerFile, SystemFile, SystemFolder, SystemLock};
pub use log::{Log, Options, SEGMENT_BYTES_DEFAULT, SPARES_MAX_DEFAULT};
pub use metadata::Identity;
pub use noted::{Fit, Noted};
pub use open::Recovery;
pub use read::Records;
pub use record::{RECORD_HEADER_BYTES, Record, Sequence};
pub use snapshot::{SnapshotPlace, SnapshotWriter, WrittenSnapshot};
