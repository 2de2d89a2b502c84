//! Notices to a program about its logs.

use std::path::PathBuf;

use tramontane_log::Damage;

/// Something about a log that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogNotice {
    /// Data is damaged. Records are repaired by a peer.
    Damaged {
        /// The folder of the log.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// Damaged records were restored.
    Repaired {
        /// The folder of the log.
        path: PathBuf,
        /// The first record.
        from: u64,
        /// The record after the last.
        to: u64,
    },
    /// One copy of the node's state was damaged, and was rewritten from the other.
    StateRepaired {
        /// The copy.
        path: PathBuf,
    },
    /// The log has less than it had when this node ran before.
    Lost {
        /// The folder of the log.
        path: PathBuf,
        /// The number of records that it has.
        records: u64,
        /// The number of records that were durable in it, at least.
        had: u64,
        /// Whether it is a different log, or an older copy.
        is_of_another: bool,
    },
    /// The group continued without some records; they are kept.
    SetAside {
        /// The number of records.
        records: u64,
        /// The file or folder that has them.
        kept: PathBuf,
    },
}

impl std::fmt::Display for LogNotice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Damaged { path, damage } => {
                write!(out, "the log in {}: {damage}", path.display())
            }
            Self::Repaired { path, from, to } => write!(
                out,
                "the log in {}: records {from} to {} were damaged, and are repaired",
                path.display(),
                to.saturating_sub(1)
            ),
            Self::StateRepaired { path } => write!(
                out,
                "{} was damaged, and is written again from the other copy",
                path.display()
            ),
            Self::Lost { path, records, had, is_of_another } => {
                let what =
                    if *is_of_another { "is not the log that was there, and ends" } else { "ends" };
                write!(
                    out,
                    "the log in {} {what} at {records}; {had} records were durable in it, and what it lost comes from \
                     the others",
                    path.display()
                )
            }
            Self::SetAside { records, kept } => write!(
                out,
                "the group went on without {records} records of this node; they are kept in {}",
                kept.display()
            ),
        }
    }
}
