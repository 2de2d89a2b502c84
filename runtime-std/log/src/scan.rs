//! Finding batches and records in the bytes of one segment, however damaged.
//!
//! Pure functions over bytes: no file is touched here.
//!
//! # What holds
//! - Nothing that fails its checksum is given as a record.
//! - A batch whose one mark is damaged is found by the other; records behind a damaged one in its
//!   batch are found again by their sequence and checksum.
//! - What is missing has a name: the sequences that the marks count and no sound record has.

use std::ops::Range;

use crate::format::{BLOCK_BYTES, Seed};
use crate::mark::{BatchKind, MARK_BYTES, Mark, Role, SegmentKey};
use crate::record::{RECORD_UNIT, Sequence, extent, is_sound, sequence_at};

/// A batch as it was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundBatch {
    pub(crate) mark: Mark,
    pub(crate) is_header_sound: bool,
    pub(crate) is_trailer_sound: bool,
    /// Where its filling is not zeros, if it is not.
    pub(crate) bad_filling: Option<Range<u64>>,
    /// Sequences of the sound records of a repair, which say themselves which they are.
    pub(crate) repairs: Vec<Sequence>,
    /// Records that are damaged: their sequences, and about where they are in the segment.
    pub(crate) bad: Vec<BadRecords>,
}

/// Records that are damaged, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadRecords {
    pub(crate) first: Sequence,
    pub(crate) end: Sequence,
    /// Where in the segment the damage begins.
    pub(crate) offset: u64,
}

/// What the bytes of a segment hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundBatches {
    pub(crate) batches: Vec<FoundBatch>,
    /// Where blocks lie between two batches that belong to neither.
    pub(crate) gaps: Vec<u64>,
    /// Where the last batch ends.
    pub(crate) end: u64,
}

impl FoundBatch {
    /// Whether all its records are as they were written.
    pub(crate) fn is_whole(&self) -> bool {
        self.bad.is_empty()
    }

    /// Whether it was not yet written to its end when the log ended: there is a header, and neither
    /// a trailer nor all that should be before it.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_header_sound && !self.is_trailer_sound && !self.is_whole()
    }
}

/// Finds all batches from an offset on.
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

/// The next batch that begins at an offset or behind it, and where it does.
fn next_mark(segment: &[u8], from: usize, key: SegmentKey) -> Option<(Mark, usize)> {
    (from..segment.len()).step_by(BLOCK_BYTES).find_map(|block| {
        if let Some(mark) = Mark::read(segment, block, Role::Header, key) {
            return Some((mark, block));
        }
        // The end of this block may be that of a batch whose header is damaged.
        let trailer = block + BLOCK_BYTES - MARK_BYTES;
        let mark = Mark::read(segment, trailer, Role::Trailer, key)?;
        (mark.start >= from as u64).then_some((mark, mark.start as usize))
    })
}

/// Looks at all records of a batch that lies in the segment.
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
            // Which ones a damaged repair was for, the damaged records themselves still say.
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

/// The sound records of a batch that lies in the segment, in their order.
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

/// A way through the records of a batch.
struct Walk<'b> {
    batch: &'b [u8],
    mark: Mark,
    seed: Seed,
    at: usize,
    /// The sequence that comes next; of a repair, the least that may.
    expected: Sequence,
    /// How many records are ahead.
    left: u64,
}

impl Walk<'_> {
    /// The next sound record. Those between were damaged, or all to the end if there is none.
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

    /// The record at an offset, if it is one that may come next and is sound. Its sequence is
    /// compared first, so that bytes that are no record cost little.
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
