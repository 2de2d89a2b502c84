//! What a leader passes on to its children: messages in the order of their positions.
//!
//! Each replica of a child has a ring in the leader's row towards it. A position is stored there
//! once the replica has taken the one that it replaces. A replica that is slow, or gone, holds up
//! its own ring alone. Positions that it has taken meanwhile, since its group had them, are left
//! out.
//!
//! Messages go early, while they are being replicated, or once they are decided: an option. How
//! many are decided goes with them (see `confirm`).
//!
//! An entry is kept in the log until one replica of each child that it is for shows that its group
//! has decided it. A new leader begins with all that is kept: what its predecessor has passed on
//! twice is taken once, since positions have no gaps and no two decided messages. A leader that has
//! led before finds its own rows as it left them. Where one has another message at a position, that
//! view is given up: a child's replica may be reading it.
//!
//! Source: TRAM, sections 5.3 and 5.6 (Algorithm 5); requirement TRM-6.
//!
//! Requirement: TRM-1.

use super::counts::UpTo;
use super::feed::{Fed, Payload, Ring};
use super::link::{LinkId, Memory, OfLinks};
use super::log::Log;
use super::progress::Halt;
use super::replica::{Passing, Replica, put};
use super::shape::{Shape, feed_row, taken_row};
use crate::fabric::Fabric;
use crate::ids::{Ordinal, Time};
use crate::memory::RowWriter;

impl Replica<'_> {
    /// A new leader looks for what the children lack from the lowest entry on that it has.
    pub(super) fn begin_passing_on(&mut self, tail: u64, log: Log<'_>) -> Result<(), Halt> {
        let lowest = tail.saturating_sub(u64::from(self.shape.entries()));
        // bound: the children
        for index in 0..self.children.len() {
            let settled = self.settled_by_log(index, lowest, tail, log)?;
            if let Some(child) = self.children.get_mut(index) {
                child.kept_from = lowest;
                child.settled = child.settled.max(settled);
            }
            // bound: the replicas of a child
            for link in self.links.child(index) {
                let passing = &mut self.state.at_mut(link)?.passing;
                (passing.place, passing.stored) = (lowest, Ordinal::ZERO);
            }
        }
        Ok(())
    }

    /// How many positions of a child have been decided there, as the own log tells: an entry is
    /// given up only once the child showed that, and a log that counts has all that are kept. The
    /// replica of the child that showed it may be gone.
    fn settled_by_log(
        &self,
        child: usize,
        lowest: u64,
        tail: u64,
        log: Log<'_>,
    ) -> Result<u64, Halt> {
        let mut first = None;
        let mut place = lowest;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= tail {
                break;
            }
            match log.load(place)? {
                // What lies below a gap is left over from before it.
                None => first = None,
                Some(entry) => first = first.or(entry.position(child)),
            }
            place = place.saturating_add(1);
        }
        Ok(first.unwrap_or(self.counts.child(child, UpTo::Proposed)).0)
    }

    /// Stores for each replica of each child what it lacks and has room for.
    pub(super) fn pass_on<F: Fabric, M: Memory>(
        &mut self,
        now: Time,
        fabric: &mut F,
        log: Log<'_>,
        memory: &M,
    ) -> Result<(), Halt> {
        let limit = if self.options.passes_on_early { self.tail } else { log.decided()? };
        // bound: the children
        for child in 0..self.children.len() {
            let settled = self.look_at_settled(child, memory)?;
            // bound: the replicas of a child
            for link in self.links.child(child) {
                if self.is_ready(link) {
                    self.pass_to(child, link, limit, log, memory)?;
                    self.show_confirmed(child, link, settled, memory)?;
                    self.carry_to_child(child, link, fabric, log, memory)?;
                    self.give_up_if_spoilt(now, link, fabric);
                }
            }
        }
        Ok(())
    }

    fn pass_to<M: Memory>(
        &mut self,
        child: usize,
        link: LinkId,
        end: u64,
        log: Log<'_>,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, theirs)) = memory.link(link) else { return Ok(()) };
        let Some(shape) = self.children.get(child).map(|child| child.shape) else { return Ok(()) };
        let taken = theirs.cell(taken_row::TAKEN)?.load();
        let limit = taken.saturating_add(u64::from(shape.parent_window()));
        let mut passing = self.state.at(link)?.passing;
        if taken > passing.stored.0 {
            passing.stored = Ordinal(taken);
            passing.posted = passing.posted.max(Ordinal(taken));
        }
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if passing.place >= end || passing.stored.0 >= limit || passing.is_spoilt {
                break;
            }
            let found = log.load(passing.place)?;
            let position = found.as_ref().and_then(|entry| entry.position(child));
            let is_lacking = |position: &Ordinal| *position >= passing.stored;
            if let (Some(entry), Some(position)) = (found, position.filter(is_lacking)) {
                if position.0 >= limit {
                    break;
                }
                if let Some(fed) = Fed::of(&entry.content) {
                    self.store_for(row, &shape, &mut passing, position, &fed, log)?;
                }
            }
            passing.place = passing.place.saturating_add(1);
        }
        self.state.at_mut(link)?.passing = passing;
        Ok(())
    }

    /// Stores a message, or a null, at a position, unless it stands there already.
    fn store_for(
        &mut self,
        row: RowWriter<'_>,
        shape: &Shape,
        passing: &mut Passing,
        position: Ordinal,
        fed: &Fed,
        log: Log<'_>,
    ) -> Result<(), Halt> {
        let ring = Ring::of_parent(shape);
        match ring.name(row.reader(), position)? {
            Some(name) if name == fed.id => {}
            Some(_) => {
                passing.is_spoilt = true;
                return Ok(());
            }
            None => {
                let from = self.shape.payload(passing.place);
                let is_reference = self.shape.is_reference(fed.length);
                let (payload, copied) = if is_reference {
                    (Payload::Reference, 0)
                } else {
                    (Payload::Cells(log.memory().reader(), from), u64::from(fed.length))
                };
                ring.store(row, position, fed, payload)?;
                self.progress.passed_on = self.progress.passed_on.saturating_add(1);
                self.progress.copied_bytes = self.progress.copied_bytes.saturating_add(copied);
            }
        }
        // Positions that are left out are not posted either.
        if position > passing.stored {
            passing.posted = passing.posted.max(position);
        }
        passing.stored = position.next();
        Ok(())
    }

    /// Shows a child's replica how many of the positions stored for it are decided.
    fn show_confirmed<M: Memory>(
        &mut self,
        child: usize,
        link: LinkId,
        settled: u64,
        memory: &M,
    ) -> Result<(), Halt> {
        let Some((row, _)) = memory.link(link) else { return Ok(()) };
        let decided = self.counts.child(child, UpTo::Delivered).0;
        let state = self.state.at_mut(link)?;
        let (confirmed, before) = state.passing.shown;
        let shown = (confirmed.max(decided.min(state.passing.stored.0)), before.max(settled));
        if shown == state.passing.shown || state.passing.is_spoilt {
            return Ok(());
        }
        state.passing.shown = shown;
        put(row, feed_row::CONFIRMED, shown.0)?;
        put(row, feed_row::SETTLED, shown.1)?;
        if shown.0 > confirmed {
            self.touch(link);
        }
        // What is settled matters to a child's leader after a change alone.
        self.raise(link, shown.1, u32::MAX);
        Ok(())
    }

    /// Gives up a view whose row has another message at a position.
    fn give_up_if_spoilt<F: Fabric>(&mut self, now: Time, link: LinkId, fabric: &mut F) {
        let Some(state) = self.state.get(link.index()) else { return };
        if state.passing.is_spoilt {
            let attached = state.attached;
            fabric.cut(attached.view, attached.peer);
            self.lose(now, attached.view);
        }
    }

    /// How many positions a child has decided, by that of its replicas that knew most.
    fn look_at_settled<M: Memory>(&mut self, child: usize, memory: &M) -> Result<u64, Halt> {
        let mut settled = self.children.get(child).map_or(0, |child| child.settled);
        let positions = self.counts.child(child, UpTo::Proposed).0;
        // bound: the replicas of a child
        for link in self.links.child(child) {
            if let (true, Some((_, theirs))) = (self.is_ready(link), memory.link(link)) {
                // No correct replica has taken more than there are.
                let taken = theirs.cell(taken_row::TAKEN)?.load().min(positions);
                settled = settled.max(taken);
            }
        }
        if let Some(child) = self.children.get_mut(child) {
            child.settled = settled;
        }
        Ok(settled)
    }

    /// The place of the first entry that a child may not have decided yet.
    pub(super) fn keep_for_child<M: Memory>(
        &mut self,
        child: usize,
        log: Log<'_>,
        memory: &M,
    ) -> Result<u64, Halt> {
        let settled = self.look_at_settled(child, memory)?;
        let decided = log.decided()?;
        let Some(state) = self.children.get_mut(child) else { return Ok(0) };
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if state.kept_from >= decided {
                break;
            }
            let entry = log.load(state.kept_from)?;
            let position = entry.and_then(|entry| entry.position(child));
            if position.is_some_and(|position| position.0 >= settled) {
                break;
            }
            state.kept_from = state.kept_from.saturating_add(1);
        }
        Ok(state.kept_from)
    }
}
