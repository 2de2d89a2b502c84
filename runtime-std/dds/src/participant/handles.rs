//! Names of writers and readers, the same at all participants.

use serde::{Deserialize, Serialize};
use tramontane::{ClientId, Message};

use crate::qos::{ReaderQos, WriterQos};

/// A participant of the domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ParticipantId {
    /// A member of the domain's group: that node.
    Node(u32),
    /// One outside: that client.
    Client(ClientId),
}

impl ParticipantId {
    /// Whose message that is.
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
    /// Its participant.
    pub participant: ParticipantId,
    /// Its number among those of the participant.
    pub writer: u32,
}

/// A data reader of the domain.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SubscriptionHandle {
    /// Its participant.
    pub participant: ParticipantId,
    /// Its number among those of the participant.
    pub reader: u32,
}

/// What is known of a matched writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationData {
    /// Which.
    pub handle: PublicationHandle,
    /// What it offers, its user data included.
    pub qos: WriterQos,
}

/// What is known of a matched reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionData {
    /// Which.
    pub handle: SubscriptionHandle,
    /// What it asks for, its user data included.
    pub qos: ReaderQos,
}

impl std::fmt::Display for PublicationHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}.{}", self.participant, self.writer)
    }
}
