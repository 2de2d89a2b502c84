//! The log of a server, in a file of its node's storage folder, with one JSON object per line.
//! openraft leaves storage to its users; this is our implementation.
//!
//! Invariant: every entry that openraft is told is written is in the file, in the order of writing.
//! (It is in the system's cache, not on the disk: it survives the process, not the machine.) The
//! log is never purged, because no snapshot is made.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::ops::RangeBounds;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::storage::{LogFlushed, LogState, RaftLogStorage};
use openraft::{Entry, LogId, OptionalSend, RaftLogId as _, RaftLogReader, StorageIOError, Vote};
use serde::{Deserialize, Serialize};

use crate::types::{StorageError, Types};

/// A line of the file.
#[derive(Serialize, Deserialize)]
enum Line {
    Vote(Vote<u64>),
    Committed(Option<LogId<u64>>),
    Append(Entry<Types>),
    /// The removal of all entries from this index on.
    Truncate(u64),
}

/// The contents of the file.
#[derive(Default)]
struct Kept {
    entries: BTreeMap<u64, Entry<Types>>,
    vote: Option<Vote<u64>>,
    committed: Option<LogId<u64>>,
}

impl Kept {
    fn take(&mut self, line: Line) {
        match line {
            Line::Vote(vote) => self.vote = Some(vote),
            Line::Committed(committed) => self.committed = committed,
            Line::Append(entry) => {
                self.entries.insert(entry.get_log_id().index, entry);
            }
            Line::Truncate(from) => drop(self.entries.split_off(&from)),
        }
    }
}

struct Inner {
    file: File,
    kept: Kept,
}

impl Inner {
    fn write(&mut self, lines: Vec<Line>) -> io::Result<()> {
        let mut text = Vec::new();
        for line in &lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        self.file.write_all(&text)?;
        lines.into_iter().for_each(|line| self.kept.take(line));
        Ok(())
    }
}

/// The log. Its clones share one log.
#[derive(Clone)]
pub struct Log(Arc<Mutex<Inner>>);

impl Log {
    /// Opens the log in a folder. An entry that a kill left incomplete is cut off.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join("log");
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole_bytes = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole_bytes as u64)?;
        let mut kept = Kept::default();
        for line in text[..whole_bytes].lines() {
            kept.take(serde_json::from_str(line)?);
        }
        Ok(Self(Arc::new(Mutex::new(Inner { file, kept }))))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, lines: Vec<Line>) -> io::Result<()> {
        self.lock().write(lines)
    }
}

impl RaftLogReader<Types> for Log {
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> Result<Vec<Entry<Types>>, StorageError> {
        Ok(self.lock().kept.entries.range(range).map(|(_, entry)| entry.clone()).collect())
    }
}

impl RaftLogStorage<Types> for Log {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, StorageError> {
        let last = self.lock().kept.entries.last_key_value().map(|(_, entry)| *entry.get_log_id());
        Ok(LogState { last_purged_log_id: None, last_log_id: last })
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<u64>) -> Result<(), StorageError> {
        let written = self.write(vec![Line::Vote(*vote)]);
        Ok(written.map_err(|error| StorageIOError::write_vote(&error))?)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote<u64>>, StorageError> {
        Ok(self.lock().kept.vote)
    }

    async fn save_committed(&mut self, committed: Option<LogId<u64>>) -> Result<(), StorageError> {
        let written = self.write(vec![Line::Committed(committed)]);
        Ok(written.map_err(|error| StorageIOError::write(&error))?)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId<u64>>, StorageError> {
        Ok(self.lock().kept.committed)
    }

    async fn append<I>(
        &mut self,
        entries: I,
        callback: LogFlushed<Types>,
    ) -> Result<(), StorageError>
    where
        I: IntoIterator<Item = Entry<Types>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let lines = entries.into_iter().map(Line::Append).collect();
        callback.log_io_completed(self.write(lines));
        Ok(())
    }

    async fn truncate(&mut self, from: LogId<u64>) -> Result<(), StorageError> {
        let written = self.write(vec![Line::Truncate(from.index)]);
        Ok(written.map_err(|error| StorageIOError::write_logs(&error))?)
    }

    async fn purge(&mut self, upto: LogId<u64>) -> Result<(), StorageError> {
        let error = io::Error::other(format!("entries up to {upto} cannot be purged, because there is no snapshot of them"));
        Err(StorageIOError::write_logs(&error).into())
    }
}

#[cfg(test)]
mod tests {
    use openraft::EntryPayload;

    use super::*;

    fn entry(term: u64, index: u64) -> Line {
        let log_id = LogId::new(openraft::CommittedLeaderId::new(term, 1), index);
        Line::Append(Entry { log_id, payload: EntryPayload::Blank })
    }

    async fn indices(log: &mut Log) -> Vec<(u64, u64)> {
        let entries = log.try_get_log_entries(0..).await.expect("they are in memory");
        entries.iter().map(|one| (one.log_id.leader_id.term, one.log_id.index)).collect()
    }

    #[tokio::test]
    async fn restart_keeps_entries_and_drops_incomplete_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = Log::open(folder.path()).expect("a new one");
        log.write(vec![entry(1, 0), entry(1, 1), entry(1, 2)]).expect("it is written");
        log.write(vec![Line::Truncate(1), entry(2, 1), Line::Vote(Vote::new(2, 1))]).expect("too");
        let mut file =
            OpenOptions::new().append(true).open(folder.path().join("log")).expect("it is there");
        file.write_all(b"{\"Append\":{\"log_").expect("half a line");
        let mut again = Log::open(folder.path()).expect("the same");
        assert_eq!(indices(&mut again).await, [(1, 0), (2, 1)]);
        assert_eq!(again.read_vote().await.expect("it is in memory"), Some(Vote::new(2, 1)));
        again.write(vec![entry(2, 2)]).expect("it goes on");
        let mut again = Log::open(folder.path()).expect("the same");
        assert_eq!(indices(&mut again).await, [(1, 0), (2, 1), (2, 2)]);
    }
}
