//! The list of changes: reading, accepting, taking over and extending it (VIE-4, VIE-5).
//!
//! A list is read only up to its guard, and only if every entry has the guard's ballot. A list is
//! always accepted as a whole, because a part of what a leader took over could be less than what
//! had been committed before.
//!
//! Other members' rows are live: a list may change while it is read. A leader's list only grows,
//! and the list of a member that knows of a decision does not change. Any other member that
//! rewrites its list follows a later leader, and therefore publishes that it suspects this member.
//! A list is read twice, once to check it and once to copy it. Therefore the copy, which no other
//! member writes, is read again before a stance announces it ([`ViewStep::adopt`]).
//!
//! Requirements: DUR-6, DUR-12, VIE-1.

use super::cells::{Accepted, Ballot, Change, JoinRequest, Stance};
use super::state::{Cause, Halt, NextView, PeerState, ViewStep};
use super::table::{Host, Table};
use super::trim::trim_in;
use crate::ids::{NodeId, Rank};
use crate::layout::{JOINS_MAX, MEMBERS_MAX, ViewColumn};
use crate::multicast::Misbehaved;

/// The effect of a list of changes. The remaining and joining members are in the lent list of the
/// next members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListShape {
    /// Whether the list ends with a seal.
    pub(super) sealed: bool,
    /// Number of joins in the list, withdrawn or not.
    pub(super) joins: usize,
}

/// Reason why a list cannot be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The next view's memory is not ready, or the promise is not durable. The list may be usable
    /// later.
    NotNow,
    /// No correct member publishes this list.
    Wrong,
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Reads a member's list, marks the departing members, and lists the members of the resulting
    /// view.
    pub(super) fn read_list(&mut self, owner: Rank, list: Accepted) -> Result<ListShape, Unusable> {
        self.peers.iter_mut().for_each(|peer| (peer.goes, peer.leaves) = (false, false));
        let mut shape = ListShape::default();
        // bound: the entries of a row: a list that claims more is refused at the first missing
        // entry
        for index in 0..list.count {
            if shape.sealed {
                return Err(Unusable::Wrong);
            }
            let change = self.entry(owner, index, list.ballot)?;
            match change {
                Change::Remove(rank) if !self.suspects(rank) => return Err(Unusable::Wrong),
                Change::Remove(rank) | Change::Leave(rank) => {
                    let peer = self.peers.get_mut(rank.index()).ok_or(Unusable::Wrong)?;
                    if peer.goes {
                        return Err(Unusable::Wrong);
                    }
                    peer.goes = true;
                    peer.leaves = change == Change::Leave(rank);
                }
                Change::Join(_) => shape.joins = shape.joins.saturating_add(1),
                Change::Withdraw(_) => {}
                Change::Seal => shape.sealed = true,
            }
        }
        if shape.joins > JOINS_MAX {
            return Err(Unusable::Wrong);
        }
        self.list_next(owner, list)?;
        Ok(shape)
    }

    fn entry(&self, owner: Rank, index: u16, ballot: Ballot) -> Result<Change, Unusable> {
        let cell = self.table.load(owner, ViewColumn::Entry(index));
        if Change::ballot(cell) == ballot {
            Change::decode(cell).ok_or(Unusable::Wrong)
        } else {
            Err(Unusable::Wrong)
        }
    }

    /// Fills the list of the next view's members: the remaining ones in their old order, then the
    /// joining ones.
    ///
    /// If no member stays, no node joins either, because that node would be left with members that
    /// may have exited before it has learnt anything. The next view, in which nothing ever happens,
    /// then consists of the leaving members, so that a majority of them can restart the group.
    fn list_next(&mut self, owner: Rank, list: Accepted) -> Result<(), Unusable> {
        let members = self.layout.group().members;
        self.state.ends = self.peers.iter().all(|peer| peer.goes);
        let mut count = 0_usize;
        // bound: the members
        for (node, peer) in members.iter().zip(self.peers.iter()) {
            if self.is_in_next(peer) {
                *self.next.get_mut(count).ok_or(Unusable::Wrong)? = *node;
                count = count.saturating_add(1);
            }
        }
        if self.state.ends {
            self.state.next_count = count;
            return Ok(());
        }
        // bound: the entries of a row: a list that claims more is refused at the first missing
        // entry
        for index in 0..list.count {
            match self.entry(owner, index, list.ballot)? {
                Change::Join(node) => {
                    let known = members.contains(&node)
                        || self.next.iter().take(count).any(|other| *other == node);
                    if known {
                        return Err(Unusable::Wrong);
                    }
                    *self.next.get_mut(count).ok_or(Unusable::Wrong)? = node;
                    count = count.saturating_add(1);
                }
                Change::Withdraw(node) => {
                    if members.contains(&node) || !self.take_out(node, count) {
                        return Err(Unusable::Wrong);
                    }
                    count = count.saturating_sub(1);
                }
                Change::Remove(_) | Change::Leave(_) | Change::Seal => {}
            }
        }
        self.state.next_count = count;
        Ok(())
    }

    /// Returns whether the list last read has a member in the next view.
    pub(super) const fn is_in_next(&self, peer: &PeerState) -> bool {
        !peer.goes || self.state.ends && peer.leaves
    }

    /// Removes a node from the first `count` of the next members, and moves up the nodes after it.
    /// Returns false if the node is not among them.
    fn take_out(&mut self, node: NodeId, count: usize) -> bool {
        let mut found = false;
        let mut rest = self.next.get_mut(..count).unwrap_or(&mut []);
        // bound: the members of the next view
        while let [first, tail @ ..] = rest {
            found |= *first == node;
            if let (true, Some(behind)) = (found, tail.first()) {
                *first = *behind;
            }
            rest = tail;
        }
        found
    }

    /// Requests the memory of the view that results from the list last read. None is needed if the
    /// group ends.
    pub(super) fn prepare_next(&mut self) -> bool {
        if self.state.ends {
            return true;
        }
        let members = self.next.get(..self.state.next_count).unwrap_or(&[]);
        self.host.prepare(NextView { id: self.state.id.next(), members })
    }

    /// Requests the memory of the view that results from the sealed list last read, and the
    /// durability of its promise. Returns false until both are done. The trims are those in the row
    /// `trims`.
    pub(super) fn ready_to_echo(&mut self, trims: Rank, ballot: Ballot) -> bool {
        let is_prepared = self.prepare_next();
        let members = self.next.get(..self.state.next_count).unwrap_or(&[]);
        let next = NextView { id: self.state.id.next(), members };
        let (table, layout) = (&*self.table, self.layout);
        let trim = |id| trim_in(table, layout, trims, id);
        match self.host.promise(next, ballot, trim) {
            Ok(is_durable) => is_prepared && is_durable,
            Err(Misbehaved(rank)) => {
                self.halt(Halt::ChangedBy(rank));
                false
            }
        }
    }

    /// Accepts a leader's list if it is newer than the accepted one and can be accepted now.
    pub(super) fn follow(&mut self, leader: Rank) {
        // The suspicions are read after the stance: the leader still suspects the members that it
        // suspected when it made this proposal.
        let Stance { promise, accepted: shown } = self.stance(leader);
        // No member suspects itself, so no member follows a leader of a higher rank than its own.
        if promise > leader || shown.ballot > Ballot::of(leader) {
            return self.suspect(leader, Cause::Misbehaved);
        }
        if shown.ballot != Ballot::of(leader) || !self.shares_suspicions_of(leader) {
            return;
        }
        if self.accept_from(leader, shown) == Err(Unusable::Wrong) {
            self.suspect(leader, Cause::Misbehaved);
        }
    }

    /// Accepts the list that a row shows: wedges, copies the list and its sealed trims, and only
    /// then publishes the acceptance.
    pub(super) fn accept_from(&mut self, owner: Rank, shown: Accepted) -> Result<(), Unusable> {
        if shown <= self.own_stance().accepted {
            return Ok(());
        }
        let shape = self.usable_list(owner, shown, shown.ballot)?;
        self.wedge();
        if self.adopt(owner, shown, shown.ballot, shape.sealed).is_some() {
            let stance = Stance { accepted: shown, ..self.own_stance() };
            self.table.publish(ViewColumn::Stance, stance.encode());
        }
        Ok(())
    }

    /// Copies a usable list, with its sealed trims, under a ballot, and reads the copy. Halts if
    /// the copy is not the list that was checked: the local row then holds neither that list nor
    /// the previous one.
    fn adopt(
        &mut self,
        owner: Rank,
        list: Accepted,
        ballot: Ballot,
        sealed: bool,
    ) -> Option<ListShape> {
        let own = self.state.rank;
        // A sealed list is never replaced with a different one, so the local list says the same,
        // and no other member writes it.
        let (source, list) =
            if self.own_is_sealed() { (own, self.own_stance().accepted) } else { (owner, list) };
        let copied = self.copy_list(source, list, ballot).is_ok()
            && (!sealed || self.copy_trims(source).is_ok());
        if copied
            && let Ok(shape) = self.read_list(own, Accepted { ballot, count: list.count })
            && shape.sealed == sealed
            && (!sealed || self.ready_to_echo(own, ballot))
        {
            return Some(shape);
        }
        if self.state.status.is_final() {
            return None;
        }
        let gone_on = self.shows_suspicion(owner, own);
        self.halt(if gone_on { Halt::SuspectedBy(owner) } else { Halt::ChangedBy(owner) });
        None
    }

    /// Reads a list that is to be accepted under a ballot. If it is sealed, the next view's memory
    /// must be ready and the promise durable first.
    pub(super) fn usable_list(
        &mut self,
        owner: Rank,
        list: Accepted,
        ballot: Ballot,
    ) -> Result<ListShape, Unusable> {
        let own_seal = self.own_is_sealed();
        let shape = self.read_list(owner, list)?;
        if own_seal && !(shape.sealed && self.agrees_with(owner, list)) {
            return Err(Unusable::Wrong);
        }
        if shape.sealed {
            self.check_trims(owner)?;
            if !self.ready_to_echo(owner, ballot) {
                return Err(Unusable::NotNow);
            }
        }
        Ok(shape)
    }

    /// Returns whether the local list is sealed. A sealed list is never replaced with one that says
    /// something else.
    pub(super) fn own_is_sealed(&self) -> bool {
        let last = self.own_stance().accepted.count.checked_sub(1);
        last.is_some_and(|last| {
            Change::decode(self.own(ViewColumn::Entry(last))) == Some(Change::Seal)
        })
    }

    /// Returns whether a member's sealed list says the same as the local sealed list.
    pub(super) fn agrees_with(&self, owner: Rank, list: Accepted) -> bool {
        let own = self.own_stance().accepted;
        let same = |index| {
            let ours = Change::decode(self.own(ViewColumn::Entry(index)));
            self.entry(owner, index, list.ballot).is_ok_and(|theirs| ours == Some(theirs))
        };
        own.count == list.count && (0..list.count).all(same) && self.trims_agree_with(owner)
    }

    fn copy_list(&mut self, owner: Rank, list: Accepted, ballot: Ballot) -> Result<(), Unusable> {
        // bound: the entries of a row: a list that claims more is refused at the first missing
        // entry
        for index in 0..list.count {
            let change = self.entry(owner, index, list.ballot)?;
            let (column, cell) = (ViewColumn::Entry(index), change.encode(ballot));
            if self.own(column) != cell {
                self.table.publish(column, cell);
            }
        }
        Ok(())
    }

    /// Takes over: starts from the latest list that an unsuspected member publishes, and adds the
    /// changes that are pending now. Does nothing if there is neither such a list nor a pending
    /// change.
    pub(super) fn take_over(&mut self) {
        let Some((source, found)) = self.latest() else { return };
        let ballot = Ballot::of(self.state.rank);
        let shape = match self.usable_list(source, found, ballot) {
            Ok(shape) => shape,
            Err(Unusable::NotNow) => return,
            // The list's owner now follows a later leader: the next step adopts the owner's
            // suspicions.
            Err(Unusable::Wrong) if !self.shares_suspicions_of(source) => return,
            Err(Unusable::Wrong) => return self.suspect(source, Cause::Misbehaved),
        };
        let Some(shape) = self.adopt(source, found, ballot, shape.sealed) else { return };
        let count = if shape.sealed {
            found.count
        } else {
            self.append_wanted(found.count, shape.joins, true)
        };
        if count == 0 {
            return;
        }
        self.wedge();
        self.publish_own(count);
    }

    /// Returns the latest list that an unsuspected member publishes, and that member. Returns
    /// `None` while one of these members suspects a member that is not suspected here.
    fn latest(&self) -> Option<(Rank, Accepted)> {
        let mut latest = (self.state.rank, self.own_stance().accepted);
        // bound: the members
        for rank in self.unsuspected().filter(|rank| *rank != self.state.rank) {
            let shown = self.stance(rank).accepted;
            if !self.shares_suspicions_of(rank) {
                return None;
            }
            if shown > latest.1 {
                latest = (rank, shown);
            }
        }
        Some(latest)
    }

    /// Publishes the first `count` entries of the local list under this member's ballot.
    pub(super) fn publish_own(&mut self, count: u16) {
        let accepted = Accepted { ballot: Ballot::of(self.state.rank), count };
        let stance = Stance { accepted, ..self.own_stance() };
        self.table.publish(ViewColumn::Stance, stance.encode());
    }

    /// Adds the pending changes to the local list after `count` entries: suspected members,
    /// withdrawn joins, and, while the list is `open`, leaves and joins. Returns the new count. The
    /// current list must be the list last read.
    pub(super) fn append_wanted(&mut self, count: u16, joins: usize, open: bool) -> u16 {
        let (mut count, mut joins) = (count, joins);
        // bound: the members
        for rank in self.ranks() {
            let suspected = self.suspects(rank);
            let goes = self.peers.get(rank.index()).is_some_and(|peer| peer.goes);
            // The cell is one or zero.
            let leaving =
                if suspected || !open { 0 } else { self.table.load(rank, ViewColumn::Leaving) };
            if leaving > 1 {
                self.suspect(rank, Cause::Misbehaved);
            }
            let (suspected, leaves) = (suspected || leaving > 1, leaving == 1);
            if suspected && !goes {
                self.append(&mut count, Change::Remove(rank));
            } else if leaves && !goes {
                self.append(&mut count, Change::Leave(rank));
            }
        }
        // bound: the members
        for rank in self.ranks() {
            let Some(request) = self.join_request_of(rank) else { continue };
            match self.mentioned(request.node, count) {
                None if !request.withdrawn && open && self.has_room(request.node, joins) => {
                    self.append(&mut count, Change::Join(request.node));
                    joins = joins.saturating_add(1);
                    self.state.next_count = self.state.next_count.saturating_add(1);
                }
                // If the node restarted its join at another member, that member's request is still
                // open.
                Some(Change::Join(_)) if request.withdrawn && !self.is_asked_for(request.node) => {
                    self.append(&mut count, Change::Withdraw(request.node));
                }
                _ => {}
            }
        }
        count
    }

    /// Returns the last join request of a member that is not suspected.
    fn join_request_of(&self, rank: Rank) -> Option<JoinRequest> {
        let request = JoinRequest::decode(self.table.load(rank, ViewColumn::JoinRequest))?;
        if self.suspects(rank) { None } else { Some(request) }
    }

    /// Returns whether a member asks to admit a node and has not withdrawn the request.
    fn is_asked_for(&self, node: NodeId) -> bool {
        let mut requests = self.ranks().filter_map(|rank| self.join_request_of(rank));
        requests.any(|request| request.node == node && !request.withdrawn)
    }

    fn append(&mut self, count: &mut u16, change: Change) {
        let ballot = Ballot::of(self.state.rank);
        self.table.publish(ViewColumn::Entry(*count), change.encode(ballot));
        *count = count.saturating_add(1);
    }

    /// Returns the last entry of the local list that names a joining node.
    fn mentioned(&self, node: NodeId, count: u16) -> Option<Change> {
        let names =
            |change: &Change| matches!(change, Change::Join(n) | Change::Withdraw(n) if *n == node);
        (0..count)
            .rev()
            .filter_map(|index| Change::decode(self.own(ViewColumn::Entry(index))))
            .find(names)
    }

    /// Returns whether a node may join in this change. A node that is in the view must first be
    /// removed from it.
    fn has_room(&self, node: NodeId, joins: usize) -> bool {
        let most = self.state.options.members_max.min(self.next.len()).min(MEMBERS_MAX);
        joins < JOINS_MAX
            && self.state.next_count < most
            && !self.layout.group().members.contains(&node)
    }
}
