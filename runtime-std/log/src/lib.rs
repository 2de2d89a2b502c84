//! The durable log of one subgroup, in which a member keeps its deliveries on disk (DUR-1 to
//! DUR-9).
//!
//! Start with [`Log::open`]:
//!
//! ```
//! use tramontane_core::ids::{NodeId, Place, ViewId};
//! use tramontane_log::{Batch, Identity, Log, Options, Record, Sequence, SystemFolder};
//!
//! let folder = tempfile::tempdir()?;
//! let identity = Identity { group: "trades".into(), subgroup: "orders".into() };
//! let layer = SystemFolder::create(folder.path())?;
//! let (mut log, _) = Log::open(layer, &identity, Options::default())?;
//!
//! let mut batch = Batch::new();
//! batch.push(&Record {
//!     sequence: Sequence(0),
//!     view: ViewId(1),
//!     place: Place(0),
//!     sender: NodeId(2),
//!     is_large: false,
//!     bytes: b"buy 3",
//! })?;
//! // One write and one sync; the committed record survives a power cut.
//! assert_eq!(log.commit(&mut batch)?, Sequence(1));
//!
//! let mut records = log.records(Sequence(0))?;
//! assert_eq!(records.read_next().expect("one record")?.bytes, b"buy 3");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | subject |
//! |---|---|
//! | `layer` | the file operations: a trait, and the operating system's files |
//! | `format` | blocks, checksums, and the prefix of files |
//! | `record`, `mark`, `batch` | a record; the two marks of a batch; a batch being filled |
//! | `segment` | the header and the name of a segment file |
//! | `scan` | batches and records in the bytes of a segment, even if damaged |
//! | `index` | the records and their locations |
//! | `metadata` | the log's owner and beginning, and named values of the group |
//! | `snapshot` | states of the application, below which the log may be discarded |
//! | `noted` | an owner's note of a log, and whether the log still matches it |
//! | `examine` | reading a whole log: its records, its damage and its end |
//! | `open`, `log`, `read` | opening a log; committing to it; reading records |
//! | `cut` | records that the group continued without |
//! | `group_commit` | a thread that makes all records durable that were appended since its last sync |
//! | `damage`, `error` | kinds of damage; errors, one enum per operation |
//! | `power_loss` | a disk for tests that loses unsynced data (feature `power-loss`) |
//!
//! # Guarantees
//! - **Order on disk.** A batch is one write and one sync. It carries two equal marks, one at its
//!   beginning and one at its end. Each batch begins at a new block, so no write touches a block
//!   that has been reported as durable.
//! - **Durable means synced.** [`Log::end`] never exceeds the records for which a sync has
//!   returned, including the sync of the folder after a file has been created. A failed sync makes
//!   the log unusable. The next process rewrites the last batch before it reports the batch as
//!   durable.
//! - **Recovery.** A last batch without its trailer is torn and therefore dropped, unless its owner
//!   has noted that it was durable ([`Noted`]). All other damage is reported, and damaged records
//!   are never served: peers have intact copies ([`Log::replace`]). If both marks of the last batch
//!   are damaged, the log ends before that batch: only the note and the peers then know that the
//!   log once had more ([`Fit`]).
//! - **No old data returns.** The seed of every checksum contains the log, the segment and the
//!   incarnation. So the earlier content of a recycled file, and the remains of a torn batch after
//!   the end, never pass as valid.
//! - **Bounded disk space.** A snapshot allows the log before it to be discarded, and its segments
//!   to be reused.
//!
//! The runtime and the core are responsible for the meaning of a record's position and view, for
//! the members that form a majority, and for the state used in a restart.

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
mod segment;
mod snapshot;

pub use batch::Batch;
pub use damage::{Damage, Damaged};
pub use error::{
    CutError, LetGoError, OpenLogError, PushError, ReadError, ReplaceError, WriteError,
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
