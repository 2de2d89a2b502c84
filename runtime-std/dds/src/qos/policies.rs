//! The policies, by the names that DDS gives them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::{INFINITE, nanoseconds};

/// The policies, for statuses that name one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "each is the policy of that name")]
pub enum PolicyId {
    Durability,
    Presentation,
    Deadline,
    LatencyBudget,
    Ownership,
    OwnershipStrength,
    Liveliness,
    TimeBasedFilter,
    Partition,
    Reliability,
    TransportPriority,
    Lifespan,
    DestinationOrder,
    History,
    ResourceLimits,
    EntityFactory,
    WriterDataLifecycle,
    ReaderDataLifecycle,
    UserData,
    TopicData,
    GroupData,
    DurabilityService,
}

/// What is kept of samples for readers that come later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Nothing.
    #[default]
    Volatile,
    /// As long as the writer lives. It can be asked for, and a topic that keeps more satisfies it;
    /// it cannot be offered, because here the topic's members keep samples and not the writer.
    TransientLocal,
    /// As long as a member of the topic lives, in memory.
    Transient,
    /// On disk.
    Persistent,
}

/// In which order a reader sees what several writers write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessScope {
    /// An order for each instance.
    #[default]
    Instance,
    /// One order for the whole topic.
    Topic,
    /// One order for all topics of a publisher: belongs to DDS's object model profile, and is
    /// refused.
    Group,
}

/// Order across instances and writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presentation {
    /// How far the order reaches.
    pub access_scope: AccessScope,
    /// Changes that appear together or not at all: refused.
    pub coherent_access: bool,
    /// With [`AccessScope::Topic`]: all readers of the topic see the samples of all its writers in
    /// one and the same order. Products of DDS order each writer's samples alone.
    pub ordered_access: bool,
}

/// The longest time between two samples of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The period.
    #[serde(with = "nanoseconds")]
    pub period: Duration,
}

/// A delay that the application can bear. Nothing here ever waits for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBudget {
    /// The delay.
    #[serde(with = "nanoseconds")]
    pub duration: Duration,
}

/// Whose samples of an instance count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ownership {
    /// Everyone's.
    #[default]
    Shared,
    /// The strongest writer's: belongs to DDS's ownership profile, and is refused.
    Exclusive,
}

/// Who says that a writer lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LivelinessKind {
    /// The group: a writer lives as long as its participant is a member of the view.
    #[default]
    Automatic,
    /// The application, for all manual writers of its participant together.
    ManualByParticipant,
    /// The application, for each writer.
    ManualByTopic,
}

/// How a writer's life is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveliness {
    /// By whom.
    pub kind: LivelinessKind,
    /// A writer that says nothing for so long counts as not alive.
    #[serde(with = "nanoseconds")]
    pub lease_duration: Duration,
}

/// At most one sample of an instance in so much time, at a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBasedFilter {
    /// The least time between two of them.
    #[serde(with = "nanoseconds")]
    pub minimum_separation: Duration,
}

/// Whether samples may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReliabilityKind {
    /// A writer that finds no room drops the sample. Readers are told.
    BestEffort,
    /// A writer that finds no room waits.
    #[default]
    Reliable,
}

/// Whether samples may be lost, and how long a writer waits so that they are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reliability {
    /// Whether.
    pub kind: ReliabilityKind,
    /// How long a write waits for room at most. At a reader that keeps all: how long delivery waits
    /// for room in it.
    #[serde(with = "nanoseconds")]
    pub max_blocking_time: Duration,
}

/// How long a sample is of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifespan {
    /// From its source timestamp on. Clocks of hosts are taken to agree.
    #[serde(with = "nanoseconds")]
    pub duration: Duration,
}

/// Which of two samples of an instance is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DestinationOrder {
    /// The one that comes later in the order of the topic; at the ordered levels that is the same
    /// one at all readers.
    #[default]
    ByReceptionTimestamp,
    /// The one with the later source timestamp. One that comes after a later one was given to the
    /// application is dropped.
    BySourceTimestamp,
}

/// How many samples of an instance are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// The last so many.
    KeepLast(u32),
    /// All, up to the resource limits.
    KeepAll,
}

/// The most that is kept. Nothing stands for no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Samples of all instances together.
    pub max_samples: Option<u32>,
    /// Instances.
    pub max_instances: Option<u32>,
    /// Samples of an instance.
    pub max_samples_per_instance: Option<u32>,
}

/// Whether a writer that unregisters an instance disposes of it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterDataLifecycle {
    /// Whether.
    pub autodispose_unregistered_instances: bool,
}

/// After how long a reader forgets what is left of instances that are not alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderDataLifecycle {
    /// Of instances without a writer.
    #[serde(with = "nanoseconds")]
    pub autopurge_nowriter_samples_delay: Duration,
    /// Of instances that were disposed of.
    #[serde(with = "nanoseconds")]
    pub autopurge_disposed_samples_delay: Duration,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { period: INFINITE }
    }
}

impl Default for Liveliness {
    fn default() -> Self {
        Self { kind: LivelinessKind::Automatic, lease_duration: INFINITE }
    }
}

impl Default for Reliability {
    fn default() -> Self {
        Self { kind: ReliabilityKind::Reliable, max_blocking_time: Duration::from_millis(100) }
    }
}

impl Default for Lifespan {
    fn default() -> Self {
        Self { duration: INFINITE }
    }
}

impl Default for History {
    fn default() -> Self {
        Self::KeepLast(1)
    }
}

impl Default for WriterDataLifecycle {
    fn default() -> Self {
        Self { autodispose_unregistered_instances: true }
    }
}

impl Default for ReaderDataLifecycle {
    fn default() -> Self {
        Self {
            autopurge_nowriter_samples_delay: INFINITE,
            autopurge_disposed_samples_delay: INFINITE,
        }
    }
}
