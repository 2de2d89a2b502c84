//! The roles of a replica, and the state that belongs to a single role.
//!
//! A replica begins as a follower. A candidate leads if its campaign succeeds, and follows if the
//! campaign fails. A replica that grants its log to another replica follows from then on (TRM-3).
//!
//! A function that only a leader runs takes a [`Leader`], and a function that only a follower runs
//! takes a [`Follower`].
//!
//! Requirements: TRM-3, TRM-4.

use super::entry::Message;
use super::link::LinkId;
use super::log::Log;
use super::progress::Halt;
use super::timestamp::Timestamp;
use crate::ids::{Ordinal, Rank, Time};

/// The role of a replica in its group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Role {
    Follower(Follower),
    Candidate(Campaign),
    Leader(Leader),
}

/// The state that only a follower has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follower {
    /// Replica that may write to this replica's log in the attached view.
    pub(super) granted_to: Option<LinkId>,
    /// Entries that the follower has seen in its log.
    pub(super) seen: SeenEntries,
    /// Bodies that the follower has.
    pub(super) held: Held,
    /// Whether the follower lacks entries that its group no longer has.
    pub(super) needs_snapshot: bool,
    /// Stamp that the log has kept since the follower restored a snapshot: no leader has filled the
    /// log yet.
    pub(super) gapped: Option<Timestamp>,
}

/// The entries that a follower has seen in its log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeenEntries {
    /// Timestamp of the leader whose entries were seen.
    pub(super) of: Timestamp,
    /// Log index below which the leader's entries are visible.
    pub(super) below: u64,
    /// Number of the repair that the follower has seen.
    pub(super) repair: u64,
}

/// The bodies that a follower has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// Timestamp of the leader in whose log the bodies were counted.
    pub(super) of: Timestamp,
    /// Log index below which the bodies of all references are here.
    pub(super) below: u64,
    /// Log index after the last reference among them.
    pub(super) shown: u64,
}

/// The progress of a candidate's campaign.
#[derive(Clone, Copy, Debug)]
pub(super) enum Campaign {
    /// Logs are being requested and read.
    Gathering,
    /// Entries that the local log lacks are being copied from a peer's log.
    Copying(Copying),
    /// Payloads to which entries of the local log refer are being fetched (see `complete`).
    Completing(Completing),
}

/// The entries that are being copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Copying {
    pub(super) from: LinkId,
    pub(super) start: u64,
    pub(super) next: u64,
    pub(super) end: u64,
    pub(super) decided: u64,
    /// Voters whose logs have been read: one bit per rank.
    pub(super) voters: u64,
    /// Whether all payloads have been read, so that the control line can be read after them.
    pub(super) is_read: bool,
}

/// The progress of a candidate in completing the bodies of its log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Completing {
    pub(super) place: u64,
    pub(super) end: u64,
    /// Decided count according to the control lines. `known` also includes the voters' delivered
    /// counts.
    pub(super) decided: u64,
    pub(super) known: u64,
    /// Voters to be asked, with one bit per rank; `left` has the voters that have not been asked
    /// about this log index yet.
    pub(super) voters: u64,
    pub(super) left: u64,
    /// Read that is in flight.
    pub(super) asked: Option<Asked>,
}

/// A read from a voter, for a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) link: LinkId,
    pub(super) message: Message,
    pub(super) part: BodyPart,
}

/// The item of a voter's stored body that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyPart {
    Name,
    Body,
    /// The name, read for a second time.
    NameAfter,
}

/// The state that only a leader has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leader {
    /// End of the local log.
    pub(super) tail: u64,
    /// Whether an entry that the parent passed on early has been replaced in the parent's log, or
    /// may have been replaced by another leader of this group. The next campaign cuts the local log
    /// below that entry.
    pub(super) is_contradicted: bool,
    /// Number of the parent's positions that the group had decided when the leader began.
    pub(super) settled: u64,
    /// Whether the leader's first entry, a null, has yet to be proposed.
    pub(super) owes_null: bool,
    /// Number of payload bytes that this step has appended.
    pub(super) run_bytes: u64,
    /// Client whose turn it is.
    pub(super) turn: u16,
    /// Message from the parent whose body is missing; `wanted_since` is the time since which it has
    /// been missing.
    pub(super) wanted: Option<Wanted>,
    pub(super) wanted_since: Option<(Ordinal, Time)>,
}

/// A message from the parent whose body a leader lacks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) ordinal: Ordinal,
    /// Whether the message's client may still send the body.
    pub(super) comes: bool,
}

impl Role {
    /// Returns the role of a replica that lacks entries which the other logs no longer have.
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

    /// Returns whether the replica leads or campaigns to lead.
    pub(super) const fn leads(&self) -> bool {
        !matches!(self, Self::Follower(_))
    }

    /// Becomes a follower whose log this peer may write to. A replica that already follows keeps
    /// its state.
    pub(super) fn follow(&mut self, granted_to: Option<LinkId>) {
        let before = match self {
            Self::Follower(follower) => *follower,
            Self::Candidate(_) | Self::Leader(_) => Follower::default(),
        };
        *self = Self::Follower(Follower { granted_to, ..before });
    }

    /// Handles a peer that is lost or has denied a write, so that not everything that a campaign
    /// reads from it will arrive. A campaign that is copying that peer's log, or is asking that
    /// peer for bodies, ends. It can be repeated with another quorum, which also has what the peer
    /// had.
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

    /// Returns whether the local log has everything that a leader may have to pass on. After a
    /// snapshot the log does not have it until a leader has filled it. A leader writes the missing
    /// entries before its stamp; if its stamp is already there, it writes them before the log says
    /// that everything in the snapshot has been decided.
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

/// The standing of a replica in its group, as published to its peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) incarnation: u16,
    /// Whether the replica counts in quorums.
    pub(super) is_voter: bool,
    /// Whether the replica leads or campaigns to lead.
    pub(super) leads: bool,
    /// Whether the replica's fabric promises that completed lists are visible.
    pub(super) completes_visibly: bool,
}

impl Standing {
    pub(super) fn cell(self) -> u64 {
        let flags = [self.is_voter, self.leads, self.completes_visibly].map(u64::from);
        (u64::from(self.incarnation) << 3) | (flags[2] << 2) | (flags[1] << 1) | flags[0]
    }

    pub(super) fn from_cell(cell: u64) -> Self {
        let incarnation = u16::try_from(cell >> 3).unwrap_or(0);
        let has = |flag: u64| cell & flag == flag;
        Self { incarnation, is_voter: has(1), leads: has(2), completes_visibly: has(4) }
    }
}

/// Returns the bit that stands for a rank in a set of ranks.
pub(super) fn bit(rank: Rank) -> u64 {
    1_u64.checked_shl(u32::from(rank.0)).unwrap_or(0)
}
