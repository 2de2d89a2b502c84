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

/// How blocks go: what all members must have been told alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    pub(super) algorithm: String,
    pub(super) block_bytes: usize,
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

/// What the root says to each receiver, beside what is copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// How it sends; before anything else.
    Terms(Terms),
    /// It is there, however long nothing else comes.
    StillHere,
    /// Everybody has everything, with this checksum.
    Agreed { checksum: String },
    /// Everybody has everything in its place.
    Placed,
    /// The root, or a receiver that it heard, failed.
    Failed { status: u8, text: String },
}

impl Word {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::Failed { status: failure.status.code(), text: words_of(failure) }
    }
}

impl Said {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::Failed { status: failure.status.code(), text: words_of(failure) }
    }
}

/// Some failures need no words where they happen.
fn words_of(failure: &Failure) -> String {
    let is_interrupt = matches!(failure.status, Status::Interrupted | Status::Terminated);
    match failure.text() {
        "" if is_interrupt => "it was interrupted; copy again".into(),
        "" => "it failed; see what it says".into(),
        // A message of its own carries it, which has room for so much.
        text => text.chars().take(1000).collect(),
    }
}

/// What a member's failure is to whoever hears of it.
pub(super) fn told_by(member: &str, status: u8, text: &str) -> Failure {
    let status = match Status::of(status) {
        // The signal was for that member. This one has lost it.
        Status::Interrupted | Status::Terminated => Status::PeerLost,
        status => status,
    };
    Failure::told(status, format_args!("{member}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_that_of_the_member_and_a_loss_to_others() {
        let Said::Failed { status, text } = Said::failed(&Failure::silent(Status::Terminated))
        else {
            panic!("it failed");
        };
        let failure = told_by("node 3", status, &text);
        assert_eq!(failure.status, Status::PeerLost);
        assert_eq!(failure.text(), "node 3: it was interrupted; copy again");
    }
}
