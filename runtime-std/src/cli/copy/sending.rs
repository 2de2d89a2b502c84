//! The root's part: what is copied goes out as one archive, and each receiver says what became of it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::group::{BUFFERS, CHUNK_BYTES, Job, SAID_MAX};
use super::receiving::LAST_WORD;
use super::report::{Line, Progress, Report};
use super::source::Source;
use super::standstill::{Pace, STANDSTILL_MAX, Standstill};
use super::stream::{GiveBack, Outgoing};
use super::talk::{Said, Verdict, told_by};
use crate::blocks::{BlockNode, Buffer, Ended, Group, Recipient};
use crate::cli::exit::{Failure, Status};
use crate::joined::BlockStore;

/// Between two looks at what has come.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Why a copy did not come to its end.
#[derive(Debug)]
pub(super) enum CopyError {
    /// Nobody has it.
    Nowhere(Failure),
    /// Some have it in its place. Nobody else knows better who.
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

/// Copies to all other members. `cancel` ends the wait for them, `check` fails when the user wants the end.
pub(super) fn send(
    job: &Job,
    files: &[PathBuf],
    cancel: &AtomicBool,
    check: &dyn Fn() -> Result<(), Failure>,
) -> Result<Report, CopyError> {
    let source = Arc::new(Source::look(files, check)?);
    let node = job.join(cancel)?;
    let (words, heard) = mpsc::channel();
    let mut ears = Vec::new();
    for receiver in job.receivers() {
        let ear = Ear { receiver, words: words.clone(), store: node.store().clone() };
        ears.push(job.reports(&node, receiver, ear)?);
    }
    drop(words);
    let copied = copy(job, &node, &source, Hearing::new(job, &heard, check));
    // Receivers close their groups when they have said all.
    for ear in &ears {
        let _ = ear.wait(if copied.is_ok() { LAST_WORD } else { Duration::ZERO });
    }
    let _ = node.close();
    copied
}

fn copy(
    job: &Job,
    node: &BlockNode,
    source: &Arc<Source>,
    mut hearing: Hearing<'_>,
) -> Result<Report, CopyError> {
    let (give, free) = mpsc::channel();
    for _ in 0..BUFFERS {
        let _ = give.send(Buffer::to_send(node.store(), CHUNK_BYTES).map_err(Failure::from)?);
    }
    let group = Arc::new(job.data(node, GiveBack(give))?);
    let stop = Arc::new(AtomicBool::new(false));
    let started = Instant::now();
    let pace = Arc::clone(&hearing.pace);
    let stream = Outgoing::new(Arc::clone(&group), free, Arc::clone(&stop), pace);
    let packing = Packing::start(source, stream)?;
    if let Err(failure) = hearing.until(source.manifest.bytes, &group, || packing.is_finished()) {
        // It may wait for a disk for ever, and is not waited for.
        stop.store(true, Ordering::Relaxed);
        return Err(hearing.cause(&group, failure).into());
    }
    let (mut stream, packed) = packing.end()?;
    let placed = match &packed {
        Ok((bytes, checksum)) => hearing.agree(&group, &mut stream, *bytes, checksum),
        Err(failure) => {
            // Whoever reads on finds the end before its time, and then the word.
            let _ = stream.finish();
            Err(hearing.cause(&group, failure.clone()).into())
        }
    };
    let word = match &placed {
        Ok(()) => Verdict::Placed,
        Err(CopyError::Nowhere(failure) | CopyError::Partly(failure)) => Verdict::failed(failure),
    };
    hearing.tell(&group, &mut stream, &word);
    placed?;
    let (bytes, checksum) = packed?;
    let seconds = started.elapsed().as_secs_f64();
    let lines =
        hearing.placed.iter().map(|(receiver, files)| Line { node: *receiver, files: *files }).collect();
    Ok(Report { bytes, checksum, seconds, lines, places: Vec::new() })
}

/// Bytes and checksum of what was packed.
type Packed = Result<(u64, String), Failure>;

/// A thread that packs and sends.
struct Packing(JoinHandle<(Outgoing, Packed)>);

impl Packing {
    fn start(source: &Arc<Source>, mut stream: Outgoing) -> Result<Self, Failure> {
        let source = Arc::clone(source);
        let packing = std::thread::Builder::new().name("tramontane-pack".into());
        let packing = packing.spawn(move || {
            let packed = pack(&source, &mut stream);
            (stream, packed)
        });
        packing.map(Self).map_err(|error| Failure::system("cannot start a thread", &error))
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    fn end(self) -> Result<(Outgoing, Packed), Failure> {
        // A panic has said what it is.
        self.0.join().map_err(|_| Failure::silent(Status::Other))
    }
}

/// Sends what it is about, and then all of it.
fn pack(source: &Source, stream: &mut Outgoing) -> Packed {
    stream.word(&source.manifest).map_err(|error| refused(&error))?;
    source.pack(&mut *stream)?;
    stream.finish().map_err(|error| refused(&error))
}

fn refused(error: &std::io::Error) -> Failure {
    Failure::told(Status::PeerLost, error)
}

/// Hears one receiver.
struct Ear {
    receiver: u32,
    words: Sender<(u32, Said)>,
    store: BlockStore,
}

impl Recipient for Ear {
    fn incoming(&mut self, _: u64, bytes: usize) -> Option<Buffer> {
        Buffer::new(&self.store, bytes.max(SAID_MAX)).ok()
    }

    fn completed(&mut self, _: u64, buffer: Buffer, bytes: usize) {
        let said = buffer.get(..bytes).and_then(|bytes| serde_json::from_slice(bytes).ok());
        match said {
            // Whoever listens may be through.
            Some(said) => drop(self.words.send((self.receiver, said))),
            None => tracing::warn!(receiver = self.receiver, "a receiver says what cannot be understood"),
        }
    }
}

/// What was heard of all receivers.
struct Hearing<'h> {
    receivers: Vec<u32>,
    heard: &'h Receiver<(u32, Said)>,
    check: &'h dyn Fn() -> Result<(), Failure>,
    progress: Progress,
    /// How far each is.
    received: BTreeMap<u32, u64>,
    pace: Arc<Pace>,
    standstill: Standstill,
    complete: BTreeMap<u32, (u64, String)>,
    placed: BTreeMap<u32, u64>,
}

impl<'h> Hearing<'h> {
    fn new(job: &Job, heard: &'h Receiver<(u32, Said)>, check: &'h dyn Fn() -> Result<(), Failure>) -> Self {
        let receivers: Vec<u32> = job.receivers().collect();
        let progress = Progress::new(&receivers);
        let received = receivers.iter().map(|receiver| (*receiver, 0)).collect();
        let (pace, standstill) = (Arc::default(), Standstill::new(Instant::now()));
        let (complete, placed) = (BTreeMap::new(), BTreeMap::new());
        Self { receivers, heard, check, progress, received, pace, standstill, complete, placed }
    }

    /// Hears until `done`, or somebody failed.
    fn until(&mut self, total: u64, group: &Group, done: impl Fn() -> bool) -> Result<(), Failure> {
        self.progress.expect(total);
        while !done() {
            self.hear()?;
            if let Some(ended) = group.ended() {
                return Err(self.cause(group, of_group(&ended)));
            }
        }
        Ok(())
    }

    /// Takes one word, if one comes soon.
    fn hear(&mut self) -> Result<(), Failure> {
        (self.check)()?;
        let word = self.heard.recv_timeout(LOOK_PAUSE);
        if word.is_ok() {
            self.standstill.heard(Instant::now());
        }
        match word {
            Ok((receiver, Said::Received { bytes })) => self.got(receiver, bytes),
            Ok((receiver, Said::Complete { bytes, checksum })) => {
                self.got(receiver, bytes);
                self.complete.insert(receiver, (bytes, checksum));
            }
            Ok((receiver, Said::Placed { files })) => {
                self.placed.insert(receiver, files);
            }
            Ok((receiver, Said::Failed { status, text })) => {
                return Err(told_by(&format!("node {receiver}"), status, &text));
            }
            Err(RecvTimeoutError::Timeout) => {
                return self.standstill.check(Instant::now(), &self.pace, &self.received);
            }
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_PAUSE),
        }
        Ok(())
    }

    fn got(&mut self, receiver: u32, bytes: u64) {
        self.progress.of(receiver, bytes);
        self.received.insert(receiver, bytes);
    }

    /// Has everybody move what it has into place, once all have the same.
    fn agree(
        &mut self,
        group: &Group,
        stream: &mut Outgoing,
        bytes: u64,
        checksum: &str,
    ) -> Result<(), CopyError> {
        self.all_complete(group, bytes, checksum)?;
        let agreed = Verdict::Agreed { checksum: checksum.into() };
        stream.word(&agreed).map_err(|error| self.cause(group, refused(&error)))?;
        self.all_placed(group)
    }

    /// Waits until everybody has everything, and compares.
    fn all_complete(&mut self, group: &Group, bytes: u64, checksum: &str) -> Result<(), Failure> {
        while self.complete.len() < self.receivers.len() {
            self.hear()?;
            if let Some(ended) = group.ended() {
                return Err(self.cause(group, of_group(&ended)));
            }
        }
        for (receiver, (theirs, sum)) in &self.complete {
            if *theirs != bytes || sum != checksum {
                let what = format_args!(
                    "node {receiver} has {theirs} bytes with the checksum {sum}, and not {bytes} with {checksum}"
                );
                return Err(Failure::new(
                    Status::Disagreement,
                    what,
                    "copy again; if it stays so, please report it",
                ));
            }
        }
        Ok(())
    }

    /// Waits until everybody has moved everything into place, or could not.
    fn all_placed(&mut self, group: &Group) -> Result<(), CopyError> {
        let mut failures: Vec<Failure> = Vec::new();
        while self.placed.len() + failures.len() < self.receivers.len() && group.ended().is_none() {
            (self.check)()?;
            failures.extend(self.hear().err());
        }
        self.progress.finish();
        if self.placed.len() == self.receivers.len() {
            return Ok(());
        }
        let why = match (failures.first(), group.ended()) {
            (Some(failure), _) => failure.text().to_owned(),
            (None, Some(ended)) => ended.to_string(),
            (None, None) => "a receiver does not say".into(),
        };
        let have: Vec<String> = self.placed.keys().map(|node| format!("node {node}")).collect();
        let have = if have.is_empty() { "nobody".into() } else { have.join(", ") };
        let what = format_args!("not everybody has it in place: {why}; {have} said so");
        let advice = "see what is there, and copy it to those that lack it";
        Err(CopyError::Partly(Failure::new(Status::PeerLost, what, advice)))
    }

    /// Tells all receivers, and waits until they are told, as long as a copy may stand still.
    fn tell(&self, group: &Group, stream: &mut Outgoing, word: &Verdict) {
        let told = stream.word(word);
        let _ = group.close(Duration::ZERO);
        let until = Instant::now() + STANDSTILL_MAX;
        while told.is_ok() && group.ended().is_none() && Instant::now() < until && (self.check)().is_ok() {
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// The better word for a failure: that of the receiver which failed, if it still comes.
    fn cause(&mut self, group: &Group, failure: Failure) -> Failure {
        let until = Instant::now() + LAST_WORD / 5;
        while group.ended().is_some() && Instant::now() < until {
            if let Err(better) = self.hear() {
                return better;
            }
        }
        match group.ended() {
            Some(ended) if failure.status == Status::PeerLost => of_group(&ended),
            _ => failure,
        }
    }
}

fn of_group(ended: &Ended) -> Failure {
    Failure::new(Status::PeerLost, ended, "find out what ended it, and copy again")
}
