//! The common part of two logs of one subgroup, and the records that one of them lacks (DUR-7).
//!
//! # What holds
//! - All members deliver a view's messages in one order, and views follow one another. So if two
//!   records have the same view and place, they are equal, and so are all records before them.
//! - A log that has records of a view which the group did not continue with has no record of a
//!   later view. So the common part ends with the last record whose view and place are not above
//!   those of the other log's last record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane_core::ids::{NodeId, Place, SubgroupId, ViewId};
use tramontane_log::{AppendError, GroupCommit, Log, ReadError, Record, Sequence, SystemFolder};

use super::delivered::Delivered;

/// The number of record bytes read at a time, while appends to the log wait.
pub(crate) const READ_BYTES: usize = 4 << 20;

/// The position of a log's last valid record, at which the log ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogPlace {
    pub(crate) sequence: u64,
    pub(crate) view: u64,
    pub(crate) place: u64,
}

impl LogPlace {
    fn of(record: &Record<'_>) -> Self {
        let (sequence, view) = (record.sequence.0, record.view.0);
        Self { sequence, view, place: record.place.0 }
    }

    fn is_before(&self, view: u64, place: u64) -> bool {
        (self.view, self.place) <= (view, place)
    }
}

/// Returns the last valid record of a log, or `None` if the log has none.
pub(crate) fn last_place(log: &Log<SystemFolder>) -> Result<Option<LogPlace>, ReadError> {
    let mut end = log.end();
    let mut damaged: Vec<_> = log.damaged().collect();
    while let Some((first, _)) = damaged.pop_if(|(_, behind)| *behind >= end) {
        end = first;
    }
    match end.0.checked_sub(1).map(Sequence).filter(|last| *last >= log.first()) {
        Some(last) => read(log, last, LogPlace::of).map(Some),
        None => Ok(None),
    }
}

/// Returns the number of records that a log has in common with a log that ends at `other`. Returns
/// `None` if that number is unknown, or if a later record is damaged.
pub(super) fn common(
    log: &Log<SystemFolder>,
    other: Option<LogPlace>,
) -> Result<Option<u64>, ReadError> {
    let Some(LogPlace { sequence, view, place }) = other else {
        return Ok((log.first() == Sequence::ZERO).then_some(0).filter(|of| is_whole(log, *of)));
    };
    let (mut from, mut to) = (log.first().0, log.end().0);
    let is_same = |found: LogPlace| (found.view, found.place) == (view, place);
    if (from..to).contains(&sequence) && read_place(log, sequence)?.is_some_and(is_same) {
        return Ok(Some(sequence.saturating_add(1)).filter(|of| is_whole(log, *of)));
    }
    let first = from;
    while from < to {
        let middle = from.midpoint(to);
        let Some(found) = read_place(log, middle)? else { return Ok(None) };
        if found.is_before(view, place) {
            from = middle.saturating_add(1);
        } else {
            to = middle;
        }
    }
    // If no record here is common, the logs may already differ before the first of these records.
    let is_known = from > first || first == 0;
    Ok(is_known.then_some(from).filter(|of| is_whole(log, *of)))
}

/// Returns whether no record at or after `from` is damaged.
fn is_whole(log: &Log<SystemFolder>, from: u64) -> bool {
    log.damaged().all(|(_, behind)| behind.0 <= from)
}

/// Returns the view and place of a record, or `None` if it is damaged.
fn read_place(log: &Log<SystemFolder>, sequence: u64) -> Result<Option<LogPlace>, ReadError> {
    match read(log, Sequence(sequence), LogPlace::of) {
        Ok(place) => Ok(Some(place)),
        Err(ReadError::Damaged { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn read<T>(
    log: &Log<SystemFolder>,
    sequence: Sequence,
    of: impl FnOnce(&Record<'_>) -> T,
) -> Result<T, ReadError> {
    let (first, end) = (log.first(), log.end());
    let mut records = log.records(sequence)?;
    let read = records.read_next();
    let record = read.unwrap_or(Err(ReadError::OutOfRange { first, end, wanted: sequence }))?;
    Ok(of(&record))
}

/// The logs of a running member. These handles do not keep a log open after the member has closed
/// it.
#[derive(Clone, Default)]
pub(crate) struct SharedLogs(pub(super) Vec<WeakLog>);

/// The log of one subgroup.
#[derive(Clone)]
pub(super) struct WeakLog {
    pub(super) subgroup: SubgroupId,
    pub(super) commits: Weak<GroupCommit<SystemFolder>>,
    /// The number of delivered records in the log.
    pub(super) delivered: Arc<AtomicU64>,
}

impl SharedLogs {
    /// Returns the log of a subgroup, if it is logged and the member is running.
    pub(crate) fn get(&self, subgroup: SubgroupId) -> Option<SharedLog> {
        self.of(subgroup)?.commits.upgrade().map(SharedLog)
    }

    /// Returns the number of delivered records in a subgroup's log. Later records may still be cut
    /// off.
    pub(crate) fn delivered(&self, subgroup: SubgroupId) -> u64 {
        self.of(subgroup).map_or(0, |log| log.delivered.load(Ordering::Acquire))
    }

    /// Returns whether a subgroup is logged here.
    pub(crate) fn has(&self, subgroup: SubgroupId) -> bool {
        self.of(subgroup).is_some()
    }

    fn of(&self, subgroup: SubgroupId) -> Option<&WeakLog> {
        self.0.iter().find(|log| log.subgroup == subgroup)
    }
}

/// A log of a running member, for a thread that supplies others.
#[derive(Clone)]
pub(crate) struct SharedLog(pub(super) Arc<GroupCommit<SystemFolder>>);

impl SharedLog {
    /// Returns the number of records that this log has in common with a log that ends at `other`,
    /// once everything appended is durable.
    pub(crate) fn common(
        &self,
        other: Option<LogPlace>,
        patience: Duration,
    ) -> Result<Option<u64>, SharedLogError> {
        self.wait(self.0.next().0, patience)?;
        Ok(self.0.with_log(|log| common(log, other))?)
    }

    /// Returns the first record that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.0.with_log(|log| log.first().0)
    }

    /// Returns the number of durable records.
    pub(crate) fn end(&self) -> u64 {
        self.0.durable().0
    }

    /// Waits until `records` records are durable.
    pub(crate) fn wait(&self, records: u64, patience: Duration) -> Result<(), SharedLogError> {
        let is_durable = self.0.wait_durable(Sequence(records), patience)?;
        if is_durable { Ok(()) } else { Err(SharedLogError::Slow) }
    }

    /// Reads records from number `from`, about `bytes_max` bytes but at least one record.
    pub(crate) fn read(
        &self,
        subgroup: SubgroupId,
        from: u64,
        to: u64,
        bytes_max: usize,
    ) -> Result<Vec<Delivered>, SharedLogError> {
        Ok(self.0.with_log(|log| read_records(log, subgroup, from, to, bytes_max))?)
    }
}

/// Reads records of a log, about `bytes_max` bytes but at least one record.
pub(super) fn read_records(
    log: &Log<SystemFolder>,
    subgroup: SubgroupId,
    from: u64,
    to: u64,
    bytes_max: usize,
) -> Result<Vec<Delivered>, ReadError> {
    let mut records = log.records(Sequence(from))?;
    let (mut read, mut bytes) = (Vec::new(), 0);
    while bytes < bytes_max && records.position().0 < to {
        let Some(record) = records.read_next() else { break };
        let record = record?;
        bytes += record.bytes.len();
        read.push(delivered(subgroup, &record));
    }
    Ok(read)
}

/// The reason why a log cannot supply another.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SharedLogError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("its disk is too slow")]
    Slow,
}

/// Converts a record to the form in which messages are sent to a joiner.
pub(super) fn delivered(subgroup: SubgroupId, record: &Record<'_>) -> Delivered {
    Delivered {
        subgroup: subgroup.0,
        view: record.view.0,
        place: record.place.0,
        sender: record.sender.get(),
        is_large: record.is_large,
        payload: record.bytes.to_vec(),
    }
}

/// Converts a message from a joiner's supplier to a record.
pub(super) fn record(sequence: Sequence, message: &Delivered) -> Record<'_> {
    Record {
        sequence,
        view: ViewId(message.view),
        place: Place(message.place),
        sender: NodeId(message.sender),
        is_large: message.is_large,
        bytes: &message.payload,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tramontane_log::{Batch, Identity, Options};

    use super::*;

    /// Creates a log with records of these views and places.
    fn log_of(folder: &std::path::Path, places: &[(u64, u64)]) -> Log<SystemFolder> {
        let layer = SystemFolder::create(folder).expect("a folder");
        let identity = Identity { group: "g".to_owned(), subgroup: "s".to_owned() };
        let options = Options { segment_bytes: 64 << 10, ..Options::default() };
        let (mut log, _) = Log::open(layer, &identity, options).expect("a new one");
        let mut batch = Batch::new();
        for (sequence, (view, place)) in (0..).map(Sequence).zip(places) {
            let record = Record {
                sequence,
                view: ViewId(*view),
                place: Place(*place),
                sender: NodeId(0),
                is_large: false,
                bytes: b"m",
            };
            batch.push(&record).expect("they follow one another");
        }
        log.commit(&mut batch).expect("room");
        log
    }

    /// Returns places that rise by these steps. The flag of a step begins a new view.
    fn places(view: u64, steps: &[(bool, u64)]) -> Vec<(u64, u64)> {
        let rise = |(view, place): &mut (u64, u64), (is_next, step): &(bool, u64)| {
            (*view, *place) = if *is_next { (*view + 1, *step) } else { (*view, *place + step) };
            Some((*view, *place))
        };
        steps.iter().scan((view, 0), rise).collect()
    }

    fn steps(most: usize) -> impl Strategy<Value = Vec<(bool, u64)>> {
        prop::collection::vec((prop::bool::weighted(0.2), 1_u64..4), 0..most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Compares the result with a model that checks one record at a time.
        #[test]
        fn common_log_prefix_matches_the_model(
            prefix in steps(12),
            tail in prop::collection::vec(1_u64..4, 0..5),
            rest in steps(12),
        ) {
            let folder = tempfile::tempdir().expect("a folder");
            let common_part = places(1, &prefix);
            let (last_view, last_place) = common_part.last().copied().unwrap_or((1, 0));
            // Further records of the last view, with which the group did not continue.
            let tail = tail.iter().scan(last_place, |place, step| {
                *place += step;
                Some((last_view, *place))
            });
            let others: Vec<_> = common_part.iter().copied().chain(tail).collect();
            let of_group = common_part.iter().copied().chain(places(last_view + 1, &rest));
            let of_group: Vec<_> = of_group.collect();
            let same = |(one, other): &(&(u64, u64), &(u64, u64))| one == other;
            let model = of_group.iter().zip(&others).take_while(same).count();
            let log = log_of(&folder.path().join("group"), &of_group);
            let other = log_of(&folder.path().join("other"), &others);
            let last = last_place_of(&other);
            prop_assert_eq!(common(&log, last).expect("it reads"), Some(model as u64));
        }
    }

    fn last_place_of(log: &Log<SystemFolder>) -> Option<LogPlace> {
        super::last_place(log).expect("it reads")
    }
}
