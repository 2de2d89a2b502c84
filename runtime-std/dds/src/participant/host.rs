//! What a member and a participant outside do differently for their writers and readers.

use std::sync::Arc;

use super::domain_participant::Topic;
use super::history::LogSource;
use super::shared::Shared;
use super::voice::Voice;
use crate::domain::TopicDescription;
use crate::error::DdsError;

/// A participant, as its writers and readers are made. A topic has an index and a generation.
pub(super) trait Host {
    fn shared(&self) -> &Arc<Shared>;

    /// What a topic is, as long as it is there.
    fn described<T>(&self, topic: &Topic<T>) -> Result<TopicDescription, DdsError>;

    /// How it says in discovery what it reads.
    fn discovery(&self) -> Voice;

    /// How it writes in a topic, if it may.
    fn voice(&self, topic: (usize, u64), described: &TopicDescription) -> Result<Voice, DdsError>;

    /// Sees to it that what is written in a topic comes here, if it may read it.
    fn hear(&self, topic: (usize, u64), described: &TopicDescription) -> Result<(), DdsError>;

    /// What was written before in a topic that is logged, behind so many messages.
    fn log(
        &self,
        topic: usize,
        described: &TopicDescription,
        before: u64,
    ) -> Result<LogSource, DdsError>;
}
