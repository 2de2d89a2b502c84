//! Topics for tests: their input, and the samples of their readers.

use std::sync::Arc;
use std::time::Duration;

use tramontane::{Message, NodeId, Place, SubgroupId, ViewId};

use super::state::TopicState;
use super::store::{Keep, TopicStore};
use crate::cdr::{Encoding, InstanceHandle};
use crate::domain::Level;
use crate::participant::{PublicationHandle, SubscriptionHandle};
use crate::qos::{History, ReaderQos, WriterQos};
use crate::reader::{ReaderCore, Selection};
use crate::time::{Now, Timestamp};
use crate::wire::{HEADER_BYTES, Header, Kind, encode_writer};

/// A topic with a reader that requests all samples.
pub(super) struct Side {
    pub(super) topic: TopicState,
    pub(super) reader: Arc<ReaderCore>,
    /// The number of each sample in the order, its writer, and its number from that writer.
    pub(super) given: Vec<(u64, PublicationHandle, u64)>,
}

/// Returns a reader that requests all samples.
pub(super) fn reader() -> Arc<ReaderCore> {
    let qos = ReaderQos {
        durability: Level::Volatile.durability(),
        presentation: Level::Volatile.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    };
    Arc::new(ReaderCore::new(SubscriptionHandle::default(), qos, Duration::ZERO))
}

impl Side {
    pub(super) fn new(depth: usize) -> Self {
        let keep = Keep { depth: Some(depth), samples: None };
        Self::of(TopicState::new(Some(TopicStore::new(keep))))
    }

    pub(super) fn of(mut topic: TopicState) -> Self {
        let reader = reader();
        assert!(topic.attach(0, Arc::clone(&reader), Now::read()));
        Self::with(topic, reader)
    }

    /// Returns a topic with this reader.
    pub(super) fn with(topic: TopicState, reader: Arc<ReaderCore>) -> Self {
        Self { topic, reader, given: Vec::new() }
    }

    pub(super) fn tell(&mut self, payload: &[u8]) {
        let message = Message {
            subgroup: SubgroupId(1),
            view: ViewId(1),
            place: Place(0),
            sender: NodeId(0),
            payload,
            client: None,
            is_large: false,
            is_replayed: false,
        };
        self.topic.deliver(&message, Now::read());
        self.take();
    }

    pub(super) fn take(&mut self) {
        let taken = self.reader.select(&Selection::default(), true);
        let values = taken.iter().filter(|of| of.info.valid_data);
        self.given.extend(
            values.map(|of| (of.info.ordinal, of.info.publication_handle, of.info.sequence)),
        );
    }

    pub(super) fn take_over(&mut self, from: &Self) {
        let state = from.topic.snapshot().expect("plain");
        self.topic.take_over(&state, Now::read()).expect("it is a state");
        self.take();
    }
}

pub(super) fn said(writer: u32, kind: Kind, sequence: u64, instance: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![0; HEADER_BYTES];
    Header {
        kind,
        encoding: Encoding::NATIVE,
        writer,
        sequence,
        source: Timestamp::now(),
        instance: InstanceHandle([instance; 16]),
        origin: None,
    }
    .write(&mut message);
    message.extend_from_slice(body);
    message
}

pub(super) fn announced(writer: u32) -> Vec<u8> {
    announced_as(writer, &WriterQos::of(Level::Volatile))
}

/// Returns an announcement with these policies.
pub(super) fn announced_as(writer: u32, qos: &WriterQos) -> Vec<u8> {
    said(writer, Kind::Announce, 0, 0, &encode_writer(qos).expect("plain"))
}
