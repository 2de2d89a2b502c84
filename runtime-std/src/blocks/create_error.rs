//! Reasons why a group is not created.

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::OpenError;

use super::numbers::CHANNELS;
use crate::fabric::BlockMemoryError;
use crate::member::Stopped;

/// The reason why a group is not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// An earlier group of this node had this number.
    #[error("group {0} was created before; take another number")]
    NumberUsed(u64),
    /// The number is far below the numbers that the nodes have reached.
    #[error(
        "it is too late to create group {0}: the nodes are at higher numbers; take one of those"
    )]
    NumberPassed(u64),
    /// The number is far above the numbers that the nodes have reached.
    #[error(
        "group {0} is too far ahead; take numbers in rising order, of which none is more than {CHANNELS} above one before"
    )]
    NumberTooLarge(u64),
    /// A member that this node has not connected to.
    #[error("node {0} is none of those that were joined")]
    Unknown(NodeId),
    /// An error of the core.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no memory for blocks whose position is not yet known.
    #[error(transparent)]
    Memory(#[from] BlockMemoryError),
    /// This node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
