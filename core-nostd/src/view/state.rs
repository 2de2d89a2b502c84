//! A member's state for a view change: plain numbers, lent by the caller. Values in the local row
//! are not stored here again.
//!
//! Requirements: HAL-1, VIE-1.

use super::cells::{Committed, Stance};
use super::table::{Host, Table};
use crate::ids::{NodeId, Rank, Time, ViewId, u16_from_index, u64_from_index};
use crate::layout::{FLAGS_PER_WORD, Layout, ViewColumn};
use crate::multicast::Unreadable;

/// A member's options for views. The times may differ between members, but the rest must be the
/// same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ViewOptions {
    /// Interval between this member's heartbeats.
    pub heartbeat_interval_ns: u64,
    /// Time by which a heartbeat may be overdue before its sender is suspected. No upcall may take
    /// longer; any number of consecutive upcalls may each take this long (VIE-2).
    pub failure_timeout_ns: u64,
    /// First-heartbeat timeout for a peer that has not been seen in this view yet. It may be
    /// longer, because a joining node is still transferring its state.
    pub first_timeout_ns: u64,
    /// Maximum number of members in a view; further joins wait. The caller lends memory for this
    /// number.
    pub members_max: usize,
    /// Whether a next view needs a majority of the previous one (VIE-9). If off, a group that is
    /// split by a network partition continues as two groups that do not know of each other, so
    /// switch it off only for groups on one machine.
    pub majority: bool,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            heartbeat_interval_ns: 1_000_000,
            failure_timeout_ns: 20_000_000,
            first_timeout_ns: 10_000_000_000,
            members_max: 64,
            majority: true,
        }
    }
}

/// Reason why a peer is suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Cause {
    /// The peer showed no heartbeat for the failure timeout.
    Silent,
    /// The fabric reported the peer as lost.
    Lost,
    /// A member that is not suspected suspects the peer.
    SuspectedBy(Rank),
    /// The peer's own suspicions leave it without a majority, so it has halted.
    Halted,
    /// The peer published something that no correct member can publish.
    Misbehaved,
}

/// Reason why a member halted. The member delivers nothing more, and the group continues without
/// it, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Halt {
    /// The named member suspects this member.
    SuspectedBy(Rank),
    /// The members that this member does not suspect are not a majority of the view (VIE-9).
    NoMajority,
    /// The named member changed something that it had published, which no correct member does: a
    /// message that it had sent, or a list while this member was copying it. The data with which
    /// the other members continue is no longer available at this member.
    ChangedBy(Rank),
}

impl core::fmt::Display for Halt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::SuspectedBy(rank) => write!(out, "member {rank} suspects this member"),
            Self::NoMajority => {
                out.write_str("the remaining members are not a majority of the view")
            }
            Self::ChangedBy(rank) => {
                write!(
                    out,
                    "member {rank} changed data that it had already published, so this member \
                     cannot continue"
                )
            }
        }
    }
}

impl core::error::Error for Halt {}

/// The progress of a member in a view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Status {
    /// The view continues unchanged.
    #[default]
    Steady,
    /// The member has wedged: a change is in progress.
    Wedged,
    /// The next view and its trims have been decided; delivery up to the trims is in progress.
    Decided,
    /// The member has installed the next view: its part in this view is over.
    Installed,
    /// The member has left, and the others have installed the next view without it.
    Left,
    /// The member is out of the group.
    Halted(Halt),
}

impl Status {
    /// Returns whether nothing more happens in this view.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Installed | Self::Left | Self::Halted(_))
    }
}

/// The next view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NextView<'a> {
    /// Id of the view: one above the current view's.
    pub id: ViewId,
    /// Members in rank order: the remaining members in their old order, then the joining ones. If
    /// no member stays, the leaving members; the list is never empty (DUR-12).
    pub members: &'a [NodeId],
}

/// A member's state for one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerState {
    /// Peer's heartbeat as last seen; `seen` is the time of the last change.
    pub(crate) heartbeat: u64,
    pub(crate) seen: Time,
    /// Loss that the fabric has reported or that the peer's silence indicates. The peer will be
    /// suspected in the next step.
    pub(crate) lost: Option<Loss>,
    /// Number of consecutive steps in which one of the peer's cells failed its check.
    pub(crate) unreadable: Unreadable,
    /// Scratch: whether the list being read removes the peer or lets it leave.
    pub(crate) goes: bool,
    /// Scratch: whether the list being read lets the peer leave.
    pub(crate) leaves: bool,
}

impl PeerState {
    /// An entry to be filled in by [`ViewNode::open`](crate::node::ViewNode::open).
    pub const VACANT: Self = Self {
        heartbeat: 0,
        seen: Time::ZERO,
        lost: None,
        unreadable: Unreadable::NONE,
        goes: false,
        leaves: false,
    };

    /// Returns whether the fabric has reported the peer as lost, or the peer has been silent for
    /// too long.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost.is_some()
    }
}

/// Reason why this member itself suspects a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Loss {
    Silent,
    Reported,
    /// The peer no longer accepts writes from this member: it suspects this member, and no row will
    /// show that.
    Denied,
    /// The peer published something that no correct member can publish.
    Misbehaved,
}

/// A member's state for the change itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewState {
    pub(crate) id: ViewId,
    pub(crate) rank: Rank,
    pub(crate) options: ViewOptions,
    pub(crate) status: Status,
    pub(crate) started: bool,
    pub(crate) last_step: Time,
    pub(crate) last_heartbeat: Time,
    /// Number of members in the next view, according to the list being read.
    pub(crate) next_count: usize,
    /// Whether no member stays according to the list being read, so that the group ends with this
    /// view.
    pub(crate) ends: bool,
}

impl ViewState {
    /// Creates the state of the member with that rank at the start of a view.
    #[must_use]
    pub const fn new(id: ViewId, rank: Rank, options: ViewOptions) -> Self {
        Self {
            id,
            rank,
            options,
            status: Status::Steady,
            started: false,
            last_step: Time::ZERO,
            last_heartbeat: Time::ZERO,
            next_count: 0,
            ends: false,
        }
    }

    /// Returns the progress of the member in the view.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// Returns the next view, as [`ViewChange::next_view`](super::ViewChange::next_view) does;
    /// `next` is the lent list.
    pub(crate) fn next_view<'n>(&self, next: &'n [NodeId]) -> Option<NextView<'n>> {
        match self.status {
            Status::Installed | Status::Left => {
                Some(NextView { id: self.id.next(), members: next.get(..self.next_count)? })
            }
            Status::Steady | Status::Wedged | Status::Decided | Status::Halted(_) => None,
        }
    }

    /// Returns whether this member suspects the member `rank`.
    pub(crate) fn suspects(&self, table: &impl Table, rank: Rank) -> bool {
        let (word, flag) = flag_of(rank);
        table.load(self.rank, ViewColumn::Suspicions(word)) & flag != 0
    }

    /// Returns the leader of a change, as [`ViewChange::leader`](super::ViewChange::leader) does.
    pub(crate) fn leader(&self, table: &impl Table, layout: &Layout<'_>) -> Rank {
        let count = u16_from_index(layout.members()).unwrap_or(u16::MAX);
        (0..count).map(Rank).find(|rank| !self.suspects(table, *rank)).unwrap_or(self.rank)
    }

    /// Publishes a heartbeat if one is due, and returns whether it published one.
    pub(crate) fn beat(&mut self, now: Time, table: &mut impl Table) -> bool {
        let is_due = now.since(self.last_heartbeat) >= self.options.heartbeat_interval_ns;
        if is_due {
            self.last_heartbeat = now;
            let count = table.load(self.rank, ViewColumn::Heartbeat).saturating_add(1);
            table.publish(ViewColumn::Heartbeat, count);
        }
        is_due
    }
}

/// Everything that a step works on.
pub(crate) struct ViewStep<'t, T, H> {
    pub(crate) layout: &'t Layout<'t>,
    pub(crate) state: &'t mut ViewState,
    pub(crate) peers: &'t mut [PeerState],
    pub(crate) next: &'t mut [NodeId],
    pub(crate) table: &'t mut T,
    pub(crate) host: &'t mut H,
    pub(crate) now: Time,
}

impl<T: Table, H: Host> ViewStep<'_, T, H> {
    /// Returns all ranks of the view, in order.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<T, H> {
        let count = u16_from_index(self.layout.members()).unwrap_or(u16::MAX);
        (0..count).map(Rank)
    }

    /// Returns the members that are not suspected, including this member.
    pub(crate) fn unsuspected(&self) -> impl Iterator<Item = Rank> {
        self.ranks().filter(|rank| !self.suspects(*rank))
    }

    pub(crate) fn own(&self, column: ViewColumn) -> u64 {
        self.table.load(self.state.rank, column)
    }

    pub(crate) fn own_stance(&self) -> Stance {
        self.stance(self.state.rank)
    }

    /// Loads a cell that guards other cells of its row: everything read after this is at least as
    /// new.
    pub(crate) fn guard(&self, owner: Rank, column: ViewColumn) -> u64 {
        let guard = self.table.load(owner, column);
        if owner != self.state.rank {
            self.host.observe();
        }
        guard
    }

    pub(crate) fn stance(&self, owner: Rank) -> Stance {
        Stance::decode(self.guard(owner, ViewColumn::Stance))
    }

    pub(crate) fn committed(&self, owner: Rank) -> Committed {
        Committed::decode(self.guard(owner, ViewColumn::Committed))
    }

    /// Returns whether this member suspects the member `rank`.
    pub(crate) fn suspects(&self, rank: Rank) -> bool {
        self.shows_suspicion(self.state.rank, rank)
    }

    /// Returns whether the row of `owner` says that it suspects the member `rank`.
    pub(super) fn shows_suspicion(&self, owner: Rank, rank: Rank) -> bool {
        let (word, flag) = flag_of(rank);
        self.table.load(owner, ViewColumn::Suspicions(word)) & flag != 0
    }

    /// Returns whether the members that are not suspected are a majority of the view (VIE-9).
    pub(crate) fn has_majority(&self) -> bool {
        self.shows_majority(self.state.rank)
    }

    /// Returns whether the members that the row of `owner` does not suspect are a majority of the
    /// view.
    pub(crate) fn shows_majority(&self, owner: Rank) -> bool {
        if !self.state.options.majority {
            return true;
        }
        let left = self.ranks().filter(|rank| !self.shows_suspicion(owner, *rank));
        // `fold` is used instead of `count`, whose sum might overflow as far as the compiler can
        // tell.
        self.is_majority(left.fold(0, |count: usize, _| count.saturating_add(1)))
    }

    pub(crate) fn is_majority(&self, members: usize) -> bool {
        members.saturating_mul(2) > self.layout.members()
    }

    pub(crate) fn halt(&mut self, why: Halt) {
        self.state.status = Status::Halted(why);
    }

    /// Returns the number of suspicion words in a row.
    pub(crate) fn words(&self) -> u16 {
        u16_from_index(self.layout.members().div_ceil(FLAGS_PER_WORD)).unwrap_or(0)
    }

    /// Returns the flags of a word that belong to members of the view.
    pub(crate) fn flags_of_word(&self, word: u16) -> u64 {
        let first = usize::from(word).saturating_mul(FLAGS_PER_WORD);
        let count = u64_from_index(self.layout.members().saturating_sub(first));
        // If 64 or more members remain from this word on, all flags of the word belong to members.
        let behind = u32::try_from(count).ok().and_then(|count| 1_u64.checked_shl(count));
        behind.unwrap_or(0).wrapping_sub(1)
    }
}

/// Returns the word of a rank's flag, and the flag in it.
pub(crate) fn flag_of(rank: Rank) -> (u16, u64) {
    (rank.0 >> 6, 1_u64.checked_shl(u32::from(rank.0 & 63)).unwrap_or(0))
}

const _: () = assert!(FLAGS_PER_WORD == 1 << 6, "`flag_of` splits a rank by 64");
