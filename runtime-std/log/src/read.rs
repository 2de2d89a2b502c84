//! Reads records in order, verifying the checksum of each.

use std::ops::Range;

use crate::error::{At, ReadError};
use crate::index::BatchPlace;
use crate::layer::{FileLayer, LayerFile as _};
use crate::log::Log;
use crate::mark::SegmentKey;
use crate::record::{Record, Sequence, record_at, sequence_at};
use crate::scan::sound_records;
use crate::segment::segment_name;
use crate::snapshot::{self, SnapshotPlace};

/// A cursor over the records of a log.
#[derive(Debug)]
pub struct Records<'l, L: FileLayer> {
    log: &'l Log<L>,
    next: Sequence,
    loaded: Option<LoadedBatch>,
}

/// A batch in memory.
#[derive(Debug)]
struct LoadedBatch {
    place: BatchPlace,
    bytes: Vec<u8>,
    /// The byte ranges of the batch's intact records, in the order of their sequences.
    records: Vec<Range<usize>>,
}

impl<L: FileLayer> Log<L> {
    /// Returns the records from a sequence up to the current end of the log.
    pub fn records(&self, from: Sequence) -> Result<Records<'_, L>, ReadError> {
        let (first, end) = (self.first(), self.end());
        if from < first || from > end {
            return Err(ReadError::OutOfRange { first, end, wanted: from });
        }
        Ok(Records { log: self, next: from, loaded: None })
    }

    /// Returns the state of the snapshot.
    pub fn read_snapshot(&self) -> Result<(SnapshotPlace, Vec<u8>), ReadError> {
        let Some(place) = self.snapshot() else {
            return Err(ReadError::NoSnapshot { path: self.layer.path().to_owned() });
        };
        snapshot::read(&self.layer, self.metadata.content.log, place.sequence)
    }

    fn load(&self, place: BatchPlace) -> Result<LoadedBatch, ReadError> {
        let name = segment_name(place.segment);
        let at = || At { path: self.layer.path(), file: &name, action: "read" };
        let file = self.layer.open(&name).map_err(|error| at().read_error(error))?;
        let mut bytes = vec![0; place.mark.length as usize];
        let read = file.read_at(&mut bytes, place.mark.start);
        let read = read.map_err(|error| at().read_error(error))?;
        bytes.truncate(read);
        let key = SegmentKey { log: self.metadata.content.log, number: place.segment };
        let records = sound_records(&bytes, place.mark, key);
        Ok(LoadedBatch { place, bytes, records })
    }
}

impl<L: FileLayer> Records<'_, L> {
    /// Returns the next sequence.
    #[must_use]
    pub fn position(&self) -> Sequence {
        self.next
    }

    /// Returns the next record, or `None` at the end. A damaged record is returned as an error; the
    /// next call returns the record after it.
    pub fn read_next(&mut self) -> Option<Result<Record<'_>, ReadError>> {
        if self.next >= self.log.end() {
            return None;
        }
        let sequence = self.next;
        self.next = sequence.plus(1);
        Some(self.read(sequence))
    }

    fn read(&mut self, sequence: Sequence) -> Result<Record<'_>, ReadError> {
        let damaged = |segment| ReadError::Damaged { sequence, file: segment_name(segment) };
        if let Some((_, _, bad)) = self.log.index.bad_range(sequence) {
            return Err(damaged(bad.segment));
        }
        let Some((place, _)) = self.log.index.find(sequence) else {
            let (first, end) = (self.log.first(), self.log.end());
            return Err(ReadError::OutOfRange { first, end, wanted: sequence });
        };
        let loaded = match self.loaded.take() {
            Some(loaded) if loaded.place == place => loaded,
            _ => self.log.load(place)?,
        };
        let loaded = self.loaded.insert(loaded);
        let found = loaded
            .records
            .binary_search_by_key(&sequence, |record| sequence_at(&loaded.bytes, record.start));
        let Ok(found) = found else { return Err(damaged(place.segment)) };
        Ok(record_at(&loaded.bytes, loaded.records[found].clone(), place.mark.view))
    }
}
