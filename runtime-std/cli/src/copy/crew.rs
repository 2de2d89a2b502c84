//! A copy on this machine: this process copies, and starts one for each place.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use clap::Args;
use serde::{Deserialize, Serialize};
use tramontane_control::Listener;

use super::group::Job;
use super::messages::{Notice, failure_of};
use super::receiving::receive;
use super::report::Report;
use super::sending::{CopyError, send};
use super::{Arguments, BlockOptions, nested};
use crate::exit::{Failure, Status};
use crate::interrupt::Interrupts;
use tramontane_local::group::{LocalError, LocalGroup, LocalPlace};
use tramontane_local::processes::{Leash, Worker, dismiss};
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::Description;
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::Root;

/// The command that runs a receiver.
pub(crate) const MEMBER_COMMAND: &str = "copy-member";

/// How long receivers may take to print why they failed, once the copy has failed.
const LAST_LINE_MAX: Duration = Duration::from_secs(8);

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
pub(crate) struct MemberArguments {
    /// What it is to do, as JSON
    brief: String,
}

/// What a receiver is to do.
#[derive(Debug, Serialize, Deserialize)]
struct Brief {
    place: LocalPlace,
    nodes: u32,
    own: u32,
    to: PathBuf,
    fabric: Carrier,
    blocks: BlockOptions,
    join_timeout: Duration,
    stall_timeout: Duration,
}

impl Brief {
    /// This member's part; `listener` is its own socket, where members meet over a network.
    fn job(&self, listener: Option<TcpListener>) -> Result<Job, Failure> {
        let mut group = Description::local("copy", self.nodes, 1, 0);
        group.fabric = self.fabric;
        let mut device = DeviceOptions::default();
        match &self.place {
            LocalPlace::SharedMemory(name) => group.name.clone_from(name),
            LocalPlace::Network { addresses, device: wanted, .. } => {
                device = wanted.clone().unwrap_or_default();
                for (node, address) in group.nodes.iter_mut().zip(addresses) {
                    node.address = Some(*address);
                }
            }
        }
        let listener = listener.map(Listener::try_from).transpose();
        Ok(Job {
            group,
            own: self.own,
            sender: 0,
            root: Root::from_env(),
            listener: listener
                .map_err(|error| Failure::system("cannot listen on the loopback", &error))?,
            device,
            join_timeout: self.join_timeout,
            stall: self.stall_timeout,
            blocks: self.blocks.of(self.fabric)?,
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
    let group = LocalGroup::new(fabric, places.len() + 1, "copy", &arguments.device.options())?;
    let brief = |own: u32, to: PathBuf| Brief {
        place: group.place(own as usize),
        nodes,
        own,
        to,
        fabric,
        blocks: arguments.blocks,
        join_timeout: arguments.join.join_timeout,
        stall_timeout: arguments.stall_timeout,
    };
    let mut workers = Vec::new();
    let cancel = Arc::new(AtomicBool::new(false));
    interrupts.raise_too(&cancel)?;
    let (lines, printed) = mpsc::channel();
    for (own, to) in (1..).zip(places) {
        let text = serde_json::to_string(&brief(own, to.clone()))
            .map_err(|error| Failure::new(Status::Other, error, "please report this"))?;
        let inherited: Vec<_> = group.inherited(own as usize).into_iter().collect();
        let (worker, output) = Worker::start(&[MEMBER_COMMAND, &text], &inherited)
            .map_err(|error| Failure::system("cannot start a process", &error))?;
        workers.push(worker);
        let (lines, cancel) = (lines.clone(), Arc::clone(&cancel));
        let place = to.display().to_string();
        std::thread::Builder::new()
            .name("tramontane-lines".into())
            .spawn(move || {
                // A receiver that ends before it has met the others is not waited for.
                if let Some(failure) = last_line(output, &place) {
                    let _ = lines.send(failure);
                    cancel.store(true, Ordering::Relaxed);
                }
            })
            .map_err(|error| Failure::system("cannot start a thread", &error))?;
    }
    drop(lines);
    let listener = group.listener(0).map_err(LocalError::from)?;
    let mut job = brief(0, PathBuf::new()).job(listener)?;
    // Only the members' sockets stay.
    drop(group);
    let check = || Ok(interrupts.check()?);
    let copied = send(&mut job, &arguments.files, &cancel, &check);
    let copied = copied.map_err(|error| match error {
        CopyError::Nowhere(failure) => cause_of(failure, &printed, interrupts),
        CopyError::Partly(failure) => failure,
    });
    dismiss(&mut workers);
    Root::from_env().sweep()?;
    Ok(Report { places: places.clone(), ..copied? })
}

/// What a receiver printed before it ended, if it failed; or that it was killed.
fn last_line(mut output: ChildStdout, place: &str) -> Option<(Rank, Failure)> {
    let mut text = String::new();
    let _ = output.read_to_string(&mut text);
    match serde_json::from_str(text.trim()) {
        Ok(Notice::Placed { .. }) => None,
        Ok(Notice::Failed { status, text }) => {
            let failure = failure_of(place, status, &text);
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

/// The cause of a failure, rather than its consequences: what a receiver lacks comes before the
/// loss of another one.
fn cause_of(
    failure: Failure,
    printed: &Receiver<(Rank, Failure)>,
    interrupts: &Interrupts,
) -> Failure {
    if let Err(interrupted) = interrupts.check() {
        return interrupted.into();
    }
    if !matches!(failure.status, Status::PeerLost | Status::Interrupted | Status::Group) {
        return failure;
    }
    let until = Instant::now() + LAST_LINE_MAX;
    let mut failures: Vec<(Rank, Failure)> = Vec::new();
    // It ends when all receivers have.
    while let Ok(failure) = printed.recv_timeout(until.saturating_duration_since(Instant::now())) {
        let is_cause = failure.0 == Rank::Cause;
        failures.push(failure);
        if is_cause {
            break;
        }
    }
    failures.into_iter().min_by_key(|(rank, _)| *rank).map_or(failure, |(_, failure)| failure)
}

/// Runs a receiver, and prints for its parent what became of it.
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
        .and_then(|brief| {
            receive(&mut brief.job(brief.place.listener())?, &brief.to, leash.flag())
        });
    let (said, status) = match received {
        Ok(received) => (Notice::Placed { files: received.files }, None),
        Err(failure) => (Notice::failed(&failure), Some(failure.status)),
    };
    if let Ok(line) = serde_json::to_string(&said) {
        // The parent may be gone, and then the line is not needed.
        let _ = writeln!(io::stdout(), "{line}");
    }
    status
}
