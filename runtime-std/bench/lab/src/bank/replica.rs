//! The process of a replica of the demo.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tramontane_runtime::shards::{Places, Running, StartOptions, start};

use super::accounts::{Bank, Totals, Who};
use super::history::HistoryFile;
use super::messages::{BankOrder, BankReport, BankTask, ShardsMember};
use tramontane_local::crew::{Reporter, Worker};
use tramontane_local::exit::{Failure, Status};

/// Interval between checks whether the replica counts in quorums or has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// Runs the replica until the parent releases it.
pub(super) fn run(
    task: &BankTask,
    name: &str,
    inc: u32,
    worker: &Worker<ShardsMember>,
) -> Result<(), Failure> {
    let places = Places::new(&task.overlay, task.overlay.overlay()?);
    let replica = places.replica_named(name)?;
    let history = HistoryFile::create(&task.history)
        .map_err(|error| Failure::system("cannot write the history", &error))?;
    let who = Who {
        group: replica.group,
        group_name: places.group_name(replica.group).to_owned(),
        node: name.to_owned(),
        inc,
    };
    let totals = Arc::new(Mutex::new(Totals::default()));
    let bank = Bank::new(who, history, Arc::clone(&totals), worker.reporter());
    let mut options = StartOptions::default();
    options.time_limit = task.join_timeout;
    options.cancel = worker.released();
    let running = start(&task.overlay, replica, options, bank)?;
    let reporter = worker.reporter();
    report(reporter, &BankReport::Joined)?;
    let is_over = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        let watched = scope.spawn(|| watch(&running, reporter, &is_over));
        while let Some(order) = worker.next_order() {
            if order == BankOrder::Tell {
                let held = *totals.lock().unwrap_or_else(PoisonError::into_inner);
                report(reporter, &BankReport::Holds(held))?;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        watched.join().unwrap_or_else(|_| Err(Failure::silent(Status::Other)))
    });
    running.close();
    ended
}

/// Reports when the replica counts in quorums and, if it ends, the reason.
fn watch(
    running: &Running,
    reporter: Reporter<BankReport>,
    is_over: &AtomicBool,
) -> Result<(), Failure> {
    let mut votes = false;
    while !is_over.load(Ordering::Relaxed) {
        if let Some(stopped) = running.stopped() {
            let failure = Failure::from(stopped);
            let (status, text) = (failure.status.code(), failure.text().to_owned());
            report(reporter, &BankReport::Failed { status, text })?;
            return Err(Failure::silent(failure.status));
        }
        if !votes && running.status().state.counts() {
            votes = true;
            report(reporter, &BankReport::Votes)?;
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

/// Sends a report. The parent may have exited; then this process ends too.
pub(super) fn report(reporter: Reporter<BankReport>, report: &BankReport) -> Result<(), Failure> {
    reporter.send(report).map_err(|_| Failure::silent(Status::Other))
}
