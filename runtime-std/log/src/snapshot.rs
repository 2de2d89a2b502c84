//! Snapshots of the application's state after all records before a sequence.
//!
//! A snapshot is written under a temporary name, synced, and renamed. So it exists either
//! completely or not at all, and the log before it may be discarded.
//!
//! The format on disk: the prefix, a checksum of the rest, the log, the sequence, the view, the
//! size of the state in bytes, and the state. The checksum of the state is computed part by part,
//! each with the previous checksum as its seed.

use std::io;

use tramontane_core::ids::ViewId;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::damage::{Damage, Damaged};
use crate::error::{At, ReadError, SYNC, WriteError};
use crate::format::{FileKind, PREFIX_BYTES, Prefix, put, put_prefix, read_prefix, u64_at};
use crate::layer::{FileLayer, LayerFile as _, read_whole};
use crate::record::Sequence;

const NAME: &str = "snapshot-";

/// The name of a snapshot that is being written.
const PART: &str = "snapshot-part";

/// The offset of the state.
const STATE: usize = 64;

/// The size in bytes of the parts in which the state is hashed.
const HASHED_BYTES: usize = 1 << 20;

/// The position and size of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotPlace {
    /// The sequence after the last record that the state includes.
    pub sequence: Sequence,
    /// The view in which the snapshot was taken.
    pub view: ViewId,
    /// The size of the state, in bytes.
    pub bytes: u64,
}

/// A snapshot that is being written. It has no effect until it is installed.
#[derive(Debug)]
pub struct SnapshotWriter<L: FileLayer> {
    layer: L,
    file: L::File,
    log: u64,
    place: SnapshotPlace,
    checksum: u64,
    /// Data that has not been hashed and written yet.
    waiting: Vec<u8>,
}

/// A snapshot that has been completely written and synced, but has no permanent name yet.
#[derive(Debug)]
#[must_use = "a snapshot counts once the log has installed it"]
pub struct WrittenSnapshot {
    pub(crate) place: SnapshotPlace,
}

/// Returns the file name of a snapshot.
pub(crate) fn snapshot_name(sequence: Sequence) -> String {
    format!("{NAME}{sequence:0>20}")
}

/// Returns the sequence of the snapshot with that file name.
pub(crate) fn snapshot_sequence(name: &str) -> Option<Sequence> {
    name.strip_prefix(NAME)?.parse().ok().map(Sequence)
}

/// Returns whether a file is an unfinished snapshot.
pub(crate) fn is_part(name: &str) -> bool {
    name == PART
}

fn header(log: u64, place: &SnapshotPlace, checksum: u64) -> [u8; STATE] {
    let mut bytes = [0; STATE];
    put_prefix(&mut bytes, FileKind::Snapshot);
    let fields = [log, place.sequence.0, place.view.get(), place.bytes];
    for (index, field) in fields.into_iter().enumerate() {
        put(&mut bytes, PREFIX_BYTES + 8 + 8 * index, field);
    }
    let checksum = xxh3_64_with_seed(&bytes[PREFIX_BYTES + 8..], checksum);
    put(&mut bytes, PREFIX_BYTES, checksum);
    bytes
}

impl<L: FileLayer> SnapshotWriter<L> {
    pub(crate) fn begin(
        layer: L,
        log: u64,
        sequence: Sequence,
        view: ViewId,
    ) -> Result<Self, WriteError> {
        let at = |action| At { path: layer.path(), file: PART, action };
        match layer.remove(PART) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(at("remove").write_error(error));
            }
            Ok(()) | Err(_) => {}
        }
        let file = layer.create(PART).map_err(|error| at("create").write_error(error))?;
        let place = SnapshotPlace { sequence, view, bytes: 0 };
        Ok(Self { layer, file, log, place, checksum: 0, waiting: Vec::new() })
    }

    /// Adds a part of the state.
    pub fn write(&mut self, mut part: &[u8]) -> Result<(), WriteError> {
        while !part.is_empty() {
            let taken = part.len().min(HASHED_BYTES - self.waiting.len());
            self.waiting.extend_from_slice(&part[..taken]);
            part = &part[taken..];
            if self.waiting.len() == HASHED_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Makes the complete snapshot durable.
    pub fn finish(mut self) -> Result<WrittenSnapshot, WriteError> {
        self.flush()?;
        let header = header(self.log, &self.place, self.checksum);
        self.write_at(&header, 0)?;
        let synced = self.file.sync();
        synced.map_err(|error| {
            At { path: self.layer.path(), file: PART, action: SYNC }.write_error(error)
        })?;
        Ok(WrittenSnapshot { place: self.place })
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let waiting = std::mem::take(&mut self.waiting);
        if !waiting.is_empty() {
            self.checksum = xxh3_64_with_seed(&waiting, self.checksum);
            self.write_at(&waiting, STATE as u64 + self.place.bytes)?;
            self.place.bytes += waiting.len() as u64;
        }
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), WriteError> {
        self.file.write_at(bytes, offset).map_err(|error| {
            At { path: self.layer.path(), file: PART, action: "write" }.write_error(error)
        })
    }
}

/// Durably gives a written snapshot its name, and removes older ones.
pub(crate) fn install<L: FileLayer>(
    layer: &L,
    written: &WrittenSnapshot,
) -> Result<(), WriteError> {
    let name = snapshot_name(written.place.sequence);
    let at = |action| At { path: layer.path(), file: &name, action };
    layer.rename(PART, &name).map_err(|error| at("rename").write_error(error))?;
    layer.sync_folder().map_err(|error| at(SYNC).write_error(error))?;
    let names = layer.list().map_err(|error| at("list").write_error(error))?;
    let others = names.iter().filter(|name| snapshot_sequence(name).is_some());
    for old in others.filter(|old| **old != name) {
        layer.remove(old).map_err(|error| at("remove").write_error(error))?;
    }
    Ok(())
}

/// Returns the newest intact snapshot, and the damage of the others.
pub(crate) fn newest<L: FileLayer>(
    layer: &L,
    log: u64,
    names: &[String],
) -> Result<(Option<SnapshotPlace>, Vec<Damage>), (String, io::Error)> {
    let mut sequences: Vec<Sequence> =
        names.iter().filter_map(|name| snapshot_sequence(name)).collect();
    sequences.sort_unstable();
    let (mut newest, mut damage) = (None, Vec::new());
    for sequence in sequences {
        let file = snapshot_name(sequence);
        let bytes = read_whole(layer, &file).map_err(|error| (file.clone(), error))?;
        match check(&bytes, log, sequence) {
            Some(place) => newest = Some(place),
            None => damage.push(Damage { file, offset: 0, what: Damaged::Snapshot }),
        }
    }
    Ok((newest, damage))
}

/// Returns the state of a snapshot.
pub(crate) fn read<L: FileLayer>(
    layer: &L,
    log: u64,
    sequence: Sequence,
) -> Result<(SnapshotPlace, Vec<u8>), ReadError> {
    let file = snapshot_name(sequence);
    let at = At { path: layer.path(), file: &file, action: "read" };
    let mut bytes = read_whole(layer, &file).map_err(|error| at.read_error(error))?;
    let Some(place) = check(&bytes, log, sequence) else {
        return Err(ReadError::SnapshotDamaged { file });
    };
    bytes.drain(..STATE);
    Ok((place, bytes))
}

/// Returns the position of a snapshot file, if it is intact and belongs to that log and sequence.
fn check(bytes: &[u8], log: u64, sequence: Sequence) -> Option<SnapshotPlace> {
    if read_prefix(bytes, FileKind::Snapshot) != Prefix::Known {
        return None;
    }
    let state = bytes.get(STATE..)?;
    let place = SnapshotPlace {
        sequence,
        view: ViewId(u64_at(bytes, PREFIX_BYTES + 24)),
        bytes: state.len() as u64,
    };
    let parts = state.chunks(HASHED_BYTES);
    let checksum = parts.fold(0, |checksum, part| xxh3_64_with_seed(part, checksum));
    (bytes[..STATE] == header(log, &place, checksum)).then_some(place)
}
