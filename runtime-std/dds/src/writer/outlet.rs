//! The path of a writer's messages into the group's slots.
//!
//! # Invariants
//! - A message receives its number before it is committed, and numbers increase by one, so a
//!   missing number means a sample that was dropped for lack of room.
//! - Nothing is committed once the topic has been deleted, because a slot reserved after that may
//!   belong to the next topic in the place.
//! - Calls from a listener never wait, because they would wait for themselves.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::core::WriterCore;
use crate::cdr::{Encoding, InstanceHandle};
use crate::error::DdsError;
use crate::participant::{Committed, MessageMemory, Voice, is_in_listener};
use crate::qos::ReliabilityKind;
use crate::time::{Now, Timestamp};
use crate::wire::{Header, Kind, Origin};

/// The writer's connection to the group.
#[derive(Debug)]
pub(crate) struct Outlet {
    voice: Voice,
    /// The memory in which an external participant's messages are built.
    line: Vec<u64>,
    progress: WriterProgress,
}

/// The writer's progress so far.
#[derive(Debug)]
pub(super) struct WriterProgress {
    pub(super) core: Arc<WriterCore>,
    sequence: u64,
    /// Instances that the writer has written or registered, and has not unregistered since.
    pub(super) registered: BTreeSet<InstanceHandle>,
    /// Number of samples that found no room.
    pub(super) dropped: u64,
    pub(super) last: Option<Committed>,
}

/// The kind and instance of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) kind: Kind,
    pub(crate) instance: InstanceHandle,
    pub(crate) source: Timestamp,
    pub(crate) encoding: Encoding,
    pub(crate) origin: Option<Origin>,
}

impl Subject {
    pub(crate) fn now(kind: Kind, instance: InstanceHandle) -> Self {
        Self { kind, instance, source: Timestamp::now(), encoding: Encoding::NATIVE, origin: None }
    }
}

/// A slot for a message, with the data to record when the slot is committed.
pub(crate) struct OpenSlot<'w> {
    pub(super) slot: MessageMemory<'w>,
    pub(super) progress: &'w mut WriterProgress,
    /// Whether the writer drops a sample instead of waiting for room.
    drops: bool,
}

impl Outlet {
    pub(crate) fn new(voice: Voice, core: Arc<WriterCore>) -> Self {
        let progress = WriterProgress {
            core,
            sequence: 0,
            registered: BTreeSet::new(),
            dropped: 0,
            last: None,
        };
        Self { voice, line: Vec::new(), progress }
    }

    pub(crate) fn core(&self) -> &Arc<WriterCore> {
        &self.progress.core
    }

    pub(super) fn progress(&mut self) -> &mut WriterProgress {
        &mut self.progress
    }

    /// Waits until all samples of the writer have been delivered, or are durable on a majority.
    pub(super) fn wait_for_all(&self, timeout: Duration) -> Result<(), DdsError> {
        let Some(last) = &self.progress.last else { return Ok(()) };
        self.voice.wait_for(last, timeout)
    }

    /// Reserves a slot of `length` bytes according to the writer's reliability; returns `None` if
    /// there is no room and the writer does not wait.
    #[inline]
    pub(super) fn open(&mut self, length: usize) -> Result<Option<OpenSlot<'_>>, DdsError> {
        let reliability = self.progress.core.qos.reliability;
        let waits = reliability.kind == ReliabilityKind::Reliable;
        self.open_within(length, waits.then_some(reliability.max_blocking_time))
    }

    /// Reserves a slot of `length` bytes, waiting for at most `wait` for room.
    pub(crate) fn open_within(
        &mut self,
        length: usize,
        wait: Option<Duration>,
    ) -> Result<Option<OpenSlot<'_>>, DdsError> {
        let Self { voice, line, progress } = self;
        let core = &progress.core;
        if core.is_stopped() {
            return Err(DdsError::TopicDeleted);
        }
        let blocking = if is_in_listener() { Duration::ZERO } else { wait.unwrap_or_default() };
        let slot = voice.open(line, length, blocking);
        // A dropped slot is sent as an empty message.
        if core.is_stopped() {
            return Err(DdsError::TopicDeleted);
        }
        match slot {
            Ok(slot) => Ok(Some(OpenSlot { slot, progress, drops: wait.is_none() })),
            Err(DdsError::Timeout(_)) if wait.is_none() => {
                progress.drop_one();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends a message whose body `fill` writes after the header. `fill` returns the number of
    /// bytes that it wrote.
    pub(crate) fn send(
        &mut self,
        subject: &Subject,
        body_max: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, DdsError>,
    ) -> Result<(), DdsError> {
        let header = subject.origin.map_or(crate::wire::HEADER_BYTES, |_| crate::wire::HEADER_MAX);
        match self.open(header + body_max)? {
            Some(slot) => slot.fill(subject, fill),
            None => Ok(()),
        }
    }

    /// Sends a message about the writer itself, waiting for at most `wait`.
    pub(crate) fn say(&mut self, kind: Kind, body: &[u8], wait: Duration) -> Result<(), DdsError> {
        let instance = match kind {
            Kind::Announce => InstanceHandle::of_generation(self.progress.core.generation),
            _ => InstanceHandle::KEYLESS,
        };
        let subject = Subject::now(kind, instance);
        match self.open_within(crate::wire::HEADER_BYTES + body.len(), Some(wait))? {
            Some(slot) => slot.fill(&subject, |place| {
                place.copy_from_slice(body);
                Ok(body.len())
            }),
            None => Ok(()),
        }
    }
}

impl OpenSlot<'_> {
    fn fill(
        mut self,
        subject: &Subject,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, DdsError>,
    ) -> Result<(), DdsError> {
        let header = subject.origin.map_or(crate::wire::HEADER_BYTES, |_| crate::wire::HEADER_MAX);
        // A dropped slot is sent as an empty message.
        let body = self.slot.payload().get_mut(header..).unwrap_or_default();
        let length = fill(body)?;
        self.slot.truncate(header + length);
        self.commit(subject)
    }

    /// Commits the message once its body has been built.
    #[inline]
    pub(super) fn commit(self, subject: &Subject) -> Result<(), DdsError> {
        let Self { mut slot, progress, drops } = self;
        let sequence = if subject.kind.is_of_instance() { progress.sequence + 1 } else { 0 };
        let header = Header {
            kind: subject.kind,
            encoding: subject.encoding,
            writer: progress.core.handle.writer,
            sequence: if sequence == 0 { progress.sequence_of(subject.kind) } else { sequence },
            source: subject.source,
            instance: subject.instance,
            origin: subject.origin,
        };
        header.write(slot.payload());
        match slot.commit() {
            Ok(committed) => progress.last = Some(committed),
            Err(DdsError::Timeout(_)) if drops => {
                progress.drop_one();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        progress.note(subject, sequence);
        Ok(())
    }
}

impl WriterProgress {
    /// Records that a sample has found no room.
    fn drop_one(&mut self) {
        self.sequence += 1;
        self.dropped += 1;
    }

    /// Returns the number of messages before an announcement.
    fn sequence_of(&self, kind: Kind) -> u64 {
        if kind == Kind::Announce { self.sequence } else { 0 }
    }

    fn note(&mut self, subject: &Subject, sequence: u64) {
        if sequence == 0 {
            return;
        }
        self.sequence = sequence;
        let ends = matches!(subject.kind, Kind::Unregister | Kind::DisposeAndUnregister);
        if ends {
            self.registered.remove(&subject.instance);
        }
        if self.core.has_dues() {
            if subject.kind == Kind::Data {
                self.core.wrote(subject.instance, Now::read().elapsed);
            } else {
                self.core.gave_sign(Now::read().elapsed);
                self.core.ended(subject.instance);
            }
        }
    }

    /// Records an instance that the writer writes.
    #[inline]
    pub(super) fn register(&mut self, instance: InstanceHandle) -> Result<(), DdsError> {
        if self.registered.contains(&instance) {
            return Ok(());
        }
        let most = self.core.qos.resource_limits.max_instances;
        if most.is_some_and(|most| self.registered.len() >= usize::try_from(most).unwrap_or(0)) {
            return Err(DdsError::OutOfResources(
                "the writer has max_instances instances; unregister one, or raise the limit",
            ));
        }
        self.registered.insert(instance);
        Ok(())
    }
}
