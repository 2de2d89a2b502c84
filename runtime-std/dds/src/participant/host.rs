//! The differences between members and external participants that matter to writers and readers.

use std::sync::Arc;

use super::history::LogSource;
use super::shared::ParticipantState;
use super::typed_topic::Topic;
use super::voice::Voice;
use crate::domain::TopicDescription;
use crate::error::DdsError;

/// A participant, seen as the owner of writers and readers. A topic is given by its index and
/// generation.
pub(super) trait Host {
    fn shared(&self) -> &Arc<ParticipantState>;

    /// Returns the description of a topic, as long as it exists.
    fn described<T>(&self, topic: &Topic<T>) -> Result<TopicDescription, DdsError>;

    /// Returns the voice that announces the participant's readers in discovery.
    fn discovery(&self) -> Voice;

    /// Returns the voice that writes in a topic, if the participant may write there.
    fn voice(&self, topic: (usize, u64), described: &TopicDescription) -> Result<Voice, DdsError>;

    /// Ensures that the participant receives the topic's messages, if it may read the topic.
    fn hear(&self, topic: (usize, u64), described: &TopicDescription) -> Result<(), DdsError>;

    /// Returns the source of a logged topic's messages after the first `before`.
    fn log(
        &self,
        topic: usize,
        described: &TopicDescription,
        before: u64,
    ) -> Result<LogSource, DdsError>;
}
