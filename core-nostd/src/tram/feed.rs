//! Feeds: a ring of messages in a row, from a client or a parent's replica to one replica.
//!
//! Messages of one source have consecutive ordinals. Each replica of the group receives them in its
//! own ring, and takes them at its own pace: a slot is rewritten once that replica has taken its
//! message. A feeder may omit messages that the replica has already taken because it learnt them
//! from its group. So a slot has a mark, the ordinal plus one, in addition to the count of all
//! written messages.
//!
//! A count is posted as a guard, after the slots that it covers.
//!
//! Source: TRAM, section 5.1 (the buffers); requirements TRM-6, TRM-7, SMC-6.

use super::entry::{Content, MessageId};
use super::overlay::Destinations;
use super::posting::Posting;
use super::shape::{Shape, feed_row};
use crate::fabric::{Area, Region};
use crate::ids::{Ordinal, index_from_u32};
use crate::layout::CACHE_LINE;
use crate::memory::{OutOfRow, Row, RowWriter};

const MARK: usize = 0;
const PARTY: usize = 8;
const NUMBER: usize = 16;
const DESTINATIONS: usize = 24;
const LENGTH: usize = 32;

/// A message in a slot, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fed {
    pub(super) id: MessageId,
    pub(super) destinations: Destinations,
    pub(super) length: u32,
}

impl Fed {
    /// Returns an entry's message as a child sees it, or `None` if the entry does not concern
    /// children.
    pub(super) fn of(content: &Content) -> Option<Self> {
        match *content {
            Content::Message(message) => Some(Self {
                id: message.id,
                destinations: message.destinations,
                length: message.length,
            }),
            Content::Null { timestamp } => {
                let id = MessageId::of_null(timestamp);
                Some(Self { id, destinations: Destinations(0), length: 0 })
            }
            Content::Open { .. } | Content::Close { .. } | Content::Admit { .. } => None,
        }
    }

    /// Returns whether this is a null, which takes a position without being a message.
    pub(super) fn is_null(&self) -> bool {
        self.id.is_null() && self.destinations == Destinations(0) && self.length == 0
    }
}

/// The source of a payload.
#[derive(Clone, Copy)]
pub(super) enum Payload<'p> {
    Bytes(&'p [u8]),
    /// Cells of a row, starting at an offset.
    Cells(Row<'p>, usize),
    /// No payload: the slot refers to it.
    Reference,
}

/// A ring of slots in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ring<'r> {
    pub(super) shape: &'r Shape,
    pub(super) window: u32,
    /// Size in bytes of the cells that are posted as the guard after the slots: the count, and the
    /// cells that follow it.
    guard_bytes: usize,
}

impl<'r> Ring<'r> {
    /// Returns a client's ring.
    pub(super) const fn of_client(shape: &'r Shape) -> Self {
        Self { shape, window: shape.client_window(), guard_bytes: 8 }
    }

    /// Returns the ring of a parent's replica, in which the decided counts are posted with the
    /// count.
    pub(super) const fn of_parent(shape: &'r Shape) -> Self {
        Self { shape, window: shape.parent_window(), guard_bytes: 24 }
    }

    /// Returns the name of the message in an ordinal's slot, if the slot has that ordinal.
    pub(super) fn name(
        &self,
        row: Row<'_>,
        ordinal: Ordinal,
    ) -> Result<Option<MessageId>, OutOfRow> {
        let at = self.shape.slot(ordinal.0, self.window);
        let get = |offset: usize| row.cell(at.saturating_add(offset)).map(|cell| cell.load());
        if get(MARK)? != ordinal.next().0 {
            return Ok(None);
        }
        Ok(Some(MessageId::from_cells(get(PARTY)?, get(NUMBER)?)))
    }

    /// Stores a message in its slot.
    pub(super) fn store(
        &self,
        row: RowWriter<'_>,
        ordinal: Ordinal,
        fed: &Fed,
        payload: Payload<'_>,
    ) -> Result<(), OutOfRow> {
        let at = self.shape.slot(ordinal.0, self.window);
        let put = |offset: usize, value: u64| -> Result<(), OutOfRow> {
            row.cell(at.saturating_add(offset))?.publish(value);
            Ok(())
        };
        put(MARK, 0)?;
        put(PARTY, fed.id.party_cell())?;
        put(NUMBER, fed.id.number)?;
        put(DESTINATIONS, fed.destinations.0)?;
        put(LENGTH, u64::from(fed.length))?;
        let body = at.saturating_add(CACHE_LINE);
        match payload {
            Payload::Bytes(bytes) => row.apply(body, bytes)?,
            Payload::Cells(from, offset) => {
                row.copy_from(body, &from, offset, whole_cells(fed.length))?
            }
            Payload::Reference => {}
        }
        put(MARK, ordinal.next().0)
    }

    /// Adds the slots of a range of ordinals to a list, followed by the count. Returns the ordinal
    /// at which the list was full.
    pub(super) fn post(
        &self,
        row: RowWriter<'_>,
        posting: &mut Posting,
        from: Ordinal,
        to: Ordinal,
    ) -> Result<Ordinal, OutOfRow> {
        let mut ordinal = from;
        // bound: a window. One write is reserved for the count, and a list is never longer than a
        // window.
        for _ in 0..self.window {
            if ordinal >= to || posting.room() < 2 {
                break;
            }
            let at = self.shape.slot(ordinal.0, self.window);
            let length = row.reader().cell(at.saturating_add(LENGTH))?.load();
            let length = u32::try_from(length).unwrap_or(0).min(self.shape.payload_max());
            let payload = if self.shape.is_reference(length) { 0 } else { length };
            let bytes = CACHE_LINE.saturating_add(index_from_u32(payload));
            let area = Area { region: Region::ROW, offset: at };
            if !posting.content(area, area, bytes) {
                break;
            }
            ordinal = ordinal.next();
        }
        if ordinal > from {
            row.cell(feed_row::WRITTEN)?.publish(ordinal.0);
            self.post_count(posting);
        }
        Ok(ordinal)
    }

    /// Adds the count, and the cells that are posted with it, to a list.
    pub(super) fn post_count(&self, posting: &mut Posting) {
        let area = Area { region: Region::ROW, offset: feed_row::WRITTEN };
        posting.guard(area, area, self.guard_bytes);
    }

    /// Returns the message with an ordinal, if it has arrived. An invalid slot is an error.
    pub(super) fn look(&self, row: Row<'_>, ordinal: Ordinal) -> Result<Option<Fed>, BadSlot> {
        let get = |offset: usize| row.cell(offset).map(|cell| cell.load()).map_err(|_| BadSlot);
        if get(feed_row::WRITTEN)? <= ordinal.0 {
            return Ok(None);
        }
        let at = self.shape.slot(ordinal.0, self.window);
        let at_slot = |offset: usize| get(at.saturating_add(offset));
        if at_slot(MARK)? != ordinal.next().0 {
            return Ok(None);
        }
        let length = u32::try_from(at_slot(LENGTH)?).map_err(|_| BadSlot)?;
        if length > self.shape.payload_max() {
            return Err(BadSlot);
        }
        Ok(Some(Fed {
            id: MessageId::from_cells(at_slot(PARTY)?, at_slot(NUMBER)?),
            destinations: Destinations(at_slot(DESTINATIONS)?),
            length,
        }))
    }

    /// Returns the offset of a message's payload.
    pub(super) fn payload(&self, ordinal: Ordinal) -> usize {
        self.shape.slot(ordinal.0, self.window).saturating_add(CACHE_LINE)
    }
}

/// A slot that no correct feeder writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadSlot;

/// Returns the size in bytes of the cells that hold `bytes` bytes: payloads are copied in whole
/// cells.
pub(super) fn whole_cells(bytes: u32) -> usize {
    index_from_u32(bytes).saturating_add(7) & !7
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::{Capabilities, Kind, Promises};
    use crate::ids::{ClientNumber, GroupId, Rank};
    use crate::memory::Line;
    use crate::tram::overlay::{Group, Limits, Overlay};
    use crate::tram::timestamp::Timestamp;

    const FABRIC: Capabilities = Capabilities {
        promises: Promises::all(),
        writes_max: 3,
        write_bytes_max: 4096,
        guard_bytes_max: 24,
        write_overhead_bytes: 24,
    };

    fn shape() -> Shape {
        let limits = Limits {
            clients: 1,
            log_entries: 4,
            client_window: 4,
            parent_window: 4,
            payload_max: 512,
        };
        let group = Group { parent: None, replicas: 1 };
        Shape::of(&Overlay::new(&[group], limits).expect("a group"), GroupId(0))
    }

    fn fed(number: u64, length: u32) -> Fed {
        let id = MessageId { client: ClientNumber(0), incarnation: 3, number };
        Fed { id, destinations: Destinations(1), length }
    }

    #[test]
    fn message_is_visible_after_its_count_is_posted() {
        let shape = shape();
        let ring = Ring::of_client(&shape);
        let lines: std::vec::Vec<Line> =
            (0..shape.client_row_bytes() >> 6).map(|_| Line::new()).collect();
        let row = RowWriter::from_lines(&lines);
        for number in 0..4 {
            let bytes = [u8::try_from(number).expect("small"); 5];
            ring.store(row, Ordinal(number), &fed(number, 5), Payload::Bytes(&bytes)).expect("in");
        }
        assert_eq!(ring.look(row.reader(), Ordinal(0)), Ok(None), "it is stored and not posted");
        let mut posting = Posting::new(&FABRIC);
        let to = ring.post(row, &mut posting, Ordinal(0), Ordinal(4)).expect("in the row");
        assert_eq!(to, Ordinal(2), "two slots and a count fill the list");
        let guard = posting.writes().last().map(|write| (write.kind, write.target.offset));
        assert_eq!(guard, Some((Kind::Guard, feed_row::WRITTEN)));
        assert_eq!(ring.look(row.reader(), Ordinal(1)), Ok(Some(fed(1, 5))));
        assert_eq!(ring.look(row.reader(), Ordinal(2)), Ok(None));
        assert_eq!(ring.look(row.reader(), Ordinal(5)), Ok(None));
        let mut payload = [0; 5];
        row.reader().read(ring.payload(Ordinal(1)), &mut payload).expect("in the row");
        assert_eq!(payload, [1; 5]);
    }

    /// A message that has the name of a null but a destination or a payload is treated as a
    /// message.
    #[test]
    fn null_with_destinations_or_payload_is_a_message() {
        let timestamp = Timestamp::new(3, 1, Rank(2));
        let null = Fed::of(&Content::Null { timestamp }).expect("it takes a position");
        assert!(null.is_null() && !fed(1, 0).is_null());
        assert!(!Fed { length: 8, ..null }.is_null());
        assert!(!Fed { destinations: Destinations(2), ..null }.is_null());
        let client = ClientNumber(0);
        for without in [
            Content::Open { client, incarnation: 1 },
            Content::Close { client, incarnation: 1 },
            Content::Admit { rank: Rank(0), incarnation: 1 },
        ] {
            assert_eq!(Fed::of(&without), None, "no child is told of it");
        }
    }

    #[test]
    fn slot_of_another_lap_is_not_read() {
        let shape = shape();
        let ring = Ring::of_client(&shape);
        let lines: std::vec::Vec<Line> =
            (0..shape.client_row_bytes() >> 6).map(|_| Line::new()).collect();
        let row = RowWriter::from_lines(&lines);
        ring.store(row, Ordinal(1), &fed(1, 0), Payload::Bytes(&[])).expect("in the row");
        row.cell(feed_row::WRITTEN).expect("a cell").publish(9);
        assert_eq!(ring.look(row.reader(), Ordinal(5)), Ok(None));
        let at = shape.slot(1, 4);
        row.cell(at + LENGTH).expect("a cell").publish(513);
        assert_eq!(ring.look(row.reader(), Ordinal(1)), Err(BadSlot));
    }
}
