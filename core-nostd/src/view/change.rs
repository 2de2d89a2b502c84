//! One member's part in the views of its group: the phases, in their order.
//!
//! Requirements: VIE-1, VIE-2, VIE-4, VIE-6.

use super::cells::{JoinRequest, REQUESTS_MAX};
use super::state::{Loss, NextView, PeerState, Status, ViewState, ViewStep};
use super::table::{Host, Table};
use crate::ids::{Frontier, NodeId, Rank, SubgroupId, Time};
use crate::layout::{Layout, ViewColumn};

/// Why a request cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum RequestError {
    /// The node is in the view. One that was lost must be out of it first.
    IsMember = 1,
    /// This member has made the most requests that a view allows.
    TooMany = 2,
    /// There is no request to withdraw.
    NoJoinRequest = 3,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::IsMember => "the node is a member of the view",
            Self::TooMany => "too many requests in one view",
            Self::NoJoinRequest => "no node was asked for that could be taken back",
        })
    }
}

impl core::error::Error for RequestError {}

/// The view protocol of one member, over state that is lent for the time of a call.
///
/// - *Inputs*: [`ViewChange::step`]; [`ViewChange::peer_lost`] and [`ViewChange::denied_by`] for
///   what the fabric reports; [`ViewChange::leave`], [`ViewChange::request_join`] and
///   [`ViewChange::withdraw_join`] for what is asked of the group.
/// - *Outputs*: cells in the [`Table`], calls of the [`Host`], and the [`Status`].
/// - *Getters*: [`ViewChange::status`], [`ViewChange::next_view`], [`ViewChange::trim`],
///   [`ViewChange::suspects`], [`ViewChange::leader`].
///
/// After a step that returns a final status nothing more happens. The memory of the view may go
/// once the fabric has nothing of it in flight, and not before every member that stays shows that
/// it has installed the next one: until then one of them may still need to read here that it was
/// decided.
#[derive(Debug)]
pub struct ViewChange<'v> {
    layout: &'v Layout<'v>,
    state: &'v mut ViewState,
    peers: &'v mut [PeerState],
    next: &'v mut [NodeId],
}

impl<'v> ViewChange<'v> {
    /// Over a layout with views, state, one [`PeerState`] a member, and a list for as many members
    /// as the next view may have, at least as many as this one has. Nothing, if one of them does
    /// not fit.
    #[must_use]
    pub fn new(
        layout: &'v Layout<'v>,
        state: &'v mut ViewState,
        peers: &'v mut [PeerState],
        next: &'v mut [NodeId],
    ) -> Option<Self> {
        let members = layout.members();
        let fits = peers.len() == members && next.len() >= members && state.rank.index() < members;
        layout.view_block()?;
        if fits { Some(Self::over(layout, state, peers, next)) } else { None }
    }

    /// The same over what was found to fit before.
    pub(crate) const fn over(
        layout: &'v Layout<'v>,
        state: &'v mut ViewState,
        peers: &'v mut [PeerState],
        next: &'v mut [NodeId],
    ) -> Self {
        Self { layout, state, peers, next }
    }

    /// Does what there is to do, and says how far this member is. Bounded: for `n` members, `m`
    /// subgroups and `e` entries a row ([`ViewBlock::entries`](crate::layout::ViewBlock::entries))
    /// it reads no more than a fixed multiple of `n * (n + e + m)` cells, nearly all of them in
    /// steps that suspect a member. In a steady view it reads seven cells a member, and the
    /// suspicions twice, 64 of them at a time; a leader reads twice as many.
    pub fn step<T: Table, H: Host>(&mut self, now: Time, table: &mut T, host: &mut H) -> Status {
        let mut turn = ViewStep {
            layout: self.layout,
            state: self.state,
            peers: self.peers,
            next: self.next,
            table,
            host,
            now,
        };
        turn.step();
        self.state.status
    }

    /// Says that the fabric cannot reach a peer any more. It is suspected at the next step.
    pub fn peer_lost(&mut self, peer: Rank) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.lost = Some(Loss::Reported);
        }
    }

    /// Says that a peer takes no writes from this member any more: the peer suspects it. This
    /// member halts at the next step, as if it had read the suspicion (VIE-3), unless the next view
    /// is decided already.
    pub fn denied_by(&mut self, peer: Rank) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.lost = Some(Loss::Denied);
        }
    }

    /// Asks the group to go on without this member (VIE-9). Where a change is committed already,
    /// the next view has to be asked again.
    pub fn leave<T: Table>(&mut self, table: &mut T) {
        table.publish(ViewColumn::Leaving, 1);
    }

    /// Asks the group to let a node in (VIE-10). The caller has handed the node a snapshot, and
    /// knows that it is ready to take memory. A later request replaces this one, so it comes after
    /// the node is in the view or after this one was withdrawn. Where a change is committed
    /// already, the next view has to be asked again.
    ///
    /// # Errors
    /// The node is in the view, or this member has asked too often.
    pub fn request_join<T: Table>(
        &mut self,
        table: &mut T,
        node: NodeId,
    ) -> Result<(), RequestError> {
        if self.layout.group().members.contains(&node) {
            return Err(RequestError::IsMember);
        }
        let last = JoinRequest::decode(table.load(self.state.rank, ViewColumn::JoinRequest));
        let sequence = last.map_or(0, |request| request.sequence).saturating_add(1);
        if sequence > REQUESTS_MAX {
            return Err(RequestError::TooMany);
        }
        table.publish(
            ViewColumn::JoinRequest,
            JoinRequest { sequence, withdrawn: false, node }.encode(),
        );
        Ok(())
    }

    /// Withdraws the last request: its node was lost before it was let in.
    ///
    /// # Errors
    /// There is no request.
    pub fn withdraw_join<T: Table>(&mut self, table: &mut T) -> Result<(), RequestError> {
        let last = JoinRequest::decode(table.load(self.state.rank, ViewColumn::JoinRequest));
        let request = last.ok_or(RequestError::NoJoinRequest)?;
        table.publish(ViewColumn::JoinRequest, JoinRequest { withdrawn: true, ..request }.encode());
        Ok(())
    }

    /// How far this member is.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status
    }

    /// The view that comes next, once it is decided.
    #[must_use]
    pub fn next_view(&self) -> Option<NextView<'_>> {
        self.state.next_view(self.next)
    }

    /// Where the view ends in a subgroup, once that is decided: nothing before, where order has no
    /// end ([`Delivery::Unordered`](crate::layout::Delivery)), and where no member of the subgroup
    /// is left.
    #[must_use]
    pub fn trim<T: Table>(&self, table: &T, subgroup: SubgroupId) -> Option<Frontier> {
        self.state.trim(table, self.layout, subgroup)
    }

    /// Whether this member suspects that one.
    #[must_use]
    pub fn suspects<T: Table>(&self, table: &T, rank: Rank) -> bool {
        self.state.suspects(table, rank)
    }

    /// The member that leads a change as this one sees it: the lowest rank that it does not
    /// suspect.
    #[must_use]
    pub fn leader<T: Table>(&self, table: &T) -> Rank {
        self.state.leader(table, self.layout)
    }
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    fn step(&mut self) {
        if self.state.status.is_final() {
            return;
        }
        if !self.state.started {
            self.start();
        }
        self.beat();
        self.watch();
        if self.state.status != Status::Decided {
            self.agree();
        }
        if self.state.status == Status::Decided {
            self.finish();
        }
    }

    /// Everything up to the decision.
    fn agree(&mut self) {
        // The last that a peer published may be read only now, together with the report that the
        // peer is lost. A decision in it counts: without it, the member that was to leave a group
        // of two would halt for want of a majority.
        if self.has_new_report() {
            self.learn();
            if self.state.status == Status::Decided || self.state.status.is_final() {
                return;
            }
        }
        self.spread();
        if self.state.status.is_final() {
            return;
        }
        self.learn();
        if self.state.status == Status::Decided || self.state.status.is_final() {
            return;
        }
        let leader = self.leader();
        self.promise(leader);
        if leader == self.state.rank {
            self.lead();
        } else {
            self.follow(leader);
        }
        if !self.state.status.is_final() {
            self.decide();
        }
    }
}
