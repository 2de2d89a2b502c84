//! The reasons why a group is not created.

use tramontane_core::ids::NodeId;
use tramontane_core::rdmc::transfer::OpenError;

use super::numbers::CHANNELS;
use crate::fabric::BlockMemoryError;
use crate::member::Stopped;

/// The reason why a group is not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateError {
    /// An earlier group of this node had the same number.
    #[error("group number {0} has been used before; use a different number")]
    NumberUsed(u64),
    /// The number is far below the numbers that the nodes have reached.
    #[error(
        "group number {0} is too low, because the nodes have reached higher numbers; use a higher \
         number"
    )]
    NumberPassed(u64),
    /// The number is far above the numbers that the nodes have reached.
    #[error(
        "group number {0} is too high; use ascending numbers, at most {CHANNELS} above the \
         previous one"
    )]
    NumberTooLarge(u64),
    /// A member to which this node has not connected.
    #[error("this node is not connected to node {0}; use one of the nodes in the description")]
    Unknown(NodeId),
    /// An error of the core.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no memory for first blocks, which arrive before their position is known.
    #[error(transparent)]
    Memory(#[from] BlockMemoryError),
    /// This node has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}
