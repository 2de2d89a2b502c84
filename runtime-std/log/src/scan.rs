//! Finds batches and records in the bytes of one segment, whatever the damage.
//!
//! The functions are pure: they work on bytes and access no files.
//!
//! # Invariants
//! - Bytes whose checksum does not match are never returned as a record.
//! - If one mark of a batch is damaged, the batch is found by the other mark. Records that follow a
//!   damaged one in a batch are found by their sequence and checksum.
//! - All missing records are listed, that is, the sequences that the marks cover but for which
//!   there is no intact record.

use std::ops::Range;

use crate::format::{BLOCK_BYTES, Seed};
use crate::mark::{BatchKind, MARK_BYTES, Mark, Role, SegmentKey};
use crate::record::{RECORD_UNIT, Sequence, extent, is_sound, sequence_at};

/// A batch found in a segment.
#[derive(Clone, Debug)]
pub(crate) struct FoundBatch {
    pub(crate) mark: Mark,
    pub(crate) is_header_sound: bool,
    pub(crate) is_trailer_sound: bool,
    /// The range of the batch's padding that is not zero, if any.
    pub(crate) bad_filling: Option<Range<u64>>,
    /// The sequences of the intact records of a repair, as given in the records themselves.
    pub(crate) repairs: Vec<Sequence>,
    /// The damaged records, with their sequences and their approximate locations in the segment.
    pub(crate) bad: Vec<BadRecords>,
}

/// Consecutive damaged records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRecords {
    pub(crate) first: Sequence,
    pub(crate) end: Sequence,
    /// The offset in the segment at which the damage begins.
    pub(crate) offset: u64,
}

/// The content of a segment.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundBatches {
    pub(crate) batches: Vec<FoundBatch>,
    /// The offsets of blocks that lie between two batches and belong to neither.
    pub(crate) gaps: Vec<u64>,
    /// The end of the last batch.
    pub(crate) end: u64,
}

impl FoundBatch {
    /// Returns whether all records of the batch are intact.
    pub(crate) fn is_whole(&self) -> bool {
        self.bad.is_empty()
    }

    /// Returns whether the log ended before the batch was completely written: it has a header, but
    /// neither a trailer nor all records.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_header_sound && !self.is_trailer_sound && !self.is_whole()
    }
}

/// Finds all batches at or after an offset.
pub(crate) fn find_batches(segment: &[u8], from: usize, key: SegmentKey) -> FoundBatches {
    let mut found = FoundBatches { end: from as u64, ..FoundBatches::default() };
    let mut at = from;
    while let Some((mark, start)) = next_mark(segment, at, key) {
        if start > at {
            found.gaps.push(at as u64);
        }
        found.batches.push(look_at(segment, mark, key));
        at = start + mark.length as usize;
        found.end = at as u64;
    }
    found
}

/// Returns the mark of the next batch that begins at or after an offset, and the batch's beginning.
fn next_mark(segment: &[u8], from: usize, key: SegmentKey) -> Option<(Mark, usize)> {
    (from..segment.len()).step_by(BLOCK_BYTES).find_map(|block| {
        if let Some(mark) = Mark::read(segment, block, Role::Header, key) {
            return Some((mark, block));
        }
        // The end of this block may be the end of a batch whose header is damaged.
        let trailer = block + BLOCK_BYTES - MARK_BYTES;
        let mark = Mark::read(segment, trailer, Role::Trailer, key)?;
        (mark.start >= from as u64).then_some((mark, mark.start as usize))
    })
}

/// Examines all records of a batch in a segment.
fn look_at(segment: &[u8], mark: Mark, key: SegmentKey) -> FoundBatch {
    let is_there = |role| Mark::read(segment, mark.at(role) as usize, role, key) == Some(mark);
    let batch = &segment[mark.start as usize..mark.end() as usize];
    let seed = key.seed(mark.incarnation);
    let mut walk =
        Walk { batch, mark, seed, at: MARK_BYTES, expected: mark.first, left: mark.count };
    let mut found = FoundBatch {
        mark,
        is_header_sound: is_there(Role::Header),
        is_trailer_sound: is_there(Role::Trailer),
        bad_filling: None,
        repairs: Vec::new(),
        bad: Vec::new(),
    };
    while walk.left > 0 {
        let (expected, damage) = (walk.expected, mark.start + walk.at as u64);
        let next = walk.next();
        let sequence = next.as_ref().map(|range| sequence_at(batch, range.start));
        if mark.kind == BatchKind::Repair {
            found.repairs.extend(sequence);
        }
        let end = match (mark.kind, sequence) {
            (BatchKind::Records, Some(sequence)) => sequence,
            (BatchKind::Records, None) => mark.next(),
            // If a record of a repair is damaged, the damaged records that it should have replaced
            // are still known.
            (_, Some(_)) => expected,
            (_, None) => expected.plus(1),
        };
        if end > expected {
            found.bad.push(BadRecords { first: expected, end, offset: damage });
        }
        if next.is_none() {
            return found;
        }
    }
    let filling = walk.at..batch.len() - MARK_BYTES;
    if batch.get(filling.clone()).is_some_and(|bytes| bytes.iter().any(|byte| *byte != 0)) {
        found.bad_filling =
            Some(mark.start + filling.start as u64..mark.start + filling.end as u64);
    }
    found
}

/// Returns the intact records of a batch in a segment, in order.
pub(crate) fn sound_records(batch: &[u8], mark: Mark, key: SegmentKey) -> Vec<Range<usize>> {
    let seed = key.seed(mark.incarnation);
    let mut walk =
        Walk { batch, mark, seed, at: MARK_BYTES, expected: mark.first, left: mark.count };
    let mut records = Vec::new();
    while walk.left > 0 {
        let Some(record) = walk.next() else { break };
        records.push(record);
    }
    records
}

/// A cursor over the records of a batch.
struct Walk<'b> {
    batch: &'b [u8],
    mark: Mark,
    seed: Seed,
    at: usize,
    /// The next sequence; for a repair, the lowest possible one.
    expected: Sequence,
    /// The number of records still to be read.
    left: u64,
}

impl Walk<'_> {
    /// Returns the next intact record. Any records skipped before it were damaged. If there is
    /// none, all remaining records are damaged.
    fn next(&mut self) -> Option<Range<usize>> {
        let body = self.batch.get(..self.batch.len().checked_sub(MARK_BYTES)?)?;
        let starts = (self.at..body.len()).step_by(RECORD_UNIT);
        let record = starts.into_iter().find_map(|at| self.sound_at(body, at))?;
        let sequence = sequence_at(body, record.start);
        let passed = match self.mark.kind {
            BatchKind::Records => sequence.0 - self.expected.0,
            BatchKind::Cut | BatchKind::Repair => 0,
        };
        self.at = record.end;
        self.expected = sequence.plus(1);
        self.left = self.left.saturating_sub(passed + 1);
        Some(record)
    }

    /// Returns the record at an offset, if it is intact and may come next. Its sequence is checked
    /// first, so that rejecting bytes that are not a record is cheap.
    fn sound_at(&self, body: &[u8], at: usize) -> Option<Range<usize>> {
        let sequence = sequence_at(body, at);
        let may_come = match self.mark.kind {
            BatchKind::Records => sequence >= self.expected && sequence < self.mark.next(),
            BatchKind::Cut => false,
            BatchKind::Repair => sequence >= self.expected,
        };
        let record = extent(body, at).filter(|_| may_come)?;
        is_sound(body, record.clone(), self.seed).then_some(record)
    }
}
