//! Bodies: payloads to which entries refer, instead of carrying them (TRM-9). A switch of the
//! overlay.
//!
//! A client gives the body of a long message to each replica of each group on the message's way,
//! by its own connections. It lies in the client's row there, under the message's name. Slots,
//! entries and what is passed on to children then have headers alone.
//!
//! A replica that finds a reference in its log takes the body out of the client's row, into memory
//! of its own that only it writes: by the entry's place, under the message's name. There the body
//! stays for as long as the entry has its place in the log. So neither a client that goes, nor the
//! end of its connection, takes a body away that an entry refers to.
//!
//! A step takes so many bytes of bodies, and shows which it has. So a leader's followers, and the
//! groups below, take the first bodies while it takes the next. If each took all that is there
//! first, all would copy the same bodies one after the other.
//!
//! # When a reference counts
//! A replica shows the leader that has its log below which place it has all bodies. A reference
//! counts there only below that, in the leader's log and in its term. So it is decided once a
//! quorum has shown the body, and not once a quorum has the header. The leader itself proposes no
//! reference whose body it lacks. Where a follower lacks one for too long, or asks for it because
//! it does not come from the client any more, the leader carries it: into that follower's log,
//! under the entry's place and name (see `carry`).
//!
//! A count that an earlier leader was shown says nothing to a later one: the term travels with it.
//! A follower begins to count for a leader only once its log has that leader's stamp.
//!
//! # Why a body is never replaced too early
//! - In a client's row: the client gives another in its place only once this replica has replied
//!   to the message, which it does as it delivers it, or passes it over.
//! - In the memory of the replica: by that of the entry whose header takes the place of its own.
//!   All replicas that are heard have delivered it then, and the children have decided it.
//! - Its name goes before it is replaced, and comes behind it.

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

/// Cells of a name: what says which body it is, and whose.
const MARK: usize = 0;
const PARTY: usize = 8;
const NUMBER: usize = 16;

impl Log<'_> {
    /// Whether the body that is kept for a place is a message's.
    pub(super) fn has_body(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().body_name(place), place, id)
    }

    /// Whether a leader has carried the payload of a message to a place.
    fn is_carried(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().carried_name(place), place, id)
    }

    /// Whether the name that was read last is that of a message's body for a place.
    pub(super) fn is_asked(&self, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        self.is_named(self.shape().asked_name(), place, id)
    }

    fn is_named(&self, at: usize, place: u64, id: MessageId) -> Result<bool, OutOfRow> {
        let row = self.memory().reader();
        let get = |offset: usize| row.cell(at.saturating_add(offset)).map(|cell| cell.load());
        let is_place = get(MARK)? == place.saturating_add(1);
        Ok(is_place && get(PARTY)? == id.party_cell() && get(NUMBER)? == id.number)
    }

    /// The body that is kept for a place has no name any more.
    pub(super) fn forget_body(&self, place: u64) -> Result<(), OutOfRow> {
        self.memory().cell(self.shape().body_name(place).saturating_add(MARK))?.publish(0);
        Ok(())
    }

    /// The body that is kept for a place is whole, and a message's.
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

    /// Keeps a body for a place.
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

    /// Copies the body of an entry out.
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
    /// Whether the body of an entry is kept here, if it refers to one.
    pub(super) fn is_held(&self, place: u64, entry: &Entry, log: Log<'_>) -> Result<bool, Halt> {
        match entry.content {
            Content::Message(message) if self.shape.is_reference(message.length) => {
                Ok(log.has_body(place, message.id)?)
            }
            _ => Ok(true),
        }
    }

    /// Whether the body of an entry is here, if it refers to one. Takes it from where it came.
    fn has_whole<F, M: Memory>(
        &mut self,
        place: u64,
        entry: &Entry,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        Ok(self.lacking(place, entry, step)?.is_none())
    }

    /// The message of an entry that refers to a body which is not here. Takes the body from where
    /// it came.
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
        // What comes late, to one that has delivered the message without it, may be another's.
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
        step.log.keep_body(
            place,
            id,
            length,
            step.log.memory().reader(),
            self.shape.payload(place),
        )?;
        // A later leader that has put something else there has replaced the header before.
        if step.log.load(place)?.as_ref() == Some(entry) {
            return Ok(None);
        }
        step.log.forget_body(place)?;
        Ok(Some(message))
    }

    /// The row of the client that a message is of, if it is connected.
    fn row_of_client<'m, M: Memory>(&self, id: MessageId, memory: &'m M) -> Option<Row<'m>> {
        let link = self.links.find(LinkRole::Client(id.client))?;
        let attached = self.state.at(link).attached;
        let is_its = attached.stage != Stage::Absent && attached.incarnation == id.incarnation;
        let (_, row) = memory.link(link).filter(|_| is_its)?;
        Some(row)
    }

    /// Where a client has given the body of its message, if it has.
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

    /// As a leader: takes the body of the next message of a source, whose entry comes to the end of
    /// the log. False if it is not here.
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

    /// Where the parent's leader has carried the payload of a position, if it has.
    fn carried<'m>(
        &self,
        ordinal: Ordinal,
        feed: Row<'m>,
    ) -> Result<Option<(Row<'m>, usize)>, Halt> {
        let is_there = feed.cell(feed_row::CARRIED)?.load() == ordinal.next().0;
        let ring = Ring::of_parent(&self.shape);
        Ok(is_there.then(|| (feed, ring.payload(ordinal))))
    }

    /// As a leader: asks the parent for a payload that is not here for too long.
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

    /// How long a replica waits for a body that its client may be giving.
    pub(super) const fn patience_for_bodies_ns(&self) -> u64 {
        self.options.suspect_ns >> 1
    }

    /// As a follower: takes the bodies of new entries, and shows the leader which are here.
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
        // What a leader may not have written yet would replace bodies that are wanted here still.
        let room = self.delivered.saturating_add(u64::from(self.shape.entries()));
        let end = control.tail.min(room);
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if held.below >= end {
                break;
            }
            match step.log.load(held.below)? {
                // It was delivered by a snapshot, and nobody wants it from here.
                None if held.below < self.delivered => {}
                None => break,
                // The next step goes on.
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
        self.show_bodies(follower, step.memory)
    }

    /// Whether a client may give a body still, or has given it.
    fn comes<M: Memory>(&self, id: MessageId, memory: &M) -> Result<bool, Halt> {
        let Some(row) = self.row_of_client(id, memory) else { return Ok(false) };
        let gives_from = row.cell(feed_row::GIVES_FROM)?.load();
        // It lands behind the bodies that were given, so these are looked for after it.
        Ok(id.number >= gives_from || self.given(id, memory)?.is_some())
    }

    /// Asks the leader for bodies from a place on that do not come from their clients any more.
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
                // What comes to one that has delivered the message is not taken: see `lacking`.
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

    /// Only to the leader that has this log: one that was deposed must not count what comes later.
    fn show_bodies<M: Memory>(&mut self, follower: &Follower, memory: &M) -> Result<(), Halt> {
        let (shown, of) = (follower.held.shown, follower.held.of.cell());
        let Some(link) = follower.granted_to.filter(|_| shown > 0) else { return Ok(()) };
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        let get = |offset: usize| row.reader().cell(offset).map(|cell| cell.load());
        if get(peer_row::BODIES)? == shown && get(peer_row::BODIES_FOR)? == of {
            return Ok(());
        }
        self.state.at_mut(link).has_bodies = true;
        put(row, peer_row::BODIES, shown)?;
        put(row, peer_row::BODIES_FOR, of)?;
        self.touch(link);
        Ok(())
    }

    /// Whether a decided entry can be delivered: its body is here. And a replica that comes back
    /// counts in quorums only with all bodies below.
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

    /// Whether this step has copied so much that its results go out first.
    const fn has_taken_enough(&self) -> bool {
        self.progress.copied_bytes >= self.options.run_bytes
    }
}
