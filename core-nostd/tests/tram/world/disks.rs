//! Disks of durable replicas. What a crash finds unsaved is lost from some point on.

use std::collections::BTreeMap;

use tramontane_core::tram::{LinkRole, LogRecord, ReplicaId, ReplicaLinks, Shape};

use super::snapshots::Snapshot;
use super::{Answering, RunningReplica, World, judging};

/// One write of a host to its disk.
enum Write {
    Snapshot { snapshot: Snapshot, record: LogRecord },
    Log { record: LogRecord, entries: BTreeMap<u64, Vec<u8>> },
}

/// The disk of one replica.
#[derive(Default)]
pub struct ReplicaDisk {
    writes: Vec<Write>,
    /// Number of writes that a crash does not take back.
    saved: usize,
}

/// The content of a disk, for a host that recovers.
struct DiskContent<'d> {
    snapshot: Option<&'d Snapshot>,
    record: LogRecord,
    entries: BTreeMap<u64, &'d [u8]>,
}

impl ReplicaDisk {
    /// Returns the disk of a founder that has saved nothing else yet.
    pub fn of_founder() -> Self {
        let record = LogRecord::from_cells([0, 0, 0, 0, 0, 0, 1]);
        Self { writes: vec![Write::Log { record, entries: BTreeMap::new() }], saved: 1 }
    }

    fn found(&self) -> Option<DiskContent<'_>> {
        let (mut snapshot, mut last, mut entries) = (None, None, BTreeMap::new());
        for write in &self.writes {
            match write {
                Write::Snapshot { snapshot: of, record } => {
                    (snapshot, last) = (Some(of), Some(*record));
                }
                Write::Log { record, entries: new } => {
                    last = Some(*record);
                    entries.extend(new.iter().map(|(place, bytes)| (*place, bytes.as_slice())));
                    entries.retain(|place, _| *place < record.tail());
                }
            }
        }
        Some(DiskContent { snapshot, record: last?, entries })
    }
}

impl World {
    /// Writes what a step has left unsaved, sometimes a snapshot too, and saves some of it.
    pub(super) fn save(&mut self, id: ReplicaId, running: &mut RunningReplica) {
        if !self.settings.durable {
            return;
        }
        let disk = self.disks.entry(id).or_default();
        let mut buffer = vec![0; Shape::of(self.overlay, id.group).list_bytes()];
        let RunningReplica { replica, memory, .. } = running;
        if let Some(unsaved) = replica.take_unsaved(memory).expect("it fits") {
            let entry = |place| {
                let length = replica.copy_entry(place, memory, &mut buffer).expect("it fits")?;
                Some((place, buffer[..length].to_vec()))
            };
            let entries = (unsaved.from..unsaved.record.tail()).filter_map(entry).collect();
            disk.writes.push(Write::Log { record: unsaved.record, entries });
        }
        if replica.delivered() > 0 && self.random.chance(1) {
            let mut cells = vec![0; replica.snapshot_cells()];
            replica.snapshot(&mut cells).expect("as many cells");
            let history = self.histories[&id].clone();
            let (snapshot, record) = (Snapshot { cells, history }, replica.taken_record());
            disk.writes.push(Write::Snapshot { snapshot, record });
        }
        let unsaved = disk.writes.len() - disk.saved;
        let saves = self.unsaving != Some(id);
        if unsaved > 0 && saves && self.random.chance(self.settings.saves_percent) {
            let before = disk.saved;
            disk.saved += 1 + self.random.below(unsaved);
            let newly = &disk.writes[before..disk.saved];
            let (Write::Log { record, .. } | Write::Snapshot { record, .. }) =
                newly.last().expect("one at least");
            replica.saved(*record);
        }
    }

    /// Writes a snapshot of another replica, which the replica has restored.
    pub(super) fn save_snapshot(
        &mut self,
        id: ReplicaId,
        to: &mut RunningReplica,
        snapshot: &Snapshot,
    ) {
        if let Some(unsaved) = to.replica.take_unsaved(&to.memory).expect("it fits") {
            assert_eq!(unsaved.from, unsaved.record.tail(), "the log stays as it was");
            let write = Write::Snapshot { snapshot: snapshot.clone(), record: unsaved.record };
            self.disks.entry(id).or_default().writes.push(write);
        }
    }

    /// Returns what is on a replica's disk, which has no snapshot.
    pub fn log_of(&self, id: ReplicaId) -> (LogRecord, Vec<(u64, Vec<u8>)>) {
        let DiskContent { record, entries, .. } = self.disks[&id].found().expect("a record");
        (record, entries.into_iter().map(|(place, bytes)| (place, bytes.to_vec())).collect())
    }

    /// Keeps what a replica that is about to crash has shown to the others of its group, and
    /// forgets what the others have shown to it.
    pub(super) fn note_shown(&mut self, id: ReplicaId) {
        self.shown.retain(|(witness, _), _| *witness != id);
        let is_snapshot = |write: &Write| matches!(write, Write::Snapshot { .. });
        let lost = self.disks.get(&id).map_or(&[][..], |disk| &disk.writes[disk.saved..]);
        if lost.iter().any(is_snapshot) {
            // Some hosts of this world continue before a snapshot that they have restored is saved.
            return;
        }
        for (witness, running) in &self.replicas {
            let links = ReplicaLinks::of(self.overlay, witness.group);
            let Some(link) = links
                .find(LinkRole::Peer(id.rank))
                .filter(|_| witness.group == id.group && *witness != id)
            else {
                continue;
            };
            let shown = running.replica.shown_by(link, &running.memory).expect("it fits");
            let before = self.shown.entry((*witness, id)).or_default();
            *before = before.and(&shown);
        }
    }

    /// Discards the last writes of a replica's disk, as if the disk had been replaced with a copy
    /// of it. Returns whether any was saved.
    pub fn roll_back(&mut self, id: ReplicaId, writes: usize) -> bool {
        let Some(disk) = self.disks.get_mut(&id) else { return false };
        let kept = disk.writes.len().saturating_sub(writes).max(1);
        let has_lost = kept < disk.saved;
        disk.writes.truncate(kept);
        disk.saved = disk.saved.min(kept);
        has_lost
    }

    /// Takes back some of the writes that were not saved when a replica crashed.
    pub(super) fn lose_unsaved(&mut self, id: ReplicaId) {
        if let Some(disk) = self.disks.get_mut(&id) {
            let unsaved =
                if self.unsaving == Some(id) { 0 } else { disk.writes.len() - disk.saved };
            let kept = disk.saved + self.random.below(unsaved + 1);
            disk.writes.truncate(kept);
            disk.saved = kept;
        }
    }

    /// Continues from a replica's disk. Returns false if there is nothing on it.
    pub(super) fn recover(&mut self, id: ReplicaId, running: &mut RunningReplica) -> bool {
        let Some(DiskContent { snapshot, record, entries }) =
            self.disks.get(&id).and_then(ReplicaDisk::found)
        else {
            self.disks.remove(&id);
            self.shown.retain(|(_, of), _| *of != id);
            return false;
        };
        let RunningReplica { replica, memory, .. } = running;
        let mut oldest = 0;
        if let Some(Snapshot { cells, history }) = snapshot {
            assert!(replica.restore(cells, memory).expect("it fits"), "its own snapshot");
            self.histories.insert(id, history.clone());
            oldest = replica.delivered().saturating_sub(u64::from(self.settings.log_entries));
        }
        let history = self.histories.get_mut(&id).expect("a history");
        let mut complaints = Vec::new();
        let deliver = judging(id, history, &mut self.ever, &self.sent, &mut complaints);
        let mut application = Answering::new(deliver, id.group);
        for (place, bytes) in entries.range(oldest..) {
            let entry = (*place, *bytes);
            replica.recover_entry(&record, entry, memory, &mut application).expect("it continues");
        }
        drop(application);
        replica.recover(&record, memory).expect("nothing is missing");
        self.complaints.append(&mut complaints);
        self.recovered += 1;
        let has = replica.least_saved();
        let shown = self.shown.iter().filter(|((_, of), _)| *of == id);
        self.noticed += u32::from(shown.into_iter().any(|(_, shown)| !has.covers(shown)));
        true
    }
}
