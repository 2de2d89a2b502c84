//! The state of a copy. It is the same on all members, because each applies the same notices and
//! the same view changes in the same order.
//!
//! # Invariants
//! - There is one decision: the first event among a commit, a failure, and the loss of a member.
//!   Later events do not change it.
//! - A commit counts only if all receivers are ready with the same archive.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::messages::{CopyMessage, Manifest, Sum, Terms, failure_of};
use tramontane_local::exit::{Failure, Status};

/// Maximum total size, in bytes, of the names in a manifest.
const NAMES_BYTES_MAX: usize = 16 << 20;

/// The outcome of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Each receiver moves this archive to its destination.
    Commit(Sum),
    /// No receiver moves anything.
    Off(Failure),
}

/// The state of one receiver.
#[derive(Clone, Debug, Default)]
struct Receiver {
    /// `None` until the receiver has accepted the manifest.
    chunks: Option<u64>,
    bytes: u64,
    ready: Option<Sum>,
    /// After a commit: the number of files at the destination, or the failure.
    end: Option<Result<u64, String>>,
}

/// The state of a copy.
#[derive(Debug)]
pub(super) struct CopyLedger {
    sender: u32,
    /// Time without a heartbeat after which a member counts as lost.
    silence: Duration,
    receivers: BTreeMap<u32, Receiver>,
    names: Vec<String>,
    names_bytes: usize,
    manifest: Option<(Manifest, Terms)>,
    decision: Option<Decision>,
    /// Members that have finished or have been lost.
    finished: BTreeSet<u32>,
    /// Incremented by each notice and each view change.
    changes: u64,
}

impl CopyLedger {
    pub(super) fn new(
        sender: u32,
        receivers: impl IntoIterator<Item = u32>,
        silence: Duration,
    ) -> Self {
        Self {
            sender,
            silence,
            receivers: receivers.into_iter().map(|node| (node, Receiver::default())).collect(),
            names: Vec::new(),
            names_bytes: 0,
            manifest: None,
            decision: None,
            finished: BTreeSet::new(),
            changes: 0,
        }
    }

    /// Applies a member's notice.
    pub(super) fn apply(&mut self, node: u32, notice: CopyMessage) {
        self.changes += 1;
        match notice {
            CopyMessage::Finished => drop(self.finished.insert(node)),
            CopyMessage::Failed { status, text } => self.failed(node, status, &text),
            notice if node == self.sender => self.apply_of_sender(notice),
            notice => self.apply_of_receiver(node, notice),
        }
    }

    fn apply_of_sender(&mut self, notice: CopyMessage) {
        match notice {
            CopyMessage::Names { names } if self.manifest.is_none() => {
                self.names_bytes += names.iter().map(|name| name.len() + 1).sum::<usize>();
                if self.names_bytes > NAMES_BYTES_MAX {
                    return self.decide(|| Decision::Off(unexpected()));
                }
                self.names.extend(names);
            }
            CopyMessage::Manifest { bytes, terms } if self.manifest.is_none() => {
                let names = std::mem::take(&mut self.names);
                self.manifest = Some((Manifest { names, bytes }, terms));
            }
            CopyMessage::Commit(sum) if self.disagreement(&sum).is_none() => {
                self.decide(|| Decision::Commit(sum));
            }
            // No sender in this program sends such a notice.
            _ => self.decide(|| Decision::Off(unexpected())),
        }
    }

    fn apply_of_receiver(&mut self, node: u32, notice: CopyMessage) {
        let is_committed = self.is_committed();
        let Some(receiver) = self.receivers.get_mut(&node) else { return };
        match notice {
            CopyMessage::Taken { chunks, bytes } => {
                receiver.chunks = receiver.chunks.max(Some(chunks));
                receiver.bytes = receiver.bytes.max(bytes);
            }
            CopyMessage::Ready(sum) => {
                receiver.bytes = sum.bytes;
                receiver.ready = Some(sum);
            }
            CopyMessage::Placed { files } if is_committed => {
                receiver.end.get_or_insert(Ok(files));
            }
            CopyMessage::NotPlaced { text } if is_committed => {
                receiver.end.get_or_insert(Err(format!("node {node}: {text}")));
            }
            _ => self.decide(|| Decision::Off(unexpected())),
        }
    }

    fn failed(&mut self, node: u32, status: u8, text: &str) {
        let failure = failure_of(&self.called(node), status, text);
        self.decide(|| Decision::Off(failure));
    }

    /// Records that members are no longer in the view.
    pub(super) fn lost(&mut self, nodes: &[u32]) {
        self.changes += 1;
        for node in nodes {
            self.finished.insert(*node);
            let why = self.loss_of(&[*node]);
            if let Some(receiver) = self.receivers.get_mut(node) {
                receiver.end.get_or_insert(Err(why));
            }
        }
        let why = self.loss_of(nodes);
        self.decide(|| Decision::Off(lost(why)));
    }

    fn decide(&mut self, decision: impl FnOnce() -> Decision) {
        self.decision.get_or_insert_with(decision);
    }

    /// Returns the failure of a copy that has lost members. The sender is named first.
    pub(super) fn failure_of_loss(&self, nodes: &[u32]) -> Failure {
        lost(self.loss_of(nodes))
    }

    fn loss_of(&self, nodes: &[u32]) -> String {
        let sender = nodes.iter().find(|node| **node == self.sender);
        let node = sender.or_else(|| nodes.first()).map_or_else(
            || "a member".to_owned(),
            |node| match *node == self.sender {
                true => format!("node {node}, the sender,"),
                false => format!("node {node}"),
            },
        );
        let seconds = self.silence.as_secs_f64();
        format!("{node} was lost: it exited, or sent no heartbeat for {seconds} s")
    }

    /// Returns how a member's own failure refers to that member.
    fn called(&self, node: u32) -> String {
        if node == self.sender {
            format!("the sending node, node {node}")
        } else {
            format!("node {node}")
        }
    }

    pub(super) const fn decision(&self) -> Option<&Decision> {
        self.decision.as_ref()
    }

    const fn is_committed(&self) -> bool {
        matches!(self.decision, Some(Decision::Commit(_)))
    }

    /// Returns the manifest, once it is complete.
    pub(super) const fn manifest(&self) -> Option<&(Manifest, Terms)> {
        self.manifest.as_ref()
    }

    /// Returns the number of chunks that every receiver has taken, or `None` until all have
    /// accepted the manifest.
    pub(super) fn chunks_taken(&self) -> Option<u64> {
        self.receivers.values().map(|receiver| receiver.chunks).min().flatten()
    }

    /// Returns the number of bytes that each receiver has received.
    pub(super) fn received(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.receivers.iter().map(|(node, receiver)| (*node, receiver.bytes))
    }

    /// Returns whether every receiver is ready.
    pub(super) fn are_ready(&self) -> bool {
        self.receivers.values().all(|receiver| receiver.ready.is_some())
    }

    /// Returns the failure if a receiver is not ready, or has a different archive.
    pub(super) fn disagreement(&self, sum: &Sum) -> Option<Failure> {
        let other =
            self.receivers.iter().find(|(_, receiver)| receiver.ready.as_ref() != Some(sum));
        let (node, receiver) = other?;
        let theirs = receiver.ready.clone().unwrap_or(Sum { bytes: 0, checksum: "none".into() });
        let what = format_args!(
            "node {node} has {} bytes with the checksum {}, instead of {} with {}",
            theirs.bytes, theirs.checksum, sum.bytes, sum.checksum
        );
        let advice = "copy again; if this persists, please report it";
        Some(Failure::new(Status::Disagreement, what, advice))
    }

    /// Returns whether the final result of every receiver is known.
    pub(super) fn is_over(&self) -> bool {
        self.receivers.values().all(|receiver| receiver.end.is_some())
    }

    /// Returns the number of files at each receiver's destination, by node.
    pub(super) fn placed(&self) -> BTreeMap<u32, u64> {
        let placed = self.receivers.iter();
        placed
            .filter_map(|(node, receiver)| Some((*node, *receiver.end.as_ref()?.as_ref().ok()?)))
            .collect()
    }

    /// Returns the reason that a receiver has nothing at its destination, if one has reported a
    /// reason.
    pub(super) fn why_not_placed(&self) -> Option<&str> {
        self.receivers
            .values()
            .find_map(|receiver| receiver.end.as_ref()?.as_ref().err())
            .map(String::as_str)
    }

    /// Returns whether all members but this one know how the copy ended.
    pub(super) fn are_others_finished(&self, own: u32) -> bool {
        let mut members = self.receivers.keys().chain([&self.sender]);
        members.all(|node| *node == own || self.finished.contains(node))
    }

    pub(super) const fn changes(&self) -> u64 {
        self.changes
    }
}

fn lost(why: impl std::fmt::Display) -> Failure {
    Failure::peer_lost(why, "check its output and the system log, and copy again")
}

fn unexpected() -> Failure {
    let what = "a member sent an unexpected message";
    Failure::group(what, "run the same version of the program everywhere")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(30);

    fn sum() -> Sum {
        Sum { bytes: 7, checksum: "ab".into() }
    }

    fn failed(text: &str) -> CopyMessage {
        CopyMessage::Failed { status: Status::Resources.code(), text: text.into() }
    }

    /// Returns a ledger of sender 0 and two receivers that are ready.
    fn ready() -> CopyLedger {
        let mut ledger = CopyLedger::new(0, [1, 2], SILENCE);
        ledger.apply(1, CopyMessage::Ready(sum()));
        assert!(!ledger.are_ready());
        ledger.apply(2, CopyMessage::Ready(sum()));
        assert!(ledger.are_ready());
        ledger
    }

    fn off(ledger: &CopyLedger) -> &str {
        match ledger.decision() {
            Some(Decision::Off(failure)) => failure.text(),
            other => panic!("{other:?}"),
        }
    }

    /// Covers each row of the table of outcomes that one member can see: the event, and the
    /// decision.
    #[test]
    fn first_outcome_notice_determines_the_decision() {
        let committed = Decision::Commit(sum());
        let mut ledger = ready();
        ledger.apply(0, CopyMessage::Commit(sum()));
        assert_eq!(ledger.decision(), Some(&committed));
        // These notices arrive too late to change anything.
        ledger.apply(1, failed("interrupted"));
        ledger.lost(&[0, 2]);
        assert_eq!(ledger.decision(), Some(&committed));
        assert!(!ledger.is_over(), "the one that was interrupted finishes");
        ledger.apply(1, CopyMessage::NotPlaced { text: "something is there".into() });
        assert!(ledger.is_over() && ledger.placed().is_empty());
        assert_eq!(ledger.why_not_placed(), Some("node 1: something is there"));

        let mut ledger = ready();
        ledger.apply(2, failed("the disk is full"));
        ledger.lost(&[1]);
        ledger.apply(0, CopyMessage::Commit(sum()));
        assert_eq!(off(&ledger), "node 2: the disk is full");

        let mut ledger = ready();
        ledger.lost(&[1, 0]);
        ledger.apply(2, failed("the disk is full"));
        assert!(off(&ledger).starts_with("node 0, the sender, was lost:"), "{}", off(&ledger));
        assert!(ledger.are_others_finished(2) && !ledger.are_others_finished(1));

        let mut ledger = ready();
        ledger.apply(0, failed("a file changed"));
        assert_eq!(off(&ledger), "the sending node, node 0: a file changed");
    }

    #[test]
    fn commit_before_all_are_ready_is_refused() {
        let mut ledger = CopyLedger::new(0, [1, 2], SILENCE);
        ledger.apply(1, CopyMessage::Ready(sum()));
        ledger.apply(0, CopyMessage::Commit(sum()));
        assert!(off(&ledger).contains("unexpected message"));

        let mut ledger = ready();
        ledger.apply(2, CopyMessage::Ready(Sum { bytes: 8, ..sum() }));
        let why = ledger.disagreement(&sum()).expect("another size");
        assert_eq!(why.status, Status::Disagreement);
        assert!(why.text().starts_with("node 2 has 8 bytes"), "{}", why.text());
        ledger.apply(0, CopyMessage::Commit(sum()));
        off(&ledger);

        let mut ledger = ready();
        ledger.apply(1, CopyMessage::Commit(sum()));
        assert!(off(&ledger).contains("unexpected message"), "a receiver decides nothing");
    }

    #[test]
    fn slowest_receiver_determines_number_of_taken_chunks() {
        let mut ledger = CopyLedger::new(0, [1, 2], SILENCE);
        ledger.apply(1, CopyMessage::Taken { chunks: 3, bytes: 300 });
        assert_eq!(ledger.chunks_taken(), None, "one has not accepted the manifest");
        ledger.apply(2, CopyMessage::Taken { chunks: 0, bytes: 0 });
        assert_eq!(ledger.chunks_taken(), Some(0));
        ledger.apply(2, CopyMessage::Taken { chunks: 2, bytes: 200 });
        assert_eq!(ledger.chunks_taken(), Some(2));
        assert!(ledger.received().eq([(1, 300), (2, 200)]));
    }

    #[test]
    fn copy_ends_after_every_receivers_result() {
        let mut ledger = ready();
        ledger.apply(0, CopyMessage::Commit(sum()));
        ledger.apply(1, CopyMessage::Placed { files: 5 });
        assert!(!ledger.is_over());
        ledger.lost(&[2]);
        assert!(ledger.is_over());
        assert_eq!(ledger.placed(), BTreeMap::from([(1, 5)]));
        assert!(ledger.why_not_placed().is_some_and(|why| why.starts_with("node 2 was lost")));
        assert!(!ledger.are_others_finished(0));
        ledger.apply(1, CopyMessage::Finished);
        assert!(ledger.are_others_finished(0));
    }

    #[test]
    fn manifest_of_many_names_arrives_complete() {
        let mut ledger = CopyLedger::new(0, [1], SILENCE);
        let names: Vec<String> = (0..5000).map(|number| format!("file-{number}")).collect();
        let manifest = Manifest { names, bytes: 9 };
        let terms = Terms { algorithm: "chain".into(), block_bytes: 4096 };
        for notice in CopyMessage::of_manifest(&manifest, terms.clone()) {
            assert_eq!(ledger.manifest(), None);
            ledger.apply(0, notice);
        }
        assert_eq!(ledger.manifest(), Some(&(manifest, terms)));
    }
}
