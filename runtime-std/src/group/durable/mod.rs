//! The logs of a member. Messages that it delivers in logged subgroups are made durable, and the
//! group learns how many are durable (DUR-1 to DUR-4).
//!
//! | file | subject |
//! |---|---|
//! | `data` | the data folder, and its logs |
//! | `taking_over` | the log of a member that is not yet running |
//! | `comparison` | the common part of two logs, and the records that one lacks |
//! | `data_error` | errors of a data folder |
//! | `delivered` | a message in its logged form |
//! | `log_notice` | notices to a program about its logs |
//!
//! # What holds
//! - A message is in the log's memory, in order, before the application receives it.
//! - The protocol does not wait for a disk. When the memory of a log is full, the member pauses
//!   between two steps, but its heartbeats continue. Its peers then wait for it, and senders wait
//!   for them.
//! - The group learns only of records for which a sync has returned.
//! - If something cannot be made durable, the member ends as if it had crashed:
//!   [`Stopped::NotDurable`].
//! - Once messages have been reported as durable at a majority or everywhere, they remain so, even
//!   in later views.

pub(crate) mod comparison;
pub(crate) mod data;
pub(crate) mod data_error;
pub(crate) mod delivered;
pub(crate) mod log_notice;
pub(crate) mod log_reader;
pub(crate) mod taking_over;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::{DurableCount, SubgroupId, ViewId};
use tramontane_core::node::DurableCounts;
use tramontane_log::{
    AppendError, GroupCommit, GroupCommitOptions, RECORD_HEADER_BYTES, Record, Sequence,
    SystemFolder,
};

use self::comparison::{SharedLog, SharedLogs, WeakLog};
use self::taking_over::LogTakenOver;
use crate::fabric::AnyBell;
use crate::group::delivery::message::Message;
use crate::group::description::terms::Description;
use crate::group::engine::open_view::OpenView;
use crate::group::state::noted_log::NotedLog;
use crate::group::status::group_status::DurableStatus;
use crate::member::Stopped;
use crate::retention::Retention;

/// The number of bytes that may wait for a disk before the member pauses.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// The interval between attempts to append to a log that has become full in the middle of a step.
const FULL_PAUSE: Duration = Duration::from_micros(100);

/// The log of one subgroup of a running member.
struct SubgroupLog {
    subgroup: SubgroupId,
    commits: Arc<GroupCommit<SystemFolder>>,
    /// The number of records appended since the group began.
    records: DurableCount,
    /// The same number, for threads that read the log.
    delivered: Arc<AtomicU64>,
    /// The number of additional records that were appended before delivery, because a view was
    /// about to end.
    ahead: u64,
    /// The durable count last reported to the current view.
    told: DurableCount,
    /// The durable counts seen so far.
    seen: DurableCounts,
    /// The count that all members of the subgroup have reported in the current view.
    shown_by_all: DurableCount,
    /// The last note made about the log.
    noted: NotedLog,
    retention: Retention,
}

/// The logs of the logged subgroups that a member belongs to.
#[derive(Default)]
pub(crate) struct Logs {
    logs: Vec<SubgroupLog>,
    /// Set when a sync has returned or a log has failed.
    has_rung: Arc<AtomicBool>,
    failure: Option<Stopped>,
}

impl Logs {
    /// Starts one thread per log. `bell` wakes the thread that drives the member.
    pub(crate) fn start(
        logs: Vec<LogTakenOver>,
        description: &Description,
        bell: &AnyBell,
        keep_bytes: Option<u64>,
    ) -> std::io::Result<Self> {
        let has_rung = Arc::new(AtomicBool::new(true));
        let start = |taken: LogTakenOver| {
            let noted = taken.note();
            let LogTakenOver { subgroup, log, .. } = taken;
            let (bell, has_rung) = (bell.clone(), Arc::clone(&has_rung));
            let options = GroupCommitOptions {
                waiting_bytes_max: WAITING_BYTES_MAX
                    .saturating_add(step_bytes_max(description, subgroup)),
            };
            let records = DurableCount(log.end().0);
            let retention = Retention::new(keep_bytes, &log);
            let commits = GroupCommit::start(log, options, move |_| {
                has_rung.store(true, Ordering::Release);
                bell.ring_if_asleep();
            })?;
            let (told, seen) = (DurableCount::ZERO, DurableCounts::default());
            let commits = Arc::new(commits);
            let delivered = Arc::new(AtomicU64::new(records.0));
            Ok(SubgroupLog {
                subgroup,
                commits,
                records,
                delivered,
                ahead: 0,
                told,
                seen,
                shown_by_all: DurableCount::ZERO,
                noted,
                retention,
            })
        };
        let logs = logs.into_iter().map(start).collect::<std::io::Result<_>>()?;
        Ok(Self { logs, has_rung, failure: None })
    }

    /// Returns the log of a subgroup, for a thread that supplies other nodes.
    pub(crate) fn shared(&self, subgroup: SubgroupId) -> Option<SharedLog> {
        self.get(subgroup).map(|log| SharedLog(Arc::clone(&log.commits)))
    }

    /// Returns whether no subgroup of this member is logged.
    #[inline]
    pub(crate) fn are_none(&self) -> bool {
        self.logs.is_empty()
    }

    /// Returns whether the subgroup is logged here.
    #[inline]
    pub(crate) fn has(&self, subgroup: SubgroupId) -> bool {
        self.logs.iter().any(|log| log.subgroup == subgroup)
    }

    fn get(&self, subgroup: SubgroupId) -> Option<&SubgroupLog> {
        self.logs.iter().find(|log| log.subgroup == subgroup)
    }

    /// Returns the number of a subgroup's messages appended since the group began.
    #[inline]
    pub(crate) fn records(&self, subgroup: SubgroupId) -> Option<DurableCount> {
        self.get(subgroup).map(|log| log.records)
    }

    /// Returns whether the log of a subgroup has at least `records` records.
    pub(crate) fn reaches(&self, subgroup: SubgroupId, records: u64) -> bool {
        self.records(subgroup).is_some_and(|own| own.0 >= records)
    }

    /// Returns handles to all logs, for threads that supply other nodes.
    pub(crate) fn shared_logs(&self) -> SharedLogs {
        let log = |log: &SubgroupLog| WeakLog {
            subgroup: log.subgroup,
            commits: Arc::downgrade(&log.commits),
            delivered: Arc::clone(&log.delivered),
        };
        SharedLogs(self.logs.iter().map(log).collect())
    }

    /// Returns the durable counts seen for a subgroup.
    pub(crate) fn status(&self, subgroup: SubgroupId) -> Option<DurableStatus> {
        self.get(subgroup).map(|SubgroupLog { seen, commits, delivered, .. }| DurableStatus {
            delivered: delivered.load(Ordering::Relaxed),
            here: seen.here.0,
            majority: seen.majority.0,
            all: seen.everywhere.0,
            commits: commits.commits(),
        })
    }

    /// Appends a message that is being delivered, if its subgroup is logged and the message is not
    /// in the log yet. After a failure, nothing more is appended.
    pub(crate) fn append(&mut self, message: &Message<'_>) {
        let Some(log) = self.logs.iter_mut().find(|log| log.subgroup == message.subgroup) else {
            return;
        };
        if self.failure.is_some() {
            return;
        }
        if log.ahead > 0 {
            // The record may already be durable, but it counts only from now on.
            log.ahead -= 1;
            self.has_rung.store(true, Ordering::Release);
        } else if let Err(error) = log.append(message) {
            self.failure = Some(Stopped::NotDurable(error.to_string()));
            return;
        }
        log.records = DurableCount(log.records.0.saturating_add(1));
        log.delivered.store(log.records.0, Ordering::Release);
        log.retention.appended(message.payload.len().saturating_add(RECORD_HEADER_BYTES));
    }

    /// Appends the undelivered messages that belong to the current view if the view ends as
    /// planned. `messages` are all such messages.
    pub(crate) fn append_ahead<'m>(
        &mut self,
        subgroup: SubgroupId,
        messages: impl Iterator<Item = Message<'m>>,
    ) {
        let Some(log) = self.logs.iter_mut().find(|log| log.subgroup == subgroup) else { return };
        let before = log.ahead;
        let mut shown = 0;
        for message in messages {
            shown += 1;
            if shown <= before || self.failure.is_some() {
                continue;
            }
            match log.append(&message) {
                Ok(()) => log.ahead += 1,
                Err(error) => self.failure = Some(Stopped::NotDurable(error.to_string())),
            }
        }
        // Later proposals never end lower, because they come from fewer members.
        if shown < before {
            let text = "the view ends before the last record of its log".to_owned();
            self.failure.get_or_insert(Stopped::NotDurable(text));
        }
    }

    /// Returns whether everything appended is durable at this member.
    pub(crate) fn are_durable(&self) -> Result<bool, Stopped> {
        self.check()?;
        Ok(self.logs.iter().all(|log| log.commits.durable().0 >= log.end()))
    }

    /// Returns the end of a subgroup's log, including undelivered messages.
    pub(crate) fn end(&self, subgroup: SubgroupId) -> Option<u64> {
        self.get(subgroup).map(SubgroupLog::end)
    }

    /// Returns whether the logs' memory has room for the deliveries of one more step.
    pub(crate) fn have_room(&self) -> bool {
        self.logs.iter().all(|log| log.commits.waiting_bytes() <= WAITING_BYTES_MAX)
    }

    /// Fails once a log has failed, because messages delivered since then cannot be made durable.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Reports to the view which messages have become durable at this member. Called before a step.
    pub(crate) fn tell(&mut self, view: &mut OpenView) -> Result<(), Stopped> {
        if !self.has_rung.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        for log in &mut self.logs {
            if let Some(failure) = log.commits.failure() {
                return Err(Stopped::NotDurable(failure.to_string()));
            }
            // Undelivered messages may never be delivered, so they are not counted.
            let durable = DurableCount(log.commits.durable().0.min(log.records.0));
            if log.told < durable {
                view.change(|node| node.set_durable(log.subgroup, durable));
                log.told = durable;
            }
        }
        Ok(())
    }

    /// Resets the counts for a new view, whose rows do not yet contain any durable counts.
    pub(crate) fn view_begins(&mut self) {
        for log in &mut self.logs {
            (log.told, log.shown_by_all) = (DurableCount::ZERO, DurableCount::ZERO);
        }
        self.has_rung.store(true, Ordering::Release);
    }

    /// Returns the notes to be recorded about all logs.
    pub(crate) fn notes(&self) -> Vec<NotedLog> {
        self.logs.iter().map(SubgroupLog::note).collect()
    }

    /// Returns the notes about all logs, if they have changed since the last call.
    pub(crate) fn moved_notes(&mut self) -> Option<Vec<NotedLog>> {
        if !self.logs.iter().any(SubgroupLog::has_moved) {
            return None;
        }
        for log in &mut self.logs {
            log.noted = log.note();
        }
        Some(self.notes())
    }

    /// Calls `moved` for each subgroup in which more messages have become durable. Called after a
    /// step.
    pub(crate) fn see(
        &mut self,
        view: &OpenView,
        mut moved: impl FnMut(SubgroupId, &DurableCounts),
    ) {
        let is_over = |log: &&mut SubgroupLog| log.is_settled() && log.shown_by_all == log.records;
        for log in self.logs.iter_mut().filter(|log| !is_over(log)) {
            let Some(shown) = view.read(|node| node.node().durable(log.subgroup)) else { continue };
            log.shown_by_all = shown.everywhere;
            let (here, majority) =
                (log.seen.here.max(shown.here), log.seen.majority.max(shown.majority));
            let everywhere = log.seen.everywhere.max(shown.everywhere);
            let seen = DurableCounts { here, majority, everywhere };
            if seen != log.seen {
                log.seen = seen;
                moved(log.subgroup, &seen);
            }
        }
    }

    /// Keeps logs bounded, if so configured: begins a snapshot of the application when one is due,
    /// and discards records.
    pub(crate) fn keep_bounded(
        &mut self,
        view: ViewId,
        mut state: impl FnMut(SubgroupId) -> Box<dyn Read + Send>,
    ) -> Result<(), Stopped> {
        for log in &mut self.logs {
            let SubgroupLog { subgroup, commits, records, seen, retention, .. } = log;
            if retention.wants_snapshot() {
                let begun = retention.begin(commits, *records, view, state(*subgroup));
                begun.map_err(|error| Stopped::NotDurable(error.to_string()))?;
            }
            let finished = retention.finish(commits, seen.majority, Sequence(u64::MAX));
            finished.map_err(|error| Stopped::NotDurable(error.to_string()))?;
        }
        Ok(())
    }

    /// Returns whether everything appended is durable everywhere.
    pub(crate) fn are_settled(&self) -> bool {
        self.logs.iter().all(SubgroupLog::is_settled)
    }
}

impl SubgroupLog {
    const fn end(&self) -> u64 {
        self.records.0.saturating_add(self.ahead)
    }

    fn is_settled(&self) -> bool {
        self.seen.everywhere == self.records
    }

    /// Returns the numbers of delivered records that are durable at this member, at a majority, and
    /// at all members of the current view.
    fn noted_counts(&self) -> (u64, u64, u64) {
        let end = self.commits.durable().0.min(self.records.0);
        (end, self.seen.majority.0, self.shown_by_all.0)
    }

    fn note(&self) -> NotedLog {
        let (end, majority, everywhere) = self.noted_counts();
        NotedLog { end, majority, everywhere, ..self.noted.clone() }
    }

    fn has_moved(&self) -> bool {
        let NotedLog { end, majority, everywhere, .. } = self.noted;
        self.noted_counts() != (end, majority, everywhere)
    }

    /// Appends a message. If there is no room, waits for a sync in flight, in the middle of a step.
    /// This is rare, because the limit leaves room for the deliveries of one step.
    fn append(&self, message: &Message<'_>) -> Result<(), AppendError> {
        let record = Record {
            sequence: Sequence(self.end()),
            view: message.view,
            place: message.place,
            sender: message.sender,
            is_large: message.is_large,
            bytes: message.payload,
        };
        loop {
            match self.commits.append(&record) {
                Err(AppendError::Full) => std::thread::sleep(FULL_PAUSE),
                appended => return appended,
            }
        }
    }
}

/// Returns the maximum number of log bytes that the deliveries of one step need in a subgroup.
fn step_bytes_max(description: &Description, subgroup: SubgroupId) -> usize {
    let Some(of) = description.subgroups.get(subgroup.index()) else { return 0 };
    let as_usize = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let message = as_usize(of.slot_max()).saturating_add(RECORD_HEADER_BYTES);
    let ring = message.saturating_mul(as_usize(of.window)).saturating_mul(of.senders().len());
    ring.saturating_add(description.large_pool_bytes())
}
