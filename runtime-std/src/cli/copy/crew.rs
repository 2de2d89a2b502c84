//! A copy on this machine: this process copies, and starts one for each place.

use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};

use super::group::Job;
use super::receiving::receive;
use super::report::Report;
use super::sending::{CopyError, send};
use super::talk::{Said, told_by};
use super::{Arguments, BlockOptions, nested};
use crate::cli::exit::{Failure, Status};
use crate::cli::interrupt::Interrupts;
use crate::join::Meeting;
use crate::local::{Carrier, LocalGroup, LocalPlace};
use crate::process::{Leash, Worker, dismiss};
use crate::shared_memory::Root;

/// The command that runs a receiver.
pub(in crate::cli) const MEMBER_COMMAND: &str = "copy-member";

/// How long receivers' last words may take once the copy has failed, and the root has told them why.
const LAST_WORD: Duration = Duration::from_secs(8);

/// What a receiver's end is: of several, the first in this order tells why the copy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It lacks something.
    Cause,
    /// It was killed.
    Killed,
    /// Another one went before it.
    Consequence,
}

/// A receiver of a copy: a process that `copy` starts.
#[derive(Args, Debug)]
pub(in crate::cli) struct MemberArguments {
    /// What it is to do, as JSON
    brief: String,
}

/// What a receiver is told.
#[derive(Debug, Serialize, Deserialize)]
struct Brief {
    place: LocalPlace,
    nodes: u32,
    own: u32,
    to: PathBuf,
    fabric: Carrier,
    blocks: BlockOptions,
    join_timeout: Duration,
}

impl Brief {
    fn job(&self, meeting: Meeting) -> Result<Job, Failure> {
        Ok(Job {
            nodes: (0..self.nodes).collect(),
            own: self.own,
            root: 0,
            meeting,
            join_timeout: self.join_timeout,
            options: self.blocks.of(self.fabric)?,
        })
    }
}

/// Copies into directories of this machine.
pub(super) fn copy(arguments: &Arguments, interrupts: &Interrupts) -> Result<Report, Failure> {
    nested::refuse(&arguments.files, &arguments.to)?;
    nested::refuse_twice(&arguments.to)?;
    Root::from_env().sweep()?;
    let places = &arguments.to;
    let nodes = u32::try_from(places.len()).unwrap_or(u32::MAX).saturating_add(1);
    let fabric = arguments.fabric.unwrap_or_default();
    let group = LocalGroup::new(fabric, places.len() + 1, "copy", &arguments.device)?;
    let brief = |own: u32, to: PathBuf| Brief {
        place: group.place(own as usize),
        nodes,
        own,
        to,
        fabric,
        blocks: arguments.blocks,
        join_timeout: arguments.join.join_timeout,
    };
    let mut workers = Vec::new();
    let cancel = Arc::new(AtomicBool::new(false));
    interrupts.raise_too(&cancel)?;
    let (words, heard) = mpsc::channel();
    for (own, to) in (1..).zip(places) {
        let text = serde_json::to_string(&brief(own, to.clone()))
            .map_err(|error| Failure::new(Status::Other, error, "please report this"))?;
        let inherited: Vec<_> = group.inherited(own as usize).into_iter().collect();
        let (worker, output) = Worker::start(&[MEMBER_COMMAND, &text], &inherited)
            .map_err(|error| Failure::system("cannot start a process", &error))?;
        workers.push(worker);
        let (words, cancel) = (words.clone(), Arc::clone(&cancel));
        let place = to.display().to_string();
        std::thread::Builder::new()
            .name("tramontane-listen".into())
            .spawn(move || {
                // Who ends before it has met the others is not to be waited for.
                if let Some(failure) = last_word(output, &place) {
                    let _ = words.send(failure);
                    cancel.store(true, Ordering::Relaxed);
                }
            })
            .map_err(|error| Failure::system("cannot start a thread", &error))?;
    }
    drop(words);
    let job = brief(0, PathBuf::new()).job(group.meeting(0)?)?;
    // Only the members' sockets stay.
    drop(group);
    let check = || interrupts.check();
    let copied = send(&job, &arguments.files, &cancel, &check);
    let copied = copied.map_err(|error| match error {
        CopyError::Nowhere(failure) => better(failure, &heard, interrupts),
        CopyError::Partly(failure) => failure,
    });
    dismiss(&mut workers);
    Root::from_env().sweep()?;
    Ok(Report { places: places.clone(), ..copied? })
}

/// What a receiver said before it ended, if it failed; or that it ended without a word.
fn last_word(mut output: ChildStdout, place: &str) -> Option<(Rank, Failure)> {
    let mut text = String::new();
    let _ = output.read_to_string(&mut text);
    match serde_json::from_str(text.trim()) {
        Ok(Said::Placed { .. }) => None,
        Ok(Said::Failed { status, text }) => {
            let failure = told_by(place, status, &text);
            let is_consequence = matches!(failure.status, Status::PeerLost | Status::Interrupted);
            Some((if is_consequence { Rank::Consequence } else { Rank::Cause }, failure))
        }
        _ => {
            let what = format!("the process for {place} was killed");
            let failure =
                Failure::new(Status::PeerLost, what, "find out what ended it, and copy again");
            Some((Rank::Killed, failure))
        }
    }
}

/// The cause of a failure, rather than its consequences: what a receiver lacks, before that another one went.
fn better(failure: Failure, heard: &Receiver<(Rank, Failure)>, interrupts: &Interrupts) -> Failure {
    if let Err(interrupted) = interrupts.check() {
        return interrupted;
    }
    if !matches!(failure.status, Status::PeerLost | Status::Interrupted | Status::Group) {
        return failure;
    }
    let until = Instant::now() + LAST_WORD;
    let mut told: Vec<(Rank, Failure)> = Vec::new();
    // All of them end, and then there is nobody left to hear.
    while let Ok(word) = heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
        let is_cause = word.0 == Rank::Cause;
        told.push(word);
        if is_cause {
            break;
        }
    }
    told.into_iter().min_by_key(|(rank, _)| *rank).map_or(failure, |(_, failure)| failure)
}

/// Runs a receiver, and tells its parent what became of it.
pub(super) fn run_member(arguments: &MemberArguments) -> Option<Status> {
    let leash = match Leash::attach() {
        Ok(leash) => leash,
        Err(error) => {
            Failure::new(Status::Usage, error, "start it with 'tramontane copy'").report();
            return Some(Status::Usage);
        }
    };
    let received = serde_json::from_str::<Brief>(&arguments.brief)
        .map_err(|error| Failure::new(Status::Usage, error, "start it with 'tramontane copy'"))
        .and_then(|brief| receive(&brief.job(brief.place.meeting()?)?, &brief.to, leash.flag()));
    let (said, status) = match received {
        Ok(received) => (Said::Placed { files: received.files }, None),
        Err(failure) => (Said::failed(&failure), Some(failure.status)),
    };
    if let Ok(line) = serde_json::to_string(&said) {
        // The parent may be gone, and then nobody wants to know.
        let _ = writeln!(io::stdout(), "{line}");
    }
    status
}
