//! The RTPS end of a gateway: samples as bytes of CDR, whatever their type.

use std::convert::Infallible;
use std::time::Duration;

use rustdds::bytes::Bytes;
use rustdds::no_key::{
    DataWriter, Decode, DefaultDecoder, DeserializerAdapter, SerializerAdapter, SimpleDataReader,
};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::rpc::SampleIdentity;
use rustdds::{
    DomainParticipant, GUID, QosPolicies, QosPolicyBuilder, RepresentationIdentifier, Topic,
    TopicKind, WriteOptionsBuilder,
};

use super::ledger::{FromGroup, FromRtps};
use crate::error::DdsError;
use crate::time::Timestamp;
use crate::wire::Origin;

/// Samples that a writer keeps for readers that are behind.
const DEPTH: i32 = 4_096;

/// The GUID under which gateways say which number of the group's order a sample has. No writer has
/// it: its prefix names no vendor.
const ORDER: [u8; 16] = *b"tramontane-order";

/// The CDR of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raw(pub(super) Vec<u8>);

/// Takes bytes as they are.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsBytes;

impl DeserializerAdapter<Raw> for AsBytes {
    type Error = Infallible;
    type Decoded = Raw;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        // What goes out again must be as it came: one encoding.
        &[RepresentationIdentifier::CDR_LE]
    }

    fn transform_decoded(decoded: Raw) -> Raw {
        decoded
    }
}

impl DefaultDecoder<Raw> for AsBytes {
    type Decoder = Self;
    const DECODER: Self = Self;
}

impl<'de> Decode<'de, Raw> for AsBytes {
    type Error = Infallible;

    fn decode_bytes(
        self,
        bytes: &'de [u8],
        _: RepresentationIdentifier,
    ) -> Result<Raw, Infallible> {
        Ok(Raw(bytes.to_vec()))
    }
}

impl SerializerAdapter<Raw> for AsBytes {
    type Error = Infallible;

    fn output_encoding() -> RepresentationIdentifier {
        RepresentationIdentifier::CDR_LE
    }

    fn to_bytes(value: &Raw) -> Result<Bytes, Infallible> {
        Ok(Bytes::copy_from_slice(&value.0))
    }
}

/// What came on an RTPS topic.
#[derive(Debug)]
pub(super) enum Heard {
    /// A sample of a writer that is no gateway.
    Sample(FromRtps),
    /// A gateway wrote the sample of that number of the group's order.
    Left(u64),
}

/// Both ends of a topic on RTPS.
pub(super) struct RtpsTopic {
    readers: Vec<SimpleDataReader<Raw, AsBytes>>,
    writer: DataWriter<Raw, AsBytes>,
}

impl RtpsTopic {
    /// Reads one topic and writes another, or the same.
    pub(super) fn open(
        participant: &DomainParticipant,
        (reads, writes): (&str, &str),
        type_name: &str,
    ) -> Result<Self, DdsError> {
        let qos = qos();
        let topic = |name: &str| {
            participant
                .create_topic(name.to_owned(), type_name.to_owned(), &qos, TopicKind::NoKey)
                .map_err(cannot)
        };
        let subscriber = participant.create_subscriber(&qos).map_err(cannot)?;
        let reader = |topic: &Topic| {
            subscriber.create_simple_datareader_no_key::<Raw, AsBytes>(topic, None).map_err(cannot)
        };
        let (own_in, own_out) = (topic(reads)?, topic(writes)?);
        let mut readers = vec![reader(&own_in)?];
        if reads != writes {
            // What another gateway writes there.
            readers.push(reader(&own_out)?);
        }
        let publisher = participant.create_publisher(&qos).map_err(cannot)?;
        let writer = publisher.create_datawriter_no_key::<Raw, AsBytes>(&own_out, None);
        Ok(Self { readers, writer: writer.map_err(cannot)? })
    }

    /// Has a waker called when something may have come.
    pub(super) fn wake(&self, waker: &std::task::Waker) {
        for reader in &self.readers {
            reader.drain_read_notifications();
            reader.set_waker(Some(waker.clone()));
        }
    }

    /// The next that came, if anything has.
    pub(super) fn take(&self) -> Option<Heard> {
        for (at, reader) in self.readers.iter().enumerate() {
            loop {
                let change = match reader.try_take_one() {
                    Ok(Some(change)) => change,
                    Ok(None) => break,
                    Err(error) => {
                        tracing::warn!(%error, "a sample from RTPS cannot be read, and is left out");
                        continue;
                    }
                };
                let related = change.write_options.related_sample_identity();
                if let Some(identity) = related.filter(|own| own.writer_guid == order_guid()) {
                    let ordinal = i64::from(identity.sequence_number);
                    return Some(Heard::Left(u64::try_from(ordinal).unwrap_or(0)));
                }
                if at > 0 {
                    // A stranger on the topic that gateways write.
                    continue;
                }
                let sequence = i64::from(change.sequence_number);
                let origin = Origin {
                    writer: change.writer_guid.to_bytes(),
                    sequence: u64::try_from(sequence).unwrap_or(0),
                };
                let source = change.write_options.source_timestamp().map(|at| at.to_ticks());
                let source = source.map(timestamp_of_ticks);
                return Some(Heard::Sample(FromRtps { origin, source, cdr: change.sample.0 }));
            }
        }
        None
    }

    /// Writes a sample of the group's order.
    pub(super) fn write(&self, sample: &FromGroup) -> Result<(), DdsError> {
        let number = i64::try_from(sample.ordinal).unwrap_or(i64::MAX);
        let identity = SampleIdentity { writer_guid: order_guid(), sequence_number: number.into() };
        let options = WriteOptionsBuilder::new().related_sample_identity(identity).build();
        self.writer
            .write_with_options(Raw(sample.cdr.clone()), options)
            .map(drop)
            .map_err(|error| DdsError::Rtps(error.to_string()))
    }
}

fn order_guid() -> GUID {
    GUID::from_bytes(ORDER)
}

/// RTPS counts seconds in units of 2^-32.
fn timestamp_of_ticks(ticks: u64) -> Timestamp {
    let nanoseconds = (u128::from(ticks) * 1_000_000_000) >> 32;
    Timestamp(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

fn qos() -> QosPolicies {
    QosPolicyBuilder::new()
        .reliability(Reliability::Reliable {
            max_blocking_time: rustdds::Duration::from_std(Duration::from_secs(1)),
        })
        .durability(Durability::Volatile)
        .history(History::KeepLast { depth: DEPTH })
        .build()
}

fn cannot(error: impl std::fmt::Display) -> DdsError {
    DdsError::Rtps(error.to_string())
}
