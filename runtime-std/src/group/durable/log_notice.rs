//! Notices to a program about its logs.

use std::path::PathBuf;

use tramontane_log::Damage;

/// A fact about a log that an operator should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogNotice {
    /// Data is damaged. A peer supplies undamaged records.
    Damaged {
        /// The folder of the log.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// Damaged records have been restored.
    Repaired {
        /// The folder of the log.
        path: PathBuf,
        /// The first restored record.
        from: u64,
        /// The record after the last restored one.
        to: u64,
    },
    /// One copy of the node's state was damaged, and has been rewritten from the other.
    StateRepaired {
        /// The copy.
        path: PathBuf,
    },
    /// The log has fewer records than when this node last ran.
    Lost {
        /// The folder of the log.
        path: PathBuf,
        /// The number of records in the log.
        records: u64,
        /// The minimum number of records that had been durable in the log.
        had: u64,
        /// Whether this is a different log, or an older copy of the log.
        is_of_another: bool,
    },
    /// The group continued without some records, which are kept.
    SetAside {
        /// The number of records.
        records: u64,
        /// The file or folder that contains these records.
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
                "the log in {}: records {from} to {} were damaged, and have been repaired",
                path.display(),
                to.saturating_sub(1)
            ),
            Self::StateRepaired { path } => write!(
                out,
                "{} was damaged, and has been restored from the other copy",
                path.display()
            ),
            Self::Lost { path, records, had, is_of_another } => {
                let what = if *is_of_another {
                    "is not the log that was there before, and ends"
                } else {
                    "ends"
                };
                write!(
                    out,
                    "the log in {} {what} at {records}; {had} records were durable in it, and the \
                     lost ones come from other nodes",
                    path.display()
                )
            }
            Self::SetAside { records, kept } => write!(
                out,
                "the group continued without {records} records of this node; they are kept in {}",
                kept.display()
            ),
        }
    }
}
