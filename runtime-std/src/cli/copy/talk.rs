//! What members of a copy say to each other: of themselves in messages of their own, and to whoever started them in lines.

use serde::{Deserialize, Serialize};

use crate::cli::exit::{Failure, Status};

/// The first message of a copy: what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// What stands in the place once everything is there.
    pub(super) names: Vec<String>,
    /// About how many bytes come, for progress.
    pub(super) bytes: u64,
}

/// What a receiver says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// So many bytes have come.
    Received { bytes: u64 },
    /// Everything has come, with this checksum.
    Complete { bytes: u64, checksum: String },
    /// Everything is in its place.
    Placed { files: u64 },
    /// It failed.
    Failed { status: u8, text: String },
}

/// What the root says behind the end of what is copied: twice, if all goes well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// Everybody has everything, with this checksum.
    Agreed { checksum: String },
    /// Everybody has everything in its place.
    Placed,
    /// The root, or a receiver that it heard, failed.
    Failed { status: u8, text: String },
}

impl Verdict {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::Failed { status: failure.status.code(), text: failure.text().into() }
    }
}

impl Said {
    pub(super) fn failed(failure: &Failure) -> Self {
        // A message of its own carries it, which has room for so much.
        let text = failure.text().chars().take(1000).collect();
        Self::Failed { status: failure.status.code(), text }
    }
}

/// What a member's failure is to whoever hears of it.
pub(super) fn told_by(member: &str, status: u8, text: &str) -> Failure {
    Failure::told(Status::of(status), format_args!("{member}: {text}"))
}
