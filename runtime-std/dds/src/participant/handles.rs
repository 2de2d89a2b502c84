//! Names of writers and readers. They are the same on all participants.

use serde::{Deserialize, Serialize};
use tramontane::{ClientId, Message};

use crate::qos::{ReaderQos, WriterQos};

/// A participant of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ParticipantId {
    /// A member of the domain's group, identified by its node.
    Node(u32),
    /// An external participant, identified by its client id.
    Client(ClientId),
}

impl ParticipantId {
    /// Returns the author of a message.
    #[inline]
    pub(crate) fn of(message: &Message<'_>) -> Self {
        message.client.map_or(Self::Node(message.sender.get()), Self::Client)
    }
}

impl Default for ParticipantId {
    fn default() -> Self {
        Self::Node(0)
    }
}

impl std::fmt::Display for ParticipantId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Node(node) => write!(out, "{node}"),
            Self::Client(client) => write!(out, "{client}"),
        }
    }
}

/// A data writer of the domain.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PublicationHandle {
    /// The participant.
    pub participant: ParticipantId,
    /// The writer's number among the participant's writers.
    pub writer: u32,
}

/// A data reader of the domain.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SubscriptionHandle {
    /// The participant.
    pub participant: ParticipantId,
    /// The reader's number among the participant's readers.
    pub reader: u32,
}

/// The known data of a matched writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationData {
    /// The writer's handle.
    pub handle: PublicationHandle,
    /// The offered policies, including user data.
    pub qos: WriterQos,
}

/// The known data of a matched reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionData {
    /// The reader's handle.
    pub handle: SubscriptionHandle,
    /// The requested policies, including user data.
    pub qos: ReaderQos,
}

impl std::fmt::Display for PublicationHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.participant, self.writer)
    }
}
