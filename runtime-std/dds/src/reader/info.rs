//! The information about a sample besides its value.

use tramontane::{Place, ViewId};

use crate::cdr::{Encoding, InstanceHandle};
use crate::participant::PublicationHandle;
use crate::time::Timestamp;
use crate::wire::Origin;

bitflags::bitflags! {
    /// Whether a sample was read before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SampleStates: u8 {
        /// Read before.
        const READ = 1;
        /// Not read before.
        const NOT_READ = 2;
    }

    /// Whether an instance was seen before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ViewStates: u8 {
        /// Not seen before, or alive again since.
        const NEW = 1;
        /// Seen before.
        const NOT_NEW = 2;
    }

    /// Whether an instance is alive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct InstanceStates: u8 {
        /// The instance is alive.
        const ALIVE = 1;
        /// A writer disposed of it.
        const NOT_ALIVE_DISPOSED = 2;
        /// The instance has no writer left.
        const NOT_ALIVE_NO_WRITERS = 4;
    }
}

/// The information that accompanies a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether this reader has read it before: one flag.
    pub sample_state: SampleStates,
    /// Whether this reader has seen the instance before: one flag.
    pub view_state: ViewStates,
    /// Whether the instance was alive when the samples were read: one flag.
    pub instance_state: InstanceStates,
    /// How often the instance came alive again after a disposal, up to this sample.
    pub disposed_generation_count: u32,
    /// How often the instance came alive again after it had no writers, up to this sample.
    pub no_writers_generation_count: u32,
    /// How many samples of the instance follow in the same result.
    pub sample_rank: u32,
    /// Generations from this sample to the last of its instance in the same result.
    pub generation_rank: u32,
    /// Generations from this sample to the last of its instance.
    pub absolute_generation_rank: u32,
    /// The time of writing.
    pub source_timestamp: Timestamp,
    /// The time at which it was handed over here.
    pub reception_timestamp: Timestamp,
    /// The sample's instance.
    pub instance_handle: InstanceHandle,
    /// The sample's writer.
    pub publication_handle: PublicationHandle,
    /// The sample's number among those of its writer, from 1.
    pub sequence: u64,
    /// The sample's number in the topic's order since the topic began; at the ordered levels it is
    /// the same for all readers. Missing numbers belong to writers' own messages, not to samples.
    pub ordinal: u64,
    /// The view in which it was delivered, and its position there.
    pub place: (ViewId, Place),
    /// Whether it was kept for late readers, and handed over when this one came.
    pub is_historical: bool,
    /// The encoding of its value.
    pub encoding: Encoding,
    /// The sample's origin, if that is another system.
    pub origin: Option<Origin>,
    /// Whether there is a value; otherwise this reports only a change of the instance's state.
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
