//! The samples that a topic's members keep for late readers: DDS's durability service.
//!
//! The store depends only on the topic's messages and the view changes, so it is the same on all
//! members, and any of them can supply it to a joiner.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::payload::{IncomingValue, Payload};
use crate::cdr::InstanceHandle;
use crate::participant::PublicationHandle;
use crate::reader::{Arrival, InstanceStates};
use crate::wire::Kind;

/// A kept value.
#[derive(Clone, Debug)]
pub(crate) struct StoredSample {
    pub(crate) arrival: Arrival,
    pub(crate) payload: Arc<Payload>,
}

/// A kept instance.
#[derive(Clone, Debug)]
pub(crate) struct StoredInstance {
    pub(crate) state: InstanceStates,
    pub(crate) writers: Vec<PublicationHandle>,
    pub(crate) samples: VecDeque<StoredSample>,
}

/// The limits on what is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Maximum number of values per instance; `None` keeps all.
    pub(crate) depth: Option<usize>,
    /// Maximum number of values of all instances together. The oldest is dropped first.
    pub(crate) samples: Option<usize>,
}

/// The kept samples of a topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct TopicStore {
    keep: Keep,
    instances: BTreeMap<InstanceHandle, StoredInstance>,
    samples: usize,
}

impl TopicStore {
    pub(crate) fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    /// Keeps an arriving value, and drops the values that it replaces. An instance that is disposed
    /// of and has no writers is forgotten: DDS's cleanup delay is zero here.
    pub(crate) fn apply(
        &mut self,
        arrival: &Arrival,
        incoming: &mut IncomingValue<'_>,
    ) -> Option<Arc<Payload>> {
        let handle = arrival.info.instance_handle;
        let writer = arrival.info.publication_handle;
        if arrival.kind != Kind::Data {
            self.end(handle, arrival.kind, writer);
            return None;
        }
        let instance = self.instances.entry(handle).or_insert_with(|| StoredInstance {
            state: InstanceStates::ALIVE,
            writers: Vec::new(),
            samples: VecDeque::new(),
        });
        instance.state = InstanceStates::ALIVE;
        if !instance.writers.contains(&writer) {
            instance.writers.push(writer);
        }
        instance.samples.push_back(StoredSample { arrival: *arrival, payload: incoming.keep() });
        self.samples += 1;
        if self.keep.depth.is_some_and(|depth| instance.samples.len() > depth) {
            self.samples -= 1;
            return instance.samples.pop_front().map(|sample| sample.payload);
        }
        if self.keep.samples.is_some_and(|most| self.samples > most) {
            return self.remove_oldest();
        }
        None
    }

    fn end(&mut self, handle: InstanceHandle, kind: Kind, writer: PublicationHandle) {
        let Some(instance) = self.instances.get_mut(&handle) else { return };
        if matches!(kind, Kind::Dispose | Kind::DisposeAndUnregister) {
            instance.state = InstanceStates::NOT_ALIVE_DISPOSED;
        }
        if matches!(kind, Kind::Unregister | Kind::DisposeAndUnregister) {
            instance.leave(writer);
        }
        self.forget_if_over(handle);
    }

    fn forget_if_over(&mut self, handle: InstanceHandle) {
        let is_over = self.instances.get(&handle).is_some_and(|instance| {
            instance.state == InstanceStates::NOT_ALIVE_DISPOSED && instance.writers.is_empty()
        });
        if is_over && let Some(gone) = self.instances.remove(&handle) {
            self.samples -= gone.samples.len();
        }
    }

    fn remove_oldest(&mut self) -> Option<Arc<Payload>> {
        let first = |instance: &StoredInstance| {
            instance.samples.front().map(|sample| sample.arrival.info.ordinal)
        };
        let (handle, _) = self
            .instances
            .iter()
            .filter_map(|(handle, instance)| Some((*handle, first(instance)?)))
            .min_by_key(|(_, ordinal)| *ordinal)?;
        let sample = self.instances.get_mut(&handle)?.samples.pop_front()?;
        self.samples -= 1;
        Some(sample.payload)
    }

    /// Records that a writer has left all instances.
    pub(crate) fn writer_left(&mut self, writer: PublicationHandle) {
        let handles: Vec<InstanceHandle> = self.instances.keys().copied().collect();
        for handle in handles {
            if let Some(instance) = self.instances.get_mut(&handle)
                && instance.writers.contains(&writer)
            {
                instance.leave(writer);
                self.forget_if_over(handle);
            }
        }
    }

    /// Returns all values in the topic's order, for a new reader.
    pub(crate) fn in_order(&self) -> Vec<&StoredSample> {
        let mut all: Vec<&StoredSample> =
            self.instances.values().flat_map(|instance| &instance.samples).collect();
        all.sort_by_key(|sample| sample.arrival.info.ordinal);
        all
    }

    /// Returns the instances, by handle.
    pub(crate) fn instances(&self) -> impl Iterator<Item = (InstanceHandle, &StoredInstance)> {
        self.instances.iter().map(|(handle, instance)| (*handle, instance))
    }

    /// Adds an instance from another member's store.
    pub(crate) fn put(&mut self, handle: InstanceHandle, instance: StoredInstance) {
        self.samples += instance.samples.len();
        self.instances.insert(handle, instance);
    }

    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }
}

impl StoredInstance {
    fn leave(&mut self, writer: PublicationHandle) {
        self.writers.retain(|known| *known != writer);
        if self.writers.is_empty() && self.state == InstanceStates::ALIVE {
            self.state = InstanceStates::NOT_ALIVE_NO_WRITERS;
        }
    }
}
