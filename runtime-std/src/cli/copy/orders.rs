//! What the root says to a receiver, as the receiver hears it: in a group of these two, which goes on when that of what is
//! copied has ended. So the root alone says how a copy ends, and only its own end ends this.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::group::Job;
use super::messages::Hearer;
use super::standstill::ROOT_SILENT_MAX;
use super::talk::{Word, told_by};
use crate::blocks::{BlockNode, Ended, Group};
use crate::cli::exit::{Failure, Status};

/// Between two looks whether a wait is to end.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// How long a receiver waits for the root's word on why a copy ended: longer than the root looks for it.
const REASON_MAX: Duration = Duration::from_secs(10);

/// The root's words to this member.
pub(super) struct Orders<'c> {
    root: u32,
    group: Group,
    heard: Receiver<Word>,
    /// What was heard while nobody waited for it.
    kept: RefCell<VecDeque<Word>>,
    failed: OnceCell<Failure>,
    /// When the root was heard last, or this member began to wait for it.
    since: Cell<Instant>,
    /// This member is to end.
    cancel: &'c AtomicBool,
}

impl<'c> Orders<'c> {
    /// `cancel` ends all waits.
    pub(super) fn open(
        job: &Job,
        node: &BlockNode,
        cancel: &'c AtomicBool,
    ) -> Result<Self, Failure> {
        let (words, heard) = mpsc::channel();
        // Whoever listens may be through.
        let hearer = Hearer::new(node, move |word| drop(words.send(word)));
        let group = job.words(node, job.own, hearer)?;
        Ok(Self {
            root: job.root,
            group,
            heard,
            kept: RefCell::default(),
            failed: OnceCell::new(),
            since: Cell::new(Instant::now()),
            cancel,
        })
    }

    /// This member waits from now on: what it did before it took the time for itself.
    pub(super) fn waits(&self) {
        self.since.set(Instant::now());
    }

    /// Fails if this member is to end, if the root says that the copy failed, or says nothing for long.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Failure::silent(Status::Interrupted));
        }
        self.listen();
        if let Some(failure) = self.failed.get() {
            return Err(failure.clone());
        }
        if self.since.get().elapsed() < ROOT_SILENT_MAX {
            return Ok(());
        }
        let what = format_args!(
            "node {}, which copies, has said nothing for {} s",
            self.root,
            ROOT_SILENT_MAX.as_secs()
        );
        Err(Failure::new(
            Status::PeerLost,
            what,
            "see whether it is stopped, or its network is, and copy again",
        ))
    }

    /// The next word.
    pub(super) fn next(&self) -> Result<Word, Failure> {
        self.waits();
        loop {
            // In this order: what came before the end is heard.
            let ended = self.group.ended();
            self.check()?;
            if let Some(word) = self.kept.borrow_mut().pop_front() {
                return Ok(word);
            }
            if let Some(ended) = ended {
                return Err(self.gone(&ended));
            }
            self.pause();
        }
    }

    /// Why the copy ended, as the root says; `consequence` is what it looks like here.
    pub(super) fn reason(&self, consequence: Failure) -> Failure {
        let until = Instant::now() + REASON_MAX;
        while Instant::now() < until && !self.cancel.load(Ordering::Relaxed) {
            let ended = self.group.ended();
            self.listen();
            match (self.failed.get(), ended) {
                (Some(failure), _) => return failure.clone(),
                // Without the root there is no copy, whoever else went after it.
                (None, Some(ended)) => return self.gone(&ended),
                (None, None) => self.pause(),
            }
        }
        consequence
    }

    fn gone(&self, ended: &Ended) -> Failure {
        let what = format_args!("node {}, which copies, is gone: {ended}", self.root);
        Failure::new(Status::PeerLost, what, "find out what ended it, and copy again")
    }

    fn listen(&self) {
        while let Ok(word) = self.heard.try_recv() {
            self.take(word);
        }
    }

    fn pause(&self) {
        match self.heard.recv_timeout(LOOK_PAUSE) {
            Ok(word) => self.take(word),
            Err(RecvTimeoutError::Timeout) => {}
            // The group is over, which whoever waits finds.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(LOOK_PAUSE),
        }
    }

    fn take(&self, word: Word) {
        self.since.set(Instant::now());
        match word {
            Word::StillHere => {}
            Word::Failed { status, text } => {
                let member = format!("the node that copies, node {}", self.root);
                // The first counts.
                let _ = self.failed.set(told_by(&member, status, &text));
            }
            word => self.kept.borrow_mut().push_back(word),
        }
    }
}
