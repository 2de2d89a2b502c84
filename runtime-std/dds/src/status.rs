//! Statuses: records of what has happened to an entity. Reading a status resets its changes, as in
//! DDS.

use crate::cdr::InstanceHandle;
use crate::participant::PublicationHandle;
use crate::qos::PolicyId;

bitflags::bitflags! {
    /// Kinds of statuses.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct StatusMask: u32 {
        /// Samples can be taken.
        const DATA_AVAILABLE = 1 << 0;
        /// Samples were lost.
        const SAMPLE_LOST = 1 << 1;
        /// Arriving samples found no room.
        const SAMPLE_REJECTED = 1 << 2;
        /// A reader's deadline was missed.
        const REQUESTED_DEADLINE_MISSED = 1 << 3;
        /// A writer offers less than a reader requests.
        const REQUESTED_INCOMPATIBLE_QOS = 1 << 4;
        /// A writer appeared or disappeared.
        const SUBSCRIPTION_MATCHED = 1 << 5;
        /// A writer became alive, or stopped being alive.
        const LIVELINESS_CHANGED = 1 << 6;
        /// A writer's deadline was missed.
        const OFFERED_DEADLINE_MISSED = 1 << 7;
        /// A reader requests more than a writer offers.
        const OFFERED_INCOMPATIBLE_QOS = 1 << 8;
        /// A reader appeared or disappeared.
        const PUBLICATION_MATCHED = 1 << 9;
        /// A writer did not assert its liveliness in time.
        const LIVELINESS_LOST = 1 << 10;
    }
}

/// Status of the readers that match a writer, or of the writers that match a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MatchedStatus {
    /// Total number since the beginning.
    pub total_count: u32,
    /// Change since the status was last read.
    pub total_count_change: u32,
    /// Current number of matching entities.
    pub current_count: u32,
    /// Change since the status was last read.
    pub current_count_change: i32,
}

/// Status of the readers or writers that do not match an entity, only because of their policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncompatibleQosStatus {
    /// Total since the beginning.
    pub total_count: u32,
    /// Change since the status was last read.
    pub total_count_change: u32,
    /// The first policy that was incompatible for the most recent such entity.
    pub last_policy: Option<PolicyId>,
    /// Number of times that each policy was incompatible.
    pub policies: Vec<(PolicyId, u32)>,
}

/// Missed deadlines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadlineMissedStatus {
    /// Total since the beginning.
    pub total_count: u32,
    /// Change since the status was last read.
    pub total_count_change: u32,
    /// The instance of the most recent missed deadline.
    pub last_instance: InstanceHandle,
}

/// Status of the samples that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleLostStatus {
    /// Total since the beginning.
    pub total_count: u64,
    /// Change since the status was last read.
    pub total_count_change: u64,
    /// The first number of a changed history, if the history has changed since the status was last
    /// read. This happens if all members of the topic are lost at once. Samples with this number or
    /// a later one that were delivered before are not part of the new history, whose samples
    /// follow. The old samples do not count as lost.
    pub history_changed_from: Option<u64>,
}

/// The limit that leaves no room for a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedReason {
    /// `max_instances`.
    Instances,
    /// `max_samples`.
    Samples,
    /// The limit `max_samples_per_instance`.
    SamplesPerInstance,
}

/// Status of the samples that found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleRejectedStatus {
    /// Total since the beginning.
    pub total_count: u32,
    /// Change since the status was last read.
    pub total_count_change: u32,
    /// The reason for the last rejection.
    pub last_reason: Option<RejectedReason>,
    /// The instance of the last rejected sample.
    pub last_instance: InstanceHandle,
}

/// Status of the liveliness of matched writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessChangedStatus {
    /// Number of matched writers that are alive.
    pub alive_count: u32,
    /// Number of matched writers that are not alive.
    pub not_alive_count: u32,
    /// Change since the status was last read.
    pub alive_count_change: i32,
    /// Change since the status was last read.
    pub not_alive_count_change: i32,
    /// The last writer whose liveliness changed.
    pub last_publication: Option<PublicationHandle>,
}

/// Number of times that a writer did not assert its liveliness in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LivelinessLostStatus {
    /// Total since the beginning.
    pub total_count: u32,
    /// Change since the status was last read.
    pub total_count_change: u32,
}

impl MatchedStatus {
    pub(crate) fn add(&mut self) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.current_count += 1;
        self.current_count_change += 1;
    }

    pub(crate) fn remove(&mut self) {
        self.current_count = self.current_count.saturating_sub(1);
        self.current_count_change -= 1;
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        (self.total_count_change, self.current_count_change) = (0, 0);
        taken
    }
}

impl IncompatibleQosStatus {
    pub(crate) fn add(&mut self, differing: &[PolicyId]) {
        self.total_count += 1;
        self.total_count_change += 1;
        self.last_policy = differing.first().copied();
        for policy in differing {
            match self.policies.iter_mut().find(|(known, _)| known == policy) {
                Some((_, count)) => *count += 1,
                None => self.policies.push((*policy, 1)),
            }
        }
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = self.clone();
        self.total_count_change = 0;
        taken
    }
}

impl DeadlineMissedStatus {
    pub(crate) fn add(&mut self, instance: InstanceHandle, count: u32) {
        self.total_count = self.total_count.saturating_add(count);
        self.total_count_change = self.total_count_change.saturating_add(count);
        self.last_instance = instance;
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        self.total_count_change = 0;
        taken
    }
}

impl SampleLostStatus {
    pub(crate) fn add(&mut self, count: u64) {
        self.total_count = self.total_count.saturating_add(count);
        self.total_count_change = self.total_count_change.saturating_add(count);
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        (self.total_count_change, self.history_changed_from) = (0, None);
        taken
    }
}

impl SampleRejectedStatus {
    pub(crate) fn add(&mut self, reason: RejectedReason, instance: InstanceHandle) {
        self.total_count += 1;
        self.total_count_change += 1;
        (self.last_reason, self.last_instance) = (Some(reason), instance);
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        self.total_count_change = 0;
        taken
    }
}

impl LivelinessChangedStatus {
    /// Records that a matched writer is alive (again).
    pub(crate) fn lives(&mut self, publication: PublicationHandle, was_known: bool) {
        self.alive_count += 1;
        self.alive_count_change += 1;
        if was_known {
            self.not_alive_count = self.not_alive_count.saturating_sub(1);
            self.not_alive_count_change -= 1;
        }
        self.last_publication = Some(publication);
    }

    /// Records that a matched writer is not alive, but may come alive again.
    pub(crate) fn sleeps(&mut self, publication: PublicationHandle) {
        self.alive_count = self.alive_count.saturating_sub(1);
        self.alive_count_change -= 1;
        self.not_alive_count += 1;
        self.not_alive_count_change += 1;
        self.last_publication = Some(publication);
    }

    /// Records that a writer no longer matches.
    pub(crate) fn forget(&mut self, publication: PublicationHandle, was_alive: bool) {
        if was_alive {
            self.alive_count = self.alive_count.saturating_sub(1);
            self.alive_count_change -= 1;
        } else {
            self.not_alive_count = self.not_alive_count.saturating_sub(1);
            self.not_alive_count_change -= 1;
        }
        self.last_publication = Some(publication);
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        (self.alive_count_change, self.not_alive_count_change) = (0, 0);
        taken
    }
}

impl LivelinessLostStatus {
    pub(crate) fn add(&mut self) {
        self.total_count += 1;
        self.total_count_change += 1;
    }

    pub(crate) fn take(&mut self) -> Self {
        let taken = *self;
        self.total_count_change = 0;
        taken
    }
}
