//! Names of writers and readers, the same at all participants.

use serde::{Deserialize, Serialize};

use crate::qos::{ReaderQos, WriterQos};

/// A data writer of the domain.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct PublicationHandle {
    /// The node of its participant.
    pub participant: u32,
    /// Its number among those of the participant.
    pub writer: u32,
}

/// A data reader of the domain.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct SubscriptionHandle {
    /// The node of its participant.
    pub participant: u32,
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
