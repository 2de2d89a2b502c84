//! The roles of a replica, and what it has in each of them alone.
//!
//! A replica begins as a follower. A candidate whose campaign succeeds leads; one whose campaign
//! is over follows. Whoever grants its log to another follows from then on (TRM-3).
//!
//! A function that only a leader runs takes a [`Leader`], and one of a follower a [`Follower`].
//!
//! Requirements: TRM-3, TRM-4.

use super::entry::Message;
use super::link::LinkId;
use super::log::Log;
use super::progress::Halt;
use super::timestamp::Timestamp;
use crate::ids::{Ordinal, Rank, Time};

/// What a replica is in its group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Follower(Follower),
    Candidate(Campaign),
    Leader(Leader),
}

/// What only a follower has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follower {
    /// The replica that may write to this replica's log in the attached view.
    pub(super) granted_to: Option<LinkId>,
    /// Which bodies are here.
    pub(super) held: Held,
    /// It lacks entries that its group has no longer.
    pub(super) needs_snapshot: bool,
    /// It has restored a snapshot, and its log has this stamp still: a leader has not filled it.
    pub(super) gapped: Option<Timestamp>,
}

/// Which bodies a follower has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Whose log it was counted in.
    pub(super) of: Timestamp,
    /// All references below this place have their bodies here.
    pub(super) below: u64,
    /// Behind the last of them that is a reference.
    pub(super) shown: u64,
}

/// How far a candidate's campaign is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Campaign {
    /// Logs are asked for and read.
    Gathering,
    /// Entries that the own log lacks are copied from a peer's.
    Copying(Copying),
    /// Payloads that entries of the own log refer to are fetched (see `complete`).
    Completing(Completing),
}

/// The entries that are copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    pub(super) from: LinkId,
    pub(super) start: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) decided: u64,
    /// The voters whose logs were read: a bit a rank.
    pub(super) voters: u64,
    /// All payloads are read, and the control line is read after them.
    pub(super) is_read: bool,
}

/// How far a candidate is with the bodies of its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completing {
    pub(super) place: u64,
    pub(super) end: u64,
    /// How much is decided, as the control lines say, and as any voter's counts say.
    pub(super) decided: u64,
    pub(super) known: u64,
    /// The voters that are asked: all, and those that were not yet for this place. A bit a rank.
    pub(super) voters: u64,
    pub(super) left: u64,
    /// What is being read.
    pub(super) asked: Option<Asked>,
}

/// What is being read of a voter, for a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) link: LinkId,
    pub(super) message: Message,
    pub(super) part: BodyPart,
}

/// A part of what a voter keeps of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    Name,
    Body,
    /// The name once more.
    NameAfter,
}

/// What only a leader has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leader {
    /// The end of the own log.
    pub(super) tail: u64,
    /// An entry that the parent passed on early was replaced in the parent's log: the own log ends
    /// below it from the next campaign on.
    pub(super) is_contradicted: bool,
    /// Its first entry has not been proposed yet.
    pub(super) owes_null: bool,
    /// Bytes of the payloads that this step has given places.
    pub(super) run_bytes: u64,
    /// Whose turn it is among the clients.
    pub(super) turn: u16,
    /// A message of the parent's whose body is not here, and since when.
    pub(super) wanted: Option<Wanted>,
    pub(super) wanted_since: Option<(Ordinal, Time)>,
}

/// A message of the parent's whose body a leader lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) ordinal: Ordinal,
    /// Whether its client may give it still.
    pub(super) comes: bool,
}

impl Role {
    /// Of a replica that lacks entries which the others' logs have no longer.
    pub(super) fn behind() -> Self {
        Self::Follower(Follower { needs_snapshot: true, ..Follower::default() })
    }

    pub(super) const fn is_leader(&self) -> bool {
        matches!(self, Self::Leader(_))
    }

    pub(super) const fn needs_snapshot(&self) -> bool {
        matches!(self, Self::Follower(Follower { needs_snapshot: true, .. }))
    }

    pub(super) const fn granted_to(&self) -> Option<LinkId> {
        match self {
            Self::Follower(follower) => follower.granted_to,
            Self::Candidate(_) | Self::Leader(_) => None,
        }
    }

    /// Whether it leads, or campaigns to.
    pub(super) const fn leads(&self) -> bool {
        !matches!(self, Self::Follower(_))
    }

    /// Follows from now on, and may be written to by this peer. What a follower has it keeps.
    pub(super) fn follow(&mut self, granted_to: Option<LinkId>) {
        let before = match self {
            Self::Follower(follower) => *follower,
            Self::Candidate(_) | Self::Leader(_) => Follower::default(),
        };
        *self = Self::Follower(Follower { granted_to, ..before });
    }

    /// A peer is gone, or has denied a write: not all that a campaign reads there comes. A campaign
    /// that copies its log, or asks it for bodies, is over. Another quorum has what it had, too.
    pub(super) fn end_without(&mut self, link: LinkId) {
        let is_over = match self {
            Self::Candidate(Campaign::Copying(copying)) => copying.from == link,
            Self::Candidate(Campaign::Completing(completing)) => {
                completing.voters & bit(Rank(link.0)) != 0
            }
            _ => false,
        };
        if is_over {
            self.follow(None);
        }
    }

    /// Whether the own log has all that a leader may have to pass on: not after a snapshot, before
    /// a leader has filled it. A leader writes what is missing before its stamp; and where its
    /// stamp is there already, before the log says that all that the snapshot has is decided.
    pub(super) fn is_whole(&mut self, log: Log<'_>) -> Result<bool, Halt> {
        let Self::Follower(follower) = self else { return Ok(true) };
        let Some(stamp) = follower.gapped else { return Ok(true) };
        let control = log.control()?;
        let is_filled = control.stamp != stamp || control.decided >= log.begins()?;
        if is_filled {
            follower.gapped = None;
        }
        Ok(is_filled)
    }
}

/// What a replica shows its peers of its part in the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) incarnation: u16,
    /// Whether it counts in quorums.
    pub(super) is_voter: bool,
    /// Whether it leads, or campaigns to.
    pub(super) leads: bool,
}

impl Standing {
    pub(super) fn cell(self) -> u64 {
        let flags = (u64::from(self.leads) << 1) | u64::from(self.is_voter);
        (u64::from(self.incarnation) << 2) | flags
    }

    pub(super) fn from_cell(cell: u64) -> Self {
        let incarnation = u16::try_from(cell >> 2).unwrap_or(0);
        Self { incarnation, is_voter: cell & 1 == 1, leads: cell & 2 == 2 }
    }
}

/// A rank's bit in a set of ranks.
pub(super) fn bit(rank: Rank) -> u64 {
    1_u64.checked_shl(u32::from(rank.0)).unwrap_or(0)
}
