//! What the root hears of its receivers, and what it makes of it: how far each is, and whose failure ends a copy.
//!
//! # Causes and consequences
//! When one member fails, the others soon fail too, for want of it. Who lacks something says so, and is the cause; who says
//! that another one went is a consequence. Where nobody says what it lacks, the group of what is copied knows who went.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::group::Job;
use super::messages::Hearer;
use super::receiving::LAST_WORD;
use super::report::{Line, Progress};
use super::standstill::{Pace, Standstill};
use super::talk::{Said, told_by};
use super::telling::Telling;
use crate::blocks::{BlockNode, Ended, Group};
use crate::cli::exit::{Failure, Status};

/// Between two looks at what has come.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// What was heard of all receivers.
pub(super) struct Hearing<'h> {
    /// Each receiver's own group.
    ears: BTreeMap<u32, Group>,
    heard: Receiver<(u32, Said)>,
    check: &'h dyn Fn() -> Result<(), Failure>,
    progress: Progress,
    /// How far each is.
    received: BTreeMap<u32, u64>,
    pub(super) pace: Arc<Pace>,
    standstill: Standstill,
    complete: BTreeMap<u32, (u64, String)>,
    placed: BTreeMap<u32, u64>,
    failed: BTreeMap<u32, Told>,
}

impl<'h> Hearing<'h> {
    /// `check` fails when the user wants the end.
    pub(super) fn open(
        job: &Job,
        node: &BlockNode,
        check: &'h dyn Fn() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let (words, heard) = mpsc::channel();
        let mut ears = BTreeMap::new();
        for receiver in job.receivers() {
            let words = words.clone();
            // Whoever listens may be through.
            let ear = Hearer::new(node, move |said| drop(words.send((receiver, said))));
            ears.insert(receiver, job.reports(node, receiver, ear)?);
        }
        let receivers: Vec<u32> = job.receivers().collect();
        Ok(Self {
            ears,
            heard,
            check,
            progress: Progress::new(&receivers),
            received: receivers.iter().map(|receiver| (*receiver, 0)).collect(),
            pace: Arc::default(),
            standstill: Standstill::new(Instant::now()),
            complete: BTreeMap::new(),
            placed: BTreeMap::new(),
            failed: BTreeMap::new(),
        })
    }

    /// So many bytes are to come.
    pub(super) fn expect(&mut self, total: u64) {
        self.progress.expect(total);
    }

    /// Hears until `done`, or somebody failed; `group` is that of what is copied.
    pub(super) fn until(
        &mut self,
        telling: &mut Telling,
        group: &Group,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), Failure> {
        while !done(self) {
            self.hear(telling)?;
            if !self.failed.is_empty() || group.ended().is_some() {
                return Err(self.cause(group));
            }
        }
        Ok(())
    }

    /// Takes one word, if one comes soon. Fails if nothing goes on.
    fn hear(&mut self, telling: &mut Telling) -> Result<(), Failure> {
        telling.still_here(Instant::now())?;
        if self.listen()? {
            self.standstill.heard(Instant::now());
            return Ok(());
        }
        self.standstill.check(Instant::now(), &self.pace, &self.received)
    }

    /// Takes one word, if one comes soon; whether one came.
    fn listen(&mut self) -> Result<bool, Failure> {
        (self.check)()?;
        match self.heard.recv_timeout(LOOK_PAUSE) {
            Ok((receiver, said)) => self.take(receiver, said),
            Err(RecvTimeoutError::Timeout) => return Ok(false),
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(LOOK_PAUSE);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, receiver: u32, said: Said) {
        match said {
            Said::Received { bytes } => self.got(receiver, bytes),
            Said::Complete { bytes, checksum } => {
                self.got(receiver, bytes);
                self.complete.insert(receiver, (bytes, checksum));
            }
            Said::Placed { files } => {
                self.placed.insert(receiver, files);
            }
            Said::Failed { status, text } => {
                let failure = told_by(&format!("node {receiver}"), status, &text);
                tracing::info!(receiver, why = failure.text(), "a receiver failed");
                // That it was asked to end is nobody else's failure.
                let is_consequence = Status::of(status) == Status::PeerLost;
                self.failed.insert(receiver, Told { failure, is_consequence });
            }
        }
    }

    fn got(&mut self, receiver: u32, bytes: u64) {
        self.progress.of(receiver, bytes);
        self.received.insert(receiver, bytes);
    }

    /// Whether everybody has everything.
    pub(super) fn is_complete(&self) -> bool {
        self.complete.len() == self.ears.len()
    }

    /// Whether what everybody has is what was sent.
    pub(super) fn compare(&self, bytes: u64, checksum: &str) -> Result<(), Failure> {
        let other =
            self.complete.iter().find(|(_, (theirs, sum))| *theirs != bytes || sum != checksum);
        let Some((receiver, (theirs, sum))) = other else { return Ok(()) };
        let what = format_args!(
            "node {receiver} has {theirs} bytes with the checksum {sum}, and not {bytes} with {checksum}"
        );
        Err(Failure::new(
            Status::Disagreement,
            what,
            "copy again; if it stays so, please report it",
        ))
    }

    /// Waits until everybody has moved everything into place, or could not, or is lost: who lives still says which.
    pub(super) fn all_placed(&mut self, telling: &mut Telling) -> Result<(), Failure> {
        let mut given_up = None;
        while given_up.is_none() && self.ears.keys().any(|receiver| self.is_awaited(*receiver)) {
            given_up = self.hear(telling).err();
        }
        self.take_rest();
        self.progress.finish();
        if self.placed.len() == self.ears.len() {
            return Ok(());
        }
        let status = given_up.as_ref().map_or(Status::PeerLost, |failure| failure.status);
        let why = match given_up.as_ref().map(Failure::text) {
            Some("") => "this node was interrupted".into(),
            Some(text) => text.to_owned(),
            None => self.why_not_placed(),
        };
        let have: Vec<String> = self.placed.keys().map(|node| format!("node {node}")).collect();
        let have = if have.is_empty() { "nobody".into() } else { have.join(", ") };
        let what = format_args!("not everybody has it in place: {why}; {have} said so");
        Err(Failure::new(status, what, "see what is there, and copy it to those that lack it"))
    }

    /// Whether a receiver that has everything may still say what became of it.
    fn is_awaited(&self, receiver: u32) -> bool {
        let is_through = self.placed.contains_key(&receiver) || self.failed.contains_key(&receiver);
        !is_through && self.is_heard(receiver)
    }

    fn is_heard(&self, receiver: u32) -> bool {
        self.ears.get(&receiver).is_some_and(|ear| ear.ended().is_none())
    }

    fn why_not_placed(&self) -> String {
        let lost = || {
            let mut missing =
                self.ears.iter().filter(|(receiver, _)| !self.placed.contains_key(receiver));
            missing.find_map(|(_, ear)| ear.ended()).map(|ended| ended.to_string())
        };
        match self.worst() {
            Some(told) => told.failure.text().to_owned(),
            None => lost().unwrap_or_else(|| "a receiver does not say".into()),
        }
    }

    /// Whose failure ended a copy in its middle: waits for the word of whoever it was, if it still comes.
    pub(super) fn cause(&mut self, group: &Group) -> Failure {
        let until = Instant::now() + LAST_WORD;
        while Instant::now() < until && !self.knows_cause() && self.may_be_told(group) {
            if let Err(interrupted) = self.listen() {
                return interrupted;
            }
        }
        self.take_rest();
        match (self.worst(), group.ended()) {
            (Some(told), _) if !told.is_consequence => told.failure.clone(),
            (_, Some(ended)) => of_group(&ended),
            (Some(told), None) => told.failure.clone(),
            (None, None) => Failure::new(
                Status::PeerLost,
                "a receiver is lost",
                "find out what ended it, and copy again",
            ),
        }
    }

    fn knows_cause(&self) -> bool {
        self.failed.values().any(|told| !told.is_consequence)
    }

    /// Whether somebody still may say why the copy ended: who went without a word never will.
    fn may_be_told(&self, group: &Group) -> bool {
        match group.ended() {
            None => true,
            Some(Ended::Failed { node, .. }) => self.is_heard(node.0),
            Some(_) => false,
        }
    }

    /// What has come and was not taken yet.
    fn take_rest(&mut self) {
        while let Ok((receiver, said)) = self.heard.try_recv() {
            self.take(receiver, said);
        }
    }

    fn worst(&self) -> Option<&Told> {
        self.failed.values().min_by_key(|told| told.is_consequence)
    }

    /// What each receiver has in place.
    pub(super) fn lines(&self) -> Vec<Line> {
        self.placed.iter().map(|(node, files)| Line { node: *node, files: *files }).collect()
    }

    /// Waits until all receivers have said everything, at most so long each.
    pub(super) fn close(&self, timeout: Duration) {
        for ear in self.ears.values() {
            // Receivers close their groups when they have said all.
            let _ = ear.wait(timeout);
        }
    }
}

/// A receiver's failure, as it says.
struct Told {
    failure: Failure,
    is_consequence: bool,
}

fn of_group(ended: &Ended) -> Failure {
    Failure::new(Status::PeerLost, ended, "find out what ended it, and copy again")
}
