//! Reads a whole log: its records, its damage, and its end.
//!
//! Used at a start. Nothing is changed here.
//!
//! # Invariants
//! - A torn last batch is dropped, unless it is known to have been durable. Any other batch is
//!   kept, and its damaged records are listed.

use std::collections::BTreeMap;
use std::io;

use crate::damage::{Damage, Damaged};
use crate::format::BLOCK_BYTES;
use crate::index::{BadPlace, BatchPlace, Index};
use crate::layer::{FileLayer, read_whole};
use crate::mark::{BatchKind, MARK_BYTES, Role, SegmentKey};
use crate::metadata::StoredMetadata;
use crate::record::Sequence;
use crate::scan::{FoundBatch, FoundBatches, find_batches};
use crate::segment::{ReadHeader, SegmentHeader, is_spare, segment_name, segment_number};
use crate::snapshot::{self, SnapshotPlace};

/// The result of examining a log.
#[derive(Debug)]
pub(crate) struct Examined {
    pub(crate) index: Index,
    pub(crate) damage: Vec<Damage>,
    /// The size of each segment in bytes, by segment number.
    pub(crate) segments: BTreeMap<u64, u64>,
    /// Files that may become segments.
    pub(crate) spares: Vec<String>,
    /// Files that are no longer needed.
    pub(crate) leftovers: Vec<String>,
    /// Repairs that can be made from the log itself.
    pub(crate) mends: Vec<Mend>,
    /// The segment that is being written.
    pub(crate) tail: Option<FoundTail>,
    /// The newest intact snapshot.
    pub(crate) snapshot: Option<SnapshotPlace>,
    /// Whether a torn last batch was dropped.
    pub(crate) is_torn: bool,
    /// The number of the next segment.
    pub(crate) next_segment: u64,
    /// The total size of the batches, in bytes.
    pub(crate) batch_bytes: u64,
    pub(crate) batches: u64,
}

/// The last segment.
#[derive(Debug)]
pub(crate) struct FoundTail {
    pub(crate) number: u64,
    /// The offset of the next batch.
    pub(crate) used: u64,
    /// The last batch, if it is completely intact.
    pub(crate) last: Option<Mend>,
}

/// The correct bytes for an offset in a segment, with which damage is repaired.
#[derive(Clone, Debug)]
pub(crate) struct Mend {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The reasons why a log cannot be examined.
#[derive(Debug)]
pub(crate) enum ExamineError {
    Io { file: String, source: io::Error },
    Newer { file: String, found: u32 },
}

/// Reads a whole log that has the given metadata. Records before `durable` are known to have been
/// durable, so a batch that contains such records is never torn.
pub(crate) fn examine<L: FileLayer>(
    layer: &L,
    content: &StoredMetadata,
    durable: Sequence,
) -> Result<Examined, ExamineError> {
    let names = layer.list().map_err(|source| ExamineError::Io { file: ".".into(), source })?;
    let mut reading = Reading::new(content, &names, durable);
    let numbers: Vec<u64> = reading.found.segments.keys().copied().collect();
    for number in numbers {
        let file = segment_name(number);
        let bytes = read_whole(layer, &file)
            .map_err(|source| ExamineError::Io { file: file.clone(), source })?;
        reading.segment(number, &bytes)?;
    }
    reading.end();
    let mut found = reading.found;
    let (snapshot, damage) = snapshot::newest(layer, content.log, &names)
        .map_err(|(file, source)| ExamineError::Io { file, source })?;
    found.snapshot = snapshot;
    found.damage.extend(damage);
    Ok(found)
}

/// The state of reading all segments in order.
struct Reading {
    log: u64,
    base: Sequence,
    durable: Sequence,
    found: Examined,
    is_begun: bool,
    last_number: Option<u64>,
    /// A torn batch at the end of the data read so far. If more data follows, the batch is void or
    /// damaged instead.
    torn: Option<(u64, FoundBatch)>,
}

impl Reading {
    fn new(content: &StoredMetadata, names: &[String], durable: Sequence) -> Self {
        let numbers = names.iter().filter_map(|name| segment_number(name));
        let (kept, old): (Vec<u64>, Vec<u64>) =
            numbers.partition(|number| *number >= content.first_segment);
        let spares = names.iter().filter(|name| is_spare(name)).cloned().collect();
        let parts = names.iter().filter(|name| snapshot::is_part(name)).cloned();
        let found = Examined {
            index: Index::starting_at(content.base),
            damage: Vec::new(),
            segments: kept.into_iter().map(|number| (number, 0)).collect(),
            spares,
            leftovers: old.into_iter().map(segment_name).chain(parts).collect(),
            mends: Vec::new(),
            tail: None,
            snapshot: None,
            is_torn: false,
            next_segment: content.first_segment,
            batch_bytes: 0,
            batches: 0,
        };
        let last_number = content.first_segment.checked_sub(1);
        Self {
            log: content.log,
            base: content.base,
            durable,
            found,
            is_begun: false,
            last_number,
            torn: None,
        }
    }

    fn segment(&mut self, number: u64, bytes: &[u8]) -> Result<(), ExamineError> {
        let key = SegmentKey { log: self.log, number };
        let header = match SegmentHeader::read(bytes, key) {
            ReadHeader::Newer(found) => {
                return Err(ExamineError::Newer { file: segment_name(number), found });
            }
            ReadHeader::Sound(header) => Some(header),
            ReadHeader::Damaged => None,
        };
        let mut batches = find_batches(bytes, BLOCK_BYTES, key);
        if header.is_none() && batches.batches.is_empty() {
            // Either the segment was never used, or it is completely damaged; the following
            // segments show which.
            return Ok(());
        }
        self.missing_until(number);
        let first = self.begin(number, header, &batches);
        if header.is_none() {
            self.damage(number, 0, Damaged::SegmentHeader);
            let incarnation = batches.batches.first().map_or(0, |batch| batch.mark.incarnation);
            let bytes = SegmentHeader { key, incarnation, first }.encode().to_vec();
            self.found.mends.push(Mend { segment: number, offset: 0, bytes });
        }
        if let Some(torn) = batches.batches.pop_if(|batch| self.is_torn(batch)) {
            batches.end = torn.mark.start;
            self.torn = Some((number, torn));
        }
        self.found.segments.insert(number, bytes.len() as u64);
        for offset in &batches.gaps {
            self.damage(number, *offset, Damaged::Blocks);
        }
        for batch in &batches.batches {
            self.batch(number, batch, key);
        }
        let last = batches.batches.last().map(|batch| whole_batch(bytes, batch, key));
        let last = last.flatten().map(|(offset, bytes)| Mend { segment: number, offset, bytes });
        self.found.tail = Some(FoundTail { number, used: batches.end, last });
        Ok(())
    }

    /// Returns whether a last batch was never durable. A batch is written with one sync, so either
    /// all of it was durable or nothing.
    fn is_torn(&self, batch: &FoundBatch) -> bool {
        let was_durable = batch.mark.kind == BatchKind::Records && batch.mark.first < self.durable;
        batch.is_torn() && !was_durable
    }

    /// Reports earlier segments that are missing, or that have no intact data.
    fn missing_until(&mut self, number: u64) {
        let missing = self.last_number.map_or(number, |last| last.saturating_add(1));
        for lost in missing..number.min(missing.saturating_add(16)) {
            let what = match self.found.segments.contains_key(&lost) {
                true => Damaged::SegmentHeader,
                false => Damaged::Segment,
            };
            self.damage(lost, 0, what);
        }
        self.last_number = Some(number);
        self.found.next_segment = number.saturating_add(1);
    }

    /// Continues reading with the records of a segment. Returns the segment's first sequence.
    fn begin(
        &mut self,
        number: u64,
        header: Option<SegmentHeader>,
        batches: &FoundBatches,
    ) -> Sequence {
        let by_batch = batches.batches.first().and_then(|batch| match batch.mark.kind {
            BatchKind::Records => Some(batch.mark.first),
            BatchKind::Cut | BatchKind::Repair => None,
        });
        let first = header.map(|header| header.first).or(by_batch);
        if let Some((segment, torn)) = self.torn.take() {
            // The log continued after the batch. The batch was void if other records have its
            // sequences; otherwise it is damaged.
            if first.is_none_or(|first| first > torn.mark.first) {
                self.batch(segment, &torn, SegmentKey { log: self.log, number: segment });
            }
        }
        let index = &mut self.found.index;
        let first = first.unwrap_or(index.end());
        if !self.is_begun {
            index.begin_at(first.min(self.base));
            self.is_begun = true;
        }
        index.go_on_at(first, BadPlace { segment: number, offset: 0 });
        first
    }

    fn batch(&mut self, number: u64, batch: &FoundBatch, key: SegmentKey) {
        let mark = batch.mark;
        let place = BatchPlace { segment: number, mark };
        let index = &mut self.found.index;
        match mark.kind {
            BatchKind::Records => index.add(place),
            BatchKind::Cut => {
                let place = BadPlace { segment: number, offset: mark.start };
                index.go_on_at(mark.first, place);
            }
            BatchKind::Repair => index.repair(&batch.repairs, place),
        }
        if mark.kind == BatchKind::Records {
            for bad in &batch.bad {
                let place = BadPlace { segment: number, offset: bad.offset };
                index.mark_bad(bad.first, bad.end, place);
            }
        }
        self.found.batches += 1;
        self.found.batch_bytes += mark.length;
        let marks =
            [(Role::Header, batch.is_header_sound), (Role::Trailer, batch.is_trailer_sound)];
        for (role, is_sound) in marks {
            if !is_sound {
                self.damage(number, mark.at(role), Damaged::Mark);
                let bytes = mark.encode(role, key).to_vec();
                self.found.mends.push(Mend { segment: number, offset: mark.at(role), bytes });
            }
        }
        if let Some(filling) = &batch.bad_filling {
            self.damage(number, filling.start, Damaged::Mark);
            let bytes = vec![0; (filling.end - filling.start) as usize];
            self.found.mends.push(Mend { segment: number, offset: filling.start, bytes });
        }
        if mark.kind == BatchKind::Repair && !batch.is_whole() {
            self.damage(number, mark.start, Damaged::Blocks);
        }
    }

    fn damage(&mut self, number: u64, offset: u64, what: Damaged) {
        self.found.damage.push(Damage { file: segment_name(number), offset, what });
    }

    /// Completes the result once everything has been read.
    fn end(&mut self) {
        let found = &mut self.found;
        found.is_torn = self.torn.is_some();
        // A segment after the last used one has been created but never written to.
        let unused = found.segments.split_off(&found.next_segment);
        found.leftovers.extend(unused.into_keys().map(segment_name));
        for (first, end, place) in found.index.bad() {
            let what = Damaged::Records { first, end };
            let file = segment_name(place.segment);
            found.damage.push(Damage { file, offset: place.offset, what });
        }
    }
}

/// Returns a batch whose records are all intact, with both marks corrected.
fn whole_batch(segment: &[u8], batch: &FoundBatch, key: SegmentKey) -> Option<(u64, Vec<u8>)> {
    let mark = batch.mark;
    if !batch.is_whole() {
        return None;
    }
    let mut bytes = segment.get(mark.start as usize..mark.end() as usize)?.to_vec();
    let trailer = bytes.len() - MARK_BYTES;
    bytes[..MARK_BYTES].copy_from_slice(&mark.encode(Role::Header, key));
    bytes[trailer..].copy_from_slice(&mark.encode(Role::Trailer, key));
    if let Some(filling) = &batch.bad_filling {
        bytes[(filling.start - mark.start) as usize..trailer].fill(0);
    }
    Some((mark.start, bytes))
}
