//! An open log, with its commits and the segments to which they are written.
//!
//! # Invariants
//! - [`Log::commit`] returns once the batch is durable. It costs one write and one sync and,
//!   occasionally, a new segment.
//! - After a failed write or sync the log accepts nothing more. Durable records are kept.
//! - At most one batch at a time is not yet durable, so only the last batch of a log can be torn.

use std::collections::BTreeMap;

use crate::batch::Batch;
use crate::error::{At, LetGoError, ReplaceError, SYNC, WriteError};
use crate::format::BLOCK_BYTES;
use crate::index::{BatchPlace, Index};
use crate::layer::{FileLayer, LayerFile as _};
use crate::mark::{BatchKind, SegmentKey};
use crate::metadata::{Identity, Metadata};
use crate::noted::Noted;
use crate::record::{Record, Sequence};
use crate::segment::{SegmentHeader, segment_name, spare_name};
use crate::snapshot::{self, SnapshotPlace, SnapshotWriter, WrittenSnapshot};

/// The default size of segments, in bytes.
pub const SEGMENT_BYTES_DEFAULT: u64 = 64 << 20;

/// The default number of discarded segments kept for reuse.
pub const SPARES_MAX_DEFAULT: usize = 2;

/// Options for a log's use of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The size of new segments, in bytes. A larger batch gets a segment of its own.
    pub segment_bytes: u64,
    /// The number of discarded segments kept for reuse.
    pub spares_max: usize,
    /// The owner's note about the log, if there is one.
    pub noted: Option<Noted>,
}

impl Default for Options {
    fn default() -> Self {
        Self { segment_bytes: SEGMENT_BYTES_DEFAULT, spares_max: SPARES_MAX_DEFAULT, noted: None }
    }
}

/// The log of one subgroup.
#[derive(Debug)]
pub struct Log<L: FileLayer> {
    pub(crate) layer: L,
    pub(crate) metadata: Metadata<L>,
    pub(crate) options: Options,
    pub(crate) index: Index,
    /// The size of each segment in bytes, by segment number.
    pub(crate) segments: BTreeMap<u64, u64>,
    pub(crate) spares: Vec<String>,
    pub(crate) next_segment: u64,
    pub(crate) tail: Option<Tail<L::File>>,
    pub(crate) snapshot: Option<SnapshotPlace>,
    pub(crate) has_failed: bool,
    /// Held as long as the log is open.
    pub(crate) _lock: Option<L::Lock>,
}

/// The segment that is being written.
#[derive(Debug)]
pub(crate) struct Tail<F> {
    pub(crate) file: F,
    pub(crate) number: u64,
    pub(crate) used: u64,
}

impl<L: FileLayer> Log<L> {
    /// Returns the group and subgroup that own the log.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.metadata.content.identity
    }

    /// Returns the first record of the log.
    #[must_use]
    pub fn first(&self) -> Sequence {
        self.index.first()
    }

    /// Returns the sequence of the next record. All records before it are durable.
    #[must_use]
    pub fn end(&self) -> Sequence {
        self.index.end()
    }

    /// Returns the number of times that the log has been opened for writing.
    #[must_use]
    pub fn incarnation(&self) -> u64 {
        self.metadata.content.incarnation
    }

    /// Returns the note that the log's owner may store now.
    #[must_use]
    pub fn note(&self) -> Noted {
        let content = &self.metadata.content;
        Noted { log: content.log, incarnation: content.incarnation, end: self.end() }
    }

    /// Returns the log's snapshot.
    #[must_use]
    pub fn snapshot(&self) -> Option<SnapshotPlace> {
        self.snapshot
    }

    /// Returns the number of segments, and their total size in bytes.
    #[must_use]
    pub fn segments(&self) -> (usize, u64) {
        (self.segments.len(), self.segments.values().sum())
    }

    /// Returns the total size in bytes of the batches that begin at or after a sequence.
    #[must_use]
    pub fn bytes_from(&self, sequence: Sequence) -> u64 {
        self.index.bytes_from(sequence)
    }

    /// Returns the ranges of damaged records, each from its first record up to but excluding its
    /// end.
    pub fn damaged(&self) -> impl Iterator<Item = (Sequence, Sequence)> + '_ {
        self.index.bad().map(|(first, end, _)| (first, end))
    }

    /// Makes a batch durable, and empties it. Returns the new end of the log.
    ///
    /// After an error, it is unknown whether the batch is on disk, so the process must end as if it
    /// had crashed. Only [`WriteError::OutOfOrder`] changes nothing.
    pub fn commit(&mut self, batch: &mut Batch) -> Result<Sequence, WriteError> {
        if batch.is_empty() {
            return Ok(self.end());
        }
        let expected = self.end();
        if batch.first() != expected {
            return Err(WriteError::OutOfOrder { expected, given: batch.first() });
        }
        let place = self.write(batch, BatchKind::Records)?;
        self.index.add(place);
        batch.clear();
        Ok(self.end())
    }

    /// Replaces damaged records with a peer's copies, in the order of their sequences.
    pub fn replace(&mut self, records: &[Record<'_>]) -> Result<(), ReplaceError> {
        let good = records.iter().find(|record| self.index.bad_range(record.sequence).is_none());
        if let Some(good) = good {
            return Err(ReplaceError::NotDamaged(good.sequence));
        }
        let mut batch = Batch::new();
        for record in records {
            batch.push_repair(record)?;
        }
        if !batch.is_empty() {
            let place = self.write(&mut batch, BatchKind::Repair)?;
            let sequences: Vec<Sequence> = records.iter().map(|record| record.sequence).collect();
            self.index.repair(&sequences, place);
        }
        Ok(())
    }

    /// Returns a named value of the group.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.metadata.content.values.get(name).map(Vec::as_slice)
    }

    /// Returns the names of all values.
    pub fn value_names(&self) -> impl Iterator<Item = &str> {
        self.metadata.content.values.keys().map(String::as_str)
    }

    /// Makes named values durable, either all or none of them. `None` removes a value.
    pub fn set_values(&mut self, values: &[(&str, Option<&[u8]>)]) -> Result<(), WriteError> {
        self.writable()?;
        for (name, value) in values {
            let content = &mut self.metadata.content.values;
            match value {
                Some(value) => content.insert((*name).to_owned(), value.to_vec()),
                None => content.remove(*name),
            };
        }
        self.write_metadata()
    }

    /// Begins a snapshot of the state after all records before a sequence. The log can be written
    /// to in the meantime.
    pub fn write_snapshot(
        &self,
        sequence: Sequence,
        view: tramontane_core::ids::ViewId,
    ) -> Result<SnapshotWriter<L>, WriteError>
    where
        L: Clone,
    {
        self.writable()?;
        SnapshotWriter::begin(self.layer.clone(), self.metadata.content.log, sequence, view)
    }

    /// Makes a written snapshot the log's own. If the snapshot is beyond the log's end, as on a
    /// joining member, the log continues after it, without the records in between.
    pub fn install_snapshot(&mut self, written: WrittenSnapshot) -> Result<(), WriteError> {
        self.writable()?;
        let installed = snapshot::install(&self.layer, &written);
        self.done(installed)?;
        self.snapshot = Some(written.place);
        if written.place.sequence > self.end() {
            self.restart_at(written.place.sequence)?;
        }
        Ok(())
    }

    /// Discards the records before a sequence. There must be a snapshot that reaches that sequence.
    pub fn let_go_below(&mut self, sequence: Sequence) -> Result<(), LetGoError> {
        self.writable()?;
        if self.snapshot.is_none_or(|snapshot| snapshot.sequence < sequence) {
            return Err(LetGoError::NoSnapshot { wanted: sequence });
        }
        let sequence = sequence.min(self.end());
        if sequence > self.first() {
            self.index.let_go(sequence);
            self.forget_segments()?;
        }
        Ok(())
    }

    /// Continues at a sequence beyond the end, without the records in between.
    fn restart_at(&mut self, sequence: Sequence) -> Result<(), WriteError> {
        self.index = Index::starting_at(sequence);
        self.tail = None;
        self.forget_segments()
    }

    /// Discards segments without served records. The new beginning of the log is made durable
    /// first, so that segments left over after a crash are known to be void.
    fn forget_segments(&mut self) -> Result<(), WriteError> {
        let tail = self.tail.as_ref().map_or(self.next_segment, |tail| tail.number);
        let first = self.index.first_segment().map_or(tail, |first| first.min(tail));
        self.metadata.content.base = self.index.first();
        self.metadata.content.first_segment = first;
        self.write_metadata()?;
        let kept = self.segments.split_off(&first);
        for (number, bytes) in std::mem::replace(&mut self.segments, kept) {
            let recycled = self.recycle(number, bytes);
            self.done(recycled)?;
        }
        Ok(())
    }

    /// Keeps a segment for reuse, or removes it.
    fn recycle(&mut self, number: u64, bytes: u64) -> Result<(), WriteError> {
        let name = segment_name(number);
        let at = |action| At { path: self.layer.path(), file: &name, action };
        if bytes == self.options.segment_bytes && self.spares.len() < self.options.spares_max {
            let spare = spare_name(number);
            self.layer.rename(&name, &spare).map_err(|error| at("rename").write_error(error))?;
            self.spares.push(spare);
        } else {
            self.layer.remove(&name).map_err(|error| at("remove").write_error(error))?;
        }
        Ok(())
    }

    /// Writes a batch after the last one, and syncs it.
    pub(crate) fn write(
        &mut self,
        batch: &mut Batch,
        kind: BatchKind,
    ) -> Result<BatchPlace, WriteError> {
        self.writable()?;
        let written = self.try_write(batch, kind);
        self.done(written)
    }

    fn try_write(&mut self, batch: &mut Batch, kind: BatchKind) -> Result<BatchPlace, WriteError> {
        let bytes = batch.disk_bytes() as u64;
        let has_room = |tail: &Tail<L::File>| {
            self.segments.get(&tail.number).is_some_and(|length| tail.used + bytes <= *length)
        };
        let mut tail = match self.tail.take() {
            Some(tail) if has_room(&tail) => tail,
            _ => self.next_segment(bytes)?,
        };
        let key = SegmentKey { log: self.metadata.content.log, number: tail.number };
        let (mark, bytes) = batch.seal(kind, key, self.metadata.content.incarnation, tail.used);
        let name = segment_name(tail.number);
        let at = |action| At { path: self.layer.path(), file: &name, action };
        tail.file.write_at(bytes, tail.used).map_err(|error| at("write").write_error(error))?;
        tail.file.sync().map_err(|error| at(SYNC).write_error(error))?;
        tail.used = mark.end();
        let place = BatchPlace { segment: tail.number, mark };
        self.tail = Some(tail);
        Ok(place)
    }

    /// Creates a new segment for a batch of `bytes` bytes. Its name is durable when this returns;
    /// its header becomes durable with the batch.
    fn next_segment(&mut self, bytes: u64) -> Result<Tail<L::File>, WriteError> {
        let number = self.next_segment;
        let header = BLOCK_BYTES as u64;
        let wanted = self.options.segment_bytes.max(header + bytes);
        let name = segment_name(number);
        let at = |action| At { path: self.layer.path(), file: &name, action };
        let is_usual = wanted == self.options.segment_bytes;
        let mut file = match self.spares.pop_if(|_| is_usual) {
            Some(spare) => {
                let renamed = self.layer.rename(&spare, &name);
                renamed.map_err(|error| at("rename").write_error(error))?;
                self.layer.open(&name).map_err(|error| at("open").write_error(error))?
            }
            None => {
                let mut file =
                    self.layer.create(&name).map_err(|error| at("create").write_error(error))?;
                file.allocate(wanted).map_err(|error| at("allocate").write_error(error))?;
                file
            }
        };
        // The name comes first. Otherwise, a power loss might undo the renaming of a spare but keep
        // its new header. The spare could become the same segment again, and lose its next header
        // to another power loss. The old header would then void durable records.
        self.layer.sync_folder().map_err(|error| at(SYNC).write_error(error))?;
        let key = SegmentKey { log: self.metadata.content.log, number };
        let incarnation = self.metadata.content.incarnation;
        let header = SegmentHeader { key, incarnation, first: self.index.end() }.encode();
        file.write_at(&header, 0).map_err(|error| at("write").write_error(error))?;
        let length = file.length().map_err(|error| at("read").write_error(error))?;
        self.segments.insert(number, length);
        self.next_segment = number.saturating_add(1);
        Ok(Tail { file, number, used: header.len() as u64 })
    }

    fn write_metadata(&mut self) -> Result<(), WriteError> {
        let written = self.metadata.write().map_err(|(action, file, error)| {
            At { path: self.layer.path(), file, action }.write_error(error)
        });
        self.done(written)
    }

    /// Checks whether the log may be written to.
    pub(crate) fn writable(&self) -> Result<(), WriteError> {
        let path = || self.layer.path().to_owned();
        if !self.has_failed && !self.metadata.is_writable() {
            return Err(WriteError::ReadOnly { path: path() });
        }
        if self.has_failed { Err(WriteError::Failed { path: path() }) } else { Ok(()) }
    }

    /// Records an error, after which nothing more is written.
    pub(crate) fn done<T>(&mut self, done: Result<T, WriteError>) -> Result<T, WriteError> {
        self.has_failed |= done.is_err();
        done
    }
}
