//! The disk of a replica: what it saves, and how it continues from there (TRM-5).
//!
//! A replica of a durable overlay has a folder with one log. Each entry of its log in memory, and
//! each [`LogRecord`](tramontane_core::tram::LogRecord) that the core hands over, becomes a record
//! of the log on the disk, in this order. Snapshots of the application keep the log short. The
//! log's named values contain everything else that a replica must not forget: its incarnation, the
//! processes that formed its group, and the processes of other nodes.
//!
//! # Invariants
//! - The incarnation is raised and synced before a replica continues from its disk.
//! - Entries count only together with the record that follows them.
//! - A replica whose disk is damaged returns as one that has lost its memory. The damaged log is
//!   kept under another name.
//!
//! | file | subject |
//! |---|---|
//! | `folder`, `folder_error` | opening the folder; its errors |
//! | `content` | the records of the log, and what they add up to |
//! | `journal` | saving, while the replica runs |
//! | `known_lives` | the processes of other nodes |

mod content;
mod folder;
mod folder_error;
mod journal;
mod known_lives;

pub(super) use self::content::SavedContent;
pub(super) use self::folder::ReplicaFolder;
pub use self::folder_error::FolderError;
pub(super) use self::journal::Journal;
pub(super) use self::known_lives::KnownLives;
