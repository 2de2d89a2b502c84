//! How a leader finds where a peer's log differs from its own, and what it cannot repair.
//!
//! Source: TRAM, section 5.5.
//!
//! Requirements: TRM-4, TRM-6.

use super::common::Common;
use super::follow::FollowStage;
use super::link::{LinkId, Memory, put, rank_of};
use super::log::Log;
use super::progress::Halt;
use super::role::Leader;
use super::shape::peer_row;
use super::step::StepContext;

impl Common<'_> {
    /// Finds, for each log that has been read, the index at which it begins to differ from the
    /// leader's log.
    pub(super) fn prepare_followers<F, M: Memory>(
        &mut self,
        leader: &Leader,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let is_voter = self.is_voting(link, step.memory)?;
            let state = self.state.at_mut(link);
            state.follow.is_voter = is_voter;
            let stage = state.follow.stage;
            if stage == FollowStage::Read {
                self.prepare(leader, link, step)?;
            }
            if stage == FollowStage::Behind {
                self.look_again(leader, link, step)?;
            }
        }
        Ok(())
    }

    /// Checks whether a snapshot has brought a peer that was behind far enough. If not, tells the
    /// peer how far its next snapshot must reach.
    fn look_again<F, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some((row, _)) = step.memory.link(link) else { return Ok(()) };
        let delivered = self.delivered_by(link, step.memory)?;
        if !self.has_from(leader, delivered, step.log)? {
            let told = row.reader().cell(peer_row::KEPT_FROM)?.load();
            return if told > delivered { Ok(()) } else { self.fall_behind(leader, link, step) };
        }
        self.state.at_mut(link).follow.read_again();
        Ok(())
    }

    /// Skips entries that a peer lacked below its delivered count if all replicas have consumed
    /// them in the meantime.
    pub(super) fn skip_consumed(
        &mut self,
        leader: &Leader,
        link: LinkId,
        log: Log<'_>,
    ) -> Result<(), Halt> {
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            let follow = self.state.at(link).follow;
            if follow.lacking >= follow.lacking_end || self.is_kept(leader, follow.lacking, log)? {
                break;
            }
            self.state.at_mut(link).follow.lacking = follow.lacking.saturating_add(1);
        }
        Ok(())
    }

    /// Handles a peer that cannot be brought up to date from the local log. Tells the peer the log
    /// index from which the leader could do so.
    pub(super) fn fall_behind<F, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let mut at = leader.tail.saturating_sub(u64::from(self.shape.entries()));
        let mut place = at.max(step.log.begins()?);
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if !self.is_kept(leader, at, step.log)? {
                place = place.max(at.saturating_add(1));
            }
            at = at.saturating_add(1);
        }
        self.state.at_mut(link).follow.stage = FollowStage::Behind;
        if let Some((row, _)) = step.memory.link(link) {
            put(row, peer_row::KEPT_FROM, place)?;
            self.touch(link);
        }
        Ok(())
    }

    /// Returns whether the local log still has the entry at a log index, and the entry's body if it
    /// refers to one.
    pub(super) fn is_kept(&self, leader: &Leader, place: u64, log: Log<'_>) -> Result<bool, Halt> {
        if place >= leader.tail {
            return Ok(true);
        }
        let Some(entry) = log.load(place)? else { return Ok(false) };
        self.is_held(place, &entry, log)
    }

    pub(super) fn delivered_by<M: Memory>(&self, link: LinkId, memory: &M) -> Result<u64, Halt> {
        match memory.link(link) {
            None => Ok(0),
            Some((_, row)) => Ok(row.cell(peer_row::DELIVERED)?.load()),
        }
    }

    fn prepare<F, M: Memory>(
        &mut self,
        leader: &Leader,
        link: LinkId,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let copied = step.log.copied_control(rank_of(link))?;
        // Entries that a peer publishes as delivered are in its log or in its snapshot.
        let delivered = self.delivered_by(link, step.memory)?;
        let is_kept = self.has_from(leader, delivered, step.log)?;
        let both = copied.tail.min(leader.tail);
        let cut = step.log.differs_from(rank_of(link), delivered, both)?;
        let floor = self.floor(leader, step)?.min(delivered);
        let lacking = self.lacking_from(leader, rank_of(link), floor, delivered, step.log)?;
        let repair = self.campaigns.repairs.saturating_add(1);
        self.campaigns.repairs = repair;
        let state = self.state.at_mut(link);
        let follow = &mut state.follow;
        if !is_kept || delivered > leader.tail {
            return self.fall_behind(leader, link, step);
        }
        follow.stage = FollowStage::Repairing;
        follow.repair = repair;
        follow.cut = cut;
        follow.needs_cut = copied.tail > cut;
        follow.first = lacking.min(cut);
        (follow.lacking, follow.lacking_end) = (lacking, delivered);
        follow.sent = cut;
        follow.acknowledged = cut;
        follow.completed = cut;
        follow.covered = delivered;
        (follow.carry, follow.carry_end) = (follow.first, leader.tail);
        follow.decided_floor = copied.decided.min(cut);
        follow.decided_sent = 0;
        self.begin_carrying(leader, link, floor, step)
    }

    /// Returns the log index starting at which every log that counts has all entries, because the
    /// children may lack them.
    fn floor<F, M: Memory>(
        &mut self,
        leader: &Leader,
        step: &StepContext<'_, F, M>,
    ) -> Result<u64, Halt> {
        let floor = self.delivered.min(self.keep_for_children(step)?);
        Ok(floor.max(leader.tail.saturating_sub(u64::from(self.shape.entries()))))
    }
}
