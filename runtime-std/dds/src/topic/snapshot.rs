//! A topic's state for a joining participant.

use serde::{Deserialize, Serialize};

use super::payload::Payload;
use super::state::TopicState;
use super::store::{Keep, StoredInstance, StoredSample, TopicStore};
use super::writers::{KnownWriter, KnownWriters};
use crate::cdr::{Encoding, InstanceHandle, decode, encode};
use crate::error::DdsError;
use crate::participant::PublicationHandle;
use crate::qos::WriterQos;
use crate::reader::{Arrival, InstanceStates, SampleInfo};
use crate::time::{Now, Timestamp};
use crate::wire::{Kind, Origin};

#[derive(Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) generation: u64,
    pub(super) ordinal: u64,
    writers: Vec<SnapshotWriter>,
    instances: Vec<Instance>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotWriter {
    handle: PublicationHandle,
    qos: WriterQos,
    sequence: u64,
}

#[derive(Serialize, Deserialize)]
struct Instance {
    handle: InstanceHandle,
    state: u8,
    writers: Vec<PublicationHandle>,
    samples: Vec<Value>,
}

#[derive(Serialize, Deserialize)]
struct Value {
    publication: PublicationHandle,
    sequence: u64,
    ordinal: u64,
    place: (u64, u64),
    source: Timestamp,
    expires: Timestamp,
    encoding: u16,
    origin: Option<([u8; 16], u64)>,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
}

impl Snapshot {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, DdsError> {
        decode(bytes, Encoding::NATIVE)
    }

    pub(super) fn has_writer(&self, handle: PublicationHandle) -> bool {
        self.writers.iter().any(|writer| writer.handle == handle)
    }

    /// Returns the writers, and the kept samples at the levels that keep samples.
    pub(super) fn into_parts(
        self,
        keep: Option<Keep>,
        now: Now,
    ) -> (Vec<KnownWriter>, Option<TopicStore>) {
        let writer = |SnapshotWriter { handle, qos, sequence }| {
            KnownWriter::new(handle, qos, sequence, now.elapsed)
        };
        let instances = self.instances;
        let store = keep.map(|keep| {
            let mut store = TopicStore::new(keep);
            for Instance { handle, state, writers, samples } in instances {
                let samples = samples.into_iter().map(|value| stored(handle, value, now)).collect();
                let state = InstanceStates::from_bits_truncate(state);
                store.put(handle, StoredInstance { state, writers, samples });
            }
            store
        });
        (self.writers.into_iter().map(writer).collect(), store)
    }
}

impl TopicState {
    /// Returns the current state.
    pub(crate) fn snapshot(&self) -> Result<Vec<u8>, DdsError> {
        let writer = |known: &KnownWriter| SnapshotWriter {
            handle: known.handle,
            qos: known.qos.clone(),
            sequence: known.sequence,
        };
        let instance = |(handle, kept): (InstanceHandle, &StoredInstance)| Instance {
            handle,
            state: kept.state.bits(),
            writers: kept.writers.clone(),
            samples: kept.samples.iter().map(value_of).collect(),
        };
        encode(&Snapshot {
            generation: self.generation,
            ordinal: self.ordinal,
            writers: self.writers.iter().map(writer).collect(),
            instances: self.store.iter().flat_map(TopicStore::instances).map(instance).collect(),
        })
    }

    /// Replaces this state with another member's. Empty bytes are the state of a topic without
    /// messages. The log's messages follow it.
    pub(crate) fn restore(&mut self, bytes: &[u8], now: Now) -> Result<(), DdsError> {
        let generation = self.generation;
        let empty = Snapshot { generation, ordinal: 0, writers: Vec::new(), instances: Vec::new() };
        let snapshot = match bytes {
            [] => empty,
            bytes => {
                let snapshot = Snapshot::read(bytes)?;
                // The snapshot belongs to an earlier topic in the place, because discovery is ahead
                // of it.
                if snapshot.generation == generation { snapshot } else { empty }
            }
        };
        self.ordinal = snapshot.ordinal;
        self.restart_tail();
        self.writers = KnownWriters::default();
        let keep = self.store.as_ref().map(TopicStore::keep);
        let (writers, store) = snapshot.into_parts(keep, now);
        writers.into_iter().for_each(|writer| self.writers.put(writer));
        self.store = store;
        Ok(())
    }
}

fn value_of(stored: &StoredSample) -> Value {
    let info = &stored.arrival.info;
    Value {
        publication: info.publication_handle,
        sequence: info.sequence,
        ordinal: info.ordinal,
        place: (info.place.0.0, info.place.1.0),
        source: info.source_timestamp,
        expires: stored.arrival.expires,
        encoding: info.encoding.0,
        origin: info.origin.map(|origin| (origin.writer, origin.sequence)),
        bytes: stored.payload.bytes.clone(),
    }
}

fn stored(handle: InstanceHandle, value: Value, now: Now) -> StoredSample {
    let origin = value.origin.map(|(writer, sequence)| Origin { writer, sequence });
    let (view, place) = value.place;
    let info = SampleInfo {
        source_timestamp: value.source,
        sequence: value.sequence,
        ordinal: value.ordinal,
        place: (tramontane::ViewId(view), tramontane::Place(place)),
        encoding: Encoding(value.encoding),
        origin,
        ..SampleInfo::of_state(handle, value.publication, now.wall)
    };
    let arrival = Arrival { kind: Kind::Data, info, expires: value.expires };
    StoredSample { arrival, payload: std::sync::Arc::new(Payload { bytes: value.bytes }) }
}
