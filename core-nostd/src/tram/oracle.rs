//! The choice of a leader: heartbeats, and which replicas hear each other (TRM-8).
//!
//! Each replica shows a rising number and a set of the peers whose number rises. A leader is kept
//! as long as it is heard and shows that it leads and hears a quorum. Else the lowest rank that
//! hears a quorum should lead: links may work in one direction only, so a replica's own ears do not
//! suffice. The oracle may be wrong at any time. Then two replicas campaign, and timestamps decide.
//!
//! Whom a replica hears is shown as soon as that changes, and in each new view from the beginning:
//! a leader that seems to hear nobody, until its next heartbeat, would be deposed by a replica that
//! has come back.
//!
//! Source: TRAM, section 2.1 (the weak leader oracle).

use super::link::{LinkId, Memory};
use super::log::Log;
use super::progress::Halt;
use super::replica::{Leadership, Replica, put, rank_of};
use super::shape::peer_row;
use crate::fabric::{Fabric, Permissions};
use crate::ids::{Rank, Time};

impl Replica<'_> {
    /// Shows that this replica lives, if it is time for that again, or if it hears others than it
    /// has shown.
    pub(super) fn beat<M: Memory>(&mut self, now: Time, memory: &M) -> Result<(), Halt> {
        let is_due = self.beat_at.is_none_or(|at| now.since(at) >= self.options.heartbeat_ns);
        let hears = if self.is_whole(memory)? { self.hears(now) } else { 0 };
        if !is_due && hears == self.shown_hears {
            return Ok(());
        }
        self.shown_hears = hears;
        self.beat_at = Some(now);
        self.beats = self.beats.saturating_add(1);
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::HEARTBEAT, self.beats)?;
                put(row, peer_row::HEARS, hears)?;
                self.touch(link);
            }
        }
        self.tell_counts();
        Ok(())
    }

    /// Takes the peers' heartbeats.
    pub(super) fn listen<M: Memory>(&mut self, now: Time, memory: &M) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let state = self.state.at_mut(link);
            if !state.attached.is_ready() {
                continue;
            }
            let Some((_, row)) = memory.link(link) else { continue };
            let heartbeat = row.cell(peer_row::HEARTBEAT)?.load();
            if heartbeat != state.heartbeat {
                state.heartbeat = heartbeat;
                state.heard_at = Some(now);
            }
            if self.granted_to == Some(link)
                && row.cell(peer_row::KEPT_FROM)?.load() > self.delivered
            {
                self.needs_snapshot = true;
            }
        }
        Ok(())
    }

    /// Whether the own log has all that a leader may have to pass on: not after a snapshot, before
    /// a leader has filled it. A leader writes what is missing before its stamp; and where its
    /// stamp is there already, before the log says that all that the snapshot has is decided.
    fn is_whole<M: Memory>(&mut self, memory: &M) -> Result<bool, Halt> {
        let Some(stamp) = self.gapped else { return Ok(true) };
        let log = Log::new(memory.log(), self.shape);
        let control = log.control()?;
        let is_filled = control.stamp != stamp || control.decided >= log.begins()?;
        if is_filled {
            self.gapped = None;
        }
        Ok(is_filled)
    }

    /// Which replicas of the group this one hears, itself included: a bit a rank.
    pub(super) fn hears(&self, now: Time) -> u64 {
        let mut set = bit(self.id.rank);
        // bound: the replicas of the group
        for link in self.links.peers() {
            if self.is_heard(now, link) {
                set |= bit(rank_of(link));
            }
        }
        set
    }

    /// Whether a peer was heard within the time to suspect.
    pub(super) fn is_heard(&self, now: Time, link: LinkId) -> bool {
        let state = self.state.at(link);
        state.attached.is_ready()
            && state.heard_at.is_some_and(|at| now.since(at) <= self.options.suspect_ns)
    }

    /// Whether a peer counts in quorums, as it shows.
    pub(super) fn is_voting<M: Memory>(&self, link: LinkId, memory: &M) -> Result<bool, Halt> {
        match memory.link(link) {
            None => Ok(false),
            Some((_, row)) => {
                Ok(Standing::from_cell(row.cell(peer_row::STANDING)?.load()).is_voter)
            }
        }
    }

    /// Whether a replica leads, or campaigns to.
    fn leads<M: Memory>(&self, rank: Rank, memory: &M) -> Result<bool, Halt> {
        if rank == self.id.rank {
            return Ok(Standing::from_cell(self.standing()).leads);
        }
        match memory.link(LinkId(rank.0)) {
            None => Ok(false),
            Some((_, row)) => Ok(Standing::from_cell(row.cell(peer_row::STANDING)?.load()).leads),
        }
    }

    /// Who should lead, as far as this replica can tell.
    pub(super) fn choice<M: Memory>(
        &mut self,
        now: Time,
        memory: &M,
    ) -> Result<Option<Rank>, Halt> {
        if let Some(leader) = self.promised.rank()
            && self.leads(leader, memory)?
            && self.can_lead(now, leader, memory)?
        {
            return Ok(Some(leader));
        }
        // bound: the replicas of the group
        for rank in 0..self.overlay.replicas(self.id.group) {
            if self.can_lead(now, Rank(rank), memory)? {
                return Ok(Some(Rank(rank)));
            }
        }
        Ok(None)
    }

    fn can_lead<M: Memory>(&mut self, now: Time, rank: Rank, memory: &M) -> Result<bool, Halt> {
        if rank == self.id.rank {
            let may = self.is_voter && !self.needs_snapshot && self.is_whole(memory)?;
            return Ok(may && self.is_quorum(self.hears(now)));
        }
        let link = LinkId(rank.0);
        let Some((_, row)) = memory.link(link).filter(|_| self.is_heard(now, link)) else {
            return Ok(false);
        };
        let standing = Standing::from_cell(row.cell(peer_row::STANDING)?.load());
        Ok(standing.is_voter && self.is_quorum(row.cell(peer_row::HEARS)?.load()))
    }

    pub(super) fn is_quorum(&self, set: u64) -> bool {
        set.count_ones() >= u32::from(self.overlay.quorum(self.id.group))
    }

    /// Begins a campaign if this replica should lead and does not.
    pub(super) fn stand<F: Fabric + Permissions, M: Memory>(
        &mut self,
        now: Time,
        fabric: &mut F,
        memory: &M,
    ) -> Result<(), Halt> {
        if self.choice(now, memory)? != Some(self.id.rank) {
            // Another should lead. A leader goes on until it is deposed: its oracle may be wrong.
            if matches!(self.leadership, Leadership::Candidate(_)) {
                self.leadership = Leadership::Follower;
            }
            return Ok(());
        }
        let is_needed = match self.leadership {
            Leadership::Follower => true,
            Leadership::Candidate(_) => false,
            Leadership::Leader => self.is_passed_over(memory)?,
        };
        let waited = self.campaign_at.is_none_or(|at| now.since(at) >= self.pause_ns());
        let is_stuck = matches!(self.leadership, Leadership::Candidate(_))
            && self.campaign_at.is_some_and(|at| now.since(at) >= self.patience_ns());
        if is_stuck || (is_needed && waited) {
            self.begin_campaign(now, fabric, memory)?;
        }
        Ok(())
    }

    /// How long this replica waits between two campaigns: longer after each that failed.
    fn pause_ns(&self) -> u64 {
        match self.attempts.checked_sub(1) {
            None => 0,
            Some(failed) => self.options.heartbeat_ns.saturating_mul(1 << failed.min(6)),
        }
    }

    /// How long a campaign may take: longer after each that failed, since logs may be long.
    fn patience_ns(&self) -> u64 {
        let failed = self.attempts.saturating_sub(1).min(6);
        self.options.campaign_ns.saturating_mul(1 << failed)
    }

    /// Whether a voter that is heard has promised its log to a later leader, or to none that this
    /// one could wait for.
    fn is_passed_over<M: Memory>(&self, memory: &M) -> Result<bool, Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let Some((_, row)) = memory.link(link) else { continue };
            let promised = row.cell(peer_row::PROMISED)?.load();
            if self.is_ready(link) && promised > self.promised.cell() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What a replica shows its peers of its part in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) incarnation: u16,
    /// Whether it counts in quorums.
    pub(super) is_voter: bool,
    /// Whether it leads, or campaigns to.
    pub(super) leads: bool,
}

impl Standing {
    pub(super) fn cell(self) -> u64 {
        let flags = (u64::from(self.leads) << 1) | u64::from(self.is_voter);
        (u64::from(self.incarnation) << 2) | flags
    }

    pub(super) fn from_cell(cell: u64) -> Self {
        let incarnation = u16::try_from(cell >> 2).unwrap_or(0);
        Self { incarnation, is_voter: cell & 1 == 1, leads: cell & 2 == 2 }
    }
}

/// A rank's bit in a set of ranks.
pub(super) fn bit(rank: Rank) -> u64 {
    1_u64.checked_shl(u32::from(rank.0)).unwrap_or(0)
}
