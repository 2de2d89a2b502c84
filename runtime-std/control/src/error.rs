//! Everything that can keep members from meeting, as one line that says what to do.

use std::fmt;
use std::time::Duration;

use tramontane_core::ids::{NodeId, Rank};

use super::address::Address;
use super::refusal::Refusal;

/// Why members did not come together.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// The own rank or the list of addresses does not fit the members.
    #[error(
        "rank {own} of {members} members with {addresses} addresses; give one address a member"
    )]
    Addresses {
        /// The own rank.
        own: Rank,
        /// How many members.
        members: usize,
        /// How many addresses.
        addresses: usize,
    },
    /// Keys would cross a network in clear.
    #[error(
        "{address} is not on this machine, and there is no key; give all members one key file (openssl rand \
         -hex 32), or allow traffic in clear on a network that you trust"
    )]
    KeyNeeded {
        /// The first such address.
        address: Address,
    },
    /// Somebody listens at the own address already.
    #[error("{address} is in use; is this member running already? Stop it, or take another port")]
    AddressInUse {
        /// The own address.
        address: Address,
    },
    /// The own address cannot be listened at.
    #[error(
        "cannot listen at {address}: {source}; is it an address, or a folder, of this machine?"
    )]
    Listen {
        /// The own address.
        address: Address,
        /// What the system said.
        source: std::io::Error,
    },
    /// Members that did not come before the time was up.
    #[error(
        "{} not reached within {:.1} s{}; start them, allow more time, or look at the network",
        Members(missing), waited.as_secs_f64(), Hint(refused.as_ref())
    )]
    Missing {
        /// Their ids.
        missing: Vec<NodeId>,
        /// How long this member waited.
        waited: Duration,
        /// A connection that was refused meanwhile: its address, and why.
        refused: Option<(Address, Refusal)>,
    },
    /// A peer has another key.
    #[error("member {peer} at {address} has another key; give all members the same key file")]
    WrongKey {
        /// The peer.
        peer: NodeId,
        /// Where it listens.
        address: Address,
    },
    /// Either the peer or this member has a key, and the other has none.
    #[error(
        "member {peer} at {address} and this one disagree on whether there is a key; give it to all or to none"
    )]
    KeyMode {
        /// The peer.
        peer: NodeId,
        /// Where it listens.
        address: Address,
    },
    /// A peer was started with another configuration.
    #[error(
        "member {peer} was started with another configuration; give all members the same options"
    )]
    WrongDigest {
        /// The peer.
        peer: NodeId,
        /// Its digest.
        digest: u64,
    },
    /// A peer is at another view.
    #[error("member {peer} is at another view; start all members anew")]
    WrongView {
        /// The peer.
        peer: NodeId,
    },
    /// A peer runs another version.
    #[error(
        "the program at {address} is another version of this one, or another program; run the same one everywhere"
    )]
    WrongVersion {
        /// Where it listens.
        address: Address,
    },
    /// Two processes have one id.
    #[error(
        "another process is member {id} already (told by {address}); stop it, or take another id"
    )]
    DuplicateId {
        /// The id that is taken.
        id: NodeId,
        /// The address of the member that said so, or the entry that repeats it.
        address: Address,
    },
    /// An address leads to another member, or to one that does not know this one.
    #[error("{address} is not member {expected} of this group; look at the list of addresses")]
    WrongPeer {
        /// The member that should be there.
        expected: NodeId,
        /// The address.
        address: Address,
    },
    /// The group runs already at a peer: nobody meets there any more.
    #[error(
        "the group runs already, as member {peer} says; join the running group, or stop all its members first"
    )]
    Running {
        /// The peer.
        peer: NodeId,
    },
    /// A message that does not fit.
    #[error(
        "{bytes} bytes are to be exchanged with a peer, more than a message holds; use fewer regions"
    )]
    TooLong {
        /// Its size.
        bytes: usize,
    },
    /// A peer that had come ended.
    #[error("member {peer} ended while the group was starting; start all again")]
    PeerGone {
        /// The peer.
        peer: NodeId,
    },
    /// A peer that had come does not go on.
    #[error("member {peer} does not go on; is it stopped? Start all again, or allow more time")]
    Silent {
        /// The peer.
        peer: NodeId,
    },
    /// A peer sent what makes no sense.
    #[error(
        "member {peer} sent what this program does not understand; run the same one everywhere"
    )]
    Malformed {
        /// The peer.
        peer: NodeId,
    },
    /// The caller asked to stop waiting.
    #[error("interrupted while waiting for the other members")]
    Cancelled,
    /// The operating system refused something else.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// What it said.
        source: std::io::Error,
    },
}

/// Ids as people list them: "member 3", "members 1, 4".
struct Members<'e>(&'e [NodeId]);

impl fmt::Display for Members<'_> {
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
            Some((address, refusal)) => write!(out, " (somebody came from {address} {refusal})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn every_text_is_one_line_and_says_what_to_do() {
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
