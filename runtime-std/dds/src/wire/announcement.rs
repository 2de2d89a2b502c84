//! What writers and readers say of themselves.

use serde::{Deserialize, Serialize};

use crate::cdr::{Encoding, decode, encode};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};

/// The most bytes of user data, and of group data.
pub(crate) const USER_DATA_MAX: usize = 128;

/// The most bytes of a message that announces.
pub(crate) const ANNOUNCEMENT_MAX: u32 = 640;

/// A reader, as its participant tells the domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReaderAnnouncement {
    /// The topic's place in the domain's description.
    pub(crate) topic: u32,
    /// The reader's number among those of its node.
    pub(crate) reader: u32,
    /// What it asks for; nothing once it is deleted.
    pub(crate) qos: Option<ReaderQos>,
}

impl ReaderAnnouncement {
    pub(crate) fn encode(&self) -> Result<Vec<u8>, DdsError> {
        encode(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DdsError> {
        decode(bytes, Encoding::NATIVE)
    }
}

/// A writer's policies, behind a header that says whose they are.
pub(crate) fn encode_writer(qos: &WriterQos) -> Result<Vec<u8>, DdsError> {
    encode(qos)
}

/// The same back.
pub(crate) fn decode_writer(bytes: &[u8], encoding: Encoding) -> Result<WriterQos, DdsError> {
    decode(bytes, encoding)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::Level;
    use crate::qos::{History, Liveliness, LivelinessKind, ResourceLimits};
    use crate::wire::HEADER_BYTES;

    fn limits() -> ResourceLimits {
        ResourceLimits {
            max_samples: Some(7),
            max_instances: None,
            max_samples_per_instance: Some(2),
        }
    }

    #[test]
    fn policies_arrive_as_they_were_announced_and_fit() {
        let qos = WriterQos {
            liveliness: Liveliness {
                kind: LivelinessKind::ManualByTopic,
                lease_duration: Duration::from_millis(5),
            },
            history: History::KeepLast(9),
            resource_limits: limits(),
            user_data: vec![1; USER_DATA_MAX],
            ..WriterQos::of(Level::Volatile)
        };
        let encoded = encode_writer(&qos).expect("plain");
        assert_eq!(decode_writer(&encoded, Encoding::NATIVE).expect("plain"), qos);
        assert!(encoded.len() + HEADER_BYTES <= ANNOUNCEMENT_MAX as usize, "{}", encoded.len());

        let qos = ReaderQos {
            history: History::KeepAll,
            resource_limits: limits(),
            user_data: vec![1; USER_DATA_MAX],
            ..ReaderQos::default()
        };
        let announced = ReaderAnnouncement { topic: 3, reader: 4, qos: Some(qos) };
        let encoded = announced.encode().expect("plain");
        assert_eq!(ReaderAnnouncement::decode(&encoded).expect("plain"), announced);
        assert!(encoded.len() <= ANNOUNCEMENT_MAX as usize, "{}", encoded.len());
    }
}
