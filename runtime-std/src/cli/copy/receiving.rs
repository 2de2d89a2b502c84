//! A receiver's part: it unpacks beside the place, says so, and moves everything into place when all have it.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::group::{BUFFERS, CHUNK_BYTES, Job, Quiet, say};
use super::place::Place;
use super::stream::{Incoming, Taking};
use super::talk::{Manifest, Said, Verdict, told_by};
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
    let taken = take(job, &node, &reports, place, cancel);
    // The root closes this group when it has heard the last word.
    let _ = reports.close(LAST_WORD);
    let _ = node.close();
    taken
}

fn take(
    job: &Job,
    node: &BlockNode,
    reports: &Group,
    mut place: Place,
    cancel: &AtomicBool,
) -> Result<Received, Failure> {
    let (give, free) = mpsc::channel();
    for _ in 0..BUFFERS {
        // A message comes as whole blocks, of which a pipeline has two at least.
        let block = job.options.block_bytes;
        let bytes = CHUNK_BYTES.next_multiple_of(block).max(2 * block);
        let _ = give.send(node.buffer(bytes)?);
    }
    let (arrivals, arrived) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let group = job.data(node, Taking { free, arrivals, stop: Arc::clone(&stop) })?;
    let mut said = Instant::now();
    let progress = |bytes| {
        if said.elapsed() >= SAY_INTERVAL {
            said = Instant::now();
            let _ = say(reports, node, &Said::Received { bytes });
        }
    };
    let mut stream = Incoming::new(&arrived, &give, cancel, progress);
    let received = unpack(&mut stream, &mut place, &|said| say(reports, node, said)).and_then(|received| {
        say(reports, node, &Said::Placed { files: received.files })?;
        all_placed(&mut stream, place.directory())?;
        Ok(received)
    });
    if !stream.is_over() {
        // Nothing more is taken: that ends the copy for everybody.
        stop.store(true, Ordering::Relaxed);
        let _ = group.wait(Duration::ZERO);
    }
    if let Err(failure) = &received {
        // The root tells everybody; what ended this member is the better word than that it went.
        let _ = say(reports, node, &Said::failed(failure));
    }
    if stream.is_over() {
        // Others may have the root's last word from this member.
        let _ = group.wait(LAST_WORD);
    }
    received
}

/// Waits for the root's word that everybody has everything in its place.
fn all_placed<P: FnMut(u64)>(stream: &mut Incoming<'_, P>, directory: &Path) -> Result<(), Failure> {
    let why = match stream.message().map_err(|error| error.to_string()) {
        Ok(word) => match understood(&word)? {
            Verdict::Placed => return Ok(()),
            Verdict::Failed { text, .. } => text,
            Verdict::Agreed { .. } => "the node that copies repeats itself".into(),
        },
        Err(why) => why,
    };
    let what =
        format_args!("everything is in place in {}, and perhaps not everywhere: {why}", directory.display());
    Err(Failure::new(Status::PeerLost, what, "see who lacks it, and copy it there"))
}

/// The checksum that all agree on, or why there is none.
fn verdict<P: FnMut(u64)>(stream: &mut Incoming<'_, P>) -> Result<String, Failure> {
    match understood(&stream.message().map_err(ended)?)? {
        Verdict::Agreed { checksum } => Ok(checksum),
        Verdict::Placed => Ok(String::new()),
        Verdict::Failed { status, text } => Err(told_by("the node that copies", status, &text)),
    }
}

fn ended(error: std::io::Error) -> Failure {
    Failure::told(Status::PeerLost, error)
}

fn understood<T: DeserializeOwned>(message: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(message)
        .map_err(|error| Failure::new(Status::Group, error, "run the same version of the program everywhere"))
}

fn unpack<P: FnMut(u64)>(
    stream: &mut Incoming<'_, P>,
    place: &mut Place,
    say: &dyn Fn(&Said) -> Result<(), Failure>,
) -> Result<Received, Failure> {
    let manifest: Manifest = understood(&stream.message().map_err(ended)?)?;
    place.expect(&manifest)?;
    let files = place.unpack(&mut *stream).map_err(|failure| match stream.is_over() {
        // An archive that ends too soon: the root says why.
        true => verdict(stream).err().unwrap_or(failure),
        false => failure,
    })?;
    // What stands behind an archive's end is part of the stream.
    std::io::copy(stream, &mut std::io::sink()).map_err(ended)?;
    let (bytes, checksum) = stream.sum();
    // Before anybody moves anything: a disk that turns out to be full now still leaves nobody with it.
    place.sync(|| {
        if stream.is_stopped() {
            Err(ended(ErrorKind::ConnectionAborted.into()))
        } else {
            say(&Said::Received { bytes })
        }
    })?;
    say(&Said::Complete { bytes, checksum: checksum.clone() })?;
    if verdict(stream)? != checksum {
        let what = format_args!("what came here has the checksum {checksum}, and not that of the source");
        return Err(Failure::new(Status::Disagreement, what, "copy again; if it stays so, please report it"));
    }
    place.settle()?;
    Ok(Received { bytes, checksum, files })
}
