//! Why a group is not created.

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::OpenError;

use super::numbers::CHANNELS;
use crate::fabric::BlockMemoryError;
use crate::member::Stopped;

/// Why a group is not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// The number was given to a group of this node before.
    #[error("group {0} was created before; take another number")]
    NumberUsed(u64),
    /// The number is far below others that the nodes have come to.
    #[error(
        "it is too late to create group {0}: the nodes are at higher numbers; take one of those"
    )]
    NumberPassed(u64),
    /// The number is far above all that the nodes have come to.
    #[error(
        "group {0} is too far ahead; take numbers in rising order, of which none is more than {CHANNELS} above one before"
    )]
    NumberTooLarge(u64),
    /// A member that the node did not join.
    #[error("node {0} is none of those that were joined")]
    Unknown(NodeId),
    /// What the core says.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// No memory for the blocks whose place is not known yet.
    #[error(transparent)]
    Memory(#[from] BlockMemoryError),
    /// This node stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
