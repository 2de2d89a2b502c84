//! Bodies: payloads that entries refer to instead of carrying them (TRM-9). This is an option of
//! the overlay.
//!
//! A client sends the body of a long message to each replica of each group on the message's path,
//! over the client's own connections. The body is stored in the replica's copy of the client's row,
//! under the message's name. Slots, entries and the stream to children then contain only headers.
//!
//! A replica that finds a reference in its log copies the body from the client's row into memory
//! that only the replica itself writes: at the entry's log index, under the message's name. The
//! body stays there as long as the entry is in the log. Therefore neither a client's departure nor
//! the end of its connection removes a body to which an entry refers.
//!
//! A step copies a limited number of bytes of bodies, and publishes which bodies it has. A leader's
//! followers and the lower groups can therefore copy the first bodies while the leader copies the
//! next ones. If each replica first copied everything available, all replicas would copy the same
//! bodies in turn.
//!
//! # When a reference counts
//! A replica publishes, to the leader that writes its log, the index below which it has all bodies.
//! Only references below that index count at this replica, in the leader's log and in its term. So
//! a reference is decided once a quorum has reported its body, not once a quorum has its header.
//! The leader itself proposes no reference whose body it lacks. If a follower lacks a body for too
//! long, or requests it because the client no longer sends it, the leader carries the body into
//! that follower's log, under the entry's index and name (see `carry`).
//!
//! A count that was published for an earlier leader is meaningless to a later one, so the term is
//! sent with it. A follower begins to count bodies for a leader only once its log has that leader's
//! stamp.
//!
//! # Why a body is never replaced too early
//! - In a client's row, the client replaces a body only after this replica has replied to the
//!   message, which it does when it delivers or skips it.
//! - In the replica's memory, an entry's body is replaced when another entry's header takes the
//!   slot of the entry's header. By then all replicas that are heard have delivered the old entry,
//!   and the children have decided it.
//! - A body's name is removed before the body is replaced, and is written after the new body.

use super::common::Common;
use super::entry::{Content, Entry, Message, MessageId, Source};
use super::feed::{Fed, Ring, whole_cells};
use super::link::{LinkRole, Memory, Stage, put};
use super::log::Log;
use super::progress::Halt;
use super::role::{Follower, Held, Leader, Wanted};
use super::shape::{feed_row, peer_row, taken_row};
use super::step::StepContext;
use super::timestamp::Timestamp;
use crate::ids::{Ordinal, index_from_u32};
use crate::memory::{OutOfRow, Row};

/// Offsets of a name's cells: its mark, and the message that is named.
const MARK: usize = 0;
const PARTY: usize = 8;
const NUMBER: usize = 16;

impl Log<'_> {
    /// Returns whether the body stored for a log index belongs to a message.
    pub(super) fn has_body(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().body_name(place), place, id)
    }

    /// Returns whether a leader has carried the payload of a message to a log index.
    fn is_carried(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().carried_name(place), place, id)
    }

    /// Returns whether the name that was last read from a peer's log says that the body at a log
    /// index belongs to a message.
    pub(super) fn is_asked(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().asked_name(), place, id)
    }

    fn is_named(&self, at: usize, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        let row = self.memory().reader();
        let get = |offset: usize| row.cell(at.saturating_add(offset)).map(|cell| cell.load());
        let is_place = get(MARK)? == place.saturating_add(1);
        Ok(is_place && get(PARTY)? == id.party_cell() && get(NUMBER)? == id.number)
    }

    /// Removes the name of the body stored for a log index, so that the body no longer counts.
    pub(super) fn forget_body(&self, place: u64) -> Result<(), OutOfRow> {
        self.memory().cell(self.shape().body_name(place).saturating_add(MARK))?.publish(0);
        Ok(())
    }

    /// Names the body stored for a log index, once the body is complete, as that of a message.
    pub(super) fn name_body(&self, place: u64, id: MessageId) -> Result<(), OutOfRow> {
        let at = self.shape().body_name(place);
        let put = |offset: usize, value: u64| -> Result<(), OutOfRow> {
            self.memory().cell(at.saturating_add(offset))?.publish(value);
            Ok(())
        };
        put(PARTY, id.party_cell())?;
        put(NUMBER, id.number)?;
        put(MARK, place.saturating_add(1))
    }

    /// Stores a body for a log index.
    fn keep_body(
        &self,
        place: u64,
        id: MessageId,
        length: u32,
        from: Row<'_>,
        offset: usize,
    ) -> Result<(), OutOfRow> {
        self.forget_body(place)?;
        let body = self.shape().body(place);
        self.memory().copy_from(body, &from, offset, whole_cells(length))?;
        self.name_body(place, id)
    }

    /// Copies the body of an entry into the given buffer.
    pub(super) fn body<'p>(
        &self,
        place: u64,
        length: u32,
        into: &'p mut [u8],
    ) -> Result<&'p [u8], OutOfRow> {
        let into = into.get_mut(..index_from_u32(length)).ok_or(OutOfRow)?;
        self.memory().reader().read(self.shape().body(place), into)?;
        Ok(into)
    }
}

impl Common<'_> {
    /// Returns whether this replica stores the body of an entry, or the entry needs none.
    pub(super) fn is_held(&self, place: u64, entry: &Entry, log: Log<'_>) -> Result<bool, Halt> {
        match entry.content {
            Content::Message(message) if self.shape.is_reference(message.length) => {
                Ok(log.has_body(place, message.id)?)
            }
            _ => Ok(true),
        }
    }

    /// Returns whether this replica has the body of an entry, or the entry needs none. Copies the
    /// body from its source if necessary.
    fn has_whole<F, M: Memory>(
        &mut self,
        place: u64,
        entry: &Entry,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        Ok(self.lacking(place, entry, step)?.is_none())
    }

    /// Returns the message of an entry whose body this replica lacks. Copies the body from its
    /// source if possible.
    pub(super) fn lacking<F, M: Memory>(
        &mut self,
        place: u64,
        entry: &Entry,
        step: &StepContext<'_, F, M>,
    ) -> Result<Option<Message>, Halt> {
        let Content::Message(message) = entry.content else { return Ok(None) };
        let (id, length) = (message.id, message.length);
        if !self.shape.is_reference(length) || step.log.has_body(place, id)? {
            return Ok(None);
        }
        // If this replica has delivered the message without its body, the client's slot may by now
        // have another body.
        let given = if place < self.delivered { None } else { self.given(id, step.memory)? };
        if let Some((row, offset)) = given {
            self.count_copied(length);
            step.log.keep_body(place, id, length, row, offset)?;
            return Ok(None);
        }
        if !step.log.is_carried(place, id)? {
            return Ok(Some(message));
        }
        self.count_copied(length);
        let (row, offset) = (step.log.memory().reader(), self.shape.payload(place));
        step.log.keep_body(place, id, length, row, offset)?;
        // A later leader that has put another payload at this index has replaced the header first.
        if step.log.load(place)?.as_ref() == Some(entry) {
            return Ok(None);
        }
        step.log.forget_body(place)?;
        Ok(Some(message))
    }

    /// Returns the row of a message's client, if it is connected.
    fn row_of_client<'m, M: Memory>(&self, id: MessageId, memory: &'m M) -> Option<Row<'m>> {
        let link = self.links.find(LinkRole::Client(id.client))?;
        let attached = self.state.at(link).attached;
        let is_its = attached.stage != Stage::Absent && attached.incarnation == id.incarnation;
        let (_, row) = memory.link(link).filter(|_| is_its)?;
        Some(row)
    }

    /// Returns the location of a message's body in its client's row, if the client has sent it.
    fn given<'m, M: Memory>(
        &self,
        id: MessageId,
        memory: &'m M,
    ) -> Result<Option<(Row<'m>, usize)>, Halt> {
        let Some(row) = self.row_of_client(id, memory) else { return Ok(None) };
        let name = self.shape.given_name(id.number);
        let is_there = row.cell(name.saturating_add(MARK))?.load() == id.number.saturating_add(1)
            && row.cell(name.saturating_add(PARTY))?.load() == id.party_cell();
        Ok(is_there.then(|| (row, self.shape.given(id.number))))
    }

    /// As a leader: copies the body of a source's next message, whose entry will be at the end of
    /// the log. Returns false if the body is not available here.
    pub(super) fn take_body<F, M: Memory>(
        &mut self,
        leader: &mut Leader,
        source: Source,
        ordinal: Ordinal,
        fed: &Fed,
        feed: Row<'_>,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        let place = leader.tail;
        let found = match (self.given(fed.id, step.memory)?, source) {
            (Some(given), _) => Some(given),
            (None, Source::Client(_)) => None,
            (None, Source::Parent) => {
                let carried = self.carried(ordinal, feed)?;
                if carried.is_none() {
                    leader.wanted =
                        Some(Wanted { ordinal, comes: self.comes(fed.id, step.memory)? });
                }
                carried
            }
        };
        let Some((row, offset)) = found else { return Ok(false) };
        self.count_copied(fed.length);
        self.progress.references = self.progress.references.saturating_add(1);
        step.log.keep_body(place, fed.id, fed.length, row, offset)?;
        Ok(true)
    }

    /// Returns the location of a position's payload, if the parent's leader has carried it.
    fn carried<'m>(
        &self,
        ordinal: Ordinal,
        feed: Row<'m>,
    ) -> Result<Option<(Row<'m>, usize)>, Halt> {
        let is_there = feed.cell(feed_row::CARRIED)?.load() == ordinal.next().0;
        let ring = Ring::of_parent(&self.shape);
        Ok(is_there.then(|| (feed, ring.payload(ordinal))))
    }

    /// As a leader: requests from the parent a payload that has been missing for too long.
    pub(super) fn ask_for_wanted<F, M: Memory>(
        &mut self,
        leader: &mut Leader,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some(Wanted { ordinal, comes }) = leader.wanted else {
            leader.wanted_since = None;
            return Ok(());
        };
        let since = match leader.wanted_since {
            Some((before, since)) if before == ordinal => since,
            _ => step.now,
        };
        leader.wanted_since = Some((ordinal, since));
        if comes && step.now.since(since) < self.patience_for_bodies_ns() {
            return Ok(());
        }
        // bound: the replicas of the parent
        for link in self.links.parents() {
            let Some((row, _)) = step.memory.link(link) else { continue };
            let wanted = ordinal.next().0;
            if row.reader().cell(taken_row::WANTED)?.load() != wanted {
                put(row, taken_row::WANTED, wanted)?;
                self.touch(link);
            }
        }
        Ok(())
    }

    /// Returns the time that a replica waits for a body that its client may still send.
    pub(super) const fn patience_for_bodies_ns(&self) -> u64 {
        self.options.suspect_ns >> 1
    }

    /// As a follower: copies the bodies of new entries, and publishes to the leader which bodies
    /// are here.
    pub(super) fn hold_bodies<F, M: Memory>(
        &mut self,
        follower: &mut Follower,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        if !self.shape.has_references() || self.promised == Timestamp::NONE {
            return Ok(());
        }
        let control = step.log.control()?;
        if control.stamp != self.promised {
            return Ok(());
        }
        let mut held = follower.held;
        if held.of != self.promised {
            let below = control.tail.saturating_sub(u64::from(self.shape.entries()));
            held = Held { of: self.promised, below, shown: 0 };
        }
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((_, row)) = step.memory.link(link) {
                held.below = held.below.max(row.cell(peer_row::BODIES_FROM)?.load());
            }
        }
        // Entries beyond this would replace bodies that are still needed here, so a leader may not
        // have written these entries yet.
        let room = self.delivered.saturating_add(u64::from(self.shape.entries()));
        let end = control.tail.min(room);
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if held.below >= end {
                break;
            }
            match step.log.load(held.below)? {
                // A snapshot delivered this entry, and no replica needs this replica's copy of its
                // body.
                None if held.below < self.delivered => {}
                None => break,
                // The next step continues here.
                Some(_) if self.has_taken_enough() => break,
                Some(entry) => {
                    if !self.has_whole(held.below, &entry, step)? {
                        self.ask_for_bodies(follower, held.below, end, step)?;
                        break;
                    }
                    if self.shape.is_reference(entry.length()) {
                        held.shown = held.below.saturating_add(1);
                    }
                }
            }
            held.below = held.below.saturating_add(1);
        }
        follower.held = held;
        Ok(())
    }

    /// Returns whether a client may still send a body, or has sent it.
    fn comes<M: Memory>(&self, id: MessageId, memory: &M) -> Result<bool, Halt> {
        let Some(row) = self.row_of_client(id, memory) else { return Ok(false) };
        let gives_from = row.cell(feed_row::GIVES_FROM)?.load();
        // This cell lands after the bodies that were sent, so look for them after reading it.
        Ok(id.number >= gives_from || self.given(id, memory)?.is_some())
    }

    /// Requests from the leader the bodies, starting at a log index, that clients no longer send.
    fn ask_for_bodies<F, M: Memory>(
        &mut self,
        follower: &Follower,
        from: u64,
        end: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some(link) = follower.granted_to else { return Ok(()) };
        let Some((row, _)) = step.memory.link(link) else { return Ok(()) };
        let (mut place, mut asked) = (from, 0);
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= end {
                break;
            }
            if let Some(message) = self.reference(place, step.log)?
                && !step.log.has_body(place, message.id)?
            {
                // A replica that has delivered the message does not copy a body that arrives later:
                // see `lacking`.
                if place >= self.delivered && self.comes(message.id, step.memory)? {
                    break;
                }
                asked = place.saturating_add(1);
            }
            place = place.saturating_add(1);
        }
        if asked > row.reader().cell(peer_row::ASKS)?.load() {
            put(row, peer_row::ASKS, asked)?;
            self.touch(link);
        }
        Ok(())
    }

    /// Returns whether a decided entry can be delivered because its body is here. A returning
    /// replica counts in quorums only once it has all earlier bodies.
    pub(super) fn is_deliverable<F, M: Memory>(
        &mut self,
        held: &Held,
        place: u64,
        entry: &Entry,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        if !self.shape.has_references() {
            return Ok(true);
        }
        if self.has_taken_enough() && !self.is_held(place, entry, step.log)? {
            return Ok(false);
        }
        if let Content::Admit { rank, incarnation } = entry.content {
            let is_own = rank == self.id.rank && incarnation == self.options.incarnation;
            let is_whole = held.of == self.promised && held.below > place;
            return Ok(!is_own || self.is_voter || is_whole);
        }
        self.has_whole(place, entry, step)
    }

    fn count_copied(&mut self, length: u32) {
        let bytes = u64::from(length);
        self.progress.copied_bytes = self.progress.copied_bytes.saturating_add(bytes);
    }

    /// Returns whether this step has copied so much that its results must first be sent.
    const fn has_taken_enough(&self) -> bool {
        self.progress.copied_bytes >= self.options.run_bytes
    }
}
