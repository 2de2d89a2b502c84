//! The policy sets of writers and readers.

use serde::{Deserialize, Serialize};

use super::policies::{
    Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan, Liveliness,
    Ownership, Presentation, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter,
    WriterDataLifecycle,
};
use crate::domain::Level;

/// The policies that a data writer offers. The defaults are those of DDS, except for durability and
/// presentation: see [`WriterQos::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterQos {
    /// The time for which samples are kept for late readers: as long as the topic's level keeps
    /// them, or less.
    pub durability: Durability,
    /// The order across writers: the order of the topic's level, or a weaker one.
    pub presentation: Presentation,
    /// The maximum time between two samples of an instance.
    pub deadline: Deadline,
    /// The accepted delay. It is compared with the readers' requests, but never delays a sample.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// The detection of the writer's liveliness.
    pub liveliness: Liveliness,
    /// Whether a write waits for room.
    pub reliability: Reliability,
    /// The time for which the writer's samples are valid.
    pub lifespan: Lifespan,
    /// The rule that decides which of two samples is later.
    pub destination_order: DestinationOrder,
    /// Has no effect on the writer: samples stay in its window until all members have them, and
    /// later samples do not replace earlier ones there. The topic's description decides what is
    /// kept for late readers.
    pub history: History,
    /// Maximum number of instances. Limits on samples are refused, because the topic's window is
    /// the limit.
    pub resource_limits: ResourceLimits,
    /// Whether unregistering an instance disposes of it.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// Bytes for readers, in [`PublicationData`](crate::PublicationData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
    /// A priority has no effect on these fabrics, so every value except 0 is refused.
    pub transport_priority: i32,
}

/// The policies that a data reader requests. The defaults are those of DDS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderQos {
    /// The earlier samples that the reader requests.
    pub durability: Durability,
    /// The order across writers that the reader requests.
    pub presentation: Presentation,
    /// The maximum time between two samples of an instance.
    pub deadline: Deadline,
    /// The delay that the reader accepts.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// The required detection of writers' liveliness.
    pub liveliness: Liveliness,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// The rule that decides which of two samples is later.
    pub destination_order: DestinationOrder,
    /// The number of samples per instance that the reader keeps.
    pub history: History,
    /// The limits on the samples that the reader keeps.
    pub resource_limits: ResourceLimits,
    /// The limit on the rate at which the reader accepts samples.
    pub time_based_filter: TimeBasedFilter,
    /// The time after which the reader forgets instances that are not alive.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Bytes for writers, in [`SubscriptionData`](crate::SubscriptionData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
}

impl WriterQos {
    /// Returns the most that a writer on a topic of this level can offer: the durability and order
    /// of the level. If the level keeps samples, they outlive the writer, so an instance that the
    /// writer unregisters is not disposed of.
    #[must_use]
    pub fn of(level: Level) -> Self {
        Self {
            durability: level.durability(),
            presentation: level.presentation(),
            writer_data_lifecycle: WriterDataLifecycle {
                autodispose_unregistered_instances: !level.keeps(),
            },
            ..Self::default()
        }
    }
}
