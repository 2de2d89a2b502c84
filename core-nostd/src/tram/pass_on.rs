//! Passing on: a leader sends messages to its children in the order of their positions.
//!
//! Each replica of a child has a ring in the leader's row towards that replica. The leader serves
//! the child's leader first, and the child's other replicas not at all, because they cannot use a
//! message and each post takes the leader's time. The child's replicas publish which of them leads.
//! A replica that becomes leader later is served from the entries that its group lacks, because
//! those entries are kept. In the paper all replicas of a child are served; this is available as an
//! option.
//!
//! A position is stored once the replica has taken the position that it replaces. Positions that
//! the replica has taken in the meantime, because its group had them, are omitted.
//!
//! Messages are passed on either early, while they are being replicated, or only once they have
//! been decided; this is an option. The number of decided messages is posted with them (see
//! `confirm`).
//!
//! An entry is kept in the log until, for each child that the entry is for, one replica publishes
//! that its group has decided it. A new leader begins with all kept entries. A message that it
//! passes on after its predecessor has already done so is taken only once, because positions have
//! no gaps and no position has two decided messages. A leader that has led before finds its own
//! rows as it left them. If one of these rows has a different message at a position, that view is
//! given up, because a child's replica may be reading the row.
//!
//! Source: TRAM, sections 5.3 and 5.6 (Algorithm 5); requirement TRM-6.
//!
//! Requirement: TRM-1.

use super::common::{ChildState, Common, Passing};
use super::counts::UpTo;
use super::feed::{Fed, Payload, Ring};
use super::link::{LinkId, Memory, put};
use super::log::Log;
use super::progress::Halt;
use super::role::Leader;
use super::shape::{Shape, feed_row, taken_row};
use super::step::StepContext;
use crate::fabric::Fabric;
use crate::ids::Ordinal;
use crate::memory::{OutOfRow, Row, RowWriter};

/// The replicas of the children that are to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// The replicas that publish that they lead.
    Leaders,
    /// The others.
    Others,
}

impl Served {
    /// Returns whether the replica that has written a row is one of those served.
    pub(super) fn includes(self, theirs: Row<'_>) -> Result<bool, OutOfRow> {
        Ok(leads(theirs)? == (self == Self::Leaders))
    }
}

/// A replica of a child, and the rows that are shared with it.
pub(super) struct ChildReplica<'c, 'm> {
    pub(super) child: usize,
    pub(super) shape: &'c Shape,
    pub(super) link: LinkId,
    pub(super) row: RowWriter<'m>,
    pub(super) theirs: Row<'m>,
}

/// Returns whether a child's replica publishes that it leads.
fn leads(theirs: Row<'_>) -> Result<bool, OutOfRow> {
    Ok(theirs.cell(taken_row::LEADS)?.load() != 0)
}

impl Common<'_> {
    /// Prepares a new leader to search its log, starting with the lowest entry, for what the
    /// children lack.
    pub(super) fn begin_passing_on(&mut self, tail: u64, log: Log<'_>) -> Result<(), Halt> {
        let lowest = tail.saturating_sub(u64::from(self.shape.entries()));
        // bound: the children
        for (index, child) in self.children.iter_mut().enumerate() {
            let proposed = self.counts.child(index, UpTo::Proposed);
            let settled = first_kept(index, lowest, tail, log)?.unwrap_or(proposed);
            child.kept_from = lowest;
            child.settled = child.settled.max(settled.0);
            // bound: the replicas of a child
            for link in self.links.child(index) {
                let passing = &mut self.state.at_mut(link).passing;
                (passing.place, passing.stored) = (lowest, Ordinal::ZERO);
            }
        }
        Ok(())
    }

    /// Stores, for replicas of each child, the messages that they lack and have room for. Only a
    /// leader can use messages that have not been decided.
    pub(super) fn pass_on<F: Fabric, M: Memory>(
        &mut self,
        leader: &Leader,
        served: Served,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let is_early = self.options.passes_on_early && served == Served::Leaders;
        let limit = if is_early { leader.tail } else { step.log.decided()? };
        let mut child = 0_usize;
        // bound: the children
        while let Some(ChildState { shape, settled, .. }) = self.children.get(child).copied() {
            // bound: the replicas of a child
            for link in self.links.child(child) {
                if !self.is_ready(link) {
                    continue;
                }
                let Some((row, theirs)) = step.memory.link(link) else { continue };
                if !served.includes(theirs)? {
                    continue;
                }
                let to = ChildReplica { child, shape: &shape, link, row, theirs };
                if self.pass_to(leader, &to, limit, step.log)? {
                    self.show_confirmed(&to, settled)?;
                    self.carry_to_child(leader, &to, step)?;
                } else {
                    self.give_up(link, step);
                }
            }
            child = child.saturating_add(1);
        }
        Ok(())
    }

    /// Stores the messages that one replica lacks. Returns false if its row has a different message
    /// at a position.
    fn pass_to(
        &mut self,
        leader: &Leader,
        to: &ChildReplica<'_, '_>,
        end: u64,
        log: Log<'_>,
    ) -> Result<bool, Halt> {
        let ChildReplica { child, shape, link, theirs, .. } = *to;
        let taken = theirs.cell(taken_row::TAKEN)?.load();
        let limit = taken.saturating_add(u64::from(shape.parent_window()));
        let mut passing = self.state.at(link).passing;
        if taken > passing.stored.0 {
            passing.stored = Ordinal(taken);
            passing.posted = passing.posted.max(Ordinal(taken));
        }
        // The child has decided the entries that the log has dropped. A replica that has not led
        // for a long time was last served before those entries.
        passing.place =
            passing.place.max(leader.tail.saturating_sub(u64::from(self.shape.entries())));
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if passing.place >= end || passing.stored.0 >= limit || passing.is_spoilt {
                break;
            }
            let found = log.load(passing.place)?.and_then(|entry| {
                let position = entry.position(child)?;
                Some((position, Fed::of(&entry.content)?))
            });
            if let Some((position, fed)) = found.filter(|found| found.0 >= passing.stored) {
                if position.0 >= limit {
                    break;
                }
                self.store_for(to, &mut passing, position, &fed, log)?;
            }
            passing.place = passing.place.saturating_add(1);
        }
        self.state.at_mut(link).passing = passing;
        Ok(!passing.is_spoilt)
    }

    /// Stores a message or a null at a position, unless it is already there.
    fn store_for(
        &mut self,
        to: &ChildReplica<'_, '_>,
        passing: &mut Passing,
        position: Ordinal,
        fed: &Fed,
        log: Log<'_>,
    ) -> Result<(), Halt> {
        let ChildReplica { shape, row, .. } = *to;
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
        // Positions that are omitted are not posted either.
        if position > passing.stored {
            passing.posted = passing.posted.max(position);
        }
        passing.stored = position.next();
        Ok(())
    }

    /// Publishes to a child's replica how many of the positions stored for it have been decided.
    fn show_confirmed(&mut self, to: &ChildReplica<'_, '_>, settled: u64) -> Result<(), Halt> {
        let ChildReplica { child, link, row, .. } = *to;
        let decided = self.counts.child(child, UpTo::Delivered).0;
        let state = self.state.at_mut(link);
        let (confirmed, before) = state.passing.shown;
        let shown = (confirmed.max(decided.min(state.passing.stored.0)), before.max(settled));
        if shown == state.passing.shown {
            return Ok(());
        }
        state.passing.shown = shown;
        put(row, feed_row::CONFIRMED, shown.0)?;
        put(row, feed_row::SETTLED, shown.1)?;
        if shown.0 > confirmed {
            self.touch(link);
        }
        // The settled count matters to a child's leader only after a change of leader.
        self.raise(link, shown.1, u32::MAX);
        Ok(())
    }

    /// Reads the number of positions that each child has decided, according to its most advanced
    /// replica.
    fn look_at_settled<M: Memory>(&mut self, memory: &M) -> Result<(), Halt> {
        // bound: the children
        for (index, child) in self.children.iter_mut().enumerate() {
            let positions = self.counts.child(index, UpTo::Proposed).0;
            // bound: the replicas of a child
            for link in self.links.child(index) {
                let is_ready = self.state.at(link).attached.is_ready();
                if let (true, Some((_, theirs))) = (is_ready, memory.link(link)) {
                    // No correct replica has taken more positions than there are.
                    let taken = theirs.cell(taken_row::TAKEN)?.load().min(positions);
                    child.settled = child.settled.max(taken);
                }
            }
        }
        Ok(())
    }

    /// Returns the log index of the first entry that a child may not have decided yet: the lowest
    /// over all children. If there is no child, returns the highest possible index.
    pub(super) fn keep_for_children<F, M: Memory>(
        &mut self,
        step: &StepContext<'_, F, M>,
    ) -> Result<u64, Halt> {
        self.look_at_settled(step.memory)?;
        let decided = step.log.decided()?;
        let mut lowest = u64::MAX;
        // bound: the children
        for (index, child) in self.children.iter_mut().enumerate() {
            // bound: the entries of the log
            for _ in 0..self.shape.entries() {
                if child.kept_from >= decided {
                    break;
                }
                let entry = step.log.load(child.kept_from)?;
                let position = entry.and_then(|entry| entry.position(index));
                if position.is_some_and(|position| position.0 >= child.settled) {
                    break;
                }
                child.kept_from = child.kept_from.saturating_add(1);
            }
            lowest = lowest.min(child.kept_from);
        }
        Ok(lowest)
    }
}

/// Returns the first position of a child that this replica's log has kept. The child has decided
/// the earlier positions: an entry is dropped only once the child has published this, and a log
/// that counts has all kept entries. The child's replica that published it may be lost.
fn first_kept(child: usize, lowest: u64, tail: u64, log: Log<'_>) -> Result<Option<Ordinal>, Halt> {
    let mut first = None;
    let mut place = lowest;
    // bound: the entries of the log
    for _ in 0..log.shape().entries() {
        if place >= tail {
            break;
        }
        match log.load(place)? {
            // Entries below a gap are leftovers.
            None => first = None,
            Some(entry) => first = first.or(entry.position(child)),
        }
        place = place.saturating_add(1);
    }
    Ok(first)
}
