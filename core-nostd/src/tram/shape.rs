//! The layout of a log and of the rows in a view of two members, as offsets in bytes.
//!
//! ```text
//! log:      | control | headers: N | payloads: N | copies: a control line and N headers a peer |
//! feed row: | control | slots: W, each a header line and a payload |
//! peer row: | control | staged log control, request, counts | their term |
//! ```
//!
//! If entries refer to payloads, the following is added:
//!
//! ```text
//! log:        | a name that was read | names of carried: N | names of bodies: N | bodies: N |
//! client row: | names of bodies: W | bodies: W |
//! ```
//!
//! A replica's row towards a client has a control line and the replies. If answers have bytes, the
//! answers follow, each as its length and its bytes.
//!
//! A body is a payload that is stored separately from entries. Its name is written after the body.
//!
//! The headers and payloads of a log are separate. A candidate reads all headers of a peer at once,
//! but reads only the payloads of the entries that it lacks.
//!
//! # Invariants
//! - Everything starts on a multiple of eight, and each control line, header and slot on a cache
//!   line.
//! - An index is taken modulo the number of entries or slots, so an offset is always in range.
//!
//! Requirement: TRM-6.

use super::overlay::{Overlay, REPLICAS_MAX};
use super::posting::CONTROL_BYTES;
use crate::ids::{GroupId, Rank, index_from_u16, index_from_u32, u64_from_index};
use crate::layout::CACHE_LINE;

/// Number of 8-byte cells in an entry's header, excluding the children's positions.
const HEADER_CELLS: usize = 8;

/// Size in bytes of a body's name in a log.
pub(super) const NAME_BYTES: usize = 24;

/// The control line of a log. The group's leader writes it, except for two cells of the owner.
pub(super) mod log_control {
    /// Timestamp of the leader whose log this log is a prefix of.
    pub(in crate::tram) const STAMP: usize = 0;
    /// Number of entries in the log.
    pub(in crate::tram) const TAIL: usize = 8;
    /// Number of decided entries.
    pub(in crate::tram) const DECIDED: usize = 16;
    /// Number of the repair after which the leader wrote the cells above: unique in its term.
    pub(in crate::tram) const REPAIR: usize = 24;
    /// Owner's cell: highest timestamp to which the owner has granted this log, stored before the
    /// grant.
    pub(in crate::tram) const PROMISED: usize = 32;
    /// Owner's cell: log index of the last snapshot that the owner has restored. Below it the log
    /// may have gaps, and entries that were never decided.
    pub(in crate::tram) const BEGINS: usize = 40;
}

/// Cells of a replica's row towards a replica of its own group.
pub(super) mod peer_row {
    /// Number that rises with each heartbeat.
    pub(in crate::tram) const HEARTBEAT: usize = 0;
    /// Set of peers that this replica hears: one bit per rank.
    pub(in crate::tram) const HEARS: usize = 8;
    /// For the leader that has the log: the log index up to which the replica asks for bodies that
    /// clients no longer send. This is a hint: a body that is carried needlessly does no harm.
    pub(in crate::tram) const ASKS: usize = 16;
    /// Timestamp that the replica has granted to the peer.
    pub(in crate::tram) const GRANTED: usize = 24;
    /// Highest timestamp that the replica has granted to any replica.
    pub(in crate::tram) const PROMISED: usize = 32;
    /// Number of entries of its log that the replica has delivered.
    pub(in crate::tram) const DELIVERED: usize = 40;
    /// Incarnation of the replica, and whether it counts in quorums.
    pub(in crate::tram) const STANDING: usize = 48;
    /// As a leader: the first log index whose entry the replica has, if the peer's log ends below
    /// that index.
    pub(in crate::tram) const KEPT_FROM: usize = 56;
    /// Staging cells: the values that are about to be written to the control line of the peer's
    /// log.
    pub(in crate::tram) const STAGED: usize = 64;
    /// Staging cell for a tail that is written before all other changes, because the peer's log is
    /// cut first.
    pub(in crate::tram) const STAGED_CUT: usize = 96;
    /// Timestamp with which the replica asks to write to the peer's log. This cell is not in the
    /// control line, which may be read late, because the request must not overtake earlier writes
    /// to that log.
    pub(in crate::tram) const REQUEST: usize = 104;
    /// For the leader that has the log: log index below which the replica has seen the leader's
    /// entries in its log.
    pub(in crate::tram) const SEEN: usize = 112;
    /// For the leader that has the log: log index below which the replica has all bodies to which
    /// entries of the leader's log refer.
    pub(in crate::tram) const BODIES: usize = 120;
    /// Number of the repair that the replica has seen in its log.
    pub(in crate::tram) const SEEN_REPAIR: usize = 128;
    /// Term of the leader to which the three cells above refer. This cell lands after them, but is
    /// read before them.
    pub(in crate::tram) const REPORTS_FOR: usize = 136;
    /// As a leader: log index below which no replica needs a body any longer.
    pub(in crate::tram) const BODIES_FROM: usize = 144;
    /// Size of the row in bytes.
    pub(in crate::tram) const BYTES: usize = 192;
}

/// Cells of a feeder's row towards a group's replica. The feeder is a client or a replica of the
/// parent.
pub(super) mod feed_row {
    /// Number of messages sent.
    pub(in crate::tram) const WRITTEN: usize = 0;
    /// For a client: whether the client is about to leave.
    pub(in crate::tram) const LEAVES: usize = 8;
    /// For a parent's leader: the number of decided positions.
    pub(in crate::tram) const CONFIRMED: usize = 8;
    /// For a parent's leader: the number of positions that the child publishes as decided in the
    /// child's group.
    pub(in crate::tram) const SETTLED: usize = 16;
    /// For a client: bodies of messages below this number will no longer come, unless they have
    /// already come. This number lands after the bodies that were sent.
    pub(in crate::tram) const GIVES_FROM: usize = 16;
    /// For a parent's leader: the position, plus one, of the message whose slot has its payload
    /// although the message is a reference. It is sent separately from the cells above.
    pub(in crate::tram) const CARRIED: usize = 24;
    /// Start of the slots.
    pub(in crate::tram) const SLOTS: usize = 64;
}

/// Cells of a replica's row towards a feeder.
pub(super) mod taken_row {
    /// Number of the feeder's messages that this replica has processed.
    pub(in crate::tram) const TAKEN: usize = 0;
    /// For a client: the incarnation whose messages are taken.
    pub(in crate::tram) const OPENED: usize = 8;
    /// Whether the replica leads its group.
    pub(in crate::tram) const LEADS: usize = 16;
    /// For the parent: the position, plus one, of the message whose payload is wanted.
    pub(in crate::tram) const WANTED: usize = 24;
    /// For a client: the start of its replies.
    pub(in crate::tram) const REPLIES: usize = 64;
}

/// The offsets in the logs of one group's replicas, and the sizes of their rows.
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
    answer_max: u32,
}

impl Shape {
    /// Returns the shape of a group's memory.
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
            answer_max: overlay.answer_max(),
        }
    }

    /// Returns the number of entries in the log.
    #[must_use]
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Returns the size in bytes of the region that holds a replica's log.
    #[must_use]
    pub const fn log_bytes(&self) -> usize {
        if self.has_references() {
            self.bodies().saturating_add(self.all(self.payload_bytes))
        } else {
            self.asked_name()
        }
    }

    /// Returns the size in bytes of a replica's row towards a peer of its group.
    #[must_use]
    pub const fn peer_row_bytes(&self) -> usize {
        peer_row::BYTES
    }

    /// Returns the size in bytes of a client's row towards a replica of this group.
    #[must_use]
    pub const fn client_row_bytes(&self) -> usize {
        let ring = self.feed_row_bytes(self.client_window);
        if !self.has_references() {
            return ring;
        }
        let body = CACHE_LINE.saturating_add(self.payload_bytes);
        ring.saturating_add(index_from_u32(self.client_window).saturating_mul(body))
    }

    /// Returns the size in bytes of a replica's row towards a client.
    #[must_use]
    pub const fn reply_row_bytes(&self, replies: u32) -> usize {
        let cells = index_from_u32(replies).saturating_mul(8);
        let answers = cells.saturating_mul(self.answer_cells());
        taken_row::REPLIES.saturating_add(whole_lines(cells)).saturating_add(whole_lines(answers))
    }

    /// Returns the size in bytes of a parent's replica's row towards a replica of this group.
    #[must_use]
    pub const fn parent_row_bytes(&self) -> usize {
        self.feed_row_bytes(self.parent_window)
    }

    /// Returns the size in bytes of the row of a replica of this group towards a replica of the
    /// parent.
    #[must_use]
    pub const fn child_row_bytes(&self) -> usize {
        CACHE_LINE
    }

    /// Returns the size in bytes of the largest message.
    #[must_use]
    pub const fn payload_max(&self) -> u32 {
        self.payload_max
    }

    /// Returns the number of cells of an answer.
    pub(super) const fn answer_cells(&self) -> usize {
        answer_cells(self.answer_max)
    }

    /// Returns the offset of an answer in a replica's row towards a client.
    pub(super) const fn answer(&self, index: usize) -> usize {
        let bytes = self.answer_cells().saturating_mul(8);
        self.answers().saturating_add(index.saturating_mul(bytes))
    }

    /// Returns the number of bytes that an answer of this length takes in a row, with its length.
    pub(super) fn answer_bytes(&self, length: u64) -> usize {
        let bytes = index_from_u32(self.answer_max.min(u32::try_from(length).unwrap_or(u32::MAX)));
        bytes.saturating_add(8)
    }

    const fn answers(&self) -> usize {
        let cells = index_from_u32(self.client_window).saturating_mul(8);
        taken_row::REPLIES.saturating_add(whole_lines(cells))
    }

    /// Returns the size in bytes of the longest list that a fabric must accept for a log: one entry
    /// with its header, and the control line.
    #[must_use]
    pub const fn list_bytes(&self) -> usize {
        self.header_bytes
            .saturating_add(index_from_u32(self.payload_max))
            .saturating_add(CONTROL_BYTES)
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

    /// Returns the offset of the header of the entry at a log index.
    pub(super) fn header(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        CACHE_LINE.saturating_add(index.saturating_mul(self.header_bytes))
    }

    /// Returns the offset of the payload of the entry at a log index.
    pub(super) fn payload(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        self.payloads().saturating_add(index.saturating_mul(self.payload_bytes))
    }

    /// Returns the offset of the copy of a peer's control line and headers.
    pub(super) const fn copy_at(&self, peer: Rank) -> usize {
        let all = index_from_u32(self.entries).saturating_mul(self.payload_bytes);
        let copies = index_from_u16(peer.0).saturating_mul(self.payloads());
        self.payloads().saturating_add(all).saturating_add(copies)
    }

    /// Returns the size in bytes of a control line and all headers, which a candidate reads from a
    /// peer's log.
    pub(super) const fn payloads(&self) -> usize {
        let headers = index_from_u32(self.entries).saturating_mul(self.header_bytes);
        CACHE_LINE.saturating_add(headers)
    }

    pub(super) const fn has_references(&self) -> bool {
        self.references_from != 0
    }

    /// Returns whether the entry of a message of `length` bytes refers to its payload.
    pub(super) const fn is_reference(&self, length: u32) -> bool {
        self.has_references() && length >= self.references_from
    }

    /// Returns the offset to which the name of a body in a peer's log is read.
    pub(super) const fn asked_name(&self) -> usize {
        self.copy_at(Rank(u16_from(REPLICAS_MAX)))
    }

    /// Returns the offset of the name of the payload that the leader has carried to a log index.
    pub(super) fn carried_name(&self, place: u64) -> usize {
        let lines = modulo(place, self.entries).saturating_add(1);
        self.asked_name().saturating_add(lines.saturating_mul(CACHE_LINE))
    }

    /// Returns the offset of the name of the body that the owner stores for a log index.
    pub(super) fn body_name(&self, place: u64) -> usize {
        self.carried_name(place).saturating_add(self.all(CACHE_LINE))
    }

    /// Returns the offset of the body that the owner stores for a log index.
    pub(super) fn body(&self, place: u64) -> usize {
        let index = modulo(place, self.entries);
        self.bodies().saturating_add(index.saturating_mul(self.payload_bytes))
    }

    const fn bodies(&self) -> usize {
        let names = self.all(CACHE_LINE).saturating_mul(2).saturating_add(CACHE_LINE);
        self.asked_name().saturating_add(names)
    }

    /// Returns the total size in bytes of all entries if each has `bytes` bytes.
    const fn all(&self, bytes: usize) -> usize {
        index_from_u32(self.entries).saturating_mul(bytes)
    }

    /// Returns the offset of the name of the body of a client's message, in that client's row.
    pub(super) fn given_name(&self, number: u64) -> usize {
        let index = modulo(number, self.client_window);
        let ring = self.feed_row_bytes(self.client_window);
        ring.saturating_add(index.saturating_mul(CACHE_LINE))
    }

    /// Returns the offset of the body of a client's message in that client's row.
    pub(super) fn given(&self, number: u64) -> usize {
        let index = modulo(number, self.client_window);
        let names = index_from_u32(self.client_window).saturating_mul(CACHE_LINE);
        self.feed_row_bytes(self.client_window)
            .saturating_add(names)
            .saturating_add(index.saturating_mul(self.payload_bytes))
    }

    /// Returns the size in bytes of a feed's slot.
    pub(super) const fn slot_bytes(&self) -> usize {
        CACHE_LINE.saturating_add(self.payload_bytes)
    }

    /// Returns the offset of a message's slot in a feed of `window` slots.
    pub(super) fn slot(&self, ordinal: u64, window: u32) -> usize {
        let index = modulo(ordinal, window);
        feed_row::SLOTS.saturating_add(index.saturating_mul(self.slot_bytes()))
    }

    const fn feed_row_bytes(&self, window: u32) -> usize {
        feed_row::SLOTS.saturating_add(index_from_u32(window).saturating_mul(self.slot_bytes()))
    }
}

/// Returns `value` modulo `count`, or zero if `count` is zero.
pub(super) fn modulo(value: u64, count: u32) -> usize {
    let rest = value.checked_rem(u64::from(count)).unwrap_or(0);
    usize::try_from(rest).unwrap_or(0)
}

/// Returns the number of cells of an answer of at most `answer_max` bytes, with its length. There
/// are none if answers are single bytes.
pub(super) const fn answer_cells(answer_max: u32) -> usize {
    if answer_max == 0 { 0 } else { index_from_u32(answer_max.div_ceil(8)).saturating_add(1) }
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

/// The sizes of the memory of one replica, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaBytes {
    /// Size of the region that holds the log.
    pub log: u64,
    /// Size of the rows, both the local rows and the copies of other rows, with all clients
    /// attached.
    pub rows: u64,
}

impl ReplicaBytes {
    /// Returns the memory sizes of one replica of a group.
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
