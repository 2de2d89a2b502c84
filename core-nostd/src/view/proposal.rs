//! The list of changes: read, accepted, taken over, and extended (VIE-4, VIE-5).
//!
//! A list is read only up to its guard, and only if every entry bears the guard's ballot. A list
//! that is accepted is accepted whole: a part of what a leader took over could be less than what
//! was committed before it.
//!
//! The rows of others are live: a list may change while it is read. The list of a leader only
//! grows, and the list of a member that knows of a decision stays. Any other member that rewrites
//! its list follows a later leader, and so shows that it suspects this member. A list is read
//! twice, to check it and to copy it. So the copy, which no other member writes, is read again
//! before a stance announces it ([`ViewStep::adopt`]).
//!
//! Requirements: DUR-6, DUR-12, VIE-1.

use super::cells::{Accepted, Ballot, Change, JoinRequest, Stance};
use super::state::{Cause, Halt, NextView, PeerState, ViewStep};
use super::table::{Host, Table};
use super::trim::trim_in;
use crate::ids::{NodeId, Rank};
use crate::layout::{JOINS_MAX, MEMBERS_MAX, ViewColumn};
use crate::multicast::Misbehaved;

/// What a list of changes amounts to. The members that stay and that join are in the lent list of
/// the next members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListShape {
    /// It ends with a seal.
    pub(super) sealed: bool,
    /// Joins in it, taken back or not.
    pub(super) joins: usize,
}

/// Why a list cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The next view's memory is not ready, or the promise is not durable: later.
    NotNow,
    /// No correct member publishes it.
    Wrong,
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Reads a member's list; notes the members that go, and lists the members of the view that it
    /// leads to.
    pub(super) fn read_list(&mut self, owner: Rank, list: Accepted) -> Result<ListShape, Unusable> {
        self.peers.iter_mut().for_each(|peer| (peer.goes, peer.leaves) = (false, false));
        let mut shape = ListShape::default();
        // bound: the entries of a row: a list that claims more is refused at the first that is not
        // there
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

    /// Fills the list of the next view's members: those that stay in their old order, then those
    /// that join.
    ///
    /// Where no member stays, nobody joins either: it would be alone, with members that may be gone
    /// before it knows anything. The next view, in which nobody ever does anything, is then that of
    /// the members that leave, so that a majority of them can restart the group.
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
        // bound: the entries of a row: a list that claims more is refused at the first that is not
        // there
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

    /// Whether the list last read has a member in the next view.
    pub(super) const fn is_in_next(&self, peer: &PeerState) -> bool {
        !peer.goes || self.state.ends && peer.leaves
    }

    /// Takes a node out of the first `count` of the next members; those behind it move up. False if
    /// it is not among them.
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

    /// Asks for the memory of the view that the list last read leads to. Nobody needs any where the
    /// group ends.
    pub(super) fn prepare_next(&mut self) -> bool {
        if self.state.ends {
            return true;
        }
        let members = self.next.get(..self.state.next_count).unwrap_or(&[]);
        self.host.prepare(NextView { id: self.state.id.next(), members })
    }

    /// Asks for the memory of the view that a sealed list leads to, the one last read, and for its
    /// promise to be made durable: false until both are done. The trims are those of a row.
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

    /// Accepts a leader's list if it is newer than what was accepted, and can be accepted now.
    pub(super) fn follow(&mut self, leader: Rank) {
        // In this order: a member that the leader suspected when it proposed this, it still
        // suspects.
        let Stance { promise, accepted: shown } = self.stance(leader);
        // No member suspects itself, so none follows a leader of a higher rank than its own.
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

    /// Accepts what a row was seen to show: wedges, copies the list and the trims that are sealed
    /// into it, and only then says so.
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

    /// Copies a list that can be used, under a ballot, with the trims that are sealed into it, and
    /// reads the copy. Halts where that is not the list that was checked: the own row holds neither
    /// that one nor the former one then.
    fn adopt(
        &mut self,
        owner: Rank,
        list: Accepted,
        ballot: Ballot,
        sealed: bool,
    ) -> Option<ListShape> {
        let own = self.state.rank;
        // A sealed list is never exchanged for another: the own one says the same, and no other
        // member writes it.
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

    /// Reads a list that is to be accepted under a ballot. Where it is sealed, the next view's
    /// memory must be ready first, and the promise durable.
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

    /// Whether the own list is sealed: then it is never exchanged for one that says something else.
    pub(super) fn own_is_sealed(&self) -> bool {
        let last = self.own_stance().accepted.count.checked_sub(1);
        last.is_some_and(|last| {
            Change::decode(self.own(ViewColumn::Entry(last))) == Some(Change::Seal)
        })
    }

    /// Whether a member's sealed list says what the own sealed list says.
    pub(super) fn agrees_with(&self, owner: Rank, list: Accepted) -> bool {
        let own = self.own_stance().accepted;
        let same = |index| {
            let ours = Change::decode(self.own(ViewColumn::Entry(index)));
            self.entry(owner, index, list.ballot).is_ok_and(|theirs| ours == Some(theirs))
        };
        own.count == list.count && (0..list.count).all(same) && self.trims_agree_with(owner)
    }

    fn copy_list(&mut self, owner: Rank, list: Accepted, ballot: Ballot) -> Result<(), Unusable> {
        // bound: the entries of a row: a list that claims more is refused at the first that is not
        // there
        for index in 0..list.count {
            let change = self.entry(owner, index, list.ballot)?;
            let (column, cell) = (ViewColumn::Entry(index), change.encode(ballot));
            if self.own(column) != cell {
                self.table.publish(column, cell);
            }
        }
        Ok(())
    }

    /// Takes over: starts from the latest list that an unsuspected member shows, and adds what has
    /// to change now. Does nothing where there is neither.
    pub(super) fn take_over(&mut self) {
        let Some((source, found)) = self.latest() else { return };
        let ballot = Ballot::of(self.state.rank);
        let shape = match self.usable_list(source, found, ballot) {
            Ok(shape) => shape,
            Err(Unusable::NotNow) => return,
            // Its owner follows a later leader by now: the next step takes its suspicions over.
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

    /// The latest list that an unsuspected member shows, and which member that is. Nothing as long
    /// as one of them suspects a member that is not suspected here.
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

    /// Publishes so many entries of the own list under the own ballot.
    pub(super) fn publish_own(&mut self, count: u16) {
        let accepted = Accepted { ballot: Ballot::of(self.state.rank), count };
        let stance = Stance { accepted, ..self.own_stance() };
        self.table.publish(ViewColumn::Stance, stance.encode());
    }

    /// Adds to the own list, after `count` entries, what has to change: suspected members, joins
    /// that were withdrawn, and as long as the list is `open`, leaves and joins. Returns the new
    /// count. The list as it is must be the one last read.
    pub(super) fn append_wanted(&mut self, count: u16, joins: usize, open: bool) -> u16 {
        let (mut count, mut joins) = (count, joins);
        // bound: the members
        for rank in self.ranks() {
            let suspected = self.suspects(rank);
            let goes = self.peers.get(rank.index()).is_some_and(|peer| peer.goes);
            // It is one or nothing.
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
                // A node that began its join anew with another member is asked for by that one.
                Some(Change::Join(_)) if request.withdrawn && !self.is_asked_for(request.node) => {
                    self.append(&mut count, Change::Withdraw(request.node));
                }
                _ => {}
            }
        }
        count
    }

    /// The last join request of a member that is not suspected.
    fn join_request_of(&self, rank: Rank) -> Option<JoinRequest> {
        let request = JoinRequest::decode(self.table.load(rank, ViewColumn::JoinRequest))?;
        if self.suspects(rank) { None } else { Some(request) }
    }

    /// Whether a member asks to let a node in, and has not withdrawn that.
    fn is_asked_for(&self, node: NodeId) -> bool {
        let mut requests = self.ranks().filter_map(|rank| self.join_request_of(rank));
        requests.any(|request| request.node == node && !request.withdrawn)
    }

    fn append(&mut self, count: &mut u16, change: Change) {
        let ballot = Ballot::of(self.state.rank);
        self.table.publish(ViewColumn::Entry(*count), change.encode(ballot));
        *count = count.saturating_add(1);
    }

    /// The last entry of the own list that names a joining node.
    fn mentioned(&self, node: NodeId, count: u16) -> Option<Change> {
        let names =
            |change: &Change| matches!(change, Change::Join(n) | Change::Withdraw(n) if *n == node);
        (0..count)
            .rev()
            .filter_map(|index| Change::decode(self.own(ViewColumn::Entry(index))))
            .find(names)
    }

    /// Whether a node may join in this change. A node that is in the view must be out of it first.
    fn has_room(&self, node: NodeId, joins: usize) -> bool {
        let most = self.state.options.members_max.min(self.next.len()).min(MEMBERS_MAX);
        joins < JOINS_MAX
            && self.state.next_count < most
            && !self.layout.group().members.contains(&node)
    }
}
