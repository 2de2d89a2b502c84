//! The work of the sending member: it announces the manifest, sends the archive, and commits once
//! all receivers are ready.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::group::Job;
use super::ledger::{CopyLedger, Decision};
use super::member::{CopyMember, until_last_notices};
use super::messages::{CopyMessage, Sum};
use super::report::{CopyLine, CopyReport, ReceiverBars};
use super::source::CopySource;
use super::stall::{Pace, Stall};
use super::stream::Outgoing;
use tramontane_local::exit::{Failure, Status};

/// The reason that a copy did not complete.
#[derive(Debug)]
pub(super) enum CopyError {
    /// No receiver has the files.
    Nowhere(Failure),
    /// Some receivers may have the files at their destination. No other member has better
    /// information.
    Partly(Failure),
}

impl From<Failure> for CopyError {
    fn from(failure: Failure) -> Self {
        Self::Nowhere(failure)
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Nowhere(failure) | CopyError::Partly(failure) => failure,
        }
    }
}

/// Copies to all other members. Setting `cancel` ends the wait for them; `check` fails when the
/// user wants to end.
pub(super) fn send(
    job: &mut Job,
    files: &[PathBuf],
    cancel: &AtomicBool,
    check: &dyn Fn() -> Result<(), Failure>,
) -> Result<CopyReport, CopyError> {
    let source = Arc::new(CopySource::scan(files, check)?);
    let member = CopyMember::start(job, None, cancel)?;
    let receivers: Vec<u32> = job.receivers().collect();
    let mut sending = SendingMember {
        job,
        member: &member,
        source: &source,
        check,
        pace: Arc::default(),
        stall: Stall::new(Instant::now(), job.stall),
        progress: ReceiverBars::new(&receivers),
    };
    let copied = sending.copy();
    sending.progress.finish();
    member.finish();
    copied
}

/// The sending member.
struct SendingMember<'c> {
    job: &'c Job,
    member: &'c CopyMember,
    source: &'c Arc<CopySource>,
    check: &'c dyn Fn() -> Result<(), Failure>,
    pace: Arc<Pace>,
    stall: Stall,
    progress: ReceiverBars,
}

impl SendingMember<'_> {
    fn copy(&mut self) -> Result<CopyReport, CopyError> {
        let started = Instant::now();
        let sum = self.send_all().inspect_err(|failure| self.member.call_off(failure))?;
        self.commit(&sum)?;
        let lines = self.wait_for_all_placed()?;
        let seconds = started.elapsed().as_secs_f64();
        let Sum { bytes, checksum } = sum;
        Ok(CopyReport { bytes, checksum, seconds, lines, places: Vec::new() })
    }

    /// Sends everything, and waits until all receivers are ready with it.
    fn send_all(&mut self) -> Result<Sum, Failure> {
        for notice in CopyMessage::of_manifest(&self.source.manifest, self.job.terms()) {
            self.member.announce(&notice, || {
                (self.check)()?;
                self.member.check()
            })?;
        }
        let stop = Arc::new(AtomicBool::new(false));
        let (member, pace) = (self.member, Arc::clone(&self.pace));
        let stream = Outgoing::new(member.data()?, member.watched(), Arc::clone(&stop), pace);
        let source = Arc::clone(self.source);
        // Runs in a separate thread, because reading a disk may take forever, and the member must
        // keep running meanwhile.
        let packing = std::thread::Builder::new()
            .name("tramontane-pack".into())
            .spawn(move || pack(&source, stream))
            .map_err(|error| Failure::system("cannot start a thread", &error))?;
        self.progress.expect(self.source.manifest.bytes);
        if let Err(failure) = self.wait_until(|_| packing.is_finished()) {
            // The thread is not joined.
            stop.store(true, Ordering::Relaxed);
            return Err(failure);
        }
        // A panic has already printed its message.
        let packed = packing.join().unwrap_or_else(|_| Err(Failure::silent(Status::Other)));
        let sum = packed.map_err(|failure| match failure.status {
            // The copy has ended, and the packing thread does not know why.
            Status::PeerLost => self.member.check().err().unwrap_or(failure),
            _ => failure,
        })?;
        self.pace.waits();
        self.wait_until(CopyLedger::are_ready)?;
        let disagreement = self.member.ledger().disagreement(&sum);
        disagreement.map_or(Ok(sum), Err)
    }

    /// Waits for a condition, as long as there is progress and the copy has not been called off.
    fn wait_until(&mut self, is_so: impl Fn(&CopyLedger) -> bool) -> Result<(), Failure> {
        let Self { member, check, pace, stall, progress, .. } = self;
        let is_over = |ledger: &CopyLedger| {
            is_so(ledger) || matches!(ledger.decision(), Some(Decision::Off(_)))
        };
        member.wait_until(is_over, |ledger| {
            check()?;
            ledger.received().for_each(|(node, bytes)| progress.of(node, bytes));
            stall.check(Instant::now(), pace, ledger)
        })?;
        member.check()
    }

    /// Decides that all receivers move everything to their destinations. From here on, a failure of
    /// this member changes nothing.
    fn commit(&mut self, sum: &Sum) -> Result<(), CopyError> {
        let member = self.member;
        let is_decided = |ledger: &CopyLedger| ledger.decision().is_some();
        let sent = member.announce(&CopyMessage::Commit(sum.clone()), || (self.check)());
        sent.inspect_err(|failure| member.call_off(failure))?;
        let mut waited = self.wait_until(is_decided);
        if waited.is_err() {
            // The commit is in flight, so its result should be awaited.
            let check = until_last_notices();
            let _ = member.wait_until(is_decided, |_| check());
        }
        match member.decision() {
            Some(Decision::Commit(_)) => return Ok(()),
            Some(Decision::Off(failure)) => return Err(CopyError::Nowhere(failure)),
            None => {}
        }
        if let Some(failure) = member.stopped() {
            waited = Err(failure);
        }
        let why = waited.err().unwrap_or_else(|| Failure::silent(Status::PeerLost));
        let what =
            format_args!("it is unknown which nodes have the complete copy: {}", words(&why));
        let advice = "check the destinations, and copy to the nodes that lack it";
        Err(CopyError::Partly(Failure::new(why.status, what, advice)))
    }

    /// Waits until every receiver has moved everything to its destination, has failed to, or has
    /// been lost.
    fn wait_for_all_placed(&mut self) -> Result<Vec<CopyLine>, CopyError> {
        let waited = self.wait_until(CopyLedger::is_over);
        let ledger = self.member.ledger();
        let placed = ledger.placed();
        if placed.len() == self.job.receivers().count() {
            return Ok(placed.into_iter().map(|(node, files)| CopyLine { node, files }).collect());
        }
        let why_not = ledger.why_not_placed().map(str::to_owned);
        drop(ledger);
        let status = waited.as_ref().err().map_or(Status::PeerLost, |failure| failure.status);
        let why = waited.err().map(|failure| words(&failure).to_owned()).or(why_not);
        let why = why.or_else(|| Some(self.member.stopped()?.text().to_owned()));
        let why = why.unwrap_or_else(|| "a receiver does not answer".into());
        let have: Vec<String> = placed.keys().map(|node| format!("node {node}")).collect();
        let have = if have.is_empty() { "no node".into() } else { have.join(", ") };
        let what =
            format_args!("not every node has the complete copy: {why}; {have} reported success");
        let advice = "check the destinations, and copy to the nodes that lack it";
        Err(CopyError::Partly(Failure::new(status, what, advice)))
    }
}

/// Packs the sources and sends them. Returns the number of bytes and their checksum.
fn pack(source: &CopySource, mut stream: Outgoing) -> Result<Sum, Failure> {
    source.pack(&mut stream)?;
    stream.finish().map_err(|error| Failure::with_text(Status::PeerLost, error))
}

/// Returns a failure's text. An interrupt needs no text on the member that was interrupted.
pub(super) fn words(failure: &Failure) -> &str {
    if failure.text().is_empty() { "this node was interrupted" } else { failure.text() }
}
