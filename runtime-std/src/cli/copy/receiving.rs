//! A receiver's part: it unpacks beside the place, says so, and moves everything into place when the root says that all have
//! it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::group::{BUFFERS, CHUNK_BYTES, Job};
use super::messages::{Quiet, say};
use super::orders::Orders;
use super::place::Place;
use super::stream::{Incoming, Taking};
use super::talk::{Manifest, Said, Terms, Word};
use crate::blocks::{BlockNode, Group};
use crate::cli::exit::{Failure, Status};

/// Between two words of how far a receiver is.
const SAY_INTERVAL: Duration = Duration::from_millis(200);

/// How long a member stays to say its last word, and to hear that of the root.
pub(super) const LAST_WORD: Duration = Duration::from_secs(5);

/// What a receiver has at the end.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) bytes: u64,
    pub(super) checksum: String,
    pub(super) files: u64,
}

/// Takes what the root copies. `cancel` ends it.
pub(super) fn receive(job: &Job, to: &Path, cancel: &AtomicBool) -> Result<Received, Failure> {
    let place = Place::take(to)?;
    let node = job.join(cancel)?;
    let reports = job.reports(&node, job.own, Quiet)?;
    let orders = Orders::open(job, &node, cancel)?;
    let member = Receiving { job, node: &node, reports: &reports, orders: &orders };
    let taken = member.take(place);
    // The root has heard the last word then.
    let _ = reports.close(LAST_WORD);
    let _ = node.close();
    taken
}

/// A receiver of a copy.
pub(super) struct Receiving<'r> {
    pub(super) job: &'r Job,
    pub(super) node: &'r BlockNode,
    pub(super) reports: &'r Group,
    pub(super) orders: &'r Orders<'r>,
}

impl Receiving<'_> {
    fn say(&self, said: &Said) -> Result<(), Failure> {
        say(self.reports, self.node, said)
    }

    pub(super) fn take(&self, mut place: Place) -> Result<Received, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let received = self.unpack(&mut place, &stop).inspect_err(|failure| {
            // Before anything ends here: what ended this member is the better word than that it went.
            let _ = self.say(&Said::failed(failure));
        });
        // Nothing more is taken: that ends the copy for everybody who is not through.
        stop.store(true, Ordering::Relaxed);
        let received = received.map_err(|failure| match failure.status {
            Status::PeerLost => self.orders.reason(failure),
            _ => failure,
        })?;
        self.all_placed(&received, place.directory())?;
        Ok(received)
    }

    /// Says that everything is in its place here, and waits for the root's word that it is so everywhere.
    pub(super) fn all_placed(&self, received: &Received, directory: &Path) -> Result<(), Failure> {
        let said = self.say(&Said::Placed { files: received.files });
        let failure = match said.and_then(|()| self.orders.next()) {
            Ok(Word::Placed) => return Ok(()),
            Ok(_) => out_of_turn(),
            Err(failure) => failure,
        };
        let why =
            if failure.text().is_empty() { "this node was interrupted" } else { failure.text() };
        let what = format_args!(
            "everything is in place in {}, and perhaps not everywhere: {why}",
            directory.display()
        );
        let status =
            if failure.status == Status::Interrupted { failure.status } else { Status::PeerLost };
        Err(Failure::new(status, what, "see who lacks it, and copy it there"))
    }

    /// Takes everything, and moves it into place once all have it. Of what fails here nothing is in place.
    pub(super) fn unpack(
        &self,
        place: &mut Place,
        stop: &Arc<AtomicBool>,
    ) -> Result<Received, Failure> {
        let received = self.take_all(place, stop)?;
        self.agree(&received)?;
        place.settle()?;
        Ok(received)
    }

    /// Takes everything, beside its place, and says so.
    pub(super) fn take_all(
        &self,
        place: &mut Place,
        stop: &Arc<AtomicBool>,
    ) -> Result<Received, Failure> {
        match self.orders.next()? {
            Word::Terms(terms) => compare(&terms, &self.job.terms(), self.job.root)?,
            _ => return Err(out_of_turn()),
        }
        let (give, free) = mpsc::channel();
        for _ in 0..BUFFERS {
            // A message comes as whole blocks. The two that a pipeline has at least are no more than this.
            let bytes = CHUNK_BYTES.next_multiple_of(self.job.options.block_bytes);
            let _ = give.send(self.node.buffer(bytes)?);
        }
        let (arrivals, arrived) = mpsc::channel();
        self.job.data(self.node, Taking { free, arrivals, stop: Arc::clone(stop) })?;
        let mut said = Instant::now();
        let progress = |bytes| {
            if said.elapsed() >= SAY_INTERVAL {
                said = Instant::now();
                let _ = self.say(&Said::Received { bytes });
            }
        };
        let mut stream = Incoming::new(&arrived, &give, self.orders, progress);
        let files = self.unpack_stream(&mut stream, place)?;
        let (bytes, checksum) = stream.sum();
        // Before anybody moves anything: a disk that turns out to be full now still leaves nobody with it.
        place.sync(|| {
            self.orders.check()?;
            self.say(&Said::Received { bytes })
        })?;
        self.say(&Said::Complete { bytes, checksum: checksum.clone() })?;
        Ok(Received { bytes, checksum, files })
    }

    /// Waits until the root says that all have the same. Whatever becomes of the others meanwhile: all or none of those that
    /// live are told to go on.
    fn agree(&self, received: &Received) -> Result<(), Failure> {
        match self.orders.next()? {
            Word::Agreed { checksum } if checksum == received.checksum => Ok(()),
            Word::Agreed { .. } => {
                let what = format_args!(
                    "what came here has the checksum {}, and not that of the source",
                    received.checksum
                );
                let advice = "copy again; if it stays so, please report it";
                Err(Failure::new(Status::Disagreement, what, advice))
            }
            _ => Err(out_of_turn()),
        }
    }

    /// Unpacks all that comes; how many files it has.
    fn unpack_stream<P: FnMut(u64)>(
        &self,
        stream: &mut Incoming<'_, P>,
        place: &mut Place,
    ) -> Result<u64, Failure> {
        let broken = |error| self.orders.check().err().unwrap_or_else(|| ended(error));
        let manifest: Manifest = serde_json::from_slice(&stream.message().map_err(broken)?)
            .map_err(|_| out_of_turn())?;
        place.expect(&manifest)?;
        let unpacked = place.unpack(&mut *stream);
        // What stands behind an archive's end is part of the stream.
        let files = unpacked.and_then(|files| {
            std::io::copy(stream, &mut std::io::sink()).map_err(ended)?;
            Ok(files)
        });
        files.map_err(|failure| match failure.status {
            // It only knows that the stream ended. What is to be known of why stands in the orders.
            Status::PeerLost => self.orders.check().err().unwrap_or(failure),
            _ => failure,
        })
    }
}

/// Fails if the root sends in another way than this member was told to take.
fn compare(theirs: &Terms, own: &Terms, root: u32) -> Result<(), Failure> {
    if theirs == own {
        return Ok(());
    }
    let what = format_args!(
        "node {root} sends blocks of {} bytes by '{}', and this node was told {} bytes by '{}'",
        theirs.block_bytes, theirs.algorithm, own.block_bytes, own.algorithm
    );
    Err(Failure::new(Status::Group, what, "give the same --block and --algorithm at all nodes"))
}

fn ended(error: std::io::Error) -> Failure {
    Failure::new(Status::PeerLost, error, "copy again")
}

fn out_of_turn() -> Failure {
    let what = "the node that copies says something else than is expected";
    Failure::new(Status::Group, what, "run the same version of the program everywhere")
}
