//! The choice of a leader, based on heartbeats and on which replicas hear each other (TRM-8).
//!
//! Each replica publishes a rising number, and the set of the peers whose number rises. A leader is
//! kept as long as it is heard, publishes that it leads, and hears a quorum. Otherwise the lowest
//! rank that hears a quorum should lead. Links may work in one direction only, so it is not enough
//! that a replica is heard. The oracle may be wrong at any time. Two replicas may then campaign,
//! and timestamps decide between them.
//!
//! The set of peers that a replica hears is published as soon as it changes, and in each new view
//! from the beginning. Otherwise a leader would seem to hear no peer until its next heartbeat, and
//! a returning replica would depose it.
//!
//! Source: TRAM, section 2.1 (the weak leader oracle).

use super::common::Common;
use super::link::{LinkId, Memory, put, rank_of};
use super::progress::Halt;
use super::role::{Role, Standing, bit};
use super::shape::peer_row;
use super::step::StepContext;
use crate::fabric::{Fabric, Permissions};
use crate::ids::{Rank, Time};

impl Common<'_> {
    /// Publishes a heartbeat if one is due, or if the set of heard peers has changed.
    pub(super) fn beat<F, M: Memory>(
        &mut self,
        role: &mut Role,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let is_due =
            self.shown.beat_at.is_none_or(|at| step.now.since(at) >= self.options.heartbeat_ns);
        let hears = if role.is_whole(step.log)? { self.hears(step.now) } else { 0 };
        if !is_due && hears == self.shown.hears {
            return Ok(());
        }
        self.shown.hears = hears;
        self.shown.beat_at = Some(step.now);
        self.shown.beats = self.shown.beats.saturating_add(1);
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = step.memory.link(link) {
                put(row, peer_row::HEARTBEAT, self.shown.beats)?;
                put(row, peer_row::HEARS, hears)?;
                self.touch(link);
            }
        }
        self.tell_counts();
        Ok(())
    }

    /// Reads the peers' heartbeats, and what this replica's leader says about entries that this
    /// replica lacks.
    pub(super) fn listen<F, M: Memory>(
        &mut self,
        role: &mut Role,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let state = self.state.at_mut(link);
            if !state.attached.is_ready() {
                continue;
            }
            let Some((_, row)) = step.memory.link(link) else { continue };
            let heartbeat = row.cell(peer_row::HEARTBEAT)?.load();
            if heartbeat != state.heartbeat {
                state.heartbeat = heartbeat;
                state.heard_at = Some(step.now);
            }
            if let Role::Follower(follower) = role
                && follower.granted_to == Some(link)
                && row.cell(peer_row::KEPT_FROM)?.load() > self.delivered
            {
                follower.needs_snapshot = true;
            }
        }
        Ok(())
    }

    /// Returns the set of replicas that this replica hears, including itself: one bit per rank.
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

    /// Returns whether a peer has been heard within the suspicion timeout.
    pub(super) fn is_heard(&self, now: Time, link: LinkId) -> bool {
        let state = self.state.at(link);
        state.attached.is_ready()
            && state.heard_at.is_some_and(|at| now.since(at) <= self.options.suspect_ns)
    }

    /// Returns whether a peer publishes that it counts in quorums.
    pub(super) fn is_voting<M: Memory>(&self, link: LinkId, memory: &M) -> Result<bool, Halt> {
        match memory.link(link) {
            None => Ok(false),
            Some((_, row)) => {
                Ok(Standing::from_cell(row.cell(peer_row::STANDING)?.load()).is_voter)
            }
        }
    }

    /// Returns whether a replica leads or campaigns to lead, as far as this replica knows.
    fn leads<M: Memory>(&self, role: &Role, rank: Rank, memory: &M) -> Result<bool, Halt> {
        if rank == self.id.rank {
            return Ok(role.leads());
        }
        match memory.link(LinkId(rank.0)) {
            None => Ok(false),
            Some((_, row)) => Ok(Standing::from_cell(row.cell(peer_row::STANDING)?.load()).leads),
        }
    }

    /// Returns the replica that should lead, as far as this replica can tell.
    fn choice<F, M: Memory>(
        &self,
        role: &mut Role,
        step: &StepContext<'_, F, M>,
    ) -> Result<Option<Rank>, Halt> {
        if let Some(leader) = self.promised.rank()
            && self.leads(role, leader, step.memory)?
            && self.can_lead(role, leader, step)?
        {
            return Ok(Some(leader));
        }
        // bound: the replicas of the group
        for rank in 0..self.overlay.replicas(self.id.group) {
            if self.can_lead(role, Rank(rank), step)? {
                return Ok(Some(Rank(rank)));
            }
        }
        Ok(None)
    }

    fn can_lead<F, M: Memory>(
        &self,
        role: &mut Role,
        rank: Rank,
        step: &StepContext<'_, F, M>,
    ) -> Result<bool, Halt> {
        if rank == self.id.rank {
            let may = self.is_voter && !role.needs_snapshot() && role.is_whole(step.log)?;
            return Ok(may && self.is_quorum(self.hears(step.now)));
        }
        let link = LinkId(rank.0);
        let Some((_, row)) = step.memory.link(link).filter(|_| self.is_heard(step.now, link))
        else {
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
        role: &mut Role,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let is_candidate = matches!(role, Role::Candidate(_));
        if self.choice(role, step)? != Some(self.id.rank) {
            // Another replica should lead. A leader continues until it is deposed, because its
            // oracle may be wrong.
            if is_candidate {
                role.follow(None);
            }
            return Ok(());
        }
        let is_needed = match role {
            Role::Follower(_) => true,
            Role::Candidate(_) => false,
            Role::Leader(_) => self.is_passed_over(step.memory)?,
        };
        let waited = self.campaigns.began.is_none_or(|at| step.now.since(at) >= self.pause_ns());
        let is_stuck = is_candidate
            && self.campaigns.began.is_some_and(|at| step.now.since(at) >= self.patience_ns());
        if is_stuck || (is_needed && waited) {
            self.begin_campaign(role, step)?;
        }
        Ok(())
    }

    /// Returns the time that this replica waits between two campaigns. It grows with each failed
    /// campaign.
    fn pause_ns(&self) -> u64 {
        match self.campaigns.attempts.checked_sub(1) {
            None => 0,
            Some(failed) => self.options.heartbeat_ns.saturating_mul(1 << failed.min(6)),
        }
    }

    /// Returns the time that a campaign may take. It grows with each failed campaign, because logs
    /// may be long.
    fn patience_ns(&self) -> u64 {
        let failed = self.campaigns.attempts.saturating_sub(1).min(6);
        self.options.campaign_ns.saturating_mul(1 << failed)
    }

    /// Returns whether a connected peer publishes a promise above this replica's own.
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
