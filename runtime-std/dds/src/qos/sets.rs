//! The policies of a writer, and those of a reader.

use serde::{Deserialize, Serialize};

use super::policies::{
    Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan, Liveliness,
    Ownership, Presentation, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter,
    WriterDataLifecycle,
};
use crate::domain::Level;

/// The policies that a data writer offers. The default is DDS's, except for durability and
/// presentation: see [`WriterQos::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterQos {
    /// How long samples are kept for late readers: as long as the topic's level keeps them, or
    /// less.
    pub durability: Durability,
    /// The order across writers: the one of the topic's level, or a weaker one.
    pub presentation: Presentation,
    /// The longest time between two samples of an instance.
    pub deadline: Deadline,
    /// Compared with the readers' requests. Nothing uses it to wait.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// The detection of its liveliness.
    pub liveliness: Liveliness,
    /// Whether it waits for room.
    pub reliability: Reliability,
    /// How long its samples are valid.
    pub lifespan: Lifespan,
    /// The rule for the later of two samples.
    pub destination_order: DestinationOrder,
    /// Has no effect on the writer: samples stay in its window until all members have them, and
    /// none is replaced there by a later one. The topic decides what is kept for late readers.
    pub history: History,
    /// The most instances; limits of samples are refused, because the topic's window is the limit.
    pub resource_limits: ResourceLimits,
    /// Whether unregistering an instance disposes of it.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// Bytes for readers, in [`PublicationData`](crate::PublicationData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
    /// Has no effect over these fabrics: every value except 0 is refused.
    pub transport_priority: i32,
}

/// The policies that a data reader requests. The default is DDS's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderQos {
    /// The earlier samples that it requests.
    pub durability: Durability,
    /// The order across writers that it requests.
    pub presentation: Presentation,
    /// The longest time between two samples of an instance.
    pub deadline: Deadline,
    /// The delay that it accepts.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// The required detection of writers' liveliness.
    pub liveliness: Liveliness,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// The rule for the later of two samples.
    pub destination_order: DestinationOrder,
    /// How many samples of an instance it keeps.
    pub history: History,
    /// The limits on what it keeps.
    pub resource_limits: ResourceLimits,
    /// The limit on the rate at which it accepts samples.
    pub time_based_filter: TimeBasedFilter,
    /// The time after which it forgets instances that are not alive.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Bytes for writers, in [`SubscriptionData`](crate::SubscriptionData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
}

impl WriterQos {
    /// Returns the best that a writer on a topic of this level can offer: everything that the level
    /// keeps, and its order. If samples are kept, they outlive the writer: an instance that it
    /// unregisters is not disposed of.
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
