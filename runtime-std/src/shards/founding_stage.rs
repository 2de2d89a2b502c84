//! The progress of a replica in forming its group.

use serde::{Deserialize, Serialize};

/// The progress of a replica in forming its group. A replica without a disk goes from the first
/// stage to the last one; see `forming` for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum FoundingStage {
    /// The replica knows of no group, or has lost its disk.
    #[default]
    Apart,
    /// The replica's disk has the list of founders.
    Listed,
    /// The replica's disk also has its first state.
    Ready,
    /// The replica may have taken a step.
    Begun,
    /// The replica had begun, and its state is lost.
    Lost,
}

impl FoundingStage {
    /// Returns the stage as a byte, for the disk.
    pub(super) const fn byte(self) -> u8 {
        match self {
            Self::Apart => 0,
            Self::Listed => 1,
            Self::Ready => 2,
            Self::Begun => 3,
            Self::Lost => 4,
        }
    }

    /// Returns the stage of a replica's disk, which has a state or not.
    pub(super) const fn of_disk(byte: Option<u8>, has_state: bool) -> Self {
        match (byte, has_state) {
            // The process ended between the two writes.
            (Some(1), true) => Self::Ready,
            (Some(1), false) => Self::Listed,
            (Some(2), true) => Self::Ready,
            (Some(3), true) => Self::Begun,
            (Some(_), false) => Self::Lost,
            (_, true) => Self::Begun,
            (None, false) => Self::Apart,
        }
    }
}
