//! How a leader carries the payload of a reference to replicas that lack its body.
//!
//! - A follower that requests a body, or reports none for too long, receives it in its log, where
//!   the payload of an ordinary entry would be. The name follows the payload, at a separate offset,
//!   so a payload that has its name is whole. When a new leader repairs a log, it sends the
//!   payloads at once, because the clients sent them only to replicas that were connected at the
//!   time.
//! - A leader of a child that requests a body receives it in the slot of its position. Bodies are
//!   carried one at a time, and the control line says which one.
//!
//! Requirement: TRM-9.

use super::common::Common;
use super::entry::{Content, Message};
use super::feed::{Ring, whole_cells};
use super::follow::{Follow, FollowStage};
use super::link::{LinkId, Memory, put};
use super::log::{Log, log_area};
use super::pass_on::ChildReplica;
use super::posting::Posting;
use super::progress::Halt;
use super::role::Leader;
use super::shape::{NAME_BYTES, feed_row, peer_row, taken_row};
use super::step::StepContext;
use crate::fabric::{Area, Fabric, Region};
use crate::ids::{Ordinal, Time, index_from_u32};

impl Common<'_> {
    /// Reads which bodies the followers report to have, and records those that they have lacked for
    /// too long.
    pub(super) fn look_at_bodies<F, M: Memory>(
        &mut self,
        leader: &Leader,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        if !self.shape.has_references() {
            return Ok(());
        }
        // bound: the replicas of the group
        for link in self.links.peers() {
            let Some((_, row)) = step.memory.link(link) else { continue };
            let mut follow = self.state.at(link).follow;
            if follow.stage != FollowStage::Synced {
                continue;
            }
            let shown = self.reported(row, peer_row::BODIES)?;
            follow.covered = follow.covered.max(shown.unwrap_or(0));
            self.pass_over_dropped(leader, link, &mut follow, step)?;
            self.cover(&mut follow, step.log)?;
            let asked = row.cell(peer_row::ASKS)?.load();
            self.notice_lack(&mut follow, asked, step.now);
            self.state.at_mut(link).follow = follow;
            if follow.lacks.is_some() && !self.is_kept(leader, follow.covered, step.log)? {
                self.fall_behind(leader, link, step)?;
            }
        }
        Ok(())
    }

    /// A leader cannot carry the body of an entry that its log has dropped, or whose body it lacks.
    /// If the follower has delivered that entry, it does not need the body, so the leader tells the
    /// follower to continue after the entry. An undelivered entry counts as lacking.
    fn pass_over_dropped<F, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        follow: &mut Follow,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some((row, _)) = step.memory.link(link) else { return Ok(()) };
        let delivered = self.delivered_by(link, step.memory)?.min(leader.tail);
        let lowest = leader.tail.saturating_sub(u64::from(self.shape.entries()));
        let mut place = follow.covered.max(lowest.min(delivered));
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= delivered || self.is_kept(leader, place, step.log)? {
                break;
            }
            place = place.saturating_add(1);
        }
        if place > follow.covered {
            follow.covered = place;
            put(row, peer_row::BODIES_FROM, place)?;
            self.state.at_mut(link).reports = true;
            self.touch(link);
        }
        Ok(())
    }

    /// Starts to carry payloads to a peer whose log is repaired: those of the entries being written
    /// or, if the peer is returning, all that any replica may need.
    pub(super) fn begin_carrying<F, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        floor: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some((row, _)) = step.memory.link(link).filter(|_| self.shape.has_references()) else {
            return Ok(());
        };
        let delivered = self.state.at(link).follow.lacking_end;
        let (mut from, mut place) = (floor, floor);
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= delivered {
                break;
            }
            // If this leader lacks a body, no replica had it when this leader began.
            if !self.is_kept(leader, place, step.log)? {
                from = place.saturating_add(1);
            }
            place = place.saturating_add(1);
        }
        put(row, peer_row::BODIES_FROM, from)?;
        self.touch(link);
        let state = self.state.at_mut(link);
        state.reports = true;
        if !state.follow.is_voter {
            state.follow.carry = from;
        }
        Ok(())
    }

    /// Counts entries that are not references as covered, because they need no body. An entry that
    /// the local log has dropped may have been a reference, so the count stops there.
    fn cover(&self, follow: &mut Follow, log: Log<'_>) -> Result<(), Halt> {
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if follow.covered >= follow.acknowledged {
                break;
            }
            let entry = log.load(follow.covered)?;
            if entry.is_none_or(|entry| self.shape.is_reference(entry.length())) {
                break;
            }
            follow.covered = follow.covered.saturating_add(1);
        }
        Ok(())
    }

    fn notice_lack(&self, follow: &mut Follow, asked: u64, now: Time) {
        let place = follow.covered;
        if place >= follow.acknowledged {
            follow.lacks = None;
            return;
        }
        let since = match follow.lacks {
            Some((before, since)) if before == place => since,
            _ => now,
        };
        follow.lacks = Some((place, since));
        let is_carried = follow.carry < follow.carry_end || follow.carrying.is_some();
        // Payloads carried earlier are in flight, or wait at the follower to be copied.
        let new = place.max(follow.carry_end);
        let asked = asked.min(follow.acknowledged);
        if !is_carried && asked > new {
            (follow.carry, follow.carry_end) = (new, asked);
        } else if !is_carried && now.since(since) >= self.patience_for_bodies_ns() {
            (follow.carry, follow.carry_end) = (place, follow.acknowledged);
            follow.lacks = Some((place, now));
        }
    }

    /// Returns the message of an entry that is a reference.
    pub(super) fn reference(&self, place: u64, log: Log<'_>) -> Result<Option<Message>, Halt> {
        let entry = log.load(place)?;
        Ok(entry.and_then(|entry| match entry.content {
            Content::Message(message) if self.shape.is_reference(message.length) => Some(message),
            _ => None,
        }))
    }

    /// Adds the payloads to be carried to a follower to a list, and returns the log index of the
    /// first one. If there is no such payload, these entries are not examined again.
    pub(super) fn add_carried(
        &mut self,
        link: LinkId,
        follow: &mut Follow,
        posting: &mut Posting,
        log: Log<'_>,
    ) -> Result<Option<u64>, Halt> {
        // The headers are sent first.
        if !follow.stamp_sent || !follow.carries() {
            return Ok(None);
        }
        let mut first = None;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            let place = follow.carry;
            if place >= follow.carry_end || posting.room() < 2 {
                break;
            }
            if let Some(message) = self.reference(place, log)?
                && log.has_body(place, message.id)?
            {
                let (body, into) = (self.shape.body(place), self.shape.payload(place));
                let length = index_from_u32(message.length);
                if !posting.content(log_area(body), log_area(into), length) {
                    break;
                }
                let (name, into) = (self.shape.body_name(place), self.shape.carried_name(place));
                posting.guard(log_area(name), log_area(into), NAME_BYTES);
                self.progress.carried = self.progress.carried.saturating_add(1);
                first = first.or(Some(place));
            }
            follow.carry = place.saturating_add(1);
        }
        if first.is_none() {
            self.state.at_mut(link).follow.carry = follow.carry;
        }
        Ok(first)
    }

    /// Carries a payload that a child's replica has requested.
    pub(super) fn carry_to_child<F: Fabric, M>(
        &mut self,
        leader: &Leader,
        to: &ChildReplica<'_, '_>,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        if !self.shape.has_references() {
            return Ok(());
        }
        let ChildReplica { child, shape, link, row, theirs } = *to;
        let wanted = theirs.cell(taken_row::WANTED)?.load();
        let Some(position) = wanted.checked_sub(1).map(Ordinal) else { return Ok(()) };
        let state = self.state.at(link);
        let (attached, passing) = (state.attached, state.passing);
        let is_done = row.reader().cell(feed_row::CARRIED)?.load() == wanted;
        if is_done || passing.posted <= position {
            return Ok(());
        }
        let ring = Ring::of_parent(shape);
        let found = self.find_position(leader, child, position, step.log)?;
        let Some((place, message)) = found else { return Ok(()) };
        // The message's slot may already have a later message, or still an earlier one.
        let is_in_slot = ring.name(row.reader(), position)? == Some(message.id);
        if !is_in_slot || !step.log.has_body(place, message.id)? {
            return Ok(());
        }
        let (from, into) = (self.shape.body(place), ring.payload(position));
        row.copy_from(into, &step.log.memory().reader(), from, whole_cells(message.length))?;
        self.progress.copied_bytes =
            self.progress.copied_bytes.saturating_add(u64::from(message.length));
        put(row, feed_row::CARRIED, wanted)?;
        let own = |offset: usize| Area { region: Region::ROW, offset };
        let mut posting = Posting::new(&self.capabilities);
        posting.content(own(into), own(into), index_from_u32(message.length));
        posting.guard(own(feed_row::CARRIED), own(feed_row::CARRIED), 8);
        if step.fabric.post(attached.view, attached.peer, posting.writes(), None).is_ok() {
            self.count_list(&posting);
            self.progress.carried = self.progress.carried.saturating_add(1);
        } else {
            put(row, feed_row::CARRIED, 0)?;
        }
        Ok(())
    }

    /// Returns the log index and the message of the reference that has a position for a child.
    fn find_position(
        &self,
        leader: &Leader,
        child: usize,
        position: Ordinal,
        log: Log<'_>,
    ) -> Result<Option<(u64, Message)>, Halt> {
        let mut place = leader.tail.saturating_sub(u64::from(self.shape.entries()));
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= leader.tail {
                break;
            }
            let entry = log.load(place)?.filter(|entry| entry.position(child) == Some(position));
            if let Some(Content::Message(message)) = entry.map(|entry| entry.content) {
                return Ok(Some((place, message)));
            }
            place = place.saturating_add(1);
        }
        Ok(None)
    }
}
