//! A batch being filled. Its records become durable with one write and one sync.

use tramontane_core::ids::ViewId;

use crate::blocks::Blocks;
use crate::error::PushError;
use crate::format::{BLOCK_BYTES, round_up};
use crate::mark::{BatchKind, MARK_BYTES, Mark, Role, SegmentKey};
use crate::record::{Record, Sequence, extent, put_record, record_bytes, seal_record};

/// Records waiting to be written. The memory of a batch is reused.
///
/// The sequences of the records are consecutive, and their views never decrease.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The batch on disk: room for the header, followed by the records.
    bytes: Blocks,
    first: Sequence,
    views: (ViewId, ViewId),
    next: Sequence,
    count: u64,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// Creates an empty batch.
    #[must_use]
    pub fn new() -> Self {
        let (first, views) = (Sequence::ZERO, (ViewId::ZERO, ViewId::ZERO));
        let bytes = Blocks::zeroed(MARK_BYTES);
        Self { bytes, first, views, next: first, count: 0 }
    }

    /// Adds a record after the others.
    pub fn push(&mut self, record: &Record<'_>) -> Result<(), PushError> {
        if self.count > 0 && record.sequence != self.next {
            return Err(PushError::OutOfOrder { expected: self.next, given: record.sequence });
        }
        self.put(record)
    }

    /// Adds a record whose sequence must be higher than those of the others.
    pub(crate) fn push_repair(&mut self, record: &Record<'_>) -> Result<(), PushError> {
        if self.count > 0 && record.sequence < self.next {
            return Err(PushError::OutOfOrder { expected: self.next, given: record.sequence });
        }
        self.put(record)
    }

    fn put(&mut self, record: &Record<'_>) -> Result<(), PushError> {
        let length = u32::try_from(record.bytes.len())
            .map_err(|_| PushError::TooLarge { bytes: record.bytes.len() })?;
        if self.count == 0 {
            self.first = record.sequence;
            self.views = (record.view, record.view);
        }
        if record.view < self.views.1 {
            return Err(PushError::ViewFell { last: self.views.1, given: record.view });
        }
        let views = record.view.get() - self.views.0.get();
        let views = u16::try_from(views).map_err(|_| PushError::Full)?;
        put_record(&mut self.bytes, record, length, views);
        self.views.1 = record.view;
        self.next = record.sequence.plus(1);
        self.count += 1;
        Ok(())
    }

    /// Returns whether the batch has no records.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the sequence of the first record.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.first
    }

    /// Returns the sequence that the next record must have, or `None` if the batch is empty.
    #[must_use]
    pub fn next(&self) -> Option<Sequence> {
        (self.count > 0).then_some(self.next)
    }

    /// Returns the number of bytes that the batch takes on disk, in whole blocks.
    #[must_use]
    pub fn disk_bytes(&self) -> usize {
        round_up(self.bytes.len() + MARK_BYTES, BLOCK_BYTES)
    }

    /// Returns the number of bytes that the batch would take with one more message of that length.
    #[must_use]
    pub fn disk_bytes_with(&self, message: usize) -> usize {
        round_up(self.bytes.len() + record_bytes(message) + MARK_BYTES, BLOCK_BYTES)
    }

    /// Removes all records.
    pub fn clear(&mut self) {
        self.bytes.truncate(MARK_BYTES);
        self.count = 0;
    }

    /// Returns the batch in the form written to a segment: its mark and its bytes.
    pub(crate) fn seal(
        &mut self,
        kind: BatchKind,
        key: SegmentKey,
        incarnation: u64,
        start: u64,
    ) -> (Mark, &[u8]) {
        let seed = key.seed(incarnation);
        let mut at = MARK_BYTES;
        while let Some(record) = extent(&self.bytes, at).filter(|_| at < self.bytes.len()) {
            at = record.end;
            seal_record(&mut self.bytes, record, seed);
        }
        let records_end = self.bytes.len();
        let length = self.disk_bytes();
        let (first, view, count) = (self.first, self.views.0, self.count);
        let mark = Mark { kind, incarnation, start, length: length as u64, first, view, count };
        self.bytes.resize(length, 0);
        self.bytes[..MARK_BYTES].copy_from_slice(&mark.encode(Role::Header, key));
        self.bytes[length - MARK_BYTES..].copy_from_slice(&mark.encode(Role::Trailer, key));
        debug_assert!(records_end <= length - MARK_BYTES);
        (mark, &self.bytes)
    }
}

/// Creates a batch without records, which says that all records from a sequence onwards are void.
pub(crate) fn cut_batch(sequence: Sequence) -> Batch {
    Batch { first: sequence, ..Batch::new() }
}
