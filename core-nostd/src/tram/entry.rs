//! Entries of a log: each is one message, or one change of the participants.
//!
//! An entry's header is a row of cells, and its payload is stored separately. The header's first
//! cell is its mark: the log index plus one. A header without the mark of its index is not an
//! entry: it is from an earlier lap, or was never written. The seal is computed from all other
//! cells, so a header that was partly replaced is not an entry either.
//!
//! A header is replaced before its payload. So if a valid entry is found, its payload is whole.
//!
//! Source: TRAM, section 5.1; requirement TRM-6.

use super::overlay::{CHILDREN_MAX, Destinations};
use super::shape::Shape;
use super::timestamp::Timestamp;
use crate::ids::{ClientNumber, Ordinal, Rank};
use crate::memory::{OutOfRow, Row, RowWriter};

/// The name of a message in all groups. No two messages have the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct MessageId {
    /// Client that multicast the message.
    pub client: ClientNumber,
    /// Incarnation of that client.
    pub incarnation: u32,
    /// Number of messages that the client had multicast before.
    pub number: u64,
}

impl core::fmt::Display for MessageId {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(out, "{}/{}/{}", self.client, self.incarnation, self.number)
    }
}

impl MessageId {
    pub(super) fn party_cell(self) -> u64 {
        (u64::from(self.incarnation) << 32) | u64::from(self.client.0)
    }

    /// Returns the name of the null of a leader's term. No client has that number.
    pub(super) fn of_null(timestamp: Timestamp) -> Self {
        Self { client: ClientNumber(u16::MAX), incarnation: 0, number: timestamp.cell() }
    }

    pub(super) const fn is_null(self) -> bool {
        self.client.0 == u16::MAX
    }

    /// Returns the leader whose null has this name, if it is the name of a null.
    pub(super) fn null_of(self) -> Option<Timestamp> {
        self.is_null().then(|| Timestamp::from_cell(self.number))
    }

    pub(super) fn from_cells(party: u64, number: u64) -> Self {
        let client = u16::try_from(party & 0xffff).unwrap_or(0);
        let incarnation = u32::try_from(party >> 32).unwrap_or(0);
        Self { client: ClientNumber(client), incarnation, number }
    }
}

/// The source of a message: the parent of the group, or a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Source {
    /// The parent passed the message on.
    Parent,
    /// A client multicast the message, and this group is the lowest common ancestor of its
    /// destinations.
    Client(ClientNumber),
}

impl Source {
    /// Returns the source's index in the list of sources.
    pub(super) fn index(self) -> usize {
        match self {
            Self::Parent => 0,
            Self::Client(number) => number.index().saturating_add(1),
        }
    }

    fn from_index(index: u64) -> Self {
        match index.checked_sub(1) {
            None => Self::Parent,
            Some(number) => Self::Client(ClientNumber(u16::try_from(number).unwrap_or(u16::MAX))),
        }
    }

    fn cell(self) -> u64 {
        match self {
            Self::Parent => 0,
            Self::Client(number) => u64::from(number.0).saturating_add(1),
        }
    }
}

/// The content of an entry: the change that the group decides with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) enum Content {
    /// The next message of a source.
    Message(Message),
    /// From this entry onwards, messages of this incarnation of a client are taken, but none of an
    /// earlier incarnation.
    Open { client: ClientNumber, incarnation: u32 },
    /// No more messages of this incarnation are taken.
    Close { client: ClientNumber, incarnation: u32 },
    /// A replica that has lost its memory counts in quorums after this entry (TRM-5).
    Admit { rank: Rank, incarnation: u16 },
    /// The first entry of a leader whose group has children. It takes a position for each child,
    /// and thereby shows the children that messages passed on by an earlier leader are lost (see
    /// `confirm`).
    Null { timestamp: Timestamp },
}

/// A message without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(super) struct Message {
    pub(super) source: Source,
    pub(super) ordinal: Ordinal,
    pub(super) id: MessageId,
    pub(super) destinations: Destinations,
    pub(super) length: u32,
}

/// The positions of a message in the streams that the group passes on to its children.
pub(super) type Positions = heapless::Vec<Option<Ordinal>, CHILDREN_MAX>;

/// One entry, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) content: Content,
    /// Position for each child, in the order of the overlay.
    pub(super) positions: Positions,
}

impl Entry {
    /// Returns the length of the payload in bytes.
    pub(super) const fn length(&self) -> u32 {
        match self.content {
            Content::Message(message) => message.length,
            _ => 0,
        }
    }

    /// Returns the position for a child, if the message goes there.
    pub(super) fn position(&self, child: usize) -> Option<Ordinal> {
        self.positions.get(child).copied().flatten()
    }
}

const MESSAGE: u64 = 1;
const OPEN: u64 = 2;
const CLOSE: u64 = 3;
const ADMIT: u64 = 4;
const NULL: u64 = 5;

const MARK: usize = 0;
const KIND: usize = 8;
const ORDINAL: usize = 16;
const PARTY: usize = 24;
const NUMBER: usize = 32;
const DESTINATIONS: usize = 40;
const LENGTH: usize = 48;
const SEAL: usize = 56;
const POSITIONS: usize = 64;

/// Stores the header of the entry at a log index, with the mark last.
pub(super) fn store(
    log: RowWriter<'_>,
    shape: &Shape,
    place: u64,
    entry: &Entry,
) -> Result<(), OutOfRow> {
    let at = shape.header(place);
    let put = |offset: usize, value: u64| -> Result<(), OutOfRow> {
        log.cell(at.saturating_add(offset))?.publish(value);
        Ok(())
    };
    put(MARK, 0)?;
    let (kind, ordinal, id, destinations) = match entry.content {
        Content::Message(message) => (
            MESSAGE | (message.source.cell() << 8),
            message.ordinal.0,
            message.id,
            message.destinations.0,
        ),
        Content::Open { client, incarnation } => {
            (OPEN, 0, MessageId { client, incarnation, number: 0 }, 0)
        }
        Content::Close { client, incarnation } => {
            (CLOSE, 0, MessageId { client, incarnation, number: 0 }, 0)
        }
        Content::Admit { rank, incarnation } => {
            let client = ClientNumber(rank.0);
            (ADMIT, 0, MessageId { client, incarnation: u32::from(incarnation), number: 0 }, 0)
        }
        Content::Null { timestamp } => (NULL, 0, MessageId::of_null(timestamp), 0),
    };
    put(KIND, kind)?;
    put(ORDINAL, ordinal)?;
    put(PARTY, id.party_cell())?;
    put(NUMBER, id.number)?;
    put(DESTINATIONS, destinations)?;
    put(LENGTH, u64::from(entry.length()))?;
    let mut offset = POSITIONS;
    // bound: the children
    for child in 0..usize::from(shape.children()) {
        let position = entry.position(child).map_or(0, |position| position.next().0);
        put(offset, position)?;
        offset = offset.saturating_add(8);
    }
    put(MARK, place.saturating_add(1))?;
    put(SEAL, seal(log.reader(), shape, at)?)
}

/// Marks the slot of a log index as empty, before its payload is replaced.
pub(super) fn clear(log: RowWriter<'_>, shape: &Shape, place: u64) -> Result<(), OutOfRow> {
    log.cell(shape.header(place).saturating_add(MARK))?.publish(0);
    Ok(())
}

/// Returns the seal of a header, computed from all cells except the seal itself.
fn seal(log: Row<'_>, shape: &Shape, at: usize) -> Result<u64, OutOfRow> {
    let mut seal = 0xcbf2_9ce4_8422_2325_u64;
    let mut offset = 0;
    let end = POSITIONS.saturating_add(usize::from(shape.children()).saturating_mul(8));
    // bound: HEADER_CELLS_MAX
    for _ in 0..HEADER_CELLS_MAX {
        if offset >= end {
            break;
        }
        if offset != SEAL {
            let cell = log.cell(at.saturating_add(offset))?.load();
            seal = (seal ^ cell).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        offset = offset.saturating_add(8);
    }
    Ok(seal)
}

/// Number of cells in the longest header.
const HEADER_CELLS_MAX: usize = 8 + CHILDREN_MAX;

/// Loads the entry at a log index, from headers that start at `base`: those of the local log, or of
/// a copy of a peer's log. Returns `None` if there is no entry or no valid one.
pub(super) fn load(
    log: Row<'_>,
    shape: &Shape,
    base: usize,
    place: u64,
) -> Result<Option<Entry>, OutOfRow> {
    let at = base.saturating_add(shape.header(place));
    let get = |offset: usize| -> Result<u64, OutOfRow> {
        Ok(log.cell(at.saturating_add(offset))?.load())
    };
    if get(MARK)? != place.saturating_add(1) || get(SEAL)? != seal(log, shape, at)? {
        return Ok(None);
    }
    let kind = get(KIND)?;
    let id = MessageId::from_cells(get(PARTY)?, get(NUMBER)?);
    let (client, incarnation) = (id.client, id.incarnation);
    let content = match kind & 0xff {
        MESSAGE => {
            let length = u32::try_from(get(LENGTH)?).unwrap_or(u32::MAX);
            if length > shape.payload_max() {
                return Ok(None);
            }
            Content::Message(Message {
                source: Source::from_index(kind >> 8),
                ordinal: Ordinal(get(ORDINAL)?),
                id,
                destinations: Destinations(get(DESTINATIONS)?),
                length,
            })
        }
        OPEN => Content::Open { client, incarnation },
        CLOSE => Content::Close { client, incarnation },
        ADMIT => {
            let incarnation = u16::try_from(incarnation).unwrap_or(0);
            Content::Admit { rank: Rank(client.0), incarnation }
        }
        NULL => Content::Null { timestamp: Timestamp::from_cell(id.number) },
        _ => return Ok(None),
    };
    let mut positions = Positions::new();
    let mut offset = POSITIONS;
    // bound: the children
    for _ in 0..shape.children() {
        let position = get(offset)?.checked_sub(1).map(Ordinal);
        // The push cannot fail: no group has more children.
        let _ = positions.push(position);
        offset = offset.saturating_add(8);
    }
    Ok(Some(Entry { content, positions }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::GroupId;
    use crate::memory::Line;
    use crate::tram::overlay::{Group, Limits, Overlay};

    fn shape() -> Shape {
        let limits = Limits {
            clients: 2,
            log_entries: 2,
            client_window: 1,
            parent_window: 1,
            payload_max: 64,
        };
        let child = Group { parent: Some(GroupId(0)), replicas: 1 };
        let groups = [Group { parent: None, replicas: 1 }, child, child];
        Shape::of(&Overlay::new(&groups, limits).expect("a tree"), GroupId(0))
    }

    #[test]
    fn entry_is_loaded_only_at_its_index() {
        let shape = shape();
        let lines: std::vec::Vec<Line> =
            (0..=shape.log_bytes() >> 6).map(|_| Line::new()).collect();
        let log = RowWriter::from_lines(&lines);
        let id = MessageId { client: ClientNumber(1), incarnation: 7, number: 1 << 40 };
        let message = Message {
            source: Source::Client(ClientNumber(1)),
            ordinal: Ordinal(3),
            id,
            destinations: Destinations(6),
            length: 64,
        };
        let contents = [
            Content::Message(message),
            Content::Message(Message { source: Source::Parent, ..message }),
            Content::Open { client: ClientNumber(1), incarnation: 7 },
            Content::Close { client: ClientNumber(0), incarnation: 8 },
            Content::Admit { rank: Rank(2), incarnation: 65_535 },
            Content::Null { timestamp: Timestamp::new(7, 3, Rank(2)) },
        ];
        for (place, content) in contents.into_iter().enumerate() {
            let place = u64::try_from(place).expect("small");
            let positions = Positions::from_slice(&[None, Some(Ordinal(place))]).expect("two");
            let entry = Entry { content, positions };
            store(log, &shape, place, &entry).expect("in the log");
            assert_eq!(load(log.reader(), &shape, 0, place), Ok(Some(entry)));
            assert_eq!(load(log.reader(), &shape, 0, place + 2), Ok(None), "of a later lap");
        }
    }

    /// A client's message that passed for a null would announce a new leader.
    #[test]
    fn null_id_never_equals_a_message_id() {
        let message = MessageId { client: ClientNumber(3), incarnation: 7, number: 9 };
        assert_eq!((message.is_null(), message.null_of()), (false, None));
        assert_eq!(std::format!("{message}"), "3/7/9");
        let leader = Timestamp::new(7, 3, Rank(2));
        assert_eq!(MessageId::of_null(leader).null_of(), Some(leader));
    }

    #[test]
    fn invalid_header_does_not_load_as_entry() {
        let shape = shape();
        let lines: std::vec::Vec<Line> =
            (0..=shape.log_bytes() >> 6).map(|_| Line::new()).collect();
        let log = RowWriter::from_lines(&lines);
        let at = shape.header(0);
        let put = |offset: usize, value: u64| log.cell(at + offset).expect("a cell").publish(value);
        let close = || put(SEAL, seal(log.reader(), &shape, at).expect("in the log"));
        put(MARK, 1);
        for kind in [0, 9, 0xff] {
            put(KIND, kind);
            close();
            assert_eq!(load(log.reader(), &shape, 0, 0), Ok(None));
        }
        put(KIND, MESSAGE);
        put(LENGTH, 65);
        close();
        assert_eq!(load(log.reader(), &shape, 0, 0), Ok(None), "longer than any message");
        put(LENGTH, 64);
        assert_eq!(load(log.reader(), &shape, 0, 0), Ok(None), "a part of it is another's");
        close();
        assert!(matches!(load(log.reader(), &shape, 0, 0), Ok(Some(_))));
        clear(log, &shape, 0).expect("in the log");
        assert_eq!(load(log.reader(), &shape, 0, 0), Ok(None), "cleared");
    }
}
