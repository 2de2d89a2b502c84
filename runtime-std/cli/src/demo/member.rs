//! One member of a demo: a process that sends its records and records its deliveries.
//!
//! The member drives its node in one loop: it sends while slots are free, steps, and yields the
//! processor when nothing arrives. After it has delivered everything, it reports that but stays
//! until its parent releases it, because members that are still delivering would otherwise lose a
//! peer.

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::ReserveError;

use super::input::{Map, Records};
use super::ledger::Ledger;
use super::messages::{Deliveries, DemoMember, DemoReport, Task};
use super::share::Share;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::Worker;
use tramontane_local::exit::{Failure, Status};
use tramontane_runtime::group::{Sender, StartOptions, Stepped, start_stepped};

/// The only subgroup of a demo.
const ALL: SubgroupId = SubgroupId::ZERO;

/// Interval between two progress reports.
const PROGRESS_INTERVAL_NS: u64 = 200_000_000;

/// Number of idle steps between two readings of the clock.
const IDLE_STEPS_PER_CLOCK: u32 = 1024;

/// Number of bytes committed per reading of the clock: the amount that is copied in a fraction of a
/// microsecond.
const BYTES_PER_STAMP: usize = 4096;

/// Maximum sleep of a member when nothing arrives. It must still report its progress.
const SLEEP_MAX: std::time::Duration = std::time::Duration::from_millis(50);

/// Runs a member, and reports to its parent if it fails.
pub(crate) fn run(task: &str) -> Result<(), Failure> {
    let (task, worker) = Worker::<DemoMember>::attach(task)
        .map_err(|error| Failure::usage(error, "start it with 'tramontane demo'"))?;
    let Err(failure) = join_and_run(&task, &worker) else { return Ok(()) };
    // If the parent has exited, there is nowhere to report to.
    let _ = worker.report(&DemoReport::Failed {
        status: failure.status.code(),
        text: failure.text().to_owned(),
    });
    Err(Failure::silent(failure.status))
}

/// Joins the group and runs the member. Returns early if the parent releases it, which is not a
/// failure.
fn join_and_run(task: &Task, worker: &Worker<DemoMember>) -> Result<(), Failure> {
    let map = Map::inherited(task.input)
        .map_err(|error| Failure::system("cannot map the input", &error))?;
    let subgroup = task.group.subgroups.first().ok_or_else(|| Failure::silent(Status::Usage))?;
    let (senders, window) = (subgroup.senders().len(), subgroup.window as usize);
    let records = map.records();
    let share = Share::new(task.node as usize, senders, records.len(), task.total);
    let ledger = Ledger::new(map.records(), task.node, senders, task.total, window);
    let (group, options) = task.place.start(task.group.clone(), task.node)?;
    let options =
        StartOptions { time_limit: task.join_timeout, cancel: worker.released(), ..options };
    let member = start_stepped(group, options, ledger)?;
    let outbox = member.sender_of(ALL).map(|sender| (sender, share));
    tracing::debug!(node = task.node, "all members are there");
    report(worker, &DemoReport::Joined)?;
    if worker.next_order().is_none() {
        return Ok(());
    }
    let reported_at_ns = now_ns();
    let mut run =
        Run { member, outbox, records, worker, total: task.total, reported_at_ns, sent: 0 };
    if let Some(deliveries) = run.send_and_deliver_all()? {
        report(worker, &DemoReport::Done(Box::new(deliveries)))?;
        worker.wait_for_release();
    }
    Ok(())
}

/// A member of a demo while it runs.
struct Run<'r> {
    member: Stepped<Ledger<'r>>,
    /// The sender and the records to send; `None` if this member does not send.
    outbox: Option<(Sender, Share)>,
    records: Records<'r>,
    worker: &'r Worker<DemoMember>,
    total: u64,
    reported_at_ns: u64,
    sent: u64,
}

impl Run<'_> {
    /// Sends and delivers all messages. Returns `None` if the parent released this member earlier.
    fn send_and_deliver_all(&mut self) -> Result<Option<Deliveries>, Failure> {
        let start_ns = now_ns();
        let mut idle = self.member.idle();
        let mut idle_steps = 0_u32;
        while self.member.application().delivered < self.total {
            if self.worker.is_released() {
                return Ok(None);
            }
            self.fill()?;
            if !self.member.step()?.is_idle() {
                idle.reset();
                let delivered_at_ns = self.member.application().delivered_at_ns;
                self.report_progress(delivered_at_ns)?;
                continue;
            }
            idle_steps = idle_steps.wrapping_add(1);
            if idle_steps.is_multiple_of(IDLE_STEPS_PER_CLOCK) {
                self.report_progress(now_ns())?;
            }
            if idle.pause() {
                self.member.sleep(SLEEP_MAX)?;
                self.report_progress(now_ns())?;
                idle.reset();
            }
        }
        let nulls = self.member.nulls();
        Ok(Some(self.member.application().report(self.sent, nulls, start_ns)))
    }

    /// Sends while slots are free.
    #[inline]
    fn fill(&mut self) -> Result<(), Failure> {
        let Some((sender, share)) = &mut self.outbox else { return Ok(()) };
        let (mut stamp, mut stamped) = (0, BYTES_PER_STAMP);
        while let Some(index) = share.peek() {
            let record = self.records.get(index);
            let mut slot = match sender.try_reserve(record.len()) {
                Ok(slot) => slot,
                Err(ReserveError::Full | ReserveError::Contended) => break,
                Err(error @ ReserveError::TooLarge { .. }) => {
                    return Err(Failure::input(error, "raise --message-max"));
                }
            };
            if stamped >= BYTES_PER_STAMP {
                (stamp, stamped) = (now_ns(), 0);
            }
            stamped += record.len();
            slot.payload().copy_from_slice(record);
            slot.commit();
            self.member.application().committed(stamp, 1);
            self.sent += 1;
            share.advance();
        }
        Ok(())
    }

    #[inline]
    fn report_progress(&mut self, now_ns: u64) -> Result<(), Failure> {
        if now_ns.saturating_sub(self.reported_at_ns) < PROGRESS_INTERVAL_NS {
            return Ok(());
        }
        self.reported_at_ns = now_ns;
        let delivered = self.member.application().delivered;
        report(self.worker, &DemoReport::Delivered(delivered))
    }
}

fn report(worker: &Worker<DemoMember>, report: &DemoReport) -> Result<(), Failure> {
    worker.report(report).map_err(|error| Failure::output(&error))
}
