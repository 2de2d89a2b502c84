//! Why a member cannot go on with large messages.

use crate::member::Stopped;

/// Why this member cannot go on with large messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LargeFailure {
    /// Memory cannot be had.
    #[error("{0}")]
    Memory(String),
    /// The fabric refuses what it should take.
    #[error("{0}")]
    Fabric(String),
    /// A message that was to be delivered is not what its slot says.
    #[error("{0}")]
    DescriptorMismatch(String),
}

impl From<LargeFailure> for Stopped {
    fn from(failure: LargeFailure) -> Self {
        match failure {
            LargeFailure::Memory(why) => Self::NoMemory(why),
            LargeFailure::Fabric(why) => Self::Fabric(why),
            LargeFailure::DescriptorMismatch(what) => Self::DescriptorMismatch(what),
        }
    }
}
