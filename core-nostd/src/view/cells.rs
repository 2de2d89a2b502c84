//! The contents of the view protocol's cells. Each cell is one atomic number that only grows.
//!
//! An entry has its proposer in its highest bits, so a later leader's entry at the same index is a
//! larger number. A list can therefore be rewritten without ever shrinking a cell, and a reader
//! that finds a proposer newer than the one that the guard announced knows that a rewrite is in
//! progress.
//!
//! Requirement: VIE-4.

use crate::ids::{NodeId, Rank};

/// A proposing member, in the order in which leaders take over: the leader's rank plus one, or zero
/// before any proposal.
///
/// Leaders follow each other in rank order, so the larger of two ballots is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Ballot(pub u16);

impl Ballot {
    /// Returns the ballot of the leader with that rank.
    #[must_use]
    pub const fn of(leader: Rank) -> Self {
        Self(leader.0.saturating_add(1))
    }
}

/// A proposed list: its ballot and its number of entries. Lists are ordered as they replace each
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Accepted {
    /// Ballot of the proposer.
    pub ballot: Ballot,
    /// Number of entries, counted from the first.
    pub count: u16,
}

/// The cell that guards a member's proposals: its promise and the list that it has accepted. Both
/// are in one number, so no reader sees one without the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Stance {
    /// All members below this rank are suspected: their proposals are no longer accepted.
    pub promise: Rank,
    /// List that was accepted last.
    pub accepted: Accepted,
}

impl Stance {
    /// Encodes the stance as a cell.
    #[must_use]
    pub fn encode(self) -> u64 {
        u64::from(self.promise.0) << 48 | encode_accepted(self.accepted)
    }

    /// Decodes a cell. Every number is valid.
    #[must_use]
    pub fn decode(cell: u64) -> Self {
        Self { promise: Rank(field(cell, 48)), accepted: decode_accepted(cell) }
    }
}

/// A member's knowledge of the committed changes, and of whether they are sealed and therefore
/// decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Committed {
    /// Whether the next view and its trims have been decided.
    pub decided: bool,
    /// List that has been committed.
    pub accepted: Accepted,
}

impl Committed {
    /// Encodes this as a cell.
    #[must_use]
    pub fn encode(self) -> u64 {
        u64::from(self.decided) << 63 | encode_accepted(self.accepted)
    }

    /// Decodes a cell.
    #[must_use]
    pub fn decode(cell: u64) -> Self {
        Self { decided: cell >> 63 == 1, accepted: decode_accepted(cell) }
    }
}

/// One change of the membership, or the end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum Change {
    /// A suspected member is removed.
    Remove(Rank),
    /// A member leaves at its own request.
    Leave(Rank),
    /// A node joins.
    Join(NodeId),
    /// A node that was to join does not join.
    Withdraw(NodeId),
    /// The list is complete, and the trims belong to it.
    Seal,
}

impl Change {
    /// Encodes this change under a ballot as a cell.
    #[must_use]
    pub fn encode(self, ballot: Ballot) -> u64 {
        let (kind, what) = match self {
            Self::Remove(rank) => (1_u64, u64::from(rank.0)),
            Self::Leave(rank) => (2, u64::from(rank.0)),
            Self::Join(node) => (3, u64::from(node.0)),
            Self::Withdraw(node) => (4, u64::from(node.0)),
            Self::Seal => (5, 0),
        };
        u64::from(ballot.0) << 48 | kind << 32 | what
    }

    /// Returns the ballot of a cell, whatever its other contents.
    #[must_use]
    pub fn ballot(cell: u64) -> Ballot {
        Ballot(field(cell, 48))
    }

    /// Returns the change in a cell, or `None` if it contains none.
    #[must_use]
    pub fn decode(cell: u64) -> Option<Self> {
        let what = low_half(cell);
        match field(cell, 32) {
            1 => Some(Self::Remove(Rank(u16::try_from(what).ok()?))),
            2 => Some(Self::Leave(Rank(u16::try_from(what).ok()?))),
            3 => Some(Self::Join(NodeId(what))),
            4 => Some(Self::Withdraw(NodeId(what))),
            5 if what == 0 => Some(Self::Seal),
            _ => None,
        }
    }
}

/// Maximum number of requests that a member can make in one view.
pub(crate) const REQUESTS_MAX: u32 = 0x7fff;

/// A member's request to admit a node. A later request by the same member replaces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JoinRequest {
    /// Number of the member's requests, so that the cell grows.
    pub(crate) sequence: u32,
    /// Whether the request has been withdrawn.
    pub(crate) withdrawn: bool,
    pub(crate) node: NodeId,
}

impl JoinRequest {
    pub(crate) fn encode(self) -> u64 {
        u64::from(self.sequence) << 33 | u64::from(self.withdrawn) << 32 | u64::from(self.node.0)
    }

    /// Decodes a cell, or returns `None` if nothing has been requested yet.
    pub(crate) fn decode(cell: u64) -> Option<Self> {
        let sequence = u32::try_from(cell >> 33).ok()?;
        if sequence == 0 {
            return None;
        }
        Some(Self { sequence, withdrawn: cell >> 32 & 1 == 1, node: NodeId(low_half(cell)) })
    }
}

fn encode_accepted(accepted: Accepted) -> u64 {
    u64::from(accepted.ballot.0) << 32 | u64::from(accepted.count)
}

fn decode_accepted(cell: u64) -> Accepted {
    Accepted { ballot: Ballot(field(cell, 32)), count: field(cell, 0) }
}

/// Returns the 16 bits that begin at bit `shift`.
fn field(cell: u64, shift: u32) -> u16 {
    u16::try_from(cell.checked_shr(shift).unwrap_or(0) & 0xffff).unwrap_or(0)
}

fn low_half(cell: u64) -> u32 {
    u32::try_from(cell & 0xffff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_cells_decode_to_their_contents() {
        let accepted = Accepted { ballot: Ballot(9), count: 300 };
        let stance = Stance { promise: Rank(8), accepted };
        assert_eq!(Stance::decode(stance.encode()), stance);
        let committed = Committed { decided: true, accepted };
        assert_eq!(Committed::decode(committed.encode()), committed);
        let request = JoinRequest { sequence: 3, withdrawn: true, node: NodeId(u32::MAX) };
        assert_eq!(JoinRequest::decode(request.encode()), Some(request));
        for change in [
            Change::Remove(Rank(1023)),
            Change::Leave(Rank(0)),
            Change::Join(NodeId(u32::MAX)),
            Change::Withdraw(NodeId(7)),
            Change::Seal,
        ] {
            let cell = change.encode(Ballot(1024));
            assert_eq!((Change::decode(cell), Change::ballot(cell)), (Some(change), Ballot(1024)));
        }
    }

    #[test]
    fn later_view_states_encode_to_larger_cells() {
        let of = |promise, ballot, count| {
            let accepted = Accepted { ballot: Ballot(ballot), count };
            Stance { promise: Rank(promise), accepted }.encode()
        };
        assert!(
            of(0, 1, 5) < of(0, 1, 6) && of(0, 1, 6) < of(2, 1, 6) && of(2, 1, 6) < of(2, 3, 6)
        );
        assert!(Change::Seal.encode(Ballot(1)) < Change::Remove(Rank(0)).encode(Ballot(2)));
        let request =
            |sequence, withdrawn| JoinRequest { sequence, withdrawn, node: NodeId(5) }.encode();
        assert!(request(1, false) < request(1, true) && request(1, true) < request(2, false));
    }

    #[test]
    fn malformed_change_cells_are_refused() {
        for cell in [0, 6 << 32, 1 << 32 | 0x1_0000, 5 << 32 | 1, u64::MAX] {
            assert_eq!(Change::decode(cell), None, "{cell:x}");
        }
        assert_eq!(JoinRequest::decode(7), None);
        assert_eq!(
            JoinRequest::decode(u64::MAX).map(|request| request.sequence),
            Some(u32::MAX >> 1)
        );
    }
}
