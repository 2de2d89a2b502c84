//! The information about a sample, apart from its value.

use tramontane::{Place, ViewId};

use crate::cdr::{Encoding, InstanceHandle};
use crate::participant::PublicationHandle;
use crate::time::Timestamp;
use crate::wire::Origin;

bitflags::bitflags! {
    /// Whether a sample has been read before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SampleStates: u8 {
        /// Read before.
        const READ = 1;
        /// The sample has not been read before.
        const NOT_READ = 2;
    }

    /// Whether an instance has been seen before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ViewStates: u8 {
        /// The instance has not been seen before, or has become alive again since.
        const NEW = 1;
        /// Seen before.
        const NOT_NEW = 2;
    }

    /// Whether an instance is alive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct InstanceStates: u8 {
        /// The instance is alive.
        const ALIVE = 1;
        /// A writer has disposed of the instance.
        const NOT_ALIVE_DISPOSED = 2;
        /// The instance has no writer left.
        const NOT_ALIVE_NO_WRITERS = 4;
    }
}

/// The information that accompanies a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether this reader has read the sample before (one flag).
    pub sample_state: SampleStates,
    /// Whether this reader has seen the instance before (one flag).
    pub view_state: ViewStates,
    /// Whether the instance was alive when the samples were read (one flag).
    pub instance_state: InstanceStates,
    /// Number of times that the instance came alive again after a disposal, up to this sample.
    pub disposed_generation_count: u32,
    /// Number of times that the instance came alive again after it had no writers, up to this
    /// sample.
    pub no_writers_generation_count: u32,
    /// Number of samples of the same instance that follow in the same result.
    pub sample_rank: u32,
    /// Number of generations from this sample to the last sample of its instance in the same
    /// result.
    pub generation_rank: u32,
    /// Number of generations from this sample to the latest sample of its instance.
    pub absolute_generation_rank: u32,
    /// The time at which the sample was written.
    pub source_timestamp: Timestamp,
    /// The time at which the sample was delivered to this participant.
    pub reception_timestamp: Timestamp,
    /// The sample's instance.
    pub instance_handle: InstanceHandle,
    /// The sample's writer.
    pub publication_handle: PublicationHandle,
    /// The sample's number among its writer's samples, counted from 1.
    pub sequence: u64,
    /// The sample's number in the topic's order since the topic began; at the ordered levels, the
    /// number is the same for all readers. Missing numbers belong to writers' own messages, not to
    /// samples.
    pub ordinal: u64,
    /// The view in which the sample was delivered, and its position in that view.
    pub place: (ViewId, Place),
    /// Whether the sample was kept for late readers and delivered when this reader was created.
    pub is_historical: bool,
    /// The encoding of the sample's value.
    pub encoding: Encoding,
    /// The sample's origin, if it came from another system.
    pub origin: Option<Origin>,
    /// Whether there is a value. If not, the entry only reports a change of the instance's state.
    pub valid_data: bool,
}

impl SampleInfo {
    /// Returns the info of an entry that only reports an instance's state.
    pub(crate) fn of_state(
        instance_handle: InstanceHandle,
        publication_handle: PublicationHandle,
        now: Timestamp,
    ) -> Self {
        Self {
            sample_state: SampleStates::NOT_READ,
            view_state: ViewStates::NEW,
            instance_state: InstanceStates::ALIVE,
            disposed_generation_count: 0,
            no_writers_generation_count: 0,
            sample_rank: 0,
            generation_rank: 0,
            absolute_generation_rank: 0,
            source_timestamp: now,
            reception_timestamp: now,
            instance_handle,
            publication_handle,
            sequence: 0,
            ordinal: 0,
            place: (ViewId(0), Place(0)),
            is_historical: false,
            encoding: Encoding::NATIVE,
            origin: None,
            valid_data: false,
        }
    }
}
