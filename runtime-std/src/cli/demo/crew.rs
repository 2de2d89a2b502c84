//! The parent's side of a demo: starts the members, hears what they say, and finds out which one failed.
//!
//! # When something goes wrong
//! A member that dies takes the group with it: all others lose a peer, and say so. So after the first sign
//! of trouble the parent listens a little longer, and then names the cause and not its consequences: a
//! process that died without a word, before one that says what it lacks, before those that lost a peer.

use std::fmt;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::iter;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::process::{ChildStdout, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use super::Plan;
use super::spool::Spool;
use super::talk::{Brief, GO, Report, Said};
use crate::cli::exit::{Failure, Status};
use crate::cli::interrupt::Interrupts;
use crate::local::LocalGroup;
use crate::process::{Worker, dismiss};

/// The hidden command that a member's process runs.
pub(in crate::cli) const MEMBER_COMMAND: &str = "demo-member";

/// Between two looks at signals and silences.
const TICK: Duration = Duration::from_millis(100);

/// A member that says nothing for so long is stalled: it gives a sign of life five times a second.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// A group whose members live but deliver nothing more for so long is stuck.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// How long it takes at most until all members have noticed that one is gone.
const AFTERMATH: Duration = Duration::from_millis(800);

/// How long the kernel may take to end a process: a device's connections are ended before it is gone.
const END_MAX: Duration = Duration::from_secs(2);

/// A run that takes longer than this shows how far it is.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// What comes from a member.
#[derive(Debug)]
enum Event {
    Said(Said),
    /// Its output ended: it did, or is about to.
    Ended,
}

/// Where a member is.
#[derive(Debug)]
enum Phase {
    Starting,
    Joined,
    Done(Box<Report>),
    /// It said why it cannot go on.
    Failed(Failure),
    /// It ended without saying why.
    Died(Option<ExitStatus>),
}

/// What the parent knows of a member.
#[derive(Debug)]
struct Member {
    phase: Phase,
    pid: u32,
    delivered: u64,
    silent_for: Duration,
}

/// Runs a group to its end, and gives every member's report. No process is left, however it ends.
pub(super) fn run(
    plan: &Plan,
    spool: &Spool,
    interrupts: &Interrupts,
) -> Result<Vec<Report>, Failure> {
    let mut workers = Vec::new();
    let outcome = Crew::start(plan, spool, &mut workers).and_then(|mut crew| {
        let outcome = crew.attend(&mut workers, interrupts);
        crew.bar.finish_and_clear();
        outcome
    });
    dismiss(&mut workers);
    outcome
}

/// All members, as the parent sees them.
struct Crew<'p> {
    plan: &'p Plan,
    members: Vec<Member>,
    events: Receiver<(usize, Event)>,
    going_since: Option<Instant>,
    standstill: Duration,
    bar: ProgressBar,
}

impl<'p> Crew<'p> {
    fn start(plan: &'p Plan, spool: &Spool, workers: &mut Vec<Worker>) -> Result<Self, Failure> {
        let group = LocalGroup::new(plan.fabric, plan.group.members.len(), "demo", &plan.device)?;
        let (sender, events) = mpsc::channel();
        let mut members = Vec::new();
        for rank in (0..).take(plan.group.members.len()) {
            let brief = Brief {
                rank,
                group: plan.group.clone(),
                place: group.place(usize::from(rank)),
                spool: spool.shape(),
                total: plan.total,
                join_timeout: plan.join.join_timeout,
            };
            let inherited = iter::once(spool.as_fd()).chain(group.inherited(usize::from(rank)));
            let (worker, output) =
                start_member(&brief, &inherited.collect::<Vec<_>>()).map_err(|error| {
                    Failure::system(format_args!("cannot start member {rank}"), &error)
                })?;
            let pid = worker.pid();
            workers.push(worker);
            listen(usize::from(rank), output, sender.clone())
                .map_err(|error| Failure::system("cannot start a thread", &error))?;
            members.push(Member {
                phase: Phase::Starting,
                pid,
                delivered: 0,
                silent_for: Duration::ZERO,
            });
        }
        let (going_since, standstill) = (None, Duration::ZERO);
        Ok(Self { plan, members, events, going_since, standstill, bar: ProgressBar::hidden() })
    }

    /// Hears the members until all are done.
    fn attend(
        &mut self,
        workers: &mut [Worker],
        interrupts: &Interrupts,
    ) -> Result<Vec<Report>, Failure> {
        let mut then = Instant::now();
        loop {
            interrupts.check()?;
            self.take_event(TICK, workers);
            if self
                .members
                .iter()
                .any(|member| matches!(member.phase, Phase::Failed(_) | Phase::Died(_)))
            {
                return Err(self.find_cause(workers));
            }
            if self.members.iter().all(|member| matches!(member.phase, Phase::Done(_))) {
                let reports = self.members.drain(..).filter_map(|member| match member.phase {
                    Phase::Done(report) => Some(*report),
                    _ => None,
                });
                return Ok(reports.collect());
            }
            if self.going_since.is_none()
                && self.members.iter().all(|member| matches!(member.phase, Phase::Joined))
            {
                self.going_since = Some(Instant::now());
                for worker in workers.iter_mut() {
                    // One that does not listen has ended, and the next event says so.
                    let _ = worker.tell(GO);
                }
            }
            // If this process itself was stopped for a while, nobody else is to blame.
            let passed = then.elapsed().min(2 * TICK);
            then = Instant::now();
            self.count_silence(passed)?;
            self.show();
        }
    }

    /// Waits for one event, at most so long, and takes it in.
    fn take_event(&mut self, timeout: Duration, workers: &mut [Worker]) {
        let (rank, event) = match self.events.recv_timeout(timeout) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return,
            Err(RecvTimeoutError::Disconnected) => {
                // Every member has ended and was heard to; there is nothing to wait for.
                std::thread::sleep(timeout);
                return;
            }
        };
        let Some(member) = self.members.get_mut(rank) else { return };
        member.silent_for = Duration::ZERO;
        match event {
            Event::Said(Said::Joined) => member.phase = Phase::Joined,
            Event::Said(Said::Delivered(delivered)) => {
                if delivered > member.delivered {
                    self.standstill = Duration::ZERO;
                }
                member.delivered = delivered;
            }
            Event::Said(Said::Done(report)) => {
                self.standstill = Duration::ZERO;
                member.delivered = report.delivered;
                member.phase = Phase::Done(report);
            }
            Event::Said(Said::Failed { status, text }) => {
                member.phase = Phase::Failed(Failure::told(Status::of(status), text));
            }
            Event::Ended => {
                // One that is done stays until it is let go: to end earlier is to die.
                if !matches!(member.phase, Phase::Failed(_)) {
                    member.phase = Phase::Died(workers.get_mut(rank).and_then(end_of));
                }
            }
        }
    }

    /// After the first sign of trouble: hears what the others have to say, and names the cause.
    fn find_cause(&mut self, workers: &mut [Worker]) -> Failure {
        let until = Instant::now() + AFTERMATH;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let is_over =
                |member: &Member| matches!(member.phase, Phase::Failed(_) | Phase::Died(_));
            if self.members.iter().all(is_over) {
                break;
            }
            self.take_event(left.min(TICK), workers);
        }
        let cause =
            self.members.iter().enumerate().filter_map(|(rank, member)| match &member.phase {
                Phase::Died(status) => {
                    let what = format!(
                        "member {rank} (process {}) {} in mid-run",
                        member.pid,
                        End(*status)
                    );
                    let failure = Failure::new(
                        Status::PeerLost,
                        what,
                        "find out what ended it, and start again",
                    );
                    Some((0, failure))
                }
                Phase::Failed(failure) => match failure.status {
                    Status::Usage | Status::Resources | Status::Device => {
                        Some((1, failure.clone()))
                    }
                    Status::PeerLost => Some((4, told_by(rank, failure))),
                    Status::Group => Some((3, told_by(rank, failure))),
                    _ => Some((2, told_by(rank, failure))),
                },
                Phase::Starting | Phase::Joined | Phase::Done(_) => None,
            });
        let cause = cause.min_by_key(|(order, _)| *order).map(|(_, failure)| failure);
        cause
            .unwrap_or_else(|| Failure::new(Status::Other, "a member failed", "please report this"))
    }

    /// Fails if a member, or the whole group, has been silent for too long.
    fn count_silence(&mut self, passed: Duration) -> Result<(), Failure> {
        let is_going = self.going_since.is_some();
        let limit = if is_going { SILENCE_MAX } else { SILENCE_MAX + self.plan.join.join_timeout };
        for (rank, member) in self.members.iter_mut().enumerate() {
            let waits = match member.phase {
                Phase::Starting => false,
                // It waits for us then.
                Phase::Joined => !is_going,
                Phase::Done(_) | Phase::Failed(_) | Phase::Died(_) => true,
            };
            if waits {
                continue;
            }
            member.silent_for += passed;
            if member.silent_for > limit {
                let what = format!(
                    "member {rank} (process {}) is stalled: not a sign of life for {} s",
                    member.pid,
                    limit.as_secs()
                );
                return Err(Failure::new(
                    Status::PeerLost,
                    what,
                    "see whether it was stopped, and start again",
                ));
            }
        }
        if is_going {
            self.standstill += passed;
        }
        if self.standstill > STANDSTILL_MAX {
            let far: Vec<_> =
                self.members.iter().map(|member| member.delivered.to_string()).collect();
            let what = format!(
                "the group delivers nothing more for {} s; messages delivered at each member: {}",
                STANDSTILL_MAX.as_secs(),
                far.join(", ")
            );
            return Err(Failure::new(Status::PeerLost, what, "please report this"));
        }
        Ok(())
    }

    /// Shows how far the slowest member is, if the run takes a while and somebody looks.
    fn show(&mut self) {
        let Some(since) = self.going_since else { return };
        if since.elapsed() < BAR_AFTER || !io::stderr().is_terminal() {
            return;
        }
        if self.bar.is_hidden() {
            let bar =
                ProgressBar::with_draw_target(Some(self.plan.total), ProgressDrawTarget::stderr());
            // A run that fails or is interrupted leaves none behind.
            let bar = bar.with_finish(ProgressFinish::AndClear);
            let template = "{bar:40} {human_pos} of {human_len} messages delivered, {eta} left";
            self.bar = match ProgressStyle::with_template(template) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            };
        }
        let slowest = self.members.iter().map(|member| member.delivered).min();
        self.bar.set_position(slowest.unwrap_or(0));
    }
}

/// Starts a member's process, which inherits the spool, and its socket if it has one.
fn start_member(brief: &Brief, inherited: &[BorrowedFd<'_>]) -> io::Result<(Worker, ChildStdout)> {
    let brief = serde_json::to_string(brief)?;
    Worker::start(&[MEMBER_COMMAND, &brief], inherited)
}

/// Reads what a member says, in a thread of its own.
fn listen(rank: usize, output: ChildStdout, events: Sender<(usize, Event)>) -> io::Result<()> {
    std::thread::Builder::new().name("tramontane-listen".into()).spawn(move || {
        for line in io::BufReader::new(output).lines() {
            let said = match line.map(|line| serde_json::from_str(&line)) {
                Ok(Ok(said)) => said,
                // Not a member's words: its process must have been tampered with; its end tells.
                Ok(Err(error)) => {
                    tracing::warn!(rank, %error, "a member says what cannot be understood");
                    continue;
                }
                Err(_) => break,
            };
            if events.send((rank, Event::Said(said))).is_err() {
                return;
            }
        }
        // Nobody listens if the run is over.
        let _ = events.send((rank, Event::Ended));
    })?;
    Ok(())
}

/// How a process ended whose output has: it is gone soon, when the kernel has taken back what it held.
fn end_of(worker: &mut Worker) -> Option<ExitStatus> {
    let until = Instant::now() + END_MAX;
    loop {
        match worker.ended() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) | Err(_) => return None,
        }
    }
}

fn told_by(rank: usize, failure: &Failure) -> Failure {
    Failure::told(failure.status, format_args!("member {rank}: {}", failure.text()))
}

/// A process's end, in words.
struct End(Option<ExitStatus>);

impl fmt::Display for End {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        use std::os::unix::process::ExitStatusExt as _;
        match self.0 {
            Some(status) => match (status.signal(), status.code()) {
                (Some(signal), _) => write!(out, "was killed by signal {signal}"),
                (None, code) => write!(out, "ended with status {}", code.unwrap_or(-1)),
            },
            None => out.write_str("closed its output"),
        }
    }
}
