//! The parent's side of a demo: starts the members, receives their reports, and finds out which one
//! failed.
//!
//! # Failures
//! A member that dies ends the group: all others lose a peer and report that. So after the first
//! failure, the parent collects reports a little longer, then reports the cause instead of its
//! consequences. A process that died without a report is the most likely cause, followed by a
//! process that reports its own failure, and then by those that lost a peer.

use std::io::{self, IsTerminal as _, Write as _};
use std::iter;
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use super::input::Input;
use super::messages::{Deliveries, DemoMember, DemoOrder, DemoReport, MemberTask};
use super::plan::DemoPlan;
use tramontane_local::crew::{Crew, End, Launch, WorkerEvent, WorkerId};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group::LocalGroup;
use tramontane_local::interrupt::Interrupts;

/// Interval between two checks for signals and silent members.
const TICK: Duration = Duration::from_millis(100);

/// Time without a report after which a member counts as stalled. Members report their progress five
/// times per second.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// Time without a delivery after which a group whose members are alive counts as stuck.
const STANDSTILL_MAX: Duration = Duration::from_secs(60);

/// Time within which all members notice that a member has been lost.
const AFTERMATH: Duration = Duration::from_millis(800);

/// Duration after which a run begins to show its progress.
const SHOWN_AFTER: Duration = Duration::from_secs(2);

/// The phases of a member, as the parent knows them.
#[derive(Debug)]
enum DemoPhase {
    Starting,
    Joined,
    Done(Box<Deliveries>),
    /// The member reported why it cannot continue.
    Failed(Failure),
    /// The process ended without a report.
    Died(End),
}

/// The state of one member, as the parent knows it.
#[derive(Debug)]
struct DemoProcess {
    worker: WorkerId,
    phase: DemoPhase,
    pid: u32,
    delivered: u64,
    silent_for: Duration,
}

/// Runs a group to its end, and returns the deliveries of every member. No process outlives this
/// call, however the run ends.
pub(super) fn run(
    plan: &DemoPlan,
    input: &Input,
    interrupts: &Interrupts,
) -> Result<Vec<Deliveries>, Failure> {
    let mut supervisor = Supervisor::start(plan, input)?;
    let outcome = supervisor.supervise(interrupts);
    supervisor.clear();
    outcome
}

/// All members, as the parent sees them.
struct Supervisor<'p> {
    plan: &'p DemoPlan,
    crew: Crew<DemoMember>,
    /// Indexed by rank; members are started in this order.
    members: Vec<DemoProcess>,
    going_since: Option<Instant>,
    standstill: Duration,
    /// Whether the progress is shown on the terminal.
    is_shown: bool,
}

impl<'p> Supervisor<'p> {
    fn start(plan: &'p DemoPlan, input: &Input) -> Result<Self, Failure> {
        let nodes = plan.group.nodes.len();
        let group = LocalGroup::new(plan.fabric, nodes, "demo", &plan.device)?;
        let mut crew = Crew::default();
        let mut members = Vec::new();
        for (rank, node) in plan.group.nodes.iter().enumerate() {
            let task = MemberTask {
                node: node.id,
                group: plan.group.clone(),
                place: group.place(rank),
                input: input.shape(),
                total: plan.total,
                join_timeout: plan.join.join_timeout,
            };
            let inherited = iter::once(input.as_fd()).chain(group.inherited(rank));
            let launch = Launch { inherited: inherited.collect(), processor: None };
            let worker = crew.start(&task, &launch)?;
            members.push(DemoProcess {
                worker,
                phase: DemoPhase::Starting,
                pid: crew.pid(worker),
                delivered: 0,
                silent_for: Duration::ZERO,
            });
        }
        let (going_since, standstill) = (None, Duration::ZERO);
        Ok(Self { plan, crew, members, going_since, standstill, is_shown: false })
    }

    /// Receives the members' reports until all are done.
    fn supervise(&mut self, interrupts: &Interrupts) -> Result<Vec<Deliveries>, Failure> {
        let mut then = Instant::now();
        loop {
            interrupts.check()?;
            self.take_event(TICK);
            if self
                .members
                .iter()
                .any(|member| matches!(member.phase, DemoPhase::Failed(_) | DemoPhase::Died(_)))
            {
                let cause = self.find_cause();
                // A terminal interrupts all processes, so the signal that ended the member may have
                // reached this process too.
                interrupts.check()?;
                return Err(cause);
            }
            if self.members.iter().all(|member| matches!(member.phase, DemoPhase::Done(_))) {
                let deliveries = self.members.drain(..).filter_map(|member| match member.phase {
                    DemoPhase::Done(deliveries) => Some(*deliveries),
                    _ => None,
                });
                return Ok(deliveries.collect());
            }
            if self.going_since.is_none()
                && self.members.iter().all(|member| matches!(member.phase, DemoPhase::Joined))
            {
                self.going_since = Some(Instant::now());
                for member in &self.members {
                    // A member that cannot be reached has ended, and the next event reports that.
                    let _ = self.crew.order(member.worker, &DemoOrder::Send);
                }
            }
            // If this process itself was suspended, no member is to blame, so only a short time is
            // counted.
            let passed = then.elapsed().min(2 * TICK);
            then = Instant::now();
            self.count_silence(passed)?;
            self.show();
        }
    }

    /// Waits for one event for at most `timeout`, and handles it.
    fn take_event(&mut self, timeout: Duration) {
        let Some((worker, event)) = self.crew.next(timeout) else { return };
        let Some(member) = self.members.get_mut(worker.index()) else { return };
        member.silent_for = Duration::ZERO;
        match event {
            WorkerEvent::Report(DemoReport::Joined) => member.phase = DemoPhase::Joined,
            WorkerEvent::Report(DemoReport::Delivered(delivered)) => {
                if delivered > member.delivered {
                    self.standstill = Duration::ZERO;
                }
                member.delivered = delivered;
            }
            WorkerEvent::Report(DemoReport::Done(deliveries)) => {
                self.standstill = Duration::ZERO;
                member.delivered = deliveries.delivered;
                member.phase = DemoPhase::Done(deliveries);
            }
            WorkerEvent::Report(DemoReport::Failed { status, text }) => {
                member.phase = DemoPhase::Failed(Failure::with_text(Status::of(status), text));
            }
            WorkerEvent::Ended(end) => {
                // A finished member stays until it is released. If it exits earlier, it has died.
                if !matches!(member.phase, DemoPhase::Failed(_)) {
                    member.phase = DemoPhase::Died(end);
                }
            }
        }
    }

    /// Collects the others' reports after the first failure, and reports the cause.
    fn find_cause(&mut self) -> Failure {
        let until = Instant::now() + AFTERMATH;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            let is_over = |member: &DemoProcess| {
                matches!(member.phase, DemoPhase::Failed(_) | DemoPhase::Died(_))
            };
            if self.members.iter().all(is_over) {
                break;
            }
            self.take_event(left.min(TICK));
        }
        let cause =
            self.members.iter().enumerate().filter_map(|(rank, member)| match &member.phase {
                DemoPhase::Died(end) => {
                    let what =
                        format!("member {rank} (process {}) {end} during the run", member.pid);
                    let failure = Failure::peer_lost(
                        what,
                        "check its output and the system log, and start again",
                    );
                    Some((0, failure))
                }
                DemoPhase::Failed(failure) => match failure.status {
                    Status::Usage | Status::Resources | Status::Device => {
                        Some((1, failure.clone()))
                    }
                    Status::PeerLost => Some((4, of_member(rank, failure))),
                    Status::Group => Some((3, of_member(rank, failure))),
                    _ => Some((2, of_member(rank, failure))),
                },
                DemoPhase::Starting | DemoPhase::Joined | DemoPhase::Done(_) => None,
            });
        let cause = cause.min_by_key(|(order, _)| *order).map(|(_, failure)| failure);
        cause.unwrap_or_else(|| Failure::other("a member failed", "please report this"))
    }

    /// Fails if a member, or the whole group, has been silent for too long.
    fn count_silence(&mut self, passed: Duration) -> Result<(), Failure> {
        let is_going = self.going_since.is_some();
        let limit = if is_going { SILENCE_MAX } else { SILENCE_MAX + self.plan.join.join_timeout };
        for (rank, member) in self.members.iter_mut().enumerate() {
            let waits = match member.phase {
                DemoPhase::Starting => false,
                // The member is waiting for this process.
                DemoPhase::Joined => !is_going,
                DemoPhase::Done(_) | DemoPhase::Failed(_) | DemoPhase::Died(_) => true,
            };
            if waits {
                continue;
            }
            member.silent_for += passed;
            if member.silent_for > limit {
                let what = format!(
                    "member {rank} (process {}) is stalled: it has not reported for {} s",
                    member.pid,
                    limit.as_secs()
                );
                return Err(Failure::peer_lost(
                    what,
                    "check whether it was stopped, and start again",
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
                "the group has delivered nothing for {} s; messages delivered at each member: {}",
                STANDSTILL_MAX.as_secs(),
                far.join(", ")
            );
            return Err(Failure::peer_lost(what, "please report this"));
        }
        Ok(())
    }

    /// Shows the progress of the slowest member, if the run is long and standard error is a
    /// terminal.
    fn show(&mut self) {
        let Some(since) = self.going_since else { return };
        if since.elapsed() < SHOWN_AFTER || !io::stderr().is_terminal() {
            return;
        }
        self.is_shown = true;
        let slowest = self.members.iter().map(|member| member.delivered).min().unwrap_or(0);
        // If standard error fails, there is nowhere else to report this.
        let _ = write!(io::stderr(), "\r{slowest} of {} messages delivered", self.plan.total);
    }

    /// Clears the progress from the terminal, even after a failed or interrupted run.
    fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

fn of_member(rank: usize, failure: &Failure) -> Failure {
    Failure::with_text(failure.status, format_args!("member {rank}: {}", failure.text()))
}
