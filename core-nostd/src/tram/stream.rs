//! The stream of lists that a leader writes to a peer's log.
//!
//! # Order of writes
//! - The new tail after a cut precedes the entries after it, because an entry below the tail must
//!   never change.
//! - A header precedes its payload. If writing stops between the two, the slot has no entry, rather
//!   than the earlier entry with another entry's payload.
//! - Entries precede the tail that covers them, and the tail precedes the decided count.
//! - The stamp is last. A log with the new tail and the old stamp claims less than it contains,
//!   which is safe. A log with the new stamp and the old tail would claim to contain everything
//!   that has been decided.
//! - Entries that a peer has delivered through a snapshot rather than through its log are written
//!   before the stamp, because the peer may have to pass them on to a child once it leads.
//! - A decided count is sent to a peer only together with all entries after that peer's delivered
//!   count. Otherwise the peer would deliver one of its own entries that was never decided.
//!
//! Source: TRAM, sections 5.3 and 5.5.
//!
//! Requirements: TRM-3, TRM-4.

use super::common::Common;
use super::follow::{Follow, FollowStage};
use super::link::{LinkId, Memory, put};
use super::log::{Log, log_area};
use super::posting::Posting;
use super::progress::Halt;
use super::role::Leader;
use super::shape::{log_control, peer_row};
use super::step::StepContext;
use super::token::{Ticket, Work};
use crate::fabric::{Area, ErrorKind, Fabric, FabricError, Permissions, Region};
use crate::ids::index_from_u32;
use crate::memory::RowWriter;

/// Maximum number of lists that one step posts to one peer's log.
const LISTS_MAX: usize = 8;

/// The set of followers to which lists are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// Followers that lack entries.
    Entries,
    /// Also followers that lack only the newest decided count.
    All,
}

impl Common<'_> {
    /// Posts to each follower the entries and counts that it lacks.
    pub(super) fn stream_all<F: Fabric + Permissions, M: Memory>(
        &mut self,
        leader: &Leader,
        what: Stream,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let state = self.state.at(link);
            let is_followed =
                matches!(state.follow.stage, FollowStage::Repairing | FollowStage::Synced);
            if !is_followed || !state.attached.is_ready() {
                continue;
            }
            if !self.is_kept(leader, state.follow.sent, step.log)? {
                self.fall_behind(leader, link, step)?;
                continue;
            }
            self.skip_consumed(leader, link, step.log)?;
            let follow = self.state.at(link).follow;
            let has_entries = follow.stage == FollowStage::Repairing
                || follow.sent < leader.tail
                || follow.carries();
            if what == Stream::Entries && !has_entries {
                continue;
            }
            let delivered = self.delivered_by(link, step.memory)?;
            // bound: LISTS_MAX
            for _ in 0..LISTS_MAX {
                if !self.stream(leader, link, delivered, step)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Posts one list to a follower's log. Returns false if there was nothing to post or no room.
    fn stream<F: Fabric + Permissions, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        delivered: u64,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        let Some((row, _)) = step.memory.link(link) else { return Ok(false) };
        let state = self.state.at(link);
        let (attached, mut follow) = (state.attached, state.follow);
        let had_stamp = follow.stamp_sent;
        if follow.is_full() {
            return Ok(false);
        }
        let mut posting =
            Posting::to_region(&self.capabilities, step.fabric.region_list_bytes_max());
        let mut carried_from = None;
        if follow.needs_cut {
            put(row, peer_row::STAGED_CUT, follow.cut)?;
            posting.guard(row_area(peer_row::STAGED_CUT), log_area(log_control::TAIL), 8);
            follow.needs_cut = false;
        } else if follow.lacking < follow.lacking_end {
            let (from, to) = (follow.lacking, follow.lacking_end);
            follow.lacking = self.add_entries(from, to, &mut posting, step.log)?;
        } else if let Some(from) = self.add_carried(link, &mut follow, &mut posting, step.log)? {
            carried_from = Some(from);
        } else if !self.fill(leader, &mut follow, delivered, &mut posting, step.log, row)? {
            return Ok(false);
        }
        let sequence = follow.took(follow.sent);
        if let Some(from) = carried_from {
            follow.carrying = Some((sequence, from));
        }
        if follow.stamp_sent && !had_stamp {
            follow.stamped_by = sequence;
        }
        let ticket = Ticket { work: Work::Append, link, campaign: self.campaigns.number, sequence };
        let posted =
            step.fabric.post(attached.view, attached.peer, posting.writes(), Some(ticket.token()));
        let writes = u32::try_from(posting.writes().len()).unwrap_or(u32::MAX);
        let state = self.state.at_mut(link);
        match posted.map_err(|error| error.kind()) {
            Ok(()) => {
                state.follow = follow;
                state.follow.flying = follow.flying.saturating_add(1);
                self.progress.lists = self.progress.lists.saturating_add(1);
                self.progress.writes = self.progress.writes.saturating_add(writes);
                Ok(true)
            }
            Err(ErrorKind::Revoked) => {
                state.follow.refused();
                Ok(false)
            }
            Err(_) => Ok(false),
        }
    }

    /// Adds entries to a list, from one log index up to another, as far as there is room. Returns
    /// the log index that the list reached.
    fn add_entries(
        &self,
        from: u64,
        limit: u64,
        posting: &mut Posting,
        log: Log<'_>,
    ) -> Result<u64, Halt> {
        let mut to = from;
        // bound: the entries of the log. One write is for the headers, one for a payload, and two
        // for the control line.
        for _ in 0..self.shape.entries() {
            let wraps = to > from && self.shape.header(to) == self.shape.header(0);
            let needs = if to > from { 3 } else { 4 };
            if to >= limit || wraps || posting.room() < needs {
                break;
            }
            let Some(entry) = log.load(to)? else { return Err(Halt::NoEntry) };
            if !self.is_held(to, &entry, log)? {
                break;
            }
            // Headers come first: a slot whose payload is partly replaced has no entry.
            let header = log_area(self.shape.header(to));
            if !posting.header(header, self.shape.header_bytes()) {
                break;
            }
            let area = log_area(self.shape.payload(to));
            // A reference is sent without its payload (see `bodies`).
            let is_reference = self.shape.is_reference(entry.length());
            let length = if is_reference { 0 } else { index_from_u32(entry.length()) };
            if !posting.content(area, area, length) {
                posting.drop_header(self.shape.header_bytes());
                break;
            }
            to = to.saturating_add(1);
        }
        Ok(to)
    }

    /// Fills a list with entries, followed by the control line. Returns false if there is nothing
    /// new.
    fn fill(
        &self,
        leader: &Leader,
        follow: &mut Follow,
        delivered: u64,
        posting: &mut Posting,
        log: Log<'_>,
        row: RowWriter<'_>,
    ) -> Result<bool, Halt> {
        let entries = u64::from(self.shape.entries());
        let limit = leader.tail.min(delivered.saturating_add(entries));
        let from = follow.sent;
        let to = self.add_entries(from, limit, posting, log)?;
        follow.sent = to;
        // The follower's log equals the local log from its delivered count up to here.
        let known = log.decided()?.min(to).max(follow.decided_floor);
        let stamps = !follow.stamp_sent && to == leader.tail;
        if to == from && !stamps && known <= follow.decided_sent {
            return Ok(false);
        }
        follow.decided_sent = known;
        put(row, peer_row::STAGED.saturating_add(log_control::TAIL), to)?;
        put(row, peer_row::STAGED.saturating_add(log_control::DECIDED), known)?;
        put(row, peer_row::STAGED.saturating_add(log_control::REPAIR), follow.repair)?;
        posting.guard(
            row_area(peer_row::STAGED.saturating_add(log_control::TAIL)),
            log_area(log_control::TAIL),
            24,
        );
        if stamps {
            put(row, peer_row::STAGED, self.promised.cell())?;
            posting.guard(row_area(peer_row::STAGED), log_area(log_control::STAMP), 8);
            follow.stamp_sent = true;
        }
        Ok(true)
    }
}

const fn row_area(offset: usize) -> Area {
    Area { region: Region::ROW, offset }
}

const _: () = assert!(log_control::STAMP == 0 && log_control::DECIDED == log_control::TAIL + 8);
const _: () = assert!(log_control::REPAIR == log_control::DECIDED + 8);
const _: () = assert!(peer_row::STAGED_CUT == peer_row::STAGED + log_control::REPAIR + 8);
