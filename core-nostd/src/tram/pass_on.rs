//! What a leader passes on to its children: decided messages, in the order of their positions.
//!
//! Each replica of a child has a ring in the leader's row towards it. A position is stored there
//! once the replica has taken the one that it replaces. A replica that is slow, or gone, holds up
//! its own ring alone. Positions that it has taken meanwhile, since its group had them, are left
//! out.
//!
//! An entry is kept in the log until one replica of each child that it is for shows that its group
//! has decided it. A new leader begins with all that is kept: what its predecessor has passed on
//! twice is taken once, since positions have no gaps and no two messages.
//!
//! Source: TRAM, sections 5.3 and 5.6 (Algorithm 5); requirement TRM-6.

use super::entry::Content;
use super::feed::{Fed, Payload, Ring};
use super::link::{LinkId, Memory};
use super::log::Log;
use super::progress::Halt;
use super::replica::{Passing, Replica};
use super::shape::taken_row;
use crate::ids::Ordinal;

impl Replica<'_> {
    /// A new leader looks for what the children lack from the lowest entry on that it has.
    pub(super) fn begin_passing_on(&mut self, tail: u64) {
        let lowest = tail.saturating_sub(u64::from(self.shape.entries()));
        for (index, child) in self.children.iter_mut().enumerate() {
            child.kept_from = lowest;
            for link in self.links.child(index) {
                if let Some(state) = self.state.get_mut(link.index()) {
                    state.passing.place = lowest;
                }
            }
        }
    }

    /// Stores for each replica of each child what it lacks and has room for.
    pub(super) fn pass_on<M: Memory>(&mut self, log: Log<'_>, memory: &M) -> Result<(), Halt> {
        let decided = log.decided()?;
        for child in 0..self.children.len() {
            for link in self.links.child(child) {
                if self.is_ready(link) {
                    self.pass_to(child, link, decided, log, memory)?;
                }
            }
        }
        Ok(())
    }

    fn pass_to<M: Memory>(
        &mut self,
        child: usize,
        link: LinkId,
        decided: u64,
        log: Log<'_>,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, theirs)) = memory.link(link) else { return Ok(()) };
        let Some(shape) = self.children.get(child).map(|child| child.shape) else { return Ok(()) };
        let ring = Ring { shape: &shape, window: shape.parent_window() };
        let taken = theirs.cell(taken_row::TAKEN)?.load();
        let limit = taken.saturating_add(u64::from(shape.parent_window()));
        let Some(mut passing) = self.state.get(link.index()).map(|state| state.passing) else {
            return Ok(());
        };
        if taken > passing.stored.0 {
            passing.stored = Ordinal(taken);
            passing.posted = passing.posted.max(Ordinal(taken));
        }
        for _ in 0..self.shape.entries() {
            if passing.place >= decided || passing.stored.0 >= limit {
                break;
            }
            let found = log.load(passing.place)?;
            let position = found.as_ref().and_then(|entry| entry.position(child));
            let is_lacking = |position: &Ordinal| *position >= passing.stored;
            if let (Some(entry), Some(position)) = (found, position.filter(is_lacking)) {
                if position.0 >= limit {
                    break;
                }
                self.store_for(row, ring, passing.place, position, &entry.content, log)?;
                skip_to(&mut passing, position);
                passing.stored = position.next();
            }
            passing.place = passing.place.saturating_add(1);
        }
        if let Some(state) = self.state.get_mut(link.index()) {
            state.passing = passing;
        }
        Ok(())
    }

    fn store_for(
        &mut self,
        row: crate::memory::RowWriter<'_>,
        ring: Ring<'_>,
        place: u64,
        position: Ordinal,
        content: &Content,
        log: Log<'_>,
    ) -> Result<(), Halt> {
        let Content::Message(message) = content else { return Ok(()) };
        let fed =
            Fed { id: message.id, destinations: message.destinations, length: message.length };
        let payload = Payload::Cells(log.memory().reader(), self.shape.payload(place));
        ring.store(row, position, &fed, payload)?;
        self.progress.passed_on = self.progress.passed_on.saturating_add(1);
        self.progress.copied_bytes =
            self.progress.copied_bytes.saturating_add(u64::from(message.length));
        Ok(())
    }

    /// The place of the first entry that a child may not have decided yet.
    pub(super) fn keep_for_child<M: Memory>(
        &mut self,
        child: usize,
        log: Log<'_>,
        memory: &M,
    ) -> Result<u64, Halt> {
        let mut taken = 0;
        for link in self.links.child(child) {
            if let (true, Some((_, theirs))) = (self.is_ready(link), memory.link(link)) {
                taken = theirs.cell(taken_row::TAKEN)?.load().max(taken);
            }
        }
        let decided = log.decided()?;
        let Some(state) = self.children.get_mut(child) else { return Ok(0) };
        for _ in 0..self.shape.entries() {
            if state.kept_from >= decided {
                break;
            }
            let entry = log.load(state.kept_from)?;
            let position = entry.and_then(|entry| entry.position(child));
            if position.is_some_and(|position| position.0 >= taken) {
                break;
            }
            state.kept_from = state.kept_from.saturating_add(1);
        }
        Ok(state.kept_from)
    }
}

/// Positions that are left out are not posted either.
fn skip_to(passing: &mut Passing, position: Ordinal) {
    if position > passing.stored {
        passing.posted = passing.posted.max(position);
    }
}
