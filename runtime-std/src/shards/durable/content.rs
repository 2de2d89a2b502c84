//! The records of a replica's log on its disk, and what they add up to.
//!
//! | record | content |
//! |---|---|
//! | an entry | a zero, and the entry as the core copies it; its index is the record's place |
//! | a record of the core's log | a one, and the cells of the [`LogRecord`] |
//! | what another replica's disk has | a three, and the record of [`ShownDisks`] |
//! | a start | a two: entries before it without a record were lost with the earlier process |
//! | a snapshot | the cells of a [`LogRecord`]; the number of the core's cells, and these cells; the application's state |

use std::collections::BTreeMap;

use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_core::tram::LogRecord;
use tramontane_log::{Log, ReadError, Record, Sequence, SystemFolder};

use crate::shards::shown_disks::ShownDisks;
use crate::shards::snapshot::Snapshot;

/// The first byte of each kind of record.
pub(super) const ENTRY: u8 = 0;
const LOG_RECORD: u8 = 1;
pub(super) const START: u8 = 2;
pub(super) const SHOWN: u8 = 3;

/// A replica's state on its disk.
#[derive(Debug)]
pub(in crate::shards) struct SavedContent {
    pub(in crate::shards) snapshot: Snapshot,
    pub(in crate::shards) record: LogRecord,
    /// The entries of the log, by index, each with the sequence of its record.
    pub(in crate::shards) entries: BTreeMap<u64, (Sequence, Vec<u8>)>,
}

/// The reason why a log has no content that a replica can continue from.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("record {0} is not one of a replica")]
    Foreign(Sequence),
    #[error("the snapshot is missing")]
    NoSnapshot,
    #[error("the snapshot is not one of a replica")]
    ForeignSnapshot,
}

/// Returns a record of the log on the disk.
pub(super) const fn record_of(sequence: Sequence, place: u64, bytes: &[u8]) -> Record<'_> {
    let (view, sender) = (ViewId::ZERO, NodeId(0));
    Record { sequence, view, place: Place(place), sender, is_large: false, bytes }
}

/// Returns the bytes of a record of the core's log.
pub(super) fn log_record_bytes(record: &LogRecord) -> Vec<u8> {
    std::iter::once(LOG_RECORD).chain(cell_bytes(&record.cells())).collect()
}

/// Returns the bytes of a snapshot that precede the application's state.
pub(super) fn snapshot_head(record: &LogRecord, cells: &[u64]) -> Vec<u8> {
    let count = [cells.len() as u64];
    cell_bytes(&record.cells()).chain(cell_bytes(&count)).chain(cell_bytes(cells)).collect()
}

fn cell_bytes(cells: &[u64]) -> impl Iterator<Item = u8> + '_ {
    cells.iter().flat_map(|cell| cell.to_le_bytes())
}

/// Takes `count` cells from the beginning of a slice.
fn take_cells(bytes: &mut &[u8], count: usize) -> Option<Vec<u64>> {
    let (head, rest) = bytes.split_at_checked(count.checked_mul(8)?)?;
    *bytes = rest;
    Some(head.as_chunks::<8>().0.iter().map(|cell| u64::from_le_bytes(*cell)).collect())
}

fn take_log_record(bytes: &mut &[u8]) -> Option<LogRecord> {
    let cells = take_cells(bytes, LogRecord::CELLS)?;
    Some(LogRecord::from_cells(cells.try_into().ok()?))
}

fn read_snapshot(mut bytes: &[u8]) -> Option<(LogRecord, Snapshot)> {
    let record = take_log_record(&mut bytes)?;
    let count = usize::try_from(*take_cells(&mut bytes, 1)?.first()?).ok()?;
    let cells = take_cells(&mut bytes, count)?;
    Some((record, Snapshot { cells, state: bytes.to_vec() }))
}

impl SavedContent {
    /// Reads everything that a replica has saved. Returns `None` if it has saved no state yet.
    pub(super) fn read(
        log: &Log<SystemFolder>,
        shown: &mut ShownDisks,
    ) -> Result<Option<Self>, ContentError> {
        let begin = match log.snapshot() {
            Some(place) => {
                let (_, bytes) = log.read_snapshot()?;
                let found = read_snapshot(&bytes).ok_or(ContentError::ForeignSnapshot)?;
                Some((place.sequence, found))
            }
            None => None,
        };
        let from = begin.as_ref().map_or(Sequence::ZERO, |(from, _)| *from);
        let mut last = None;
        let (mut entries, mut pending) = (BTreeMap::new(), BTreeMap::new());
        let mut records = log.records(log.first())?;
        while let Some(record) = records.read_next() {
            let Record { sequence, place, mut bytes, .. } = record?;
            match bytes.split_off_first() {
                Some(&ENTRY) => {
                    pending.insert(place.get(), (sequence, bytes.to_vec()));
                }
                Some(&LOG_RECORD) => {
                    let record = take_log_record(&mut bytes);
                    let record = record.ok_or(ContentError::Foreign(sequence))?;
                    entries.append(&mut pending);
                    entries.retain(|place, _| *place < record.tail());
                    last = if sequence >= from { Some(record) } else { last };
                }
                Some(&START) => pending.clear(),
                Some(&SHOWN) if shown.read(bytes) => {}
                _ => return Err(ContentError::Foreign(sequence)),
            }
        }
        let Some((_, (first, snapshot))) = begin else {
            return last.map_or(Ok(None), |_| Err(ContentError::NoSnapshot));
        };
        let record = last.unwrap_or(first);
        entries.retain(|place, _| *place < record.tail());
        Ok(Some(Self { snapshot, record, entries }))
    }
}

#[cfg(test)]
mod tests {
    use tramontane_log::{Batch, Identity, Options};

    use super::*;

    /// A log to which a test appends what a replica would.
    struct WrittenLog {
        log: Log<SystemFolder>,
        _folder: tempfile::TempDir,
    }

    impl WrittenLog {
        /// Creates the log of a founder.
        fn new() -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            let layer = SystemFolder::create(folder.path()).expect("it is made");
            let identity = Identity { group: "bank".into(), subgroup: "g1.0".into() };
            let (log, _) = Log::open(layer, &identity, Options::default()).expect("a new log");
            let mut written = Self { log, _folder: folder };
            written.append(0, &[START]);
            written.snapshot(&record(0), "first");
            written
        }

        fn append(&mut self, place: u64, bytes: &[u8]) {
            let mut batch = Batch::new();
            batch.push(&record_of(self.log.end(), place, bytes)).expect("it is next");
            self.log.commit(&mut batch).expect("it is written");
        }

        fn entry(&mut self, place: u64, text: &str) {
            let bytes: Vec<u8> = std::iter::once(ENTRY).chain(text.bytes()).collect();
            self.append(place, &bytes);
        }

        fn snapshot(&mut self, record: &LogRecord, state: &str) {
            let mut writer = self.log.write_snapshot(self.log.end(), ViewId::ZERO).expect("room");
            writer.write(&snapshot_head(record, &[7, 8])).expect("it is written");
            writer.write(state.as_bytes()).expect("it is written");
            self.log.install_snapshot(writer.finish().expect("it is synced")).expect("renamed");
        }

        fn read(&self) -> (String, u64, Vec<(u64, String)>) {
            let content = SavedContent::read(&self.log, &mut ShownDisks::default());
            let content = content.expect("it is sound").expect("a state");
            assert_eq!(content.snapshot.cells, [7, 8]);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let entries = content.entries.iter().map(|(place, (_, bytes))| (*place, text(bytes)));
            (text(&content.snapshot.state), content.record.tail(), entries.collect())
        }
    }

    fn record(tail: u64) -> LogRecord {
        LogRecord::from_cells([1, 1, 0, tail, 0, 0, 1])
    }

    fn expected(
        state: &str,
        tail: u64,
        entries: &[(u64, &str)],
    ) -> (String, u64, Vec<(u64, String)>) {
        let entries = entries.iter().map(|(place, text)| (*place, (*text).to_owned()));
        (state.to_owned(), tail, entries.collect())
    }

    #[test]
    fn entries_count_only_with_their_record() {
        let mut written = WrittenLog::new();
        written.entry(0, "a");
        written.entry(1, "b");
        written.append(2, &log_record_bytes(&record(2)));
        written.entry(1, "another leader's");
        assert_eq!(written.read(), expected("first", 2, &[(0, "a"), (1, "b")]));
        // The process ended here. The next one continues under the earlier record.
        written.append(0, &[START]);
        written.entry(2, "c");
        written.append(3, &log_record_bytes(&record(3)));
        assert_eq!(written.read(), expected("first", 3, &[(0, "a"), (1, "b"), (2, "c")]));
        written.append(1, &log_record_bytes(&record(1)));
        assert_eq!(written.read(), expected("first", 1, &[(0, "a")]));
    }

    #[test]
    fn snapshot_replaces_earlier_record_but_not_entries() {
        let mut written = WrittenLog::new();
        written.entry(0, "a");
        written.append(1, &log_record_bytes(&record(1)));
        written.snapshot(&record(5), "second");
        assert_eq!(written.read(), expected("second", 5, &[(0, "a")]));
        written.entry(5, "f");
        written.append(6, &log_record_bytes(&record(6)));
        assert_eq!(written.read(), expected("second", 6, &[(0, "a"), (5, "f")]));
    }

    #[test]
    fn foreign_records_are_refused() {
        for bytes in [&[][..], &[9], &[LOG_RECORD, 1], &[SHOWN, 1]] {
            let mut written = WrittenLog::new();
            written.append(0, bytes);
            let read = SavedContent::read(&written.log, &mut ShownDisks::default());
            assert!(matches!(read, Err(ContentError::Foreign(Sequence(1)))), "{bytes:?}");
        }
    }
}
