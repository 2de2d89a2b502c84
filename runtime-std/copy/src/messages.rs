//! The messages between members of a copy, in the group's order. A receiver on this machine also
//! reports such a message to the process that started it.

use std::fmt;

use serde::{Deserialize, Serialize};

use tramontane_local::exit::{Failure, Status};

/// Maximum size of a notice in bytes.
pub(super) const NOTICE_MAX: usize = 8 << 10;

/// Maximum size, in bytes, of the names in one notice. When escaped, names take up to six times as
/// many bytes.
const NAMES_BYTES: usize = 1 << 10;

/// Maximum length, in characters, of a failure's text in a notice.
const TEXT_CHARACTERS: usize = 1000;

/// The contents of a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// Names of the entries at the destination once everything has arrived.
    pub(super) names: Vec<String>,
    /// Approximate number of bytes to copy, for the progress display.
    pub(super) bytes: u64,
}

/// Settings of the block multicast; they are the same on all members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Terms {
    pub(super) algorithm: String,
    pub(super) block_bytes: usize,
}

impl fmt::Display for Terms {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} bytes by '{}'", self.block_bytes, self.algorithm)
    }
}

/// Size in bytes and checksum of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) checksum: String,
}

/// A message in the group's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CopyMessage {
    /// The sender announces the next names of the manifest.
    Names { names: Vec<String> },
    /// The sender announces the rest of the manifest, after all names.
    Manifest { bytes: u64, terms: Terms },
    /// A receiver reports progress: it has taken `chunks` chunks, which hold `bytes` bytes of the
    /// archive. The first such notice means that it has accepted the manifest.
    Taken { chunks: u64, bytes: u64 },
    /// A receiver has the whole archive on its disk, next to the destination.
    Ready(Sum),
    /// The sender commits: all receivers are ready, and each moves everything to its destination.
    Commit(Sum),
    /// A receiver has moved this many files to their destination.
    Placed { files: u64 },
    /// A receiver could not move everything to its destination after the commit, and moved nothing.
    NotPlaced { text: String },
    /// A member failed. After a commit, this changes nothing.
    Failed { status: u8, text: String },
    /// A member knows how the copy ended, and is about to exit.
    Finished,
}

impl CopyMessage {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::Failed { status: failure.status.code(), text: text_of(failure) }
    }

    pub(super) fn not_placed(failure: &Failure) -> Self {
        Self::NotPlaced { text: text_of(failure) }
    }

    /// Returns the notices that carry a manifest.
    pub(super) fn of_manifest(manifest: &Manifest, terms: Terms) -> Vec<Self> {
        let mut pieces: Vec<Vec<String>> = Vec::new();
        let mut room = 0;
        for name in &manifest.names {
            if name.len() > room {
                pieces.push(Vec::new());
                room = NAMES_BYTES;
            }
            room = room.saturating_sub(name.len() + 1);
            pieces.last_mut().into_iter().for_each(|piece| piece.push(name.clone()));
        }
        let names = pieces.into_iter().map(|names| Self::Names { names });
        names.chain([Self::Manifest { bytes: manifest.bytes, terms }]).collect()
    }
}

fn text_of(failure: &Failure) -> String {
    let is_interrupt = matches!(failure.status, Status::Interrupted | Status::Terminated);
    match failure.text() {
        // For some failures, the failed member supplies no text.
        "" if is_interrupt => "it was interrupted; copy again".into(),
        "" => "it failed; see its own message".into(),
        text => text.chars().take(TEXT_CHARACTERS).collect(),
    }
}

/// Returns a member's failure as the others see it.
pub(super) fn failure_of(member: &str, status: u8, text: &str) -> Failure {
    let status = match Status::of(status) {
        // The signal was meant for that member. To the others, the member is lost.
        Status::Interrupted | Status::Terminated => Status::PeerLost,
        status => status,
    };
    Failure::with_text(status, format_args!("{member}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_is_reported_to_other_nodes() {
        let notice = CopyMessage::failed(&Failure::silent(Status::Terminated));
        let CopyMessage::Failed { status, text } = notice else { panic!("it failed") };
        let failure = failure_of("node 3", status, &text);
        assert_eq!(failure.status, Status::PeerLost);
        assert_eq!(failure.text(), "node 3: it was interrupted; copy again");
    }

    #[test]
    fn every_notice_fits_its_size_limit() {
        let text = "\"\u{10ffff}".repeat(5000);
        let failed = CopyMessage::failed(&Failure::with_text(Status::Other, text));
        let long: Vec<String> = (0..50).map(|_| "\u{1}".repeat(255)).collect();
        let short = (0..5000).map(|number| number.to_string()).collect::<Vec<_>>();
        let names = [long, short, vec![String::new()]].concat();
        let terms = Terms { algorithm: "interleaved".into(), block_bytes: usize::MAX };
        let manifest = Manifest { names, bytes: u64::MAX };
        let notices = CopyMessage::of_manifest(&manifest, terms);
        let mut found = Vec::new();
        for notice in notices.iter().chain([&failed]) {
            let bytes = serde_json::to_vec(notice).expect("JSON").len();
            assert!(bytes <= NOTICE_MAX, "{bytes} bytes");
            if let CopyMessage::Names { names } = notice {
                found.extend_from_slice(names);
            }
        }
        assert!(found == manifest.names && notices.len() < 70, "{}", notices.len());
    }
}
