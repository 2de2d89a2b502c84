//! Saves what the core of a running replica hands over.
//!
//! The thread that drives the replica copies entries into the memory of the log, whose own thread
//! writes and syncs everything that is waiting. So all entries of several steps share a sync.

use std::collections::VecDeque;
use std::io::{Cursor, Read as _};
use std::sync::Arc;
use std::time::Duration;

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::{DurableCount, ViewId};
use tramontane_core::tram::{LogRecord, Memory, Replica, ReplicaId, Shape};
use tramontane_log::{
    AppendError, GroupCommit, GroupCommitOptions, RECORD_HEADER_BYTES, Sequence, SystemFolder,
    WriteError,
};

use super::content::{
    ENTRY, SHOWN, START, SavedContent, log_record_bytes, record_of, snapshot_head,
};
use super::folder::{FOUNDERS, INCARNATION, ReplicaFolder, SINCE, STAGE};
use super::folder_error::FolderError;
use super::known_lives::KnownLives;
use crate::fabric::AnyBell;
use crate::member::Stopped;
use crate::retention::Retention;
use crate::shards::founding_stage::FoundingStage;
use crate::shards::places::Places;
use crate::shards::service::Formation;
use crate::shards::shown_disks::ShownDisks;
use crate::shards::snapshot::{Snapshot, TakenSnapshot};

/// The interval between checks while the replica waits for its disk at its start.
const SYNC_PAUSE: Duration = Duration::from_secs(1);

/// The log of a running replica on its disk.
pub(in crate::shards) struct Journal {
    commits: Arc<GroupCommit<SystemFolder>>,
    content: Option<SavedContent>,
    shown: ShownDisks,
    incarnation: u16,
    since: Option<u16>,
    formation: Formation,
    notice: Option<String>,
    next: Sequence,
    /// The records that wait for their sync, each with the end of the log after it.
    handed: VecDeque<(Sequence, LogRecord)>,
    saved: LogRecord,
    /// The sequence of each entry in the core's log, by the entry's slot there.
    slots: Vec<Sequence>,
    retention: Retention,
    /// The first sequence that the snapshot under way does not replace.
    needed: Sequence,
    buffer: Vec<u8>,
}

impl Journal {
    /// Starts the thread of a folder's log. `bell` wakes the thread that drives the replica.
    pub(in crate::shards) fn start(
        folder: ReplicaFolder,
        bell: AnyBell,
        shape: &Shape,
        log_entries: u32,
    ) -> std::io::Result<Self> {
        let (incarnation, since) = (folder.incarnation(), folder.since());
        let formation = folder.formation();
        let ReplicaFolder { log, keep_bytes, content, shown, notice } = folder;
        let (next, retention) = (log.end(), Retention::new(Some(keep_bytes), &log));
        // The core's log bounds what waits.
        let options = GroupCommitOptions { waiting_bytes_max: usize::MAX };
        let commits = GroupCommit::start(log, options, move |_| bell.ring_if_asleep())?;
        let slots = vec![Sequence(u64::MAX); usize::try_from(log_entries).unwrap_or(0)];
        let mut journal = Self {
            commits: Arc::new(commits),
            content,
            shown,
            incarnation,
            since,
            formation,
            notice,
            next,
            handed: VecDeque::new(),
            saved: LogRecord::default(),
            slots,
            retention,
            needed: Sequence::ZERO,
            buffer: vec![ENTRY; shape.list_bytes().saturating_add(1)],
        };
        if let Some(content) = &journal.content {
            let entries: Vec<_> =
                content.entries.iter().map(|(place, (sequence, _))| (*place, *sequence)).collect();
            entries.into_iter().for_each(|(place, sequence)| journal.note_slot(place, sequence));
        }
        journal.append(0, &[START]).map_err(std::io::Error::other)?;
        // If the log is new, only this process knows what the last log said of the others.
        for record in journal.shown.take_unsaved() {
            journal.append_shown(&record).map_err(std::io::Error::other)?;
        }
        Ok(journal)
    }

    /// Returns the processes of other nodes on this disk, and where to save more of them.
    pub(in crate::shards) fn known_lives(&self, places: &Places, own: ReplicaId) -> KnownLives {
        let found = self.commits.with_log(|log| KnownLives::find(log));
        let keeps_clients = own.group == places.root();
        KnownLives::new(Arc::downgrade(&self.commits), places.clone(), keeps_clients, found)
    }

    /// Returns what the replica continues from, once.
    pub(in crate::shards) const fn take_content(&mut self) -> Option<SavedContent> {
        self.content.take()
    }

    /// Returns what is known of the other replicas' disks, once.
    pub(in crate::shards) fn take_shown(&mut self) -> ShownDisks {
        std::mem::take(&mut self.shown)
    }

    /// Returns the incarnation under which a replica with this incarnation began its disk.
    pub(in crate::shards) fn disk_since(&self, incarnation: u16) -> u16 {
        self.since.unwrap_or(incarnation)
    }

    /// Returns the lowest incarnation that is higher than every earlier one of this replica, or
    /// zero if it has never run.
    pub(in crate::shards) const fn next_incarnation(&self) -> u16 {
        match self.incarnation {
            0 => 0,
            last => last.saturating_add(1),
        }
    }

    /// Returns how far the group had formed when the replica was started.
    pub(in crate::shards) const fn formation(&self) -> &Formation {
        &self.formation
    }

    /// Returns what an operator should know about the disk.
    pub(in crate::shards) fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    /// Returns the last record that is known to be on the disk.
    pub(in crate::shards) const fn saved(&self) -> &LogRecord {
        &self.saved
    }

    /// Records that the replica continues from a record on this disk.
    pub(in crate::shards) const fn recovered(&mut self, record: LogRecord) {
        self.saved = record;
    }

    /// Saves the incarnation under which the replica runs, and how far its group has formed.
    pub(in crate::shards) fn keep_formation(
        &self,
        incarnation: u16,
        founders: &[u64],
        stage: FoundingStage,
    ) -> Result<(), FolderError> {
        let founders: Vec<u8> = founders.iter().flat_map(|life| life.to_le_bytes()).collect();
        let since = self.disk_since(incarnation).to_le_bytes();
        let incarnation = incarnation.to_le_bytes();
        let stage = [stage.byte()];
        let values: [(&str, Option<&[u8]>); 4] = [
            (INCARNATION, Some(&incarnation)),
            (SINCE, Some(&since)),
            (FOUNDERS, Some(&founders)),
            (STAGE, Some(&stage)),
        ];
        Ok(self.commits.with_log(|log| log.set_values(&values))?)
    }

    /// Hands over what the last step has left unsaved.
    #[inline]
    pub(in crate::shards) fn save<M: Memory>(
        &mut self,
        replica: &mut Replica<'_>,
        memory: &M,
    ) -> Result<(), Stopped> {
        let Some(unsaved) = replica.take_unsaved(memory).map_err(Stopped::Shard)? else {
            return Ok(());
        };
        for place in unsaved.from..unsaved.record.tail() {
            let mut buffer = std::mem::take(&mut self.buffer);
            let room = buffer.get_mut(1..).unwrap_or_default();
            let copied = replica.copy_entry(place, memory, room).map_err(Stopped::Shard)?;
            if let Some(bytes) = copied.and_then(|length| buffer.get(..=length)) {
                self.note_slot(place, self.next);
                self.append(place, bytes).map_err(not_durable)?;
            }
            self.buffer = buffer;
        }
        self.save_record(unsaved.record)
    }

    /// Hands over what is known of the other replicas' disks. Nobody waits for these records.
    pub(in crate::shards) fn save_shown(&mut self, shown: &[Vec<u8>]) -> Result<(), Stopped> {
        shown.iter().try_for_each(|record| self.append_shown(record).map_err(not_durable))
    }

    fn append_shown(&mut self, record: &[u8]) -> Result<(), AppendError> {
        self.append(0, &[&[SHOWN], record].concat())
    }

    fn save_record(&mut self, record: LogRecord) -> Result<(), Stopped> {
        self.append(record.tail(), &log_record_bytes(&record)).map_err(not_durable)?;
        self.handed.push_back((self.next, record));
        Ok(())
    }

    /// Reports to the core what has been saved since the last call.
    #[inline]
    pub(in crate::shards) fn report(&mut self, replica: &mut Replica<'_>) -> Result<(), Stopped> {
        if self.handed.is_empty() {
            return Ok(());
        }
        let durable = self.commits.durable();
        let count = self.handed.partition_point(|(end, _)| *end <= durable);
        if let Some((_, record)) = self.handed.drain(..count).next_back() {
            self.saved = record;
            replica.saved(record);
        }
        match self.handed.is_empty() {
            true => Ok(()),
            false => self.commits.failure().map_or(Ok(()), |error| Err(not_durable(error))),
        }
    }

    /// Saves a founder's first state, or another replica's snapshot that this replica has restored,
    /// together with the record that the core then hands over. Waits for the disk.
    pub(in crate::shards) fn save_with_snapshot<M: Memory>(
        &mut self,
        replica: &mut Replica<'_>,
        memory: &M,
        snapshot: &Snapshot,
    ) -> Result<(), Stopped> {
        self.wait()?;
        self.retention.drop_under_way();
        let unsaved = replica.take_unsaved(memory).map_err(Stopped::Shard)?;
        let record = unsaved.map_or(replica.taken_record(), |unsaved| unsaved.record);
        let install = |log: &mut tramontane_log::Log<SystemFolder>| -> Result<(), WriteError> {
            let mut writer = log.write_snapshot(log.end(), ViewId::ZERO)?;
            writer.write(&snapshot_head(&record, &snapshot.cells))?;
            writer.write(&snapshot.state)?;
            log.install_snapshot(writer.finish()?)
        };
        self.commits.with_log(install).map_err(not_durable)?;
        self.handed.clear();
        self.saved = record;
        replica.saved(record);
        Ok(())
    }

    /// Returns whether a snapshot of this replica is to be taken now.
    pub(in crate::shards) fn wants_snapshot(&self) -> bool {
        self.retention.wants_snapshot()
    }

    /// Begins to write a snapshot of this replica.
    pub(in crate::shards) fn begin_snapshot(
        &mut self,
        record: &LogRecord,
        taken: TakenSnapshot,
    ) -> Result<(), Stopped> {
        let head = snapshot_head(record, &taken.cells);
        let state = Box::new(Cursor::new(head).chain(taken.state));
        self.needed = self.slots.iter().copied().min().unwrap_or(self.next);
        let records = DurableCount(self.next.0);
        self.retention.begin(&self.commits, records, ViewId::ZERO, state).map_err(not_durable)
    }

    /// Discards what a written snapshot replaces.
    pub(in crate::shards) fn finish_snapshot(&mut self) -> Result<(), Stopped> {
        let all = DurableCount(u64::MAX);
        self.retention.finish(&self.commits, all, self.needed).map_err(not_durable)
    }

    fn append(&mut self, place: u64, bytes: &[u8]) -> Result<(), AppendError> {
        self.commits.append(&record_of(self.next, place, bytes))?;
        self.retention.appended(bytes.len().saturating_add(RECORD_HEADER_BYTES));
        self.next = self.next.plus(1);
        Ok(())
    }

    fn note_slot(&mut self, place: u64, sequence: Sequence) {
        let slots = self.slots.len().max(1) as u64;
        let slot = usize::try_from(place % slots).unwrap_or(usize::MAX);
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = sequence;
        }
    }

    /// Waits until everything appended has been synced.
    fn wait(&self) -> Result<(), Stopped> {
        while !self.commits.wait_durable(self.next, SYNC_PAUSE).map_err(not_durable)? {}
        Ok(())
    }
}

fn not_durable(error: impl std::fmt::Display) -> Stopped {
    Stopped::NotDurable(error.to_string())
}
