//! Updates: the content of one list of writes as one message.
//!
//! If devices place writes in any order, a write cannot guard another. Each list then ends with an
//! update, which the peer's processor applies when its receive completes: the only moment at which
//! all earlier writes of the connection are known to be visible (InfiniBand Architecture
//! Specification 1.4, o9-20).
//!
//! | bytes | content |
//! |---|---|
//! | 0 to 8 | the total number of updates that its sender has processed |
//! | 8 to 10 | the number of records that follow |
//! | 10 | 1 if the peer must answer at once with the number it has processed, otherwise 0 |
//! | 11 | 0 for rows; for a region of the receiver, the region's number plus 1 |
//! | 12 to 16 | the number of the right under which the sender writes to that region, otherwise 0 |
//! | the rest | records: the offset in the row or region (6), the row (2), the number of bytes (2), and the bytes |
//!
//! The row is 0 for the sender's, and otherwise 1 more than the rank of the member whose message
//! the sender passes on (REL-1).
//!
//! A list to a region may need several updates, because all of its bytes are in them.
//!
//! Numbers are encoded with the least significant byte first. A peer's bytes are checked: a message
//! that no correct member sends is not an update.

use tramontane_core::fabric::WRITES_MAX;
use tramontane_core::ids::Rank;

/// Size in bytes of the longest update: all guards of the longest list, and a few short contents.
pub(crate) const UPDATE_BYTES_MAX: usize = 1536;

/// Maximum number of bytes in a list to a region that is sent as updates.
pub(crate) const REGION_LIST_BYTES_MAX: usize = 16 << 10;

/// Number of bytes before the records.
pub(crate) const HEAD_BYTES: usize = 16;

/// Number of bytes before a record's data.
pub(crate) const RECORD_HEAD_BYTES: usize = 10;

/// The bit of a record's place at which its row begins.
const ROW_SHIFT: u32 = 48;

/// Returns the row and offset of a record as one number, or `None` if the offset is out of range.
/// `owner` is the member whose message is passed on.
pub(crate) fn record_place(owner: Option<Rank>, offset: usize) -> Option<u64> {
    let row = owner.map_or(0, |owner| u64::from(owner.0) + 1);
    let offset = u64::try_from(offset).ok().filter(|offset| offset >> ROW_SHIFT == 0)?;
    Some(row << ROW_SHIFT | offset)
}

/// The region to which an update writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionTarget {
    /// The region's number.
    pub(crate) number: u8,
    /// The number of the right under which the sender writes.
    pub(crate) right: u32,
}

/// An update under construction.
#[derive(Debug)]
pub(crate) struct UpdateWriter {
    bytes: [u8; UPDATE_BYTES_MAX],
    length: usize,
    records: u16,
}

impl UpdateWriter {
    /// Starts an update that reports the number of updates processed, and has no records yet.
    pub(crate) fn new(taken: u64, asks: bool) -> Self {
        let mut bytes = [0; UPDATE_BYTES_MAX];
        bytes[..8].copy_from_slice(&taken.to_le_bytes());
        bytes[10] = u8::from(asks);
        Self { bytes, length: HEAD_BYTES, records: 0 }
    }

    /// Starts an update of one of the receiver's regions.
    pub(crate) fn to_region(taken: u64, asks: bool, target: RegionTarget) -> Self {
        let mut update = Self::new(taken, asks);
        update.bytes[11] = target.number.saturating_add(1);
        update.bytes[12..16].copy_from_slice(&target.right.to_le_bytes());
        update
    }

    /// Adds a record at a [place](record_place), and returns the space for its bytes. Returns
    /// `None` if the record does not fit.
    pub(crate) fn record(&mut self, at: u64, length: usize) -> Option<&mut [u8]> {
        let short = u16::try_from(length).ok()?;
        let start = self.length.checked_add(RECORD_HEAD_BYTES)?;
        let end = start.checked_add(length).filter(|end| *end <= UPDATE_BYTES_MAX)?;
        let head = self.bytes.get_mut(self.length..start)?;
        let (place, count) = head.split_at_mut_checked(8)?;
        place.copy_from_slice(&at.to_le_bytes());
        count.copy_from_slice(&short.to_le_bytes());
        self.records += 1;
        self.bytes[8..10].copy_from_slice(&self.records.to_le_bytes());
        self.length = end;
        self.bytes.get_mut(start..end)
    }

    /// Returns the encoded update.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A received update.
#[derive(Debug)]
pub(crate) struct Update<'u> {
    /// The total number of updates that the sender has processed.
    pub(crate) taken: u64,
    /// Whether the sender is waiting for the number of updates that this member has processed.
    pub(crate) asks: bool,
    /// The region to which the update writes, unless it writes to the sender's row.
    pub(crate) region: Option<RegionTarget>,
    records: u16,
    rest: &'u [u8],
}

impl<'u> Update<'u> {
    /// Decodes an update. Returns `None` if no correct member sends it.
    pub(crate) fn decode(bytes: &'u [u8]) -> Option<Self> {
        let (taken, rest) = bytes.split_first_chunk()?;
        let (records, rest) = rest.split_first_chunk()?;
        let ([asks, region], rest) = rest.split_first_chunk()?;
        let (right, rest) = rest.split_first_chunk()?;
        let records = u16::from_le_bytes(*records);
        let right = u32::from_le_bytes(*right);
        let asks = match asks {
            0 => false,
            1 => true,
            _ => return None,
        };
        let region = region.checked_sub(1).map(|number| RegionTarget { number, right });
        if region.is_none() && right != 0 {
            return None;
        }
        let update = Self { taken: u64::from_le_bytes(*taken), asks, region, records, rest };
        (usize::from(records) <= WRITES_MAX && update.is_whole()).then_some(update)
    }

    /// Returns whether the records fill the update exactly.
    fn is_whole(&self) -> bool {
        let mut rest = self.rest;
        for _ in 0..self.records {
            let Some((_, after)) = split_record(rest) else { return false };
            rest = after;
        }
        rest.is_empty()
    }

    /// Returns the update's records, in the order of the list.
    pub(crate) fn records(&self) -> impl Iterator<Item = UpdateRecord<'u>> {
        let mut rest = self.rest;
        (0..self.records).map_while(move |_| {
            let (record, after) = split_record(rest)?;
            rest = after;
            Some(record)
        })
    }
}

/// A record of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UpdateRecord<'u> {
    /// The member whose message is passed on, or `None` in the sender's row or a region.
    pub(crate) owner: Option<Rank>,
    /// Offset in the row or region.
    pub(crate) offset: usize,
    pub(crate) bytes: &'u [u8],
}

/// Returns the first record, and the bytes after it.
fn split_record(bytes: &[u8]) -> Option<(UpdateRecord<'_>, &[u8])> {
    let (place, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::from(u16::from_le_bytes(*length));
    let (bytes, rest) = rest.split_at_checked(length)?;
    let place = u64::from_le_bytes(*place);
    let offset = usize::try_from(place & ((1 << ROW_SHIFT) - 1)).ok()?;
    let owner = u16::try_from(place >> ROW_SHIFT).ok()?.checked_sub(1).map(Rank);
    (length > 0).then_some((UpdateRecord { owner, offset, bytes }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> UpdateWriter {
        let mut update = UpdateWriter::new(7 << 40, true);
        update.record(64, 8).expect("room").copy_from_slice(&[1; 8]);
        let place = record_place(Some(Rank(6)), 1 << 33).expect("in range");
        update.record(place, 3).expect("room").copy_from_slice(&[2; 3]);
        update
    }

    #[test]
    fn updates_round_trip() {
        let update = sample();
        let heard = Update::decode(update.bytes()).expect("an update");
        assert_eq!((heard.taken, heard.asks), (7 << 40, true));
        let records: Vec<_> = heard.records().collect();
        let record = |owner, offset, bytes| UpdateRecord { owner, offset, bytes };
        let relayed = record(Some(Rank(6)), 1 << 33, &[2; 3][..]);
        assert_eq!(records, [record(None, 64, &[1; 8][..]), relayed]);
        assert_eq!((record_place(None, 64), record_place(None, 1 << 48)), (Some(64), None));
        assert_eq!(heard.region, None);
        let target = RegionTarget { number: 31, right: 0xdead_beef };
        let mut update = UpdateWriter::to_region(9, true, target);
        update.record(8, 1).expect("room");
        let heard = Update::decode(update.bytes()).expect("an update");
        assert_eq!((heard.taken, heard.asks, heard.region), (9, true, Some(target)));
        let empty = UpdateWriter::new(3, false);
        let heard = Update::decode(empty.bytes()).expect("an update");
        assert_eq!((heard.taken, heard.asks, heard.records().count()), (3, false, 0));
    }

    #[test]
    fn guards_of_longest_list_fit_one_update() {
        let mut update = UpdateWriter::new(0, false);
        for at in (0..).step_by(64).take(WRITES_MAX) {
            assert!(update.record(at, 64).is_some());
        }
        assert_eq!(Update::decode(update.bytes()).expect("one").records().count(), WRITES_MAX);
        assert!(update.record(0, UPDATE_BYTES_MAX).is_none());
    }

    #[test]
    fn malformed_updates_are_refused() {
        let update = sample();
        let bytes = update.bytes();
        for length in 0..bytes.len() {
            assert!(Update::decode(&bytes[..length]).is_none(), "{length}");
        }
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.to_vec();
            bytes[at] = byte;
            Update::decode(&bytes).is_none()
        };
        assert!(changed(8, 1) && changed(8, 3), "more or fewer records than there are");
        assert!(changed(10, 2), "a flag that is none");
        assert!(changed(12, 1), "a right to a row");
        assert!(changed(HEAD_BYTES + 8, 9), "a record that is longer than its bytes");
        let mut long = bytes.to_vec();
        long.push(0);
        assert!(Update::decode(&long).is_none(), "bytes behind the last record");
        let mut many = UpdateWriter::new(0, false);
        for at in (0..).take(WRITES_MAX + 1) {
            many.record(at, 1).expect("room");
        }
        assert!(Update::decode(many.bytes()).is_none(), "more records than a list has writes");
    }
}
