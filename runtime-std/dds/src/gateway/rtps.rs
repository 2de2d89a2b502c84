//! The RTPS side of a gateway: samples of any type, as bytes of CDR.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustdds::bytes::Bytes;
use rustdds::dds::result::{ReadError, WriteError};
use rustdds::no_key::{
    DataWriter, Decode, DefaultDecoder, DeserializedCacheChange, DeserializerAdapter,
    SerializerAdapter, SimpleDataReader,
};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{
    DomainParticipant, QosPolicies, QosPolicyBuilder, RepresentationIdentifier, TopicKind,
    WriteOptionsBuilder,
};

use super::discovery::{Discovery, MirroredTopics, marks_topic};
use super::ledger::{FromGroup, FromRtps};
use crate::error::DdsError;
use crate::sync::lock;
use crate::time::Timestamp;
use crate::wire::Origin;

/// Maximum total size, in bytes, of the samples that an RTPS writer or reader keeps, and the limits
/// on their number.
const KEPT: (usize, usize, usize) = (64 << 20, 64, 4_096);

/// The type of marks.
const MARK: &str = "tramontane::Mark";

/// Number of marks kept for gateways that lag behind or join later.
const MARKS: i32 = 64;

/// Time for which a write waits for room before the mirror does its other work.
const PATIENCE: Duration = Duration::from_millis(5);

/// The CDR of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Raw(pub(super) Vec<u8>);

/// Passes bytes through unchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct AsBytes;

impl DeserializerAdapter<Raw> for AsBytes {
    type Error = Infallible;
    type Decoded = Raw;

    fn supported_encodings() -> &'static [RepresentationIdentifier] {
        // Samples are written out as they came in, so only one encoding is accepted.
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

/// An item received from an RTPS topic.
#[derive(Debug)]
pub(super) enum Heard {
    /// A sample from a writer that is not a gateway.
    Sample(FromRtps),
    /// A sample that cannot be accepted; the text is the reason.
    LeftOut(String),
}

type Reader = SimpleDataReader<Raw, AsBytes>;
type Writer = DataWriter<Raw, AsBytes>;

/// The reader and the writer of a mirrored topic on RTPS.
///
/// Each outgoing sample is accompanied by a mark on another topic: the sample's number in the
/// group's order. It is not attached to the sample, because RustDDS 0.15 corrupts fragmented
/// samples with attachments.
pub(super) struct RtpsTopic {
    reader: Reader,
    writer: Writer,
    marks: (String, Reader, Writer),
    /// The number of the last outgoing sample, if it has no mark yet.
    unmarked: Option<u64>,
    /// Whether samples are written to the topic from which they are read.
    is_same: bool,
    discovery: Arc<Mutex<Discovery>>,
}

impl RtpsTopic {
    /// Creates the RTPS side of a topic of `domain`, which reads one RTPS topic and writes another
    /// or the same.
    pub(super) fn open(
        participant: &DomainParticipant,
        discovery: Arc<Mutex<Discovery>>,
        (domain, topic): (&str, &str),
        names: MirroredTopics,
    ) -> Result<Self, DdsError> {
        let marks = marks_topic(domain, topic, &names.writes);
        let is_same = names.reads == names.writes;
        let samples = qos(names.sample_max);
        // The marks' writer comes first: a participant that sees the writer of samples knows that
        // this is a gateway.
        let (marks_reader, marks_writer) = ends(participant, (&marks, &marks), MARK, &marks_qos())?;
        let named = (names.reads.as_str(), names.writes.as_str());
        let (reader, writer) = ends(participant, named, &names.type_name, &samples)?;
        lock(&discovery).mirror(names);
        let marks = (marks, marks_reader, marks_writer);
        Ok(Self { reader, writer, marks, unmarked: None, is_same, discovery })
    }

    /// Registers a waker that is called when something may have arrived.
    pub(super) fn wake(&self, waker: &std::task::Waker) {
        for reader in [&self.reader, &self.marks.1] {
            reader.drain_read_notifications();
            reader.set_waker(Some(waker.clone()));
        }
        lock(&self.discovery).look();
    }

    /// Returns the next sample number that another gateway has forwarded, if a mark has arrived.
    pub(super) fn take_mark(&self) -> Result<Option<u64>, DdsError> {
        while let Some(change) = next(&self.marks.1)? {
            if let Ok(Ok(bytes)) = change.map(|change| change.sample.0.try_into()) {
                return Ok(Some(u64::from_le_bytes(bytes)));
            }
        }
        Ok(None)
    }

    /// Returns the next received item, if there is one.
    pub(super) fn take(&self) -> Result<Option<Heard>, DdsError> {
        while let Some(change) = next(&self.reader)? {
            let change = match change {
                Ok(change) => change,
                Err(why) => return Ok(Some(Heard::LeftOut(why))),
            };
            let mut discovery = lock(&self.discovery);
            // Called after the sample was taken, because its writer was announced before it.
            discovery.look();
            if self.is_same && discovery.is_gateway(change.writer_guid, &self.marks.0) {
                continue;
            }
            if discovery.refuses(change.writer_guid) {
                return Ok(Some(Heard::LeftOut("its writer does not match".to_owned())));
            }
            let sequence = i64::from(change.sequence_number);
            let origin = Origin {
                writer: change.writer_guid.to_bytes(),
                sequence: u64::try_from(sequence).unwrap_or(0),
            };
            let source = change.write_options.source_timestamp().map(|at| at.to_ticks());
            let source = source.map(timestamp_of_ticks);
            return Ok(Some(Heard::Sample(FromRtps { origin, source, cdr: change.sample.0 })));
        }
        Ok(None)
    }

    /// Writes a sample from the group's order. Returns `false` if there is no room yet.
    pub(super) fn write(&mut self, sample: &FromGroup) -> Result<bool, DdsError> {
        let source = rustdds::Timestamp::from_ticks(ticks_of_timestamp(sample.source));
        let options = WriteOptionsBuilder::new().source_timestamp(source).build();
        match self.writer.write_with_options(Raw(sample.cdr.clone()), options) {
            Ok(_) => self.unmarked = Some(sample.ordinal),
            Err(WriteError::WouldBlock { .. }) => return Ok(false),
            Err(error) => return Err(DdsError::Rtps(error.to_string())),
        }
        self.mark()?;
        Ok(true)
    }

    /// Waits until all reliable readers have received what was written, for at most `timeout`.
    pub(super) fn settle(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        for writer in [&self.writer, &self.marks.2] {
            // The wait fails only for a writer that no longer exists, and nobody waits for such a
            // writer.
            let left = until.saturating_duration_since(Instant::now());
            let _ = writer.wait_for_acknowledgments(left);
        }
    }

    /// Announces the last outgoing sample to other gateways if it has not been announced yet and
    /// there is room.
    pub(super) fn mark(&mut self) -> Result<(), DdsError> {
        let Some(ordinal) = self.unmarked else { return Ok(()) };
        match self.marks.2.write(Raw(ordinal.to_le_bytes().to_vec()), None) {
            Ok(()) => self.unmarked = None,
            Err(WriteError::WouldBlock { .. }) => {}
            Err(error) => return Err(DdsError::Rtps(error.to_string())),
        }
        Ok(())
    }
}

/// Creates a reader of one topic, and a writer of another topic or the same one.
fn ends(
    participant: &DomainParticipant,
    (reads, writes): (&str, &str),
    type_name: &str,
    qos: &QosPolicies,
) -> Result<(Reader, Writer), DdsError> {
    let topic = |name: &str| {
        participant
            .create_topic(name.to_owned(), type_name.to_owned(), qos, TopicKind::NoKey)
            .map_err(cannot)
    };
    let subscriber = participant.create_subscriber(qos).map_err(cannot)?;
    let publisher = participant.create_publisher(qos).map_err(cannot)?;
    let reader = subscriber.create_simple_datareader_no_key(&topic(reads)?, None);
    let writer = publisher.create_datawriter_no_key(&topic(writes)?, None);
    Ok((reader.map_err(cannot)?, writer.map_err(cannot)?))
}

/// Returns the next change, or the reason that it cannot be read. Fails if no more changes can be
/// read at all.
fn next(reader: &Reader) -> Result<Option<Result<DeserializedCacheChange<Raw>, String>>, DdsError> {
    match reader.try_take_one() {
        Ok(change) => Ok(change.map(Ok)),
        Err(ReadError::Deserialization { reason }) => Ok(Some(Err(reason))),
        Err(error @ ReadError::UnknownKey { .. }) => Ok(Some(Err(error.to_string()))),
        Err(error) => Err(DdsError::Rtps(error.to_string())),
    }
}

/// RTPS counts seconds in units of 2^-32.
fn timestamp_of_ticks(ticks: u64) -> Timestamp {
    let nanoseconds = (u128::from(ticks) * 1_000_000_000) >> 32;
    Timestamp(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}

fn ticks_of_timestamp(at: Timestamp) -> u64 {
    let nanoseconds = u128::try_from(at.0).unwrap_or(0);
    u64::try_from((nanoseconds << 32) / 1_000_000_000).unwrap_or(u64::MAX)
}

/// Returns the policies of the samples' writers and readers.
pub(super) fn qos(sample_max: usize) -> QosPolicies {
    let (bytes, least, most) = KEPT;
    let depth = (bytes / sample_max.max(1)).clamp(least, most);
    policies(Durability::Volatile, i32::try_from(depth).unwrap_or(i32::MAX), PATIENCE)
}

/// Returns the policies of the marks' writers and readers. A gateway that joins later receives the
/// last marks.
fn marks_qos() -> QosPolicies {
    policies(Durability::TransientLocal, MARKS, Duration::ZERO)
}

fn policies(durability: Durability, depth: i32, patience: Duration) -> QosPolicies {
    let max_blocking_time = rustdds::Duration::from_std(patience);
    QosPolicyBuilder::new()
        .reliability(Reliability::Reliable { max_blocking_time })
        .durability(durability)
        .history(History::KeepLast { depth })
        .build()
}

fn cannot(error: impl std::fmt::Display) -> DdsError {
    DdsError::Rtps(error.to_string())
}
