//! Where things lie in a log and in the rows of a view of two, as offsets in bytes.
//!
//! ```text
//! log:      | control | headers: N | payloads: N | copies: a control line and N headers a peer |
//! feed row: | control | slots: W, each a header line and a payload |
//! peer row: | control | staged log control |
//! ```
//!
//! Where entries refer to payloads, more follows:
//!
//! ```text
//! log:        | a name that was read | names of carried: N | names of bodies: N | bodies: N |
//! client row: | names of bodies: W | bodies: W |
//! ```
//!
//! A body is a payload that is kept apart from entries. Its name is stored behind it.
//!
//! Headers and payloads of a log lie apart. A candidate reads all headers of a peer at once, and
//! payloads only of the entries that it lacks.
//!
//! # Invariants
//! - Everything starts on a multiple of eight, and each control line, header and slot on a cache
//!   line.
//! - An index is taken modulo the number of entries or slots, so an offset is always inside.
//!
//! Requirement: TRM-6.

use super::overlay::{Overlay, REPLICAS_MAX};
use crate::ids::{GroupId, Rank, index_from_u16, index_from_u32, u64_from_index};
use crate::layout::CACHE_LINE;

/// Cells of eight bytes of an entry's header beside the children's positions.
const HEADER_CELLS: usize = 8;

/// Bytes of a body's name in a log.
pub(super) const NAME_BYTES: usize = 24;

/// The control line of a log, written by the group's leader but for two cells of the owner's.
pub(super) mod log_control {
    /// The leader whose log this is a beginning of.
    pub(in crate::tram) const STAMP: usize = 0;
    /// How many entries the log has.
    pub(in crate::tram) const TAIL: usize = 8;
    /// How many of them are decided.
    pub(in crate::tram) const DECIDED: usize = 16;
    /// The owner's: the highest timestamp that it has granted this log to, stored before the grant.
    pub(in crate::tram) const PROMISED: usize = 24;
    /// The owner's: the place of the last snapshot that it has taken. Below it the log may have
    /// gaps, and entries that were never decided.
    pub(in crate::tram) const BEGINS: usize = 32;
}

/// Cells of a replica's row towards a replica of its own group.
pub(super) mod peer_row {
    /// Rises with each heartbeat.
    pub(in crate::tram) const HEARTBEAT: usize = 0;
    /// A bit a rank: which peers this replica hears.
    pub(in crate::tram) const HEARS: usize = 8;
    /// To the leader that has its log: up to which place it asks for bodies that do not come from
    /// their clients any more. A hint: what is carried in vain does no harm.
    pub(in crate::tram) const ASKS: usize = 16;
    /// The timestamp that it granted to the peer.
    pub(in crate::tram) const GRANTED: usize = 24;
    /// The highest timestamp that it has granted to anyone.
    pub(in crate::tram) const PROMISED: usize = 32;
    /// How many entries of its log it has delivered.
    pub(in crate::tram) const DELIVERED: usize = 40;
    /// Its incarnation, and whether it counts in quorums.
    pub(in crate::tram) const STANDING: usize = 48;
    /// As a leader: the first place of which it has the entry, if the peer's log ends below it.
    pub(in crate::tram) const KEPT_FROM: usize = 56;
    /// What the peer's log control is set to: the source of those writes.
    pub(in crate::tram) const STAGED: usize = 64;
    /// The same for a tail that is cut first.
    pub(in crate::tram) const STAGED_CUT: usize = 88;
    /// The timestamp with which it asks to write to the peer's log. Not in the control line, which
    /// may be read late: it must not overtake what was written to that log before.
    pub(in crate::tram) const REQUEST: usize = 96;
    /// To the leader that has its log: it has all bodies below this place that entries of the
    /// leader's log refer to.
    pub(in crate::tram) const BODIES: usize = 104;
    /// Which leader that is. It lands after the count, and is read before it.
    pub(in crate::tram) const BODIES_FOR: usize = 112;
    /// As a leader: nobody wants a body of an entry below this place any more.
    pub(in crate::tram) const BODIES_FROM: usize = 120;
    /// Bytes of the row.
    pub(in crate::tram) const BYTES: usize = 128;
}

/// Cells of the row of whoever feeds messages to a group's replica: a client, or a replica of the
/// parent.
pub(super) mod feed_row {
    /// How many messages have been given.
    pub(in crate::tram) const WRITTEN: usize = 0;
    /// Of a client: whether it is about to go.
    pub(in crate::tram) const LEAVES: usize = 8;
    /// Of a parent's leader: how many positions are decided.
    pub(in crate::tram) const CONFIRMED: usize = 8;
    /// Of a parent's leader: how many positions the child shows as decided there.
    pub(in crate::tram) const SETTLED: usize = 16;
    /// Of a client: bodies of messages below this number do not come any more, if they have not
    /// come. It lands behind those that were given.
    pub(in crate::tram) const GIVES_FROM: usize = 16;
    /// Of a parent's leader: the position, plus one, of the message whose slot has its payload
    /// though it is a reference. It travels apart from the cells before.
    pub(in crate::tram) const CARRIED: usize = 24;
    /// Where the slots start.
    pub(in crate::tram) const SLOTS: usize = 64;
}

/// Cells of the row of a replica towards whoever feeds it.
pub(super) mod taken_row {
    /// How many of the feeder's messages this replica has processed.
    pub(in crate::tram) const TAKEN: usize = 0;
    /// Towards a client: the incarnation whose messages are taken.
    pub(in crate::tram) const OPENED: usize = 8;
    /// Whether the replica leads its group.
    pub(in crate::tram) const LEADS: usize = 16;
    /// Towards the parent: the position, plus one, of the message whose payload is wanted.
    pub(in crate::tram) const WANTED: usize = 24;
    /// Towards a client: where its replies start.
    pub(in crate::tram) const REPLIES: usize = 64;
}

/// Offsets of the log of one group's replicas, and sizes of their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    entries: u32,
    children: u16,
    header_bytes: usize,
    payload_bytes: usize,
    client_window: u32,
    parent_window: u32,
    payload_max: u32,
    references_from: u32,
}

impl Shape {
    /// The shape of a group's memory.
    #[must_use]
    pub fn of(overlay: &Overlay, group: GroupId) -> Self {
        let limits = overlay.limits();
        let children = overlay.children_count(group);
        let cells = HEADER_CELLS.saturating_add(index_from_u16(children));
        Self {
            entries: limits.log_entries,
            children,
            header_bytes: whole_lines(cells.saturating_mul(8)),
            payload_bytes: whole_lines(index_from_u32(limits.payload_max)),
            client_window: limits.client_window,
            parent_window: limits.parent_window,
            payload_max: limits.payload_max,
            references_from: overlay.references_from(),
        }
    }

    /// Entries of the log.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Bytes of the region that holds a replica's log.
    #[must_use]
    pub const fn log_bytes(&self) -> usize {
        if self.has_references() {
            self.bodies().saturating_add(self.all(self.payload_bytes))
        } else {
            self.asked_name()
        }
    }

    /// Bytes of a replica's row towards a peer of its group.
    #[must_use]
    pub const fn peer_row_bytes(&self) -> usize {
        peer_row::BYTES
    }

    /// Bytes of a client's row towards a replica of this group.
    #[must_use]
    pub const fn client_row_bytes(&self) -> usize {
        let ring = self.feed_row_bytes(self.client_window);
        if !self.has_references() {
            return ring;
        }
        let body = CACHE_LINE.saturating_add(self.payload_bytes);
        ring.saturating_add(index_from_u32(self.client_window).saturating_mul(body))
    }

    /// Bytes of a replica's row towards a client.
    #[must_use]
    pub const fn reply_row_bytes(&self, replies: u32) -> usize {
        let cells = index_from_u32(replies).saturating_mul(8);
        taken_row::REPLIES.saturating_add(whole_lines(cells))
    }

    /// Bytes of the row of a replica of the parent towards a replica of this group.
    #[must_use]
    pub const fn parent_row_bytes(&self) -> usize {
        self.feed_row_bytes(self.parent_window)
    }

    /// Bytes of the row of a replica of this group towards a replica of the parent.
    #[must_use]
    pub const fn child_row_bytes(&self) -> usize {
        CACHE_LINE
    }

    /// Bytes of the largest message.
    #[must_use]
    pub const fn payload_max(&self) -> u32 {
        self.payload_max
    }

    pub(super) const fn client_window(&self) -> u32 {
        self.client_window
    }

    pub(super) const fn parent_window(&self) -> u32 {
        self.parent_window
    }

    pub(super) const fn children(&self) -> u16 {
        self.children
    }

    pub(super) const fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// Where the header of the entry at a place is.
    pub(super) fn header(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        CACHE_LINE.saturating_add(index.saturating_mul(self.header_bytes))
    }

    /// Where the payload of the entry at a place is.
    pub(super) fn payload(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        self.payloads().saturating_add(index.saturating_mul(self.payload_bytes))
    }

    /// Where the copy of a peer's control line and headers is.
    pub(super) const fn copy_at(&self, peer: Rank) -> usize {
        let all = index_from_u32(self.entries).saturating_mul(self.payload_bytes);
        let copies = index_from_u16(peer.0).saturating_mul(self.payloads());
        self.payloads().saturating_add(all).saturating_add(copies)
    }

    /// Bytes of a control line and all headers: what a candidate reads of a peer's log.
    pub(super) const fn payloads(&self) -> usize {
        let headers = index_from_u32(self.entries).saturating_mul(self.header_bytes);
        CACHE_LINE.saturating_add(headers)
    }

    pub(super) const fn has_references(&self) -> bool {
        self.references_from != 0
    }

    /// Whether the entry of a message of so many bytes refers to its payload.
    pub(super) const fn is_reference(&self, length: u32) -> bool {
        self.has_references() && length >= self.references_from
    }

    /// Where a name is read to that a peer's log has.
    pub(super) const fn asked_name(&self) -> usize {
        self.copy_at(Rank(u16_from(REPLICAS_MAX)))
    }

    /// Where the leader stores the name of the payload that it has carried to a place.
    pub(super) fn carried_name(&self, place: u64) -> usize {
        let lines = modulo(place, self.entries).saturating_add(1);
        self.asked_name().saturating_add(lines.saturating_mul(CACHE_LINE))
    }

    /// Where the owner stores the name of the body that it keeps for a place.
    pub(super) fn body_name(&self, place: u64) -> usize {
        self.carried_name(place).saturating_add(self.all(CACHE_LINE))
    }

    /// Where that body is.
    pub(super) fn body(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        self.bodies().saturating_add(index.saturating_mul(self.payload_bytes))
    }

    const fn bodies(&self) -> usize {
        let names = self.all(CACHE_LINE).saturating_mul(2).saturating_add(CACHE_LINE);
        self.asked_name().saturating_add(names)
    }

    /// Bytes of so many for each entry.
    const fn all(&self, bytes: usize) -> usize {
        index_from_u32(self.entries).saturating_mul(bytes)
    }

    /// Where the name of the body of a client's message is in that client's row.
    pub(super) fn given_name(&self, number: u64) -> usize {
        let index = modulo(number, self.client_window);
        let ring = self.feed_row_bytes(self.client_window);
        ring.saturating_add(index.saturating_mul(CACHE_LINE))
    }

    /// Where that body is.
    pub(super) fn given(&self, number: u64) -> usize {
        let index = modulo(number, self.client_window);
        let names = index_from_u32(self.client_window).saturating_mul(CACHE_LINE);
        self.feed_row_bytes(self.client_window)
            .saturating_add(names)
            .saturating_add(index.saturating_mul(self.payload_bytes))
    }

    /// Bytes of a slot of a feed.
    pub(super) const fn slot_bytes(&self) -> usize {
        CACHE_LINE.saturating_add(self.payload_bytes)
    }

    /// Where the slot of a message is in a feed of so many slots.
    pub(super) fn slot(&self, ordinal: u64, window: u32) -> usize {
        let index = modulo(ordinal, window);
        feed_row::SLOTS.saturating_add(index.saturating_mul(self.slot_bytes()))
    }

    const fn feed_row_bytes(&self, window: u32) -> usize {
        feed_row::SLOTS.saturating_add(index_from_u32(window).saturating_mul(self.slot_bytes()))
    }
}

/// An index below `count`. Zero if there is none.
pub(super) fn modulo(value: u64, count: u32) -> usize {
    let rest = value.checked_rem(u64::from(count)).unwrap_or(0);
    usize::try_from(rest).unwrap_or(0)
}

const fn whole_lines(bytes: usize) -> usize {
    match bytes.checked_next_multiple_of(CACHE_LINE) {
        Some(bytes) => bytes,
        None => usize::MAX,
    }
}

const fn u16_from(value: usize) -> u16 {
    match crate::ids::u16_from_index(value) {
        Some(value) => value,
        None => u16::MAX,
    }
}

/// What one replica keeps, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaBytes {
    /// The region with the log.
    pub log: u64,
    /// Rows, own ones and copies of the others', with all clients attached.
    pub rows: u64,
}

impl ReplicaBytes {
    /// The memory of one replica of a group.
    #[must_use]
    pub fn of(overlay: &Overlay, group: GroupId) -> Self {
        let shape = Shape::of(overlay, group);
        let limits = overlay.limits();
        let pair = |own: usize, other: usize| u64_from_index(own.saturating_add(other));
        let peers = u64::from(overlay.replicas(group).saturating_sub(1));
        let clients = u64::from(limits.clients);
        let replies = limits.client_window;
        let mut rows = pair(peer_row::BYTES, peer_row::BYTES).saturating_mul(peers).saturating_add(
            pair(shape.client_row_bytes(), shape.reply_row_bytes(replies)).saturating_mul(clients),
        );
        if let Some(parent) = overlay.parent(group) {
            let of_parent = u64::from(overlay.replicas(parent));
            let each = pair(shape.parent_row_bytes(), shape.child_row_bytes());
            rows = rows.saturating_add(each.saturating_mul(of_parent));
        }
        // bound: the children
        for child in overlay.children(group) {
            let below = Shape::of(overlay, child);
            let each = pair(below.parent_row_bytes(), below.child_row_bytes());
            let count = u64::from(overlay.replicas(child));
            rows = rows.saturating_add(each.saturating_mul(count));
        }
        Self { log: u64_from_index(shape.log_bytes()), rows }
    }
}
