//! Lists to regions as updates on the rows' connection: all bytes are copied, so that no write
//! needs a key, and the list is divided into as many updates as it needs.

use tramontane_core::fabric::{Area, ErrorKind, Kind, Region, ViewRows as _, WRITES_MAX, Write};

use super::updates::Updates;
use super::{Behind, Link};
use crate::adapter::{Operation, SendBuffers};
use crate::protocol::Counters;
use crate::protocol::update::{
    HEAD_BYTES, RECORD_HEAD_BYTES, RegionTarget, UPDATE_BYTES_MAX, UpdateWriter, record_place,
};
use crate::site::Rows;

/// Number of updates that a list to a region leaves free, so that rows are never held up.
const RESERVED: u64 = 4;

/// The shortest piece of a content that is worth a record of its own in an update, in bytes.
const PIECE_MIN: usize = 64;

/// Divides a list into records: each item is a part of a write, and whether it begins an update.
struct RecordPlan<'w> {
    list: &'w [Write],
    /// Number of bytes of the first write that have been planned.
    done: usize,
    room: usize,
    records: usize,
}

/// A part of a write: the source, the offset in the target region, and the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WritePart {
    begins: bool,
    source: Area,
    target: usize,
    length: usize,
}

impl<'w> RecordPlan<'w> {
    const fn of(list: &'w [Write]) -> Self {
        Self { list, done: 0, room: 0, records: WRITES_MAX }
    }
}

impl Iterator for RecordPlan<'_> {
    type Item = WritePart;

    fn next(&mut self) -> Option<WritePart> {
        while self.list.first().is_some_and(|write| self.done >= write.length) {
            (self.list, self.done) = (self.list.get(1..)?, 0);
        }
        let write = self.list.first()?;
        let left = write.length - self.done;
        let fits = |room: usize| {
            let room = room.saturating_sub(RECORD_HEAD_BYTES);
            // A cell is never divided.
            if left <= room { left } else { room & !7 }
        };
        let mut length = if self.records < WRITES_MAX { fits(self.room) } else { 0 };
        let is_too_short = length < left && (write.kind == Kind::Guard || length < PIECE_MIN);
        let begins = length == 0 || is_too_short;
        if begins {
            (self.room, self.records) = (UPDATE_BYTES_MAX - HEAD_BYTES, 0);
            length = fits(self.room);
        }
        let Area { region, offset } = write.source;
        let part = WritePart {
            begins,
            source: Area { region, offset: offset + self.done },
            target: write.target.offset + self.done,
            length,
        };
        self.room -= RECORD_HEAD_BYTES + length;
        self.records += 1;
        self.done += length;
        Some(part)
    }
}

impl Link {
    /// Returns the number of the last update that was sent.
    pub(crate) fn last_update(&self) -> u64 {
        self.updates().map_or(0, Updates::last_sent)
    }

    /// Posts a list to a region as updates; the last update asks for an answer if `asks`. Returns
    /// whether something was posted. A list without bytes is done immediately.
    ///
    /// # Errors
    /// Fails with [`ErrorKind::QueueFull`] if there is no room, or too few receives wait at the
    /// peer.
    pub(crate) fn post_region_list(
        &mut self,
        buffers: &mut SendBuffers,
        (list, target): (&[Write], RegionTarget),
        rows: &Rows,
        behind: Behind,
        asks: bool,
        counters: &mut Counters,
    ) -> Result<bool, ErrorKind> {
        let count = RecordPlan::of(list).filter(|part| part.begins).count();
        if count == 0 {
            return Ok(false);
        }
        let updates = self.updates().ok_or(ErrorKind::Other)?;
        let has_credits = updates.has_room_for(u64::try_from(count).unwrap_or(0), RESERVED);
        let requests = count + usize::from(behind != Behind::Nothing);
        if !has_credits || !self.queue.has_room(requests) {
            if !has_credits {
                self.ask(buffers, counters)?;
            }
            return Err(ErrorKind::QueueFull);
        }
        let mut plan = RecordPlan::of(list).peekable();
        for left in (0..count).rev() {
            let taken = self.updates_mut().ok_or(ErrorKind::Other)?.count_sent();
            let mut update = UpdateWriter::to_region(taken, asks && left == 0, target);
            let mut begins = true;
            while let Some(part) = plan.next_if(|part| part.begins == begins) {
                begins = false;
                let record = record_place(None, part.target)
                    .and_then(|place| update.record(place, part.length))
                    .ok_or(ErrorKind::OutOfRange)?;
                read_own(rows, part.source, record)?;
                counters.writes += 1;
                counters.bytes += u64::try_from(part.length).unwrap_or(0);
            }
            self.post_update(buffers, update.bytes(), counters)?;
        }
        if let Behind::Notice(notice) = behind {
            let operation = |target| Operation::WriteWithImmediate(target, notice);
            self.post_one(buffers, operation, None, None, false, counters)?;
            counters.notices_sent += 1;
        }
        Ok(true)
    }
}

/// Copies bytes of this member's row or of one of its regions.
fn read_own(rows: &Rows, source: Area, into: &mut [u8]) -> Result<(), ErrorKind> {
    let pages = if source.region == Region::ROW {
        Some(rows.pages(rows.own()))
    } else {
        rows.region_pages(source.region)
    };
    let pages = pages.ok_or(ErrorKind::OutOfRange)?;
    pages.row().read(source.offset, into).map_err(|_| ErrorKind::OutOfRange)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn write(kind: Kind, offset: usize, length: usize) -> Write {
        let area = Area { region: Region(1), offset };
        Write { source: area, target: area, length, kind }
    }

    proptest! {
        /// The records of a list contain each byte once, in order, and fit their updates. Guards
        /// and cells are whole.
        #[test]
        fn records_cover_a_list_in_order(
            lengths in prop::collection::vec((any::<bool>(), 0..5000_usize), 0..WRITES_MAX),
        ) {
            let mut offset = 0;
            let list: Vec<Write> = lengths
                .into_iter()
                .map(|(is_guard, length)| {
                    let kind = if is_guard { Kind::Guard } else { Kind::Content };
                    let length = if is_guard { length % 65 } else { length };
                    let write = write(kind, offset, length);
                    offset += length.next_multiple_of(8);
                    write
                })
                .collect();
            let (mut size, mut records) = (UPDATE_BYTES_MAX, 0);
            let mut planned = list.iter().filter(|write| write.length > 0);
            let mut current: Option<(Write, usize)> = None;
            for part in RecordPlan::of(&list) {
                (size, records) = if part.begins { (HEAD_BYTES, 0) } else { (size, records) };
                size += RECORD_HEAD_BYTES + part.length;
                records += 1;
                prop_assert!(size <= UPDATE_BYTES_MAX && records <= WRITES_MAX);
                let (write, done) = match current.take() {
                    Some(current) => current,
                    None => (*planned.next().expect("a write"), 0),
                };
                prop_assert_eq!(part.target, write.target.offset + done);
                prop_assert_eq!(part.source.offset, part.target);
                prop_assert!(part.length > 0 && done + part.length <= write.length);
                let is_last = done + part.length == write.length;
                prop_assert!(is_last || write.kind == Kind::Content && part.length % 8 == 0);
                current = (!is_last).then_some((write, done + part.length));
            }
            prop_assert!(current.is_none() && planned.next().is_none());
        }
    }

    /// The longest list must not need more receives than a peer has.
    #[test]
    fn longest_region_list_fits_the_receives() {
        let mut list =
            vec![write(Kind::Content, 0, crate::protocol::update::REGION_LIST_BYTES_MAX - 15 * 64)];
        list.extend((0..15).map(|at| write(Kind::Guard, 20_000 + 64 * at, 64)));
        let count = RecordPlan::of(&list).filter(|part| part.begins).count();
        assert!(count as u64 + RESERVED < u64::from(crate::protocol::blocks::MESSAGES_MAX));
    }
}
