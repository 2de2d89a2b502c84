//! Announcements of writers, readers and topics.

use serde::{Deserialize, Serialize};

use crate::cdr::{Encoding, decode, encode};
use crate::domain::TopicDescription;
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};

/// Maximum size, in bytes, of the user data and of the group data.
pub(crate) const USER_DATA_MAX: usize = 128;

/// Maximum size of an announcement in bytes.
pub(crate) const ANNOUNCEMENT_MAX: u32 = 640;

/// The announcement of a reader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReaderAnnouncement {
    /// The topic's index and generation.
    pub(crate) topic: u32,
    pub(crate) generation: u64,
    /// The reader's number among its node's readers.
    pub(crate) reader: u32,
    /// The requested policies; `None` once the reader has been deleted.
    pub(crate) qos: Option<ReaderQos>,
}

/// A message of discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// A reader has been created or deleted.
    Reader(ReaderAnnouncement),
    /// A topic is to be created. `request` is the number of the participant's request.
    Create { request: u64, topic: TopicDescription },
    /// A topic is to be deleted.
    Delete { request: u64, name: String },
    /// The place of a deleted topic is closed.
    Free { generation: u64 },
}

impl Word {
    /// Encodes the message.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, DdsError> {
        encode(self)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, DdsError> {
        decode(bytes, Encoding::NATIVE)
    }
}

/// Encodes a writer's policies, which follow a header that identifies the writer.
pub(crate) fn encode_writer(qos: &WriterQos) -> Result<Vec<u8>, DdsError> {
    encode(qos)
}

/// Decodes a writer's policies.
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
    fn announced_policies_round_trip_within_size_limit() {
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
        let announced =
            Word::Reader(ReaderAnnouncement { topic: 3, generation: 7, reader: 4, qos: Some(qos) });
        let encoded = announced.encode().expect("plain");
        assert_eq!(Word::decode(&encoded).expect("plain"), announced);
        assert!(encoded.len() <= ANNOUNCEMENT_MAX as usize, "{}", encoded.len());
    }

    #[test]
    fn topic_messages_round_trip_or_are_refused() {
        let topic = TopicDescription::new("Tracks", "Track").level(Level::Volatile);
        let topic = topic.publishers([1, 2]).sample_max(77);
        let words = [
            Word::Create { request: 3, topic },
            Word::Delete { request: u64::MAX, name: "Tracks".into() },
            Word::Free { generation: 9 },
        ];
        for word in words {
            let encoded = word.encode().expect("plain");
            assert_eq!(Word::decode(&encoded).expect("plain"), word);
            Word::decode(encoded.get(..encoded.len() - 1).expect("not empty"))
                .expect_err("cut short");
        }
        Word::decode(&[9, 0, 0, 0]).expect_err("no such word");
    }
}
