//! Errors that prevent members from meeting. Each is one line that says what to do.

use std::fmt;
use std::time::Duration;

use tramontane_core::ids::{NodeId, Rank};

use super::address::Address;
use super::refusal::Refusal;

/// The reason why members did not meet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// The local rank or the list of addresses does not match the members.
    #[error(
        "rank {own} does not fit {members} members with {addresses} addresses; give one address \
         per member, and a rank below the number of members"
    )]
    Addresses {
        /// Local rank.
        own: Rank,
        /// The number of members.
        members: usize,
        /// The number of addresses.
        addresses: usize,
    },
    /// Traffic would cross a network unencrypted.
    #[error(
        "{address} is not on this machine, and no key is given; give all members the same key \
         file (openssl rand -hex 32), or allow unencrypted traffic on a network that you trust"
    )]
    KeyNeeded {
        /// First address that is not local.
        address: Address,
    },
    /// Another process already listens at the local address.
    #[error(
        "{address} is in use; stop this member if it is already running, or choose a different port"
    )]
    AddressInUse {
        /// Local address.
        address: Address,
    },
    /// This process cannot listen at the local address.
    #[error(
        "cannot listen at {address}: {source}; give an address of this machine, or a folder on it"
    )]
    Listen {
        /// Local address.
        address: Address,
        /// The error reported by the system.
        source: std::io::Error,
    },
    /// Some members did not arrive in time.
    #[error(
        "{} could not be reached within {:.1} s{}; start the missing processes, allow more time, \
         or check the network",
        MemberIds(missing), waited.as_secs_f64(), Hint(refused.as_ref())
    )]
    Missing {
        /// The ids of the missing members.
        missing: Vec<NodeId>,
        /// The time that this member waited.
        waited: Duration,
        /// A connection that was refused during the wait: its address, and the reason.
        refused: Option<(Address, Refusal)>,
    },
    /// A peer has a different key.
    #[error("member {peer} at {address} uses a different key; give all members the same key file")]
    WrongKey {
        /// The peer.
        peer: NodeId,
        /// The address at which the peer listens.
        address: Address,
    },
    /// Either the peer or this member has a key, but not both.
    #[error(
        "only one of this member and member {peer} at {address} has a key; give the key to all \
         members or to none"
    )]
    KeyMode {
        /// The peer.
        peer: NodeId,
        /// The address at which the peer listens.
        address: Address,
    },
    /// A peer was started with a different configuration.
    #[error(
        "member {peer} was started with a different configuration; give all members the same \
         options"
    )]
    WrongDigest {
        /// The peer.
        peer: NodeId,
        /// The digest of the peer.
        digest: u64,
    },
    /// A peer is in a different view.
    #[error("member {peer} is in a different view; restart all members")]
    WrongView {
        /// The peer.
        peer: NodeId,
    },
    /// A peer runs a different version.
    #[error(
        "the process at {address} runs a different program or version; run the same version \
         everywhere"
    )]
    WrongVersion {
        /// The address at which that program listens.
        address: Address,
    },
    /// Two processes have the same id.
    #[error(
        "another process is already member {id} (reported by {address}); stop it, or choose a \
         different id"
    )]
    DuplicateId {
        /// The id that is already in use.
        id: NodeId,
        /// The address of the member that reported it, or of the duplicate entry.
        address: Address,
    },
    /// An address leads to a different member, or to one that does not know this one.
    #[error("{address} is not member {expected} of this group; check the list of addresses")]
    WrongPeer {
        /// Expected member.
        expected: NodeId,
        /// The address.
        address: Address,
    },
    /// The group is already running at a peer, so members no longer meet.
    #[error(
        "member {peer} reports that the group is already running; join the running group, or \
         stop all its members first"
    )]
    Running {
        /// The peer.
        peer: NodeId,
    },
    /// A message is too long.
    #[error("a message of {bytes} bytes to a peer is too long; use fewer regions")]
    TooLong {
        /// The length of the message, in bytes.
        bytes: usize,
    },
    /// A peer that had arrived has exited.
    #[error("member {peer} ended while the group was starting; start all members again")]
    PeerGone {
        /// The peer.
        peer: NodeId,
    },
    /// A peer that had arrived does not respond.
    #[error("member {peer} does not respond; start all members again, or allow more time")]
    Silent {
        /// The peer.
        peer: NodeId,
    },
    /// A peer sent invalid data.
    #[error(
        "member {peer} sent data that this program does not understand; run the same version \
         everywhere"
    )]
    Malformed {
        /// The peer.
        peer: NodeId,
    },
    /// The caller asked to stop waiting.
    #[error("interrupted while waiting for the other members")]
    Cancelled,
    /// Another error of the operating system.
    #[error("cannot {action}: {source}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The error reported by the system.
        source: std::io::Error,
    },
}

/// Displays ids in the form "member 3" or "members 1, 4".
struct MemberIds<'e>(&'e [NodeId]);

impl fmt::Display for MemberIds<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(if self.0.len() == 1 { "member " } else { "members " })?;
        for (index, id) in self.0.iter().enumerate() {
            if index > 0 {
                out.write_str(", ")?;
            }
            write!(out, "{id}")?;
        }
        Ok(())
    }
}

struct Hint<'e>(Option<&'e (Address, Refusal)>);

impl fmt::Display for Hint<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((address, refusal)) => {
                write!(out, " (a connection from {address} was refused: {refusal})")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn errors_are_single_lines_with_a_remedy() {
        let address = || Address::from(SocketAddr::from(([10, 9, 0, 1], 4000)));
        let (peer, id) = (NodeId(3), NodeId(3));
        let io = || std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        let errors = [
            MeshError::Addresses { own: Rank(2), members: 2, addresses: 1 },
            MeshError::KeyNeeded { address: address() },
            MeshError::AddressInUse { address: address() },
            MeshError::Listen { address: address(), source: io() },
            MeshError::Missing {
                missing: vec![NodeId(1), NodeId(4)],
                waited: Duration::from_millis(1500),
                refused: Some((address(), Refusal::Key)),
            },
            MeshError::WrongKey { peer, address: address() },
            MeshError::KeyMode { peer, address: address() },
            MeshError::WrongDigest { peer, digest: 7 },
            MeshError::WrongView { peer },
            MeshError::WrongVersion { address: address() },
            MeshError::DuplicateId { id, address: address() },
            MeshError::WrongPeer { expected: id, address: address() },
            MeshError::Running { peer },
            MeshError::TooLong { bytes: 70_000 },
            MeshError::PeerGone { peer },
            MeshError::Silent { peer },
            MeshError::Malformed { peer },
            MeshError::Cancelled,
            MeshError::Io { action: "watch a socket", source: io() },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() > 20, "{text}");
        }
    }
}
