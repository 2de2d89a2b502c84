//! How a writer's messages get into the group's slots.
//!
//! # Invariants
//! - A message has its number before it is committed, and numbers rise by one: a number that is
//!   missing is a sample that was dropped for want of room.
//! - Nothing is committed once the topic is deleted: a slot that is taken after that may be of the
//!   topic that has its place next.
//! - From a listener nothing waits: what would wait there would wait for itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tramontane::{Ordinal, ReserveError, SendError, Sender, Slot};

use super::core::WriterCore;
use crate::cdr::{Encoding, InstanceHandle};
use crate::error::DdsError;
use crate::participant::is_in_listener;
use crate::qos::ReliabilityKind;
use crate::time::{Now, Timestamp};
use crate::wire::{Header, Kind, Origin};

/// A writer's end of the group.
#[derive(Debug)]
pub(crate) struct Outlet {
    sender: Sender,
    progress: Progress,
}

/// What it has written so far.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) core: Arc<WriterCore>,
    sequence: u64,
    /// Instances that it has written or registered, and not unregistered.
    pub(super) registered: BTreeSet<InstanceHandle>,
    /// Samples for which there was no room.
    pub(super) dropped: u64,
    pub(super) last: Option<Ordinal>,
}

/// What is said of which instance.
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

/// A slot for a message, with what is to be noted when it is committed.
pub(crate) struct OpenSlot<'w> {
    pub(super) slot: Slot<'w>,
    pub(super) progress: &'w mut Progress,
}

impl Outlet {
    pub(crate) fn new(sender: Sender, core: Arc<WriterCore>) -> Self {
        let progress =
            Progress { core, sequence: 0, registered: BTreeSet::new(), dropped: 0, last: None };
        Self { sender, progress }
    }

    pub(crate) fn core(&self) -> &Arc<WriterCore> {
        &self.progress.core
    }

    pub(super) fn progress(&mut self) -> &mut Progress {
        &mut self.progress
    }

    pub(super) fn sender(&self) -> &Sender {
        &self.sender
    }

    /// Takes a slot for so many bytes, as the writer's reliability says; none if it finds no room
    /// and does not wait.
    #[inline]
    pub(super) fn open(&mut self, length: usize) -> Result<Option<OpenSlot<'_>>, DdsError> {
        let reliability = self.progress.core.qos.reliability;
        let waits = reliability.kind == ReliabilityKind::Reliable;
        self.open_within(length, waits.then_some(reliability.max_blocking_time))
    }

    /// The same, waiting so long for room at most.
    pub(crate) fn open_within(
        &mut self,
        length: usize,
        wait: Option<Duration>,
    ) -> Result<Option<OpenSlot<'_>>, DdsError> {
        let Self { sender, progress } = self;
        let core = &progress.core;
        if core.is_stopped() {
            return Err(DdsError::TopicDeleted);
        }
        let blocking = if is_in_listener() { Duration::ZERO } else { wait.unwrap_or_default() };
        let slot = if blocking.is_zero() {
            reserve_now(sender, length)
        } else {
            sender.reserve(length, blocking)
        };
        // A slot that is dropped goes out as nothing.
        if core.is_stopped() {
            return Err(DdsError::TopicDeleted);
        }
        match slot {
            Ok(slot) => Ok(Some(OpenSlot { slot, progress })),
            Err(SendError::TimedOut(_)) if wait.is_none() => {
                progress.sequence += 1;
                progress.dropped += 1;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends what `fill` writes behind the header; it gives the bytes that it wrote.
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

    /// Says something of the writer itself, waiting so long at most.
    pub(crate) fn say(&mut self, kind: Kind, body: &[u8], wait: Duration) -> Result<(), DdsError> {
        let subject = Subject::now(kind, InstanceHandle::KEYLESS);
        match self.open_within(crate::wire::HEADER_BYTES + body.len(), Some(wait))? {
            Some(slot) => slot.fill(&subject, |place| {
                place.copy_from_slice(body);
                Ok(body.len())
            }),
            None => Ok(()),
        }
    }
}

/// Takes a slot if one is free now.
#[inline]
fn reserve_now(sender: &mut Sender, length: usize) -> Result<Slot<'_>, SendError> {
    sender.try_reserve(length).map_err(|error| match error {
        ReserveError::TooLarge { length, limit } => SendError::TooLarge { length, limit },
        ReserveError::Full | ReserveError::Contended => SendError::TimedOut(Duration::ZERO),
    })
}

impl OpenSlot<'_> {
    fn fill(
        mut self,
        subject: &Subject,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, DdsError>,
    ) -> Result<(), DdsError> {
        let header = subject.origin.map_or(crate::wire::HEADER_BYTES, |_| crate::wire::HEADER_MAX);
        // A slot that is dropped goes out as nothing.
        let body = self.slot.payload().get_mut(header..).unwrap_or_default();
        let length = fill(body)?;
        self.slot.truncate(header + length);
        self.commit(subject);
        Ok(())
    }

    /// Hands it over, once its body is built.
    #[inline]
    pub(super) fn commit(self, subject: &Subject) {
        let Self { mut slot, progress } = self;
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
        progress.last = Some(slot.commit());
        progress.note(subject, sequence);
    }
}

impl Progress {
    /// What an announcement says was written before it.
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

    /// Takes note of an instance that it writes.
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
