//! The policies of a writer and of a reader, together.

use serde::{Deserialize, Serialize};

use super::policies::{
    Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan, Liveliness,
    Ownership, Presentation, ReaderDataLifecycle, Reliability, ResourceLimits, TimeBasedFilter,
    WriterDataLifecycle,
};
use crate::domain::Level;

/// What a data writer offers. The default is DDS's, but for durability and presentation: see
/// [`WriterQos::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterQos {
    /// What is kept for readers that come later: what the topic's level keeps, or less.
    pub durability: Durability,
    /// The order across writers: what the topic's level gives, or less.
    pub presentation: Presentation,
    /// The longest time between two samples of an instance.
    pub deadline: Deadline,
    /// Compared with what readers ask for. Nothing waits for it.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// How its life is noticed.
    pub liveliness: Liveliness,
    /// Whether it waits for room.
    pub reliability: Reliability,
    /// How long its samples are of use.
    pub lifespan: Lifespan,
    /// Which sample is the later one.
    pub destination_order: DestinationOrder,
    /// Samples stay in the writer's window until all members have them, whatever this says: no
    /// sample is replaced there by a later one. What is kept for late readers says the topic.
    pub history: History,
    /// The most instances; limits of samples are refused, because the topic's window is the limit.
    pub resource_limits: ResourceLimits,
    /// Whether to unregister disposes.
    pub writer_data_lifecycle: WriterDataLifecycle,
    /// Bytes for readers, in [`PublicationData`](crate::PublicationData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
    /// Has no effect over these fabrics: anything but 0 is refused.
    pub transport_priority: i32,
}

/// What a data reader asks for. The default is DDS's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaderQos {
    /// Which samples from before its time it wants.
    pub durability: Durability,
    /// The order across writers that it wants.
    pub presentation: Presentation,
    /// The longest time between two samples of an instance.
    pub deadline: Deadline,
    /// The delay that it can bear.
    pub latency_budget: LatencyBudget,
    /// Shared; exclusive ownership is refused.
    pub ownership: Ownership,
    /// How writers' lives are to be noticed.
    pub liveliness: Liveliness,
    /// Whether samples may be lost.
    pub reliability: Reliability,
    /// Which sample is the later one.
    pub destination_order: DestinationOrder,
    /// How many samples of an instance it keeps.
    pub history: History,
    /// The most that it keeps.
    pub resource_limits: ResourceLimits,
    /// How often it takes samples.
    pub time_based_filter: TimeBasedFilter,
    /// When it forgets instances that are not alive.
    pub reader_data_lifecycle: ReaderDataLifecycle,
    /// Bytes for writers, in [`SubscriptionData`](crate::SubscriptionData).
    #[serde(with = "serde_bytes")]
    pub user_data: Vec<u8>,
}

impl WriterQos {
    /// What a writer on a topic of that level can offer at best: all that the level keeps, and its
    /// order. Where samples are kept, they outlive the writer: an instance that it unregisters is
    /// not disposed of.
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
