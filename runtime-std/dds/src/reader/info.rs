//! What a reader is told of a sample beside its value.

use tramontane::{Place, ViewId};

use crate::cdr::{Encoding, InstanceHandle};
use crate::participant::PublicationHandle;
use crate::time::Timestamp;
use crate::wire::Origin;

bitflags::bitflags! {
    /// Whether a sample was read before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct SampleStates: u8 {
        /// It was.
        const READ = 1;
        /// It was not.
        const NOT_READ = 2;
    }

    /// Whether an instance was seen before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct ViewStates: u8 {
        /// It was not, or it came alive again since.
        const NEW = 1;
        /// It was.
        const NOT_NEW = 2;
    }

    /// Whether an instance lives.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct InstanceStates: u8 {
        /// It does.
        const ALIVE = 1;
        /// A writer disposed of it.
        const NOT_ALIVE_DISPOSED = 2;
        /// No writer writes it any more.
        const NOT_ALIVE_NO_WRITERS = 4;
    }
}

/// What stands beside a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleInfo {
    /// Whether this reader has read it before: one flag.
    pub sample_state: SampleStates,
    /// Whether this reader has seen the instance before: one flag.
    pub view_state: ViewStates,
    /// Whether the instance lives, as of when the samples were read: one flag.
    pub instance_state: InstanceStates,
    /// How often the instance came alive again after a disposal, up to this sample.
    pub disposed_generation_count: u32,
    /// How often it did after it had no writers, up to this sample.
    pub no_writers_generation_count: u32,
    /// How many samples of the instance follow in what was returned.
    pub sample_rank: u32,
    /// Generations from this sample to the last of its instance that was returned.
    pub generation_rank: u32,
    /// Generations from this sample to the last of its instance.
    pub absolute_generation_rank: u32,
    /// When it was written.
    pub source_timestamp: Timestamp,
    /// When it was handed over here.
    pub reception_timestamp: Timestamp,
    /// Its instance.
    pub instance_handle: InstanceHandle,
    /// Who wrote it.
    pub publication_handle: PublicationHandle,
    /// Its number among those of its writer, from 1.
    pub sequence: u64,
    /// Its number in the topic's order since the topic began: at the ordered levels the same at all
    /// readers. Numbers that are missing were no samples, but what writers say of themselves.
    pub ordinal: u64,
    /// The view that it was delivered in, and its place there.
    pub place: (ViewId, Place),
    /// It was kept for readers that come later, and handed over when this one came.
    pub is_historical: bool,
    /// How its value is encoded.
    pub encoding: Encoding,
    /// Where it comes from, if that is another system.
    pub origin: Option<Origin>,
    /// There is a value; otherwise this tells a change of the instance's state alone.
    pub valid_data: bool,
}

impl SampleInfo {
    /// What is told of an instance's state alone.
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
