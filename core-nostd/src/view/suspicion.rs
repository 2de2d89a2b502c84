//! Detection of failed members: heartbeats, reports, and the spreading of suspicions (VIE-2,
//! VIE-3).
//!
//! Suspicion is monotone: once a member suspects another, it reads nothing more from that member's
//! row. New suspicions are adopted in rank order, but never from the row of a suspected member. So
//! if two members suspect each other, a reader of both rows drops the one with the higher rank.
//! Suspicions are also ignored if the members that a row does not suspect are not a majority: its
//! owner has halted, and is itself suspected. Before the current leader is suspected, the list
//! that its row shows is accepted. Safety does not depend on this step, because everything that a
//! majority has accepted is found without it. But it lets a successor find more of the proposals,
//! so that the successor has less to propose again.
//!
//! Requirement: FLT-1.

use super::cells::Ballot;
use super::state::{Cause, Halt, Loss, ViewStep, flag_of};
use super::table::{Host, Table};
use crate::ids::Rank;
use crate::layout::{FLAGS_PER_WORD, ViewColumn};

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Publishes a heartbeat if one is due.
    pub(super) fn beat(&mut self) {
        self.state.beat(self.now, self.table);
    }

    /// Reads the heartbeats of the other members, and marks those that have been silent for too
    /// long.
    ///
    /// A member that was itself stopped has read no heartbeats in the meantime, so the time that it
    /// missed is not counted against the others, except for a quarter of the timeout. A member that
    /// is silent during several consecutive long upcalls is therefore still detected.
    pub(super) fn watch(&mut self) {
        let options = self.state.options;
        let missed = self.now.since(self.state.last_step);
        let was_stopped = missed > options.failure_timeout_ns >> 1;
        let forgiven =
            if was_stopped { missed.saturating_sub(options.failure_timeout_ns >> 2) } else { 0 };
        self.state.last_step = self.now;
        // bound: the members
        for rank in self.ranks() {
            if rank == self.state.rank || self.suspects(rank) {
                continue;
            }
            // The installed view is read before the heartbeat: a member that publishes that it is
            // in the view has already published its first heartbeat.
            let installed = self.guard(rank, ViewColumn::Installed);
            let heartbeat = self.table.load(rank, ViewColumn::Heartbeat);
            let timeout =
                if installed == 0 { options.first_timeout_ns } else { options.failure_timeout_ns };
            // A member that has installed the next view is active in that view and publishes its
            // heartbeats there. It has published before that the view has been decided.
            let gone_on =
                installed > self.state.id.0.saturating_add(1) && self.committed(rank).decided;
            let Some(peer) = self.peers.get_mut(rank.index()) else { continue };
            if heartbeat != peer.heartbeat || gone_on {
                peer.heartbeat = heartbeat;
                peer.seen = self.now;
                continue;
            }
            peer.seen = peer.seen.after(forgiven);
            // A heartbeat is overdue from the time at which the next one was expected.
            if self.now.since(peer.seen) > timeout.saturating_add(options.heartbeat_interval_ns) {
                peer.lost.get_or_insert(Loss::Silent);
            }
        }
    }

    /// Returns whether the fabric has reported the loss of a peer that is not suspected yet.
    pub(super) fn has_new_report(&self) -> bool {
        // The reports are checked first, so that a steady view reads no suspicion cells for this.
        self.ranks().any(|rank| {
            let is_reported =
                self.peers.get(rank.index()).is_some_and(|peer| peer.lost == Some(Loss::Reported));
            is_reported && !self.suspects(rank)
        })
    }

    /// Adopts new suspicions, this member's and those of others, in rank order. Halts if this
    /// member is among the suspected, or if too few members are left.
    pub(super) fn spread(&mut self) {
        // bound: the members
        for rank in self.ranks() {
            if rank == self.state.rank || self.suspects(rank) {
                continue;
            }
            if let Some(loss) = self.peers.get(rank.index()).and_then(|peer| peer.lost) {
                match loss {
                    Loss::Silent => self.suspect(rank, Cause::Silent),
                    Loss::Reported => self.suspect(rank, Cause::Lost),
                    Loss::Misbehaved => self.suspect(rank, Cause::Misbehaved),
                    // Suspecting the members that cut this member off would take down the first
                    // member that reads the suspicion.
                    Loss::Denied => self.halt(Halt::SuspectedBy(rank)),
                }
            } else {
                self.take_suspicions_of(rank);
            }
            if self.state.status.is_final() {
                return;
            }
        }
        if !self.has_majority() {
            self.halt(Halt::NoMajority);
        }
    }

    fn take_suspicions_of(&mut self, owner: Rank) {
        // bound: one word per 64 members
        for word in 0..self.words() {
            let shown = self.table.load(owner, ViewColumn::Suspicions(word));
            let new = shown & !self.own(ViewColumn::Suspicions(word));
            if new == 0 {
                continue;
            }
            if new & !self.flags_of_word(word) != 0 {
                return self.suspect(owner, Cause::Misbehaved);
            }
            // The owner's row itself shows that the owner is out of the group. Adopting its
            // suspicions would remove all the others.
            if !self.shows_majority(owner) {
                return self.suspect(owner, Cause::Halted);
            }
            let (own_word, own_flag) = flag_of(self.state.rank);
            if word == own_word && new & own_flag != 0 {
                return self.halt(Halt::SuspectedBy(owner));
            }
            // bound: the 64 flags of a word
            for rank in ranks_of(word, new) {
                self.suspect(rank, Cause::SuspectedBy(owner));
            }
        }
    }

    /// Returns whether this member suspects everyone whom `owner` suspects. Only if so is a
    /// leader's proposal accepted, because the proposal was made without those members.
    pub(super) fn shares_suspicions_of(&self, owner: Rank) -> bool {
        (0..self.words()).all(|word| {
            let column = ViewColumn::Suspicions(word);
            self.table.load(owner, column) & !self.own(column) == 0
        })
    }

    /// Suspects a member: accepts the list that its row shows, then publishes the suspicion, then
    /// cuts the member off.
    pub(super) fn suspect(&mut self, rank: Rank, cause: Cause) {
        if rank == self.state.rank || self.suspects(rank) {
            return;
        }
        if cause != Cause::Misbehaved {
            self.echo(rank);
        }
        if self.state.status.is_final() {
            return;
        }
        let (word, flag) = flag_of(rank);
        let column = ViewColumn::Suspicions(word);
        self.table.publish(column, self.own(column) | flag);
        self.host.cut(rank, cause);
    }

    /// Accepts the current leader's list if that leader is about to be suspected. The list is read
    /// only from the leader's own row: any other member may turn to a later leader's list while
    /// this one copies it.
    fn echo(&mut self, owner: Rank) {
        let shown = self.stance(owner).accepted;
        let leads = self.leader() == owner && shown.ballot == Ballot::of(owner);
        if leads && self.shares_suspicions_of(owner) {
            // An error does not matter, because the owner is about to be suspected anyway.
            let _ = self.accept_from(owner, shown);
        }
    }
}

/// Returns the ranks of a word's flags, lowest first.
fn ranks_of(word: u16, flags: u64) -> impl Iterator<Item = Rank> {
    let first = word.saturating_mul(64);
    (0..64_u16).filter_map(move |bit| {
        let flag = 1_u64.checked_shl(u32::from(bit)).unwrap_or(0);
        if flags & flag != 0 { Some(Rank(first.saturating_add(bit))) } else { None }
    })
}

const _: () = assert!(FLAGS_PER_WORD == 64, "`ranks_of` counts 64 flags");
