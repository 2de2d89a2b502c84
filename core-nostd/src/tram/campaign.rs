//! How a replica becomes leader: it gathers permissions to write a quorum's logs, and brings into
//! its own log everything that can have been decided (TRM-4).
//!
//! 1. The candidate requests the logs of all peers, with a timestamp above all those that it knows.
//!    By the time a peer sees the request, the candidate's earlier writes to that peer's log have
//!    either landed or been refused.
//! 2. After each grant, the candidate reads the control line and all headers of the granted log. It
//!    then reads the control line once more, because the owner publishes there which leader has the
//!    log.
//! 3. Once a quorum's logs have been read, its own included, the candidate takes the log with the
//!    highest stamp and, among equal stamps, the longest. It copies the entries that it lacks,
//!    reads that log's control line one last time, and puts its own timestamp on its log.
//!
//! Then it leads. It brings each log to the state of its own log before that log counts (see
//! `follow`).
//!
//! # Why nothing decided is lost
//! A log with stamp *s* is a prefix of the log that leader *s* had in its term, and contains the
//! whole log with which that leader began. An entry is decided once a quorum's logs have the stamp
//! of one leader and extend past the entry. Let *t* be the first later leader whose log lacks it.
//! Leader *t* has read a log of that quorum after its owner granted it to *t*, so that log had the
//! entry, with that leader's stamp or a later one. The log that *t* took has a stamp at least as
//! high. If the stamp is the same, that log is at least as long, and has the entry. If the stamp is
//! a later one below *t*, that leader's log had the entry, because *t* is the first that lacks it.
//! So *t* has the entry.
//!
//! The paper compares timestamps entry by entry, which requires that each entry be rewritten under
//! the new timestamp before it counts. The paper omits this step, and loses messages because of it.
//! One stamp for the whole log achieves the same with a single cell.
//!
//! # Why the control line is read last
//! An owner can grant its log to a later leader while a candidate reads it. That leader may replace
//! a payload whose header the candidate has already read. The owner stores the later timestamp in
//! the control line before it grants the log. So if the candidate's last read of the control line
//! finds its own timestamp, everything that it read before is whole. Otherwise the campaign is
//! over.
//!
//! Source: TRAM, sections 5.4 and 5.5 (Algorithms 3 and 4).

use super::common::Common;
use super::feed::whole_cells;
use super::follow::FollowStage;
use super::link::{LinkId, Memory, put, rank_of};
use super::log::{Control, Log, log_area};
use super::progress::Halt;
use super::role::{Campaign, Copying, Follower, Leader, Role, bit};
use super::shape::peer_row;
use super::step::StepContext;
use super::timestamp::Timestamp;
use super::token::{CAMPAIGNS, Ticket, Work};
use crate::fabric::{ErrorKind, Fabric, FabricError, Permissions};
use crate::layout::CACHE_LINE;

/// Maximum number of payloads read at a time.
const READS_MAX: u32 = 16;

impl Common<'_> {
    /// Requests the logs of all peers, with a timestamp above all known ones.
    pub(super) fn begin_campaign<F: Fabric + Permissions, M: Memory>(
        &mut self,
        role: &mut Role,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        if !self.end_reads(role, step) || !self.take_back(role, step.fabric) {
            return Ok(());
        }
        let mut round = self.promised.round();
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let (true, Some((_, row))) = (self.is_ready(link), step.memory.link(link)) {
                let promised = Timestamp::from_cell(row.cell(peer_row::PROMISED)?.load());
                round = round.max(promised.round());
            }
        }
        let incarnation = self.options.incarnation;
        let timestamp = Timestamp::new(round.saturating_add(1), incarnation, self.id.rank);
        if timestamp <= self.promised {
            return Ok(());
        }
        self.promise(timestamp, step.memory)?;
        self.campaigns.number = self.campaigns.number.wrapping_add(1) & (CAMPAIGNS - 1);
        self.campaigns.began = Some(step.now);
        self.campaigns.attempts = self.campaigns.attempts.saturating_add(1);
        *role = Role::Candidate(Campaign::Gathering);
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = step.memory.link(link) {
                put(row, peer_row::REQUEST, timestamp.cell())?;
            }
            self.ask(link);
        }
        self.progress.campaigns = self.progress.campaigns.saturating_add(1);
        Ok(())
    }

    /// Does the next piece of a candidate's work, and returns the replica's role after that.
    pub(super) fn campaign<F: Fabric + Permissions, M: Memory>(
        &mut self,
        campaign: Campaign,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        self.copy_headers(step)?;
        match campaign {
            Campaign::Gathering => self.choose(step),
            Campaign::Copying(copying) => self.copy_payloads(copying, step),
            Campaign::Completing(completing) => self.complete(completing, step),
        }
    }

    /// Reads the logs that were granted.
    pub(super) fn copy_headers<F: Fabric + Permissions, M: Memory>(
        &mut self,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let Some((_, row)) = step.memory.link(link) else { continue };
            if !self.is_ready(link) {
                continue;
            }
            let granted = Timestamp::from_cell(row.cell(peer_row::GRANTED)?.load());
            let promised = Timestamp::from_cell(row.cell(peer_row::PROMISED)?.load());
            let whole = self.shape.payloads();
            let chunk =
                self.capabilities.write_bytes_max.min(step.fabric.region_list_bytes_max()) & !63;
            let state = self.state.at_mut(link);
            if granted != self.promised || promised != self.promised {
                continue;
            }
            if state.follow.stage == FollowStage::Idle {
                // Reads after this point follow the grant. An earlier read may have been denied
                // because of an earlier campaign.
                step.fabric.observe_barrier();
                state.follow.read_again();
            }
            if state.follow.stage != FollowStage::Reading || state.follow.is_copying {
                continue;
            }
            let done = state.follow.copied_bytes;
            if done > whole {
                if step.log.copied_promised(rank_of(link))? == self.promised {
                    state.follow.stage = FollowStage::Read;
                } else {
                    state.follow.read_again();
                }
                continue;
            }
            // After everything else, the control line is read once more.
            let left = whole.saturating_sub(done);
            let (offset, length) = if left > 0 { (done, left.min(chunk)) } else { (0, CACHE_LINE) };
            let (view, peer) = (state.attached.view, state.attached.peer);
            let into = log_area(self.shape.copy_at(rank_of(link)).saturating_add(offset));
            let sequence = state.follow.next_copy();
            let ticket =
                Ticket { work: Work::CopyHeaders, link, campaign: self.campaigns.number, sequence };
            step.fabric.observe_barrier();
            let read = step.fabric.read(view, peer, log_area(offset), into, length, ticket.token());
            match read.map_err(|error| error.kind()) {
                Ok(()) => state.follow.copy_begins(length),
                Err(ErrorKind::Revoked) => state.follow.refused(),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Chooses the log that contains everything that can have been decided, once a quorum's logs
    /// have been read.
    fn choose<F: Fabric + Permissions, M: Memory>(
        &mut self,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        let own = step.log.control()?;
        let (mut best, mut from) = ((own.stamp, own.tail), None);
        let mut decided = own.decided;
        let mut voters = bit(self.id.rank);
        // bound: the replicas of the group
        for link in self.links.peers() {
            let is_read = self.state.at(link).follow.stage == FollowStage::Read;
            if !is_read || !self.is_voting(link, step.memory)? {
                continue;
            }
            voters |= bit(rank_of(link));
            let Control { stamp, tail, decided: known } = step.log.copied_control(rank_of(link))?;
            decided = decided.max(known);
            if (stamp, tail) > best {
                (best, from) = ((stamp, tail), Some(link));
            }
        }
        if !self.is_quorum(voters) || !self.is_promise_saved() {
            return Ok(Role::Candidate(Campaign::Gathering));
        }
        if self.reads_on() {
            let began = self.campaigns.began.unwrap_or(step.now);
            if step.now.since(began) < self.options.heartbeat_ns {
                return Ok(Role::Candidate(Campaign::Gathering));
            }
            self.end_writes(None, step);
        }
        match from {
            None => self.begin_completing(own.tail, decided, voters, step),
            Some(from) => self.begin_copy(from, best.1, decided, voters, step.log),
        }
    }

    fn begin_copy(
        &mut self,
        from: LinkId,
        end: u64,
        decided: u64,
        voters: u64,
        log: Log<'_>,
    ) -> Result<Role, Halt> {
        let own = log.control()?;
        let both = own.tail.min(end);
        let start = log.differs_from(rank_of(from), self.delivered, both)?;
        let is_held = self.delivered >= log.copied_begins(rank_of(from))?
            && end.saturating_sub(start) <= u64::from(self.shape.entries())
            && (start >= end || log.load_copied(rank_of(from), start)?.is_some());
        if !is_held {
            // The other logs begin above what this replica has delivered.
            return Ok(Role::behind());
        }
        // Entries that differ were never decided, because the log with the higher stamp lacks them.
        log.set_tail(start.min(own.tail))?;
        let copying = Copying { from, start, next: start, end, decided, voters, is_read: false };
        Ok(Role::Candidate(Campaign::Copying(copying)))
    }

    fn copy_payloads<F: Fabric + Permissions, M: Memory>(
        &mut self,
        mut copying: Copying,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        let rank = rank_of(copying.from);
        let attached = self.state.at(copying.from).attached;
        // bound: READS_MAX
        for _ in 0..READS_MAX {
            if copying.next >= copying.end || self.reads_under_way() >= READS_MAX {
                break;
            }
            let Some(entry) = step.log.load_copied(rank, copying.next)? else {
                return Ok(Role::behind());
            };
            if entry.length() > 0 && !self.shape.is_reference(entry.length()) {
                step.log.clear(copying.next)?;
                let area = log_area(self.shape.payload(copying.next));
                let ticket = Ticket {
                    work: Work::CopyPayload,
                    link: copying.from,
                    campaign: self.campaigns.number,
                    sequence: 0,
                };
                let whole = whole_cells(entry.length());
                let read = step.fabric.read(
                    attached.view,
                    attached.peer,
                    area,
                    area,
                    whole,
                    ticket.token(),
                );
                if read.is_err() {
                    break;
                }
                self.campaigns.reads =
                    Some((copying.from, self.reads_under_way().saturating_add(1)));
            }
            copying.next = copying.next.saturating_add(1);
        }
        let has_payloads = copying.next >= copying.end && self.reads_under_way() == 0;
        if !has_payloads || !self.is_read_last(&mut copying) {
            return Ok(Role::Candidate(Campaign::Copying(copying)));
        }
        let mut place = copying.start;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= copying.end {
                break;
            }
            let Some(entry) = step.log.load_copied(rank, place)? else {
                return Ok(Role::Follower(Follower::default()));
            };
            step.log.store(place, &entry)?;
            place = place.saturating_add(1);
        }
        step.log.set_tail(copying.end)?;
        let Copying { end, decided, voters, .. } = copying;
        self.begin_completing(end, decided, voters, step)
    }

    /// Returns whether the control line of the log being copied has been read after all payloads
    /// and shows that they are whole. Starts that read if necessary.
    fn is_read_last(&mut self, copying: &mut Copying) -> bool {
        let whole = self.shape.payloads();
        let state = self.state.at_mut(copying.from);
        if copying.is_read && state.follow.stage == FollowStage::Read {
            return true;
        }
        if !copying.is_read {
            copying.is_read = true;
            state.follow.read_last(whole);
        }
        false
    }

    /// Begins to lead, with a log that contains everything that can have been decided.
    pub(super) fn lead<F, M: Memory>(
        &mut self,
        tail: u64,
        decided: u64,
        step: &StepContext<'_, F, M>,
    ) -> Result<Role, Halt> {
        let settled = self.settled(step.memory)?;
        // Entries that the parent has replaced were never decided here, nor was anything after
        // them.
        let tail = self.uncontradicted(tail, settled, step)?;
        step.log.set_tail(tail)?;
        if self.recount(step.log, tail)? != tail {
            return Err(Halt::NotContinued);
        }
        step.log.set_stamp(self.promised)?;
        step.log.set_decided(decided.min(tail).max(self.delivered))?;
        self.begin_passing_on(tail, step.log)?;
        let owes_null = self.options.passes_on_early && !self.children.is_empty();
        Ok(Role::Leader(Leader { tail, owes_null, settled, ..Leader::default() }))
    }

    pub(super) fn reads_under_way(&self) -> u32 {
        self.campaigns.reads.map_or(0, |(_, count)| count)
    }

    /// Counts a payload that this campaign read as arrived. A campaign reads from one peer at a
    /// time. No other campaign begins before all payloads have landed or the connection to that
    /// peer has been given up. Reports that arrive after that belong to an earlier campaign.
    pub(super) const fn payload_came(&mut self) {
        self.campaigns.reads = match self.campaigns.reads {
            Some((from, count)) if count > 1 => Some((from, count.saturating_sub(1))),
            _ => None,
        };
    }

    /// Returns whether no payload read by a campaign can still land in the local log: a late one
    /// would replace what a later leader has written there. Waits for payloads in flight, and gives
    /// up the connection to a silent peer.
    pub(super) fn end_reads<F: Fabric, M>(
        &mut self,
        role: &mut Role,
        step: &mut StepContext<'_, F, M>,
    ) -> bool {
        let Some((link, _)) = self.campaigns.reads else { return true };
        if self.is_heard(step.now, link) {
            return false;
        }
        self.give_up(link, step);
        role.end_without(link);
        self.campaigns.reads.is_none()
    }

    /// Marks a peer's log as one that must be requested.
    pub(super) fn ask(&mut self, link: LinkId) {
        self.touch(link);
        let state = self.state.at_mut(link);
        state.asks = true;
        state.follow.ask();
    }
}
