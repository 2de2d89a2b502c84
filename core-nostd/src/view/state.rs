//! What a member remembers of a view change: plain numbers, lent. What stands in the own row is not
//! kept here a second time.
//!
//! Requirements: HAL-1, VIE-1.

use super::cells::{Committed, Stance};
use super::table::{Host, Table};
use crate::ids::{NodeId, Rank, Time, ViewId, u16_from_index, u64_from_index};
use crate::layout::{FLAGS_PER_WORD, Layout, ViewColumn};
use crate::multicast::Unreadable;

/// How a member takes part in views. All members may differ in the times, and must agree on the
/// rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct ViewOptions {
    /// From one own heartbeat to the next.
    pub heartbeat_interval_ns: u64,
    /// A peer whose heartbeat is overdue by this time is suspected. No upcall may take longer; any
    /// number of upcalls in a row may each take as long (VIE-2).
    pub failure_timeout_ns: u64,
    /// The same for a peer that was not yet seen in this view: a joining node still transfers its
    /// state.
    pub first_timeout_ns: u64,
    /// The most members that a view may have; more joins wait. Memory is lent for so many.
    pub members_max: usize,
    /// Whether a next view needs a majority of the last one (VIE-9). Without it, a group that a
    /// network splits goes on as two groups that do not know of each other: for groups on one
    /// machine alone.
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

/// Why a peer is suspected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Cause {
    /// It gave no heartbeat for the failure timeout.
    Silent,
    /// The fabric reported it lost.
    Lost,
    /// A member that is not suspected suspects it.
    SuspectedBy(Rank),
    /// What it suspects leaves it no majority, so it has halted.
    Halted,
    /// It published something that no correct member can publish.
    Misbehaved,
}

/// Why a member halted. It delivers nothing more, and the group goes on without it, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Halt {
    /// This member suspects it.
    SuspectedBy(Rank),
    /// The members that it does not suspect are no majority of the view (VIE-9).
    NoMajority,
    /// This member changed what it had published before, which no correct member does: a message
    /// that it had sent, or a list while it was copied. What the other members go on with is not
    /// here any more.
    ChangedBy(Rank),
}

impl core::fmt::Display for Halt {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::SuspectedBy(rank) => write!(out, "member {rank} suspects this one"),
            Self::NoMajority => {
                out.write_str("the members that are left are no majority of the view")
            }
            Self::ChangedBy(rank) => {
                write!(out, "member {rank} changed what it had published, so this one cannot go on")
            }
        }
    }
}

impl core::error::Error for Halt {}

/// How far a member is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Status {
    /// The view goes on.
    #[default]
    Steady,
    /// It wedged: a change is under way.
    Wedged,
    /// The next view and its trims are decided; delivery up to them is under way.
    Decided,
    /// It installed the next view: its part in this one is over.
    Installed,
    /// It left, and the others have installed the view without it.
    Left,
    /// It is out of the group.
    Halted(Halt),
}

impl Status {
    /// Whether nothing more happens in this view.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Installed | Self::Left | Self::Halted(_))
    }
}

/// The view to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NextView<'a> {
    /// Its id: one above the present one's.
    pub id: ViewId,
    /// Its members in rank order: those that stay in their old order, then those that join. Where
    /// no member stays, those that leave: never nobody (DUR-12).
    pub members: &'a [NodeId],
}

/// What a member remembers of another one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PeerState {
    /// Its heartbeat as last seen, and since when.
    pub(crate) heartbeat: u64,
    pub(crate) seen: Time,
    /// The fabric reported it lost, or it was silent for too long: to be suspected at the next
    /// step.
    pub(crate) lost: Option<Loss>,
    /// Steps in a row in which a cell of it failed its check.
    pub(crate) unreadable: Unreadable,
    /// Scratch: the list that is being looked at removes it or lets it leave.
    pub(crate) goes: bool,
    /// Scratch: that list lets it leave.
    pub(crate) leaves: bool,
}

impl PeerState {
    /// A place to be filled by [`ViewNode::open`](crate::node::ViewNode::open).
    pub const VACANT: Self = Self {
        heartbeat: 0,
        seen: Time::ZERO,
        lost: None,
        unreadable: Unreadable::NONE,
        goes: false,
        leaves: false,
    };

    /// Whether the fabric reported it lost, or it was silent for too long.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.lost.is_some()
    }
}

/// Why this member itself suspects a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Loss {
    Silent,
    Reported,
    /// It takes no writes from this member any more: it suspects this member, and no row will say
    /// so.
    Denied,
    /// It published something that no correct member can publish.
    Misbehaved,
}

/// What a member remembers of the change itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ViewState {
    pub(crate) id: ViewId,
    pub(crate) rank: Rank,
    pub(crate) options: ViewOptions,
    pub(crate) status: Status,
    pub(crate) started: bool,
    pub(crate) last_step: Time,
    pub(crate) last_heartbeat: Time,
    /// How long the list of the next view's members is.
    pub(crate) next_count: usize,
    /// No member stays in the list that is being looked at: the group ends with this view.
    pub(crate) ends: bool,
}

impl ViewState {
    /// The member of that rank at the start of a view.
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

    /// How far the member is.
    #[must_use]
    pub const fn status(&self) -> Status {
        self.status
    }

    /// See [`ViewChange::next_view`](super::ViewChange::next_view); `next` is the lent list.
    pub(crate) fn next_view<'n>(&self, next: &'n [NodeId]) -> Option<NextView<'n>> {
        match self.status {
            Status::Installed | Status::Left => {
                Some(NextView { id: self.id.next(), members: next.get(..self.next_count)? })
            }
            Status::Steady | Status::Wedged | Status::Decided | Status::Halted(_) => None,
        }
    }

    /// Whether this member suspects that one.
    pub(crate) fn suspects(&self, table: &impl Table, rank: Rank) -> bool {
        let (word, flag) = flag_of(rank);
        table.load(self.rank, ViewColumn::Suspicions(word)) & flag != 0
    }

    /// See [`ViewChange::leader`](super::ViewChange::leader).
    pub(crate) fn leader(&self, table: &impl Table, layout: &Layout<'_>) -> Rank {
        let count = u16_from_index(layout.members()).unwrap_or(u16::MAX);
        (0..count).map(Rank).find(|rank| !self.suspects(table, *rank)).unwrap_or(self.rank)
    }

    /// Publishes a heartbeat, if it is time for that again.
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
    /// All ranks of the view, in order.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<T, H> {
        let count = u16_from_index(self.layout.members()).unwrap_or(u16::MAX);
        (0..count).map(Rank)
    }

    /// The members that are not suspected, the own one included.
    pub(crate) fn unsuspected(&self) -> impl Iterator<Item = Rank> {
        self.ranks().filter(|rank| !self.suspects(*rank))
    }

    pub(crate) fn own(&self, column: ViewColumn) -> u64 {
        self.table.load(self.state.rank, column)
    }

    pub(crate) fn own_stance(&self) -> Stance {
        self.stance(self.state.rank)
    }

    /// A cell that guards others of its row: whatever is read after this is as new as it.
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

    /// Whether this member suspects that one.
    pub(crate) fn suspects(&self, rank: Rank) -> bool {
        self.shows_suspicion(self.state.rank, rank)
    }

    /// Whether a member's row says that it suspects that one.
    pub(super) fn shows_suspicion(&self, owner: Rank, rank: Rank) -> bool {
        let (word, flag) = flag_of(rank);
        self.table.load(owner, ViewColumn::Suspicions(word)) & flag != 0
    }

    /// Whether those that are not suspected are a majority of the view (VIE-9).
    pub(crate) fn has_majority(&self) -> bool {
        self.shows_majority(self.state.rank)
    }

    /// Whether those that a member's row does not say to be suspected are a majority of the view.
    pub(crate) fn shows_majority(&self, owner: Rank) -> bool {
        if !self.state.options.majority {
            return true;
        }
        let left = self.ranks().filter(|rank| !self.shows_suspicion(owner, *rank));
        // Not `count`: its sum may overflow, as far as the compiler can tell.
        self.is_majority(left.fold(0, |count: usize, _| count.saturating_add(1)))
    }

    pub(crate) fn is_majority(&self, members: usize) -> bool {
        members.saturating_mul(2) > self.layout.members()
    }

    pub(crate) fn halt(&mut self, why: Halt) {
        self.state.status = Status::Halted(why);
    }

    /// Suspicion words of a row.
    pub(crate) fn words(&self) -> u16 {
        u16_from_index(self.layout.members().div_ceil(FLAGS_PER_WORD)).unwrap_or(0)
    }

    /// The flags of a word that stand for members of the view.
    pub(crate) fn flags_of_word(&self, word: u16) -> u64 {
        let first = usize::from(word).saturating_mul(FLAGS_PER_WORD);
        let count = u64_from_index(self.layout.members().saturating_sub(first));
        // With 64 members or more all flags of the word are of members.
        let behind = u32::try_from(count).ok().and_then(|count| 1_u64.checked_shl(count));
        behind.unwrap_or(0).wrapping_sub(1)
    }
}

/// The word of a rank's flag, and the flag in it.
pub(crate) fn flag_of(rank: Rank) -> (u16, u64) {
    (rank.0 >> 6, 1_u64.checked_shl(u32::from(rank.0 & 63)).unwrap_or(0))
}

const _: () = assert!(FLAGS_PER_WORD == 1 << 6, "`flag_of` splits a rank by 64");
