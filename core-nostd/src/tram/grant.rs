//! The permission to write to this replica's log. Requests for it are answered in timestamp order
//! (TRM-3).
//!
//! The previous permission is revoked before the next one is granted. So what a candidate reads
//! after the grant includes everything that the previous leader can ever have written to this log.
//! The timestamp is stored in the log before the permission is granted. So a candidate that reads
//! its own timestamp in the log at the end has read nothing that a later leader wrote.
//!
//! A leader that grants its log to another replica first ends its own writes to other logs, because
//! these writes may read from this log until they land (see `follow`).
//!
//! A replica that has lost its memory also grants its log, so that it can be brought up to date.
//! Meanwhile it does not count in quorums, and it publishes this (TRM-5).
//!
//! Source: TRAM, section 5.4 (Algorithm 3).

use super::common::Common;
use super::link::{LinkId, Memory, put, rank_of};
use super::log::{LOG, Log};
use super::progress::Halt;
use super::role::Role;
use super::shape::peer_row;
use super::step::StepContext;
use super::timestamp::Timestamp;
use crate::fabric::{Fabric, Permissions};
use crate::memory::RowWriter;

impl Common<'_> {
    /// Grants the local log to the highest request, if that request is above all earlier ones.
    pub(super) fn answer_requests<F: Fabric + Permissions, M: Memory>(
        &mut self,
        role: &mut Role,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let mut highest: Option<(Timestamp, LinkId, RowWriter<'_>)> = None;
        // bound: the replicas of the group
        for link in self.links.peers() {
            if !self.is_ready(link) {
                continue;
            }
            let Some((own, row)) = step.memory.link(link) else { continue };
            let request = Timestamp::from_cell(row.cell(peer_row::REQUEST)?.load());
            if request.rank() != Some(rank_of(link)) || !self.is_new(role, request, link) {
                continue;
            }
            if highest.is_none_or(|(other, ..)| request > other) {
                highest = Some((request, link, own));
            }
        }
        match highest {
            None => Ok(()),
            Some((request, link, row)) => self.grant(role, request, (link, row), step),
        }
    }

    /// Returns whether a request must be answered: either it is above all earlier ones, or it
    /// repeats the last one over another view.
    fn is_new(&self, role: &Role, request: Timestamp, link: LinkId) -> bool {
        if request != self.promised {
            return request > self.promised;
        }
        role.granted_to() != Some(link)
    }

    fn grant<F: Fabric + Permissions, M: Memory>(
        &mut self,
        role: &mut Role,
        request: Timestamp,
        (link, row): (LinkId, RowWriter<'_>),
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt> {
        let attached = self.state.at(link).attached;
        if !self.end_reads(role, step) || !self.take_back(role, step.fabric) {
            return Ok(());
        }
        self.end_writes(Some(link), step);
        role.follow(None);
        if request != self.promised {
            self.promise(request, step.memory)?;
        }
        // A promise that a crash could take back is worth nothing.
        let is_saved = self.is_promise_saved();
        if !is_saved || step.fabric.grant(attached.view, attached.peer, LOG).is_err() {
            // The next step retries, because the last request is answered until its link has the
            // grant.
            return Ok(());
        }
        role.follow(Some(link));
        self.campaigns.attempts = 0;
        self.progress.granted = self.progress.granted.saturating_add(1);
        put(row, peer_row::GRANTED, request.cell())
    }

    /// Returns whether writes that this replica posted as a leader may still read its log.
    pub(super) fn reads_on(&self) -> bool {
        let mut peers = self.links.peers();
        peers.any(|link| self.state.at(link).follow.reads_on())
    }

    /// Gives up the connections over which such writes are in flight, except the connection to the
    /// peer `refuses`, which no longer lets any of these writes land.
    pub(super) fn end_writes<F: Fabric, M>(
        &mut self,
        refuses: Option<LinkId>,
        step: &mut StepContext<'_, F, M>,
    ) {
        // bound: the replicas of the group
        for link in self.links.peers() {
            let state = self.state.at(link);
            let reads_on = state.follow.reads_on() && state.attached.is_ready();
            if reads_on && Some(link) != refuses {
                self.give_up(link, step);
            }
        }
    }

    /// Revokes the permission to write to the local log. Returns false if the fabric cannot do so.
    pub(super) fn take_back<F: Fabric + Permissions>(
        &self,
        role: &mut Role,
        fabric: &mut F,
    ) -> bool {
        let Role::Follower(follower) = role else { return true };
        let Some(link) = follower.granted_to else { return true };
        let attached = self.state.at(link).attached;
        // After any other error the fabric has cut the peer, so none of its writes lands either.
        let _ = fabric.revoke(attached.view, attached.peer, LOG);
        if fabric.may_write(attached.view, attached.peer, LOG) {
            return false;
        }
        follower.granted_to = None;
        true
    }

    /// Accepts a timestamp as the highest, and publishes it.
    pub(super) fn promise<M: Memory>(
        &mut self,
        timestamp: Timestamp,
        memory: &M,
    ) -> Result<(), Halt> {
        self.promised = timestamp;
        Log::new(memory.log(), self.shape).set_promised(timestamp)?;
        // bound: the replicas of the group
        for link in self.links.peers() {
            if let Some((row, _)) = memory.link(link) {
                put(row, peer_row::PROMISED, timestamp.cell())?;
                self.touch(link);
            }
        }
        Ok(())
    }
}
