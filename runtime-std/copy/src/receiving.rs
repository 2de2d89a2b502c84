//! The work of a receiver: it unpacks next to the destination, reports that it is ready, and moves
//! the entries to the destination when the commit is delivered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::group::Job;
use super::ledger::{CopyLedger, Decision};
use super::member::{Arrivals, Chunk, CopyMember};
use super::messages::{CopyMessage, Sum, Terms};
use super::place::TargetDirectory;
use super::sending::words;
use super::stall::{Pace, Stall};
use super::stream::Incoming;
use tramontane_local::exit::{Failure, Status};
use tramontane_runtime::blocks::Buffer;

/// The final result of a receiver.
#[derive(Clone, Debug)]
pub(super) struct ReceiverResult {
    pub(super) sum: Sum,
    pub(super) files: u64,
}

/// Receives the copy. Setting `cancel` ends it.
pub(super) fn receive(
    job: &mut Job,
    to: &Path,
    cancel: &AtomicBool,
) -> Result<ReceiverResult, Failure> {
    let mut place = TargetDirectory::take(to)?;
    let mut receiving = Receiving::start(job, cancel)?;
    let taken = receiving.take(&mut place);
    // Files that are not at their destination are removed before the others learn that this member
    // has ended.
    drop(place);
    receiving.member.finish();
    taken
}

/// A receiver of a copy.
pub(super) struct Receiving<'r> {
    pub(super) member: CopyMember,
    arrived: mpsc::Receiver<Chunk>,
    free: mpsc::Sender<Buffer>,
    sender: u32,
    terms: Terms,
    stall: Duration,
    cancel: &'r AtomicBool,
}

impl<'r> Receiving<'r> {
    /// Becomes a member.
    pub(super) fn start(job: &mut Job, cancel: &'r AtomicBool) -> Result<Self, Failure> {
        let (chunks, arrived) = mpsc::channel();
        let (free, is_free) = mpsc::channel();
        let member = CopyMember::start(job, Some(Arrivals::new(chunks, is_free)), cancel)?;
        let (sender, terms, stall) = (job.sender, job.terms(), job.stall);
        Ok(Self { member, arrived, free, sender, terms, stall, cancel })
    }

    /// Receives everything, and returns once everything is at the destination, here and at all
    /// other receivers.
    fn take(&mut self, place: &mut TargetDirectory) -> Result<ReceiverResult, Failure> {
        let received = self.unpack(place)?;
        self.settle(place, &received)?;
        self.all_placed(&received, place.directory())?;
        Ok(received)
    }

    /// Unpacks everything next to the destination, and reports that this member is ready.
    pub(super) fn unpack(&self, place: &mut TargetDirectory) -> Result<ReceiverResult, Failure> {
        self.try_to_unpack(place).map_err(|failure| {
            // When the copy ends, this may look like a failure of this member.
            let Some(ended) = self.member.check().err() else {
                self.member.call_off(&failure);
                return failure;
            };
            let is_consequence = failure.status == Status::PeerLost;
            if is_consequence { ended } else { failure }
        })
    }

    fn try_to_unpack(&self, place: &mut TargetDirectory) -> Result<ReceiverResult, Failure> {
        self.accept_manifest(place)?;
        let cancel = || self.check_cancelled();
        let mut stream = Incoming::new(&self.member, &cancel, &self.arrived, &self.free);
        let unpacked = place.unpack(&mut stream);
        // Bytes after the end of the archive still belong to the stream.
        let unpacked = unpacked.and_then(|files| {
            std::io::copy(&mut stream, &mut std::io::sink())
                .map_err(|error| Failure::with_text(Status::PeerLost, error))?;
            Ok(files)
        });
        // An interrupt ends the stream too.
        let files = unpacked.map_err(|failure| self.check_cancelled().err().unwrap_or(failure))?;
        let sum = stream.sum();
        // The sync comes before any member moves anything: if a disk turns out to be full, no
        // member keeps anything.
        place.sync(|| {
            self.check()?;
            self.member.try_announce(&CopyMessage::Taken { chunks: 0, bytes: sum.bytes });
            Ok(())
        })?;
        self.member.announce(&CopyMessage::Ready(sum.clone()), || self.check())?;
        Ok(ReceiverResult { sum, files })
    }

    /// Waits for the manifest, and permits the sender to continue.
    fn accept_manifest(&self, place: &mut TargetDirectory) -> Result<(), Failure> {
        let is_there =
            |ledger: &CopyLedger| ledger.manifest().is_some() || ledger.decision().is_some();
        self.member.wait_until(is_there, |_| self.check_cancelled())?;
        self.member.check()?;
        let known = self.member.ledger().manifest().cloned();
        let Some((manifest, terms)) = known else {
            return Err(Failure::silent(Status::PeerLost));
        };
        compare(&terms, &self.terms, self.sender)?;
        place.expect(&manifest)?;
        self.member.announce(&CopyMessage::Taken { chunks: 0, bytes: 0 }, || self.check())
    }

    fn check_cancelled(&self) -> Result<(), Failure> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Failure::silent(Status::Interrupted));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        self.check_cancelled()?;
        self.member.check()
    }

    /// Waits for the decision, and moves everything to the destination if it is the commit.
    pub(super) fn settle(
        &self,
        place: &TargetDirectory,
        received: &ReceiverResult,
    ) -> Result<(), Failure> {
        let is_decided = |ledger: &CopyLedger| ledger.decision().is_some();
        let waited = self.member.wait_until(is_decided, |_| self.check_cancelled());
        if let Err(interrupted) = &waited {
            // Whichever of this notice and the commit comes first in the order decides.
            self.member.call_off(interrupted);
        }
        match self.member.decision() {
            Some(Decision::Commit(sum)) if sum == received.sum => {}
            Some(Decision::Commit(_)) => return Err(self.not_the_same(received)),
            Some(Decision::Off(failure)) => return Err(waited.err().unwrap_or(failure)),
            None => {
                let out = || self.member.stopped();
                let failure = waited.err().or_else(out);
                return Err(failure.unwrap_or_else(|| Failure::silent(Status::PeerLost)));
            }
        }
        place.settle().inspect_err(|failure| {
            let _ =
                self.member.announce(&CopyMessage::not_placed(failure), || self.member_is_there());
        })?;
        self.member
            .announce(&CopyMessage::Placed { files: received.files }, || self.member_is_there())
    }

    /// Fails if this member is no longer in its group, because its notices then reach no other
    /// member.
    fn member_is_there(&self) -> Result<(), Failure> {
        self.member.stopped().map_or(Ok(()), Err)
    }

    fn not_the_same(&self, received: &ReceiverResult) -> Failure {
        let what = format_args!(
            "the received data has the checksum {}, which is not that of the source",
            received.sum.checksum
        );
        let advice = "copy again; if this persists, please report it";
        let failure = Failure::new(Status::Disagreement, what, advice);
        let _ = self.member.announce(&CopyMessage::not_placed(&failure), || self.member_is_there());
        failure
    }

    /// Waits until all other receivers have everything at their destination too.
    pub(super) fn all_placed(
        &self,
        received: &ReceiverResult,
        directory: &Path,
    ) -> Result<(), Failure> {
        let (mut stall, pace) = (Stall::new(Instant::now(), self.stall), Pace::default());
        let waited = self.member.wait_until(CopyLedger::is_over, |ledger| {
            self.check_cancelled()?;
            stall.check(Instant::now(), &pace, ledger)
        });
        let known = {
            let ledger = self.member.ledger();
            match ledger.why_not_placed() {
                None if ledger.is_over() => return Ok(()),
                why => why.map(str::to_owned),
            }
        };
        let failure = waited.err().or_else(|| self.member.stopped());
        let why = match (&known, &failure) {
            (Some(why), _) => why,
            (None, Some(failure)) => words(failure),
            (None, None) => "a receiver does not answer",
        };
        let what = format_args!(
            "the copy in {} is complete, {} files, but perhaps not at every node: {why}",
            directory.display(),
            received.files
        );
        let is_interrupt =
            failure.as_ref().is_some_and(|failure| failure.status == Status::Interrupted);
        let status = if is_interrupt { Status::Interrupted } else { Status::PeerLost };
        Err(Failure::new(
            status,
            what,
            "check the destinations, and copy to the nodes that lack it",
        ))
    }
}

/// Fails if the sender's block settings differ from this member's.
fn compare(theirs: &Terms, own: &Terms, sender: u32) -> Result<(), Failure> {
    if theirs == own {
        return Ok(());
    }
    let what = format_args!("node {sender} sends blocks of {theirs}, but this node expects {own}");
    Err(Failure::group(what, "give the same --block and --algorithm at all nodes"))
}
