//! The identity of a process, at both ends of a connection.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use tramontane_core::ids::{NodeId, ViewId};

use super::hello::{Hello, Purpose};

/// Returns a random 64-bit number that distinguishes a process from earlier processes of the same
/// node.
///
/// # Errors
/// Fails if the system provides no random numbers.
pub fn incarnation() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    let mut done = 0;
    while done < bytes.len() {
        match getrandom(&mut bytes[done..], GetRandomFlags::empty()) {
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// The identity of a process, both at its own [`ControlServer`](super::ControlServer) and as a
/// client of another process's server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The node, or [`Identity::NO_MEMBER`].
    pub node: NodeId,
    /// The incarnation of the node's process. See [`incarnation`].
    pub incarnation: u64,
    /// The digest of the group's description, which is the same in all its views. A process with a
    /// different digest is refused.
    pub digest: u64,
}

impl Identity {
    /// The id of an operator, who is not a member and never will be. It is valid only with
    /// [`Purpose::Ask`].
    pub const NO_MEMBER: NodeId = NodeId(u32::MAX);

    pub(super) const fn hello(&self, purpose: Purpose) -> Hello {
        let Self { node, incarnation, digest } = *self;
        Hello { purpose, view: ViewId(0), digest, node, incarnation }
    }
}
