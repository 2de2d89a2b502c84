//! The policies, with DDS's names.

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

/// The time for which samples are kept for late readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Samples are not kept.
    #[default]
    Volatile,
    /// As long as the writer exists. A reader can request this, and a topic that keeps samples
    /// longer satisfies it. A writer cannot offer it, because the topic's members keep the samples,
    /// not the writer.
    TransientLocal,
    /// In memory, as long as the topic has a member.
    Transient,
    /// On disk, where samples outlive all members.
    Persistent,
}

/// The scope of the order in which a reader sees the samples of several writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessScope {
    /// One order per instance.
    #[default]
    Instance,
    /// One order for the whole topic.
    Topic,
    /// One order for all topics of a publisher. This is part of DDS's object model profile, and is
    /// refused.
    Group,
}

/// Order across instances and writers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presentation {
    /// The scope of the order.
    pub access_scope: AccessScope,
    /// Whether changes become visible together or not at all. A request for this is refused.
    pub coherent_access: bool,
    /// With [`AccessScope::Topic`], all readers of the topic see the samples of all its writers in
    /// the same order. Other DDS products order only each writer's samples.
    pub ordered_access: bool,
}

/// The maximum time between two samples of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deadline {
    /// The maximum time between two samples.
    #[serde(with = "nanoseconds")]
    pub period: Duration,
}

/// A delay that the application accepts. Tramontane never delays a sample because of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBudget {
    /// The delay.
    #[serde(with = "nanoseconds")]
    pub duration: Duration,
}

/// The writers whose samples of an instance count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Ownership {
    /// The samples of all writers count.
    #[default]
    Shared,
    /// Only the samples of the strongest writer count. This is part of DDS's ownership profile, and
    /// is refused.
    Exclusive,
}

/// The kinds of liveliness: who asserts that a writer is alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LivelinessKind {
    /// The group: a writer is alive as long as its participant is a member of the view.
    #[default]
    Automatic,
    /// The application asserts it for all manual writers of its participant together.
    ManualByParticipant,
    /// The application asserts it for each writer.
    ManualByTopic,
}

/// The detection of a writer's liveliness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveliness {
    /// Who asserts liveliness.
    pub kind: LivelinessKind,
    /// The time after which a silent writer counts as not alive.
    #[serde(with = "nanoseconds")]
    pub lease_duration: Duration,
}

/// A reader's limit on the rate of samples per instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeBasedFilter {
    /// The minimum time between two samples.
    #[serde(with = "nanoseconds")]
    pub minimum_separation: Duration,
}

/// Whether samples may be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReliabilityKind {
    /// A writer that finds no room drops the sample. Readers are notified.
    BestEffort,
    /// A writer that finds no room waits.
    #[default]
    Reliable,
}

/// Whether samples may be lost, and for how long a writer waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reliability {
    /// The kind of reliability.
    pub kind: ReliabilityKind,
    /// Maximum time for which a write waits for room. At a reader that keeps all samples, the
    /// maximum time for which delivery waits for room in the reader.
    #[serde(with = "nanoseconds")]
    pub max_blocking_time: Duration,
}

/// The time for which a sample is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lifespan {
    /// Counted from the source timestamp. The clocks of hosts are assumed to agree.
    #[serde(with = "nanoseconds")]
    pub duration: Duration,
}

/// The rule that decides which of two samples of an instance is the later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DestinationOrder {
    /// The sample that is later in the order of the topic. At the ordered levels, that order is the
    /// same for all readers.
    #[default]
    ByReceptionTimestamp,
    /// The sample with the later source timestamp. A sample that arrives after the application has
    /// received a later one is dropped.
    BySourceTimestamp,
}

/// The number of samples per instance that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum History {
    /// The given number of most recent samples.
    KeepLast(u32),
    /// All samples, up to the resource limits.
    KeepAll,
}

/// The limits on kept samples. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Maximum number of samples of all instances together.
    pub max_samples: Option<u32>,
    /// Maximum number of instances.
    pub max_instances: Option<u32>,
    /// Maximum number of samples per instance.
    pub max_samples_per_instance: Option<u32>,
}

/// Whether a writer that unregisters an instance also disposes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterDataLifecycle {
    /// Whether unregistering an instance disposes of it.
    pub autodispose_unregistered_instances: bool,
}

/// The time for which a reader keeps the remains of instances that are not alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderDataLifecycle {
    /// The time for which the samples of an instance without writers are kept.
    #[serde(with = "nanoseconds")]
    pub autopurge_nowriter_samples_delay: Duration,
    /// The time for which the samples of a disposed instance are kept.
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
