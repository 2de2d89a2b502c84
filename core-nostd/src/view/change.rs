//! One member's part in the view changes of its group: the phases in order.
//!
//! Requirements: VIE-1, VIE-2, VIE-4, VIE-6.

use super::cells::{JoinRequest, REQUESTS_MAX};
use super::state::{Loss, NextView, PeerState, Status, ViewState, ViewStep};
use super::table::{Host, Table};
use crate::ids::{Frontier, NodeId, Rank, SubgroupId, Time};
use crate::layout::{Layout, ViewColumn};

/// Reason why a request cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[repr(u8)]
pub enum RequestError {
    /// The node is in the view. If it was lost, it must first be removed from the view.
    IsMember = 1,
    /// This member has made as many requests as a view allows.
    TooMany = 2,
    /// There is no request to withdraw.
    NoJoinRequest = 3,
}

impl core::fmt::Display for RequestError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            Self::IsMember => "the node is already a member of the view",
            Self::TooMany => "too many requests in this view; ask again in the next one",
            Self::NoJoinRequest => "there is no join request to withdraw",
        })
    }
}

impl core::error::Error for RequestError {}

/// The view protocol of one member, over state that is lent for the duration of a call.
///
/// - *Inputs*: [`ViewChange::step`]; [`ViewChange::peer_lost`] and [`ViewChange::denied_by`] for
///   reports of the fabric; [`ViewChange::leave`], [`ViewChange::request_join`] and
///   [`ViewChange::withdraw_join`] for requests to the group.
/// - *Outputs*: cells in the [`Table`], calls of the [`Host`], and the [`Status`].
/// - *Getters*: [`ViewChange::status`], [`ViewChange::next_view`], [`ViewChange::trim`],
///   [`ViewChange::suspects`], [`ViewChange::leader`].
///
/// Nothing more happens after a step that returns a final status. The memory of the view may be
/// freed once the fabric has nothing of the view in flight, but not before every remaining member
/// publishes that it has installed the next view: until then, one of them may still have to read
/// from this member that the view has been decided.
#[derive(Debug)]
pub struct ViewChange<'v> {
    layout: &'v Layout<'v>,
    state: &'v mut ViewState,
    peers: &'v mut [PeerState],
    next: &'v mut [NodeId],
}

impl<'v> ViewChange<'v> {
    /// Creates a view change over a layout with views, the state, one [`PeerState`] per member, and
    /// a list for as many members as the next view may have, which is at least as many as this view
    /// has. Returns `None` if one of these does not fit.
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

    /// Creates a view change over parts that have been found to fit before.
    pub(crate) const fn over(
        layout: &'v Layout<'v>,
        state: &'v mut ViewState,
        peers: &'v mut [PeerState],
        next: &'v mut [NodeId],
    ) -> Self {
        Self { layout, state, peers, next }
    }

    /// Does the pending work and returns this member's status. Bounded: for `n` members, `m`
    /// subgroups and `e` entries per row
    /// ([`ViewBlock::entries`](crate::layout::ViewBlock::entries)) it reads no more than a fixed
    /// multiple of `n * (n + e + m)` cells, nearly all of them in steps that suspect a member. In a
    /// steady view it reads seven cells per member, and the suspicions twice, 64 at a time; a
    /// leader reads twice as many.
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

    /// Records that the fabric can no longer reach a peer. The peer is suspected in the next step.
    pub fn peer_lost(&mut self, peer: Rank) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.lost = Some(Loss::Reported);
        }
    }

    /// Records that a peer no longer accepts writes from this member, which means that the peer
    /// suspects it. This member halts in the next step, as if it had read the suspicion (VIE-3),
    /// unless the next view has already been decided.
    pub fn denied_by(&mut self, peer: Rank) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.lost = Some(Loss::Denied);
        }
    }

    /// Asks the group to continue without this member (VIE-9). If a change has already been
    /// committed, the request must be repeated in the next view.
    pub fn leave<T: Table>(&mut self, table: &mut T) {
        table.publish(ViewColumn::Leaving, 1);
    }

    /// Asks the group to admit a node (VIE-10). The caller must have handed the node a snapshot,
    /// and must know that it is ready to accept memory. A later request replaces this one, so make
    /// one only after the node has entered the view or this request has been withdrawn. If a change
    /// has already been committed, the request must be repeated in the next view.
    ///
    /// # Errors
    /// Fails if the node is in the view, or if this member has made too many requests.
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

    /// Withdraws the last request, because its node was lost before it was admitted.
    ///
    /// # Errors
    /// Fails if there is no request.
    pub fn withdraw_join<T: Table>(&mut self, table: &mut T) -> Result<(), RequestError> {
        let last = JoinRequest::decode(table.load(self.state.rank, ViewColumn::JoinRequest));
        let request = last.ok_or(RequestError::NoJoinRequest)?;
        table.publish(ViewColumn::JoinRequest, JoinRequest { withdrawn: true, ..request }.encode());
        Ok(())
    }

    /// Returns the progress of this member in the change.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.state.status
    }

    /// Returns the next view once it has been decided.
    #[must_use]
    pub fn next_view(&self) -> Option<NextView<'_>> {
        self.state.next_view(self.next)
    }

    /// Returns the ragged trim of a subgroup, the position at which the view ends, once it has been
    /// decided. Returns `None` before that, for a subgroup whose order has no end
    /// ([`Delivery::Unordered`](crate::layout::Delivery)), and if no member of the subgroup is
    /// left.
    #[must_use]
    pub fn trim<T: Table>(&self, table: &T, subgroup: SubgroupId) -> Option<Frontier> {
        self.state.trim(table, self.layout, subgroup)
    }

    /// Returns whether this member suspects the member `rank`.
    #[must_use]
    pub fn suspects<T: Table>(&self, table: &T, rank: Rank) -> bool {
        self.state.suspects(table, rank)
    }

    /// Returns the leader of a change as seen by this member: the lowest rank that it does not
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

    /// Runs all phases up to the decision.
    fn agree(&mut self) {
        // A peer's last writes may become visible only now, together with the report that the peer
        // is lost. A decision among these writes counts: without it, the member that leaves a group
        // of two would halt for lack of a majority.
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
