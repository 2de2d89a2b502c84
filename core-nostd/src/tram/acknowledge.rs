//! Acknowledgement: how a leader knows what a follower's log contains (TRM-3).
//!
//! An entry counts at a follower once it is visible in the follower's log, with all entries below
//! it and under the leader's stamp. A leader learns this in one of two ways:
//!
//! - *Completion*: the fabrics at both ends promise that a completed list is visible.
//! - *Report*: the follower publishes, to the leader that may write to its log, the log index below
//!   which it has seen the leader's entries, together with the leader's term. A completion then
//!   says only that the list no longer reads the leader's log. On a NIC, a completed write may
//!   still be on its way to the peer's memory, and it is lost if the right to write is revoked
//!   first.
//!
//! Everything else is the same: what is decided, when a log counts after its repair, which bodies
//! are missing.
//!
//! # Why a report is enough
//! - The follower reads the stamp before the tail, and a leader writes its stamp last. So the
//!   follower's log has at least the reported entries while it has that stamp. A candidate that
//!   reads the log later, after its grant, finds them: the previous leader's right has ended by
//!   then, and nothing else replaces entries below a tail.
//! - A follower stops reporting to a leader before it grants its log to another. So a deposed
//!   leader cannot count what the next leader has not read.
//! - The report lands before its term, and is read after it. So a report for one term is never
//!   counted in another.
//! - A leader may repair a log twice in one term, for example because the follower has restored a
//!   snapshot. The log has the leader's stamp before the second repair, and may lack entries that
//!   children need. So each repair has a number, which is written after the entries that it adds;
//!   a report with another number does not count.
//! - A report counts only in the view in which it was published. A replica that has lost its memory
//!   has new views.
//!
//! Requirement: TRM-3.

use super::common::Common;
use super::follow::FollowStage;
use super::link::{Memory, put};
use super::progress::Halt;
use super::role::{Follower, SeenEntries, Standing};
use super::shape::peer_row;
use super::step::StepContext;
use super::timestamp::Timestamp;
use crate::fabric::{Fabric, Promises};
use crate::memory::Row;

/// The event that tells a leader that a list is in a peer's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Acknowledgement {
    Completion,
    Report,
}

impl Common<'_> {
    /// Returns whether a completed list counts at this replica: the local fabric promises that it
    /// is visible, and nothing need be saved.
    pub(super) const fn completes_visibly(&self) -> bool {
        !self.options.is_durable
            && self.capabilities.promises.contains(Promises::COMPLETION_VISIBLE)
    }

    /// Returns how the lists between this replica and a peer are acknowledged. Both ends must have
    /// the promise: a completion says nothing about the device at the other end.
    fn acknowledgement(&self, peer: Row<'_>) -> Result<Acknowledgement, Halt> {
        let standing = Standing::from_cell(peer.cell(peer_row::STANDING)?.load());
        let is_promised = self.completes_visibly() && standing.completes_visibly;
        Ok(if is_promised { Acknowledgement::Completion } else { Acknowledgement::Report })
    }

    /// As a leader: takes over what is known to be visible in the followers' logs.
    pub(super) fn look_at_acknowledgements<F, M: Memory>(
        &mut self,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let follow = &self.state.at(link).follow;
            if !matches!(follow.stage, FollowStage::Repairing | FollowStage::Synced) {
                continue;
            }
            let Some((_, row)) = step.memory.link(link) else { continue };
            let (is_stamped, tail) = match self.acknowledgement(row)? {
                Acknowledgement::Completion => (follow.stamp_completed, follow.completed),
                Acknowledgement::Report => match self.seen_by(follow.repair, row)? {
                    Some(seen) => (true, seen),
                    None => continue,
                },
            };
            self.state.at_mut(link).follow.acknowledge(is_stamped, tail);
        }
        Ok(())
    }

    /// Returns a count that a follower has reported to this leader in its term.
    pub(super) fn reported(&self, row: Row<'_>, count: usize) -> Result<Option<u64>, Halt> {
        let term = Timestamp::from_cell(row.cell(peer_row::REPORTS_FOR)?.load());
        let count = row.cell(count)?.load();
        Ok((term == self.promised).then_some(count))
    }

    /// Returns the log index below which a follower has seen this leader's entries after a repair.
    fn seen_by(&self, repair: u64, row: Row<'_>) -> Result<Option<u64>, Halt> {
        let is_of_repair = self.reported(row, peer_row::SEEN_REPAIR)? == Some(repair);
        if is_of_repair { self.reported(row, peer_row::SEEN) } else { Ok(None) }
    }

    /// As a follower: finds the entries of the current leader that are visible in the local log.
    fn look_at_log<F: Fabric, M: Memory>(
        &self,
        follower: &mut Follower,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let control = step.log.control()?;
        if control.stamp != self.promised {
            return Ok(());
        }
        if follower.seen.of != self.promised {
            follower.seen = SeenEntries { of: self.promised, ..SeenEntries::default() };
        }
        follower.seen.repair = step.log.repair()?;
        if follower.seen.below >= control.tail {
            return Ok(());
        }
        step.fabric.observe_barrier();
        // A snapshot may have delivered entries that the log lacks.
        let mut below = follower.seen.below.max(self.delivered.min(control.tail));
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if below >= control.tail || step.log.load(below)?.is_none() {
                break;
            }
            below = below.saturating_add(1);
        }
        follower.seen.below = below;
        Ok(())
    }

    /// As a follower: reports to the leader that may write to the local log which of its entries
    /// are visible here, if the leader needs to know, and which bodies are here. Reports go to no
    /// other replica: a deposed leader must not count what arrives later.
    pub(super) fn report<F: Fabric, M: Memory>(
        &mut self,
        follower: &mut Follower,
        step: &StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let Some(link) = follower.granted_to else { return Ok(()) };
        let Some((row, theirs)) = step.memory.link(link) else { return Ok(()) };
        let is_needed = self.acknowledgement(theirs)? == Acknowledgement::Report;
        if is_needed {
            self.look_at_log(follower, step)?;
        }
        let seen = self.saved_of(follower.seen);
        let seen = Some(seen).filter(|seen| is_needed && seen.of == self.promised);
        let held = Some(follower.held).filter(|held| held.shown > 0 && held.of == self.promised);
        if seen.is_none() && held.is_none() {
            return Ok(());
        }
        // The term is last, because a reader that sees it reads the counts.
        let cells = [
            (peer_row::SEEN, seen.map_or(0, |seen| seen.below)),
            (peer_row::BODIES, held.map_or(0, |held| held.shown)),
            (peer_row::SEEN_REPAIR, seen.map_or(0, |seen| seen.repair)),
            (peer_row::REPORTS_FOR, self.promised.cell()),
        ];
        // bound: the cells of a report
        for (offset, value) in cells {
            if row.reader().cell(offset)?.load() != value {
                put(row, offset, value)?;
                self.state.at_mut(link).reports = true;
                self.touch(link);
            }
        }
        Ok(())
    }
}
