//! The messages between members of a copy, in the group's one order. A receiver on this machine
//! also reports one to the process that started it.

use std::fmt;

use serde::{Deserialize, Serialize};

use tramontane_local::exit::{Failure, Status};

/// Bytes of a notice at most.
pub(super) const NOTICE_MAX: usize = 8 << 10;

/// Bytes of names in one notice: escaped, they take up to six times as many.
const NAMES_BYTES: usize = 1 << 10;

/// Characters of a failure's text that a notice has room for.
const TEXT_CHARACTERS: usize = 1000;

/// What a copy is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// What stands in the place once everything is there.
    pub(super) names: Vec<String>,
    /// About how many bytes come, for progress.
    pub(super) bytes: u64,
}

/// How blocks go: the same at all members.
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

/// Bytes and checksum of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) bytes: u64,
    pub(super) checksum: String,
}

/// A message of the group's order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Notice {
    /// The sender: the next names of the manifest.
    Names { names: Vec<String> },
    /// The sender: the rest of the manifest, behind all names.
    Manifest { bytes: u64, terms: Terms },
    /// A receiver: it goes on taking, and has taken so many chunks, with so many bytes of the
    /// archive. The first says that it accepts the manifest.
    Taken { chunks: u64, bytes: u64 },
    /// A receiver: it has everything on its disk, beside its place.
    Ready(Sum),
    /// The sender: all receivers are ready, and each moves everything into place.
    Commit(Sum),
    /// A receiver: so many files are in their place.
    Placed { files: u64 },
    /// A receiver: it could not move everything into place after the commit, and moved nothing.
    NotPlaced { text: String },
    /// Any member: it failed. Behind a commit that changes nothing.
    Failed { status: u8, text: String },
    /// Any member: it knows how the copy ended, and ends too.
    Finished,
}

impl Notice {
    pub(super) fn failed(failure: &Failure) -> Self {
        Self::Failed { status: failure.status.code(), text: text_of(failure) }
    }

    pub(super) fn not_placed(failure: &Failure) -> Self {
        Self::NotPlaced { text: text_of(failure) }
    }

    /// The notices that carry a manifest.
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
        // Some failures need no text where they happen.
        "" if is_interrupt => "it was interrupted; copy again".into(),
        "" => "it failed; see its own message".into(),
        text => text.chars().take(TEXT_CHARACTERS).collect(),
    }
}

/// What a member's failure is to the others.
pub(super) fn failure_of(member: &str, status: u8, text: &str) -> Failure {
    let status = match Status::of(status) {
        // The signal was for that member. The others have lost it.
        Status::Interrupted | Status::Terminated => Status::PeerLost,
        status => status,
    };
    Failure::with_text(status, format_args!("{member}: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_is_that_of_the_member_and_a_loss_to_others() {
        let notice = Notice::failed(&Failure::silent(Status::Terminated));
        let Notice::Failed { status, text } = notice else { panic!("it failed") };
        let failure = failure_of("node 3", status, &text);
        assert_eq!(failure.status, Status::PeerLost);
        assert_eq!(failure.text(), "node 3: it was interrupted; copy again");
    }

    #[test]
    fn every_notice_fits_whatever_it_holds() {
        let text = "\"\u{10ffff}".repeat(5000);
        let failed = Notice::failed(&Failure::with_text(Status::Other, text));
        let long: Vec<String> = (0..50).map(|_| "\u{1}".repeat(255)).collect();
        let short = (0..5000).map(|number| number.to_string()).collect::<Vec<_>>();
        let names = [long, short, vec![String::new()]].concat();
        let terms = Terms { algorithm: "interleaved".into(), block_bytes: usize::MAX };
        let manifest = Manifest { names, bytes: u64::MAX };
        let notices = Notice::of_manifest(&manifest, terms);
        let mut found = Vec::new();
        for notice in notices.iter().chain([&failed]) {
            let bytes = serde_json::to_vec(notice).expect("JSON").len();
            assert!(bytes <= NOTICE_MAX, "{bytes} bytes");
            if let Notice::Names { names } = notice {
                found.extend_from_slice(names);
            }
        }
        assert!(found == manifest.names && notices.len() < 70, "{}", notices.len());
    }
}
