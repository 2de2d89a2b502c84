//! One instance in a reader: its state, its writers, and its samples.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::info::{InstanceStates, SampleInfo, SampleStates, ViewStates};
use crate::participant::PublicationHandle;
use crate::time::Timestamp;
use crate::topic::Payload;
use crate::wire::Kind;

/// A kept sample.
#[derive(Clone, Debug)]
pub(super) struct InstanceEntry {
    pub(super) info: SampleInfo,
    /// `None` for an entry that only reports a state.
    pub(super) payload: Option<Arc<Payload>>,
    /// The time after which the sample is invalid.
    pub(super) expires: Timestamp,
    /// Whether the entry is part of a call's result.
    pub(super) is_selected: bool,
}

/// The state of an instance in a reader.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) state: InstanceStates,
    pub(super) view: ViewStates,
    disposed_generations: u32,
    no_writers_generations: u32,
    /// Writers that have written or registered the instance, and have not unregistered it since.
    writers: Vec<PublicationHandle>,
    /// The entries, in the order in which the application receives them.
    pub(super) entries: VecDeque<InstanceEntry>,
    /// Number of entries with a value.
    pub(super) values: usize,
    /// The time of the last accepted value.
    pub(super) last_value: Option<Duration>,
    /// The time at which the next value is due.
    pub(super) due: Option<Duration>,
    /// The time since which the instance has not been alive.
    pub(super) not_alive_since: Option<Duration>,
    /// The latest source timestamp that the application has received.
    pub(super) latest_given: Timestamp,
    /// Whether a change of the state has been admitted, but not yet kept or taken.
    pub(super) is_ending: bool,
}

impl Instance {
    pub(super) fn new() -> Self {
        Self {
            state: InstanceStates::ALIVE,
            view: ViewStates::NEW,
            disposed_generations: 0,
            no_writers_generations: 0,
            writers: Vec::new(),
            entries: VecDeque::new(),
            values: 0,
            last_value: None,
            due: None,
            not_alive_since: None,
            latest_given: Timestamp(i64::MIN),
            is_ending: false,
        }
    }

    /// Records a writer's message about the instance. Returns whether the state changed.
    pub(super) fn heard(&mut self, kind: Kind, writer: PublicationHandle, now: Duration) -> bool {
        let before = self.state;
        match kind {
            Kind::Data => self.revive(writer),
            Kind::Dispose => self.end(InstanceStates::NOT_ALIVE_DISPOSED, now),
            Kind::Unregister => self.leave(writer, now),
            Kind::DisposeAndUnregister => {
                self.end(InstanceStates::NOT_ALIVE_DISPOSED, now);
                self.leave(writer, now);
            }
            Kind::Announce | Kind::Gone | Kind::Alive | Kind::Begun => {}
        }
        before != self.state
    }

    fn revive(&mut self, writer: PublicationHandle) {
        if !self.writers.contains(&writer) {
            self.writers.push(writer);
        }
        if self.state == InstanceStates::ALIVE {
            return;
        }
        if self.state == InstanceStates::NOT_ALIVE_DISPOSED {
            self.disposed_generations += 1;
        } else {
            self.no_writers_generations += 1;
        }
        self.state = InstanceStates::ALIVE;
        self.view = ViewStates::NEW;
        self.not_alive_since = None;
    }

    fn end(&mut self, state: InstanceStates, now: Duration) {
        if self.state == InstanceStates::ALIVE {
            self.state = state;
            self.not_alive_since = Some(now);
            self.due = None;
        }
    }

    /// Records that a writer no longer writes the instance.
    pub(super) fn leave(&mut self, writer: PublicationHandle, now: Duration) {
        self.writers.retain(|known| *known != writer);
        if self.writers.is_empty() {
            self.end(InstanceStates::NOT_ALIVE_NO_WRITERS, now);
        }
    }

    /// Replaces the instance's writers.
    pub(super) fn adopt(&mut self, writers: &[PublicationHandle], now: Duration) {
        self.writers = writers.to_vec();
        if self.writers.is_empty() {
            self.end(InstanceStates::NOT_ALIVE_NO_WRITERS, now);
        }
    }

    pub(super) fn has_writer(&self, writer: PublicationHandle) -> bool {
        self.writers.contains(&writer)
    }

    /// Returns whether there is nothing left to report about the instance.
    pub(super) fn is_over(&self) -> bool {
        self.entries.is_empty()
            && self.writers.is_empty()
            && self.state != InstanceStates::ALIVE
            && !self.is_ending
    }

    /// Fills the fields about the instance into a sample's information.
    pub(super) fn stamp(&self, info: &mut SampleInfo) {
        info.sample_state = SampleStates::NOT_READ;
        info.view_state = self.view;
        info.instance_state = self.state;
        info.disposed_generation_count = self.disposed_generations;
        info.no_writers_generation_count = self.no_writers_generations;
    }

    /// Returns the number of the instance's generations so far.
    pub(super) const fn generations(&self) -> u32 {
        self.disposed_generations + self.no_writers_generations
    }

    /// Removes the entries for which the predicate holds.
    pub(super) fn remove(&mut self, is_so: impl Fn(&InstanceEntry) -> bool) {
        self.entries.retain(|entry| !is_so(entry));
        self.values = self.entries.iter().filter(|entry| entry.info.valid_data).count();
    }

    /// Removes the first entry with a value.
    pub(super) fn remove_oldest_value(&mut self) {
        if let Some(at) = self.entries.iter().position(|entry| entry.info.valid_data) {
            self.entries.remove(at);
            self.values -= 1;
        }
    }
}
