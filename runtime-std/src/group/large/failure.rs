//! Failures of large messages that stop a member.

use crate::member::Stopped;

/// The reason why this member cannot continue with large messages.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LargeFailure {
    /// Memory cannot be allocated.
    #[error("{0}")]
    Memory(String),
    /// The fabric has refused a valid post.
    #[error("{0}")]
    Fabric(String),
    /// A message about to be delivered does not match its slot.
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
