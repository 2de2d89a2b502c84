//! The samples that a reader keeps: a state machine without threads and without a clock.
//!
//! # Invariants
//! - History and resource limits bound the kept samples, and an expired sample is never returned.
//! - Entries that only report a state do not count towards any limit, and an instance has at most
//!   one unread entry of that kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::info::{InstanceStates, SampleInfo, SampleStates, ViewStates};
use super::instance::{Instance, InstanceEntry};
use super::selection::Selection;
use crate::cdr::InstanceHandle;
use crate::participant::PublicationHandle;
use crate::qos::{DestinationOrder, History, ReaderQos, is_ordered_across};
use crate::status::RejectedReason;
use crate::time::{INFINITE, Now, Timestamp, missed};
use crate::topic::Payload;
use crate::wire::Kind;

/// An arriving sample, or a change of an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) kind: Kind,
    /// The arrival's information, complete except for the reader's own fields.
    pub(crate) info: SampleInfo,
    pub(crate) expires: Timestamp,
}

/// A reader's decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The arrival is accepted; here is its complete information.
    Admitted(SampleInfo),
    /// The arrival is ignored, because it brings nothing new or is unwanted: filtered, expired, or
    /// outdated.
    Ignored,
    /// The arrival is rejected for lack of room.
    Rejected(RejectedReason),
}

/// A sample that a call returns.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) info: SampleInfo,
    pub(crate) payload: Option<Arc<Payload>>,
}

/// The cache of a reader.
#[derive(Debug)]
pub(crate) struct ReaderCache {
    qos: ReaderQos,
    instances: BTreeMap<InstanceHandle, Instance>,
    values: usize,
    /// Nothing expires before this time.
    next_expiry: Timestamp,
}

impl ReaderCache {
    pub(crate) fn new(qos: ReaderQos) -> Self {
        let next_expiry = Timestamp(i64::MAX);
        Self { qos, instances: BTreeMap::new(), values: 0, next_expiry }
    }

    /// Records an arrival, and decides whether to keep it.
    pub(crate) fn admit(&mut self, arrival: &Arrival, now: Now) -> Admission {
        let handle = arrival.info.instance_handle;
        let is_value = arrival.kind == Kind::Data;
        self.forget_expired(now.wall);
        if is_value && arrival.expires <= now.wall {
            return Admission::Ignored;
        }
        let is_known = self.instances.contains_key(&handle);
        if !is_known && !is_value {
            // This reader never knew the instance that has ended.
            return Admission::Ignored;
        }
        if !is_known && is_more(self.qos.resource_limits.max_instances, self.instances.len()) {
            return Admission::Rejected(RejectedReason::Instances);
        }
        let instance = self.instances.entry(handle).or_insert_with(Instance::new);
        let changed = instance.heard(arrival.kind, arrival.info.publication_handle, now.elapsed);
        let mut info = arrival.info;
        info.valid_data = is_value;
        instance.stamp(&mut info);
        if !is_value {
            if changed {
                instance.is_ending = true;
                return Admission::Admitted(info);
            }
            self.forget_if_over(handle);
            return Admission::Ignored;
        }
        let separation = self.qos.time_based_filter.minimum_separation;
        let is_early =
            instance.last_value.is_some_and(|last| now.elapsed.saturating_sub(last) < separation);
        let is_outdated = self.qos.destination_order == DestinationOrder::BySourceTimestamp
            && info.source_timestamp < instance.latest_given;
        if (is_early && !separation.is_zero()) || is_outdated {
            return Admission::Ignored;
        }
        instance.last_value = Some(now.elapsed);
        if self.qos.deadline.period != INFINITE {
            instance.due = Some(now.elapsed.saturating_add(self.qos.deadline.period));
        }
        Admission::Admitted(info)
    }

    /// Records that the application has taken a sample in place: the instance counts as seen, and
    /// nothing is kept.
    pub(crate) fn taken_in_place(&mut self, info: &SampleInfo) {
        if let Some(instance) = self.instances.get_mut(&info.instance_handle) {
            instance.view = ViewStates::NOT_NEW;
            instance.is_ending = false;
            instance.latest_given = instance.latest_given.max(info.source_timestamp);
        }
        self.forget_if_over(info.instance_handle);
    }

    /// Returns the same as [`Self::lacks_room`], after removing expired samples.
    pub(crate) fn lacks_room_at(&mut self, handle: InstanceHandle, now: Now) -> bool {
        self.forget_expired(now.wall);
        self.lacks_room(handle).is_some()
    }

    /// Returns the reason that a value of this instance could not be kept now, or `None` if it
    /// could.
    pub(crate) fn lacks_room(&self, handle: InstanceHandle) -> Option<RejectedReason> {
        let limits = &self.qos.resource_limits;
        let own = self.instances.get(&handle).map_or(0, |instance| instance.values);
        let replaces =
            matches!(self.qos.history, History::KeepLast(depth) if is_more(Some(depth), own));
        if replaces {
            return None;
        }
        if is_more(limits.max_samples_per_instance, own) {
            return Some(RejectedReason::SamplesPerInstance);
        }
        is_more(limits.max_samples, self.values).then_some(RejectedReason::Samples)
    }

    /// Keeps an accepted arrival.
    pub(crate) fn keep(
        &mut self,
        info: SampleInfo,
        payload: Option<Arc<Payload>>,
        expires: Timestamp,
    ) -> Result<(), RejectedReason> {
        if info.valid_data
            && let Some(reason) = self.lacks_room(info.instance_handle)
        {
            return Err(reason);
        }
        let Some(instance) = self.instances.get_mut(&info.instance_handle) else { return Ok(()) };
        let entry = InstanceEntry { info, payload, expires, is_selected: false };
        if !info.valid_data {
            instance.is_ending = false;
            instance.remove(|known| {
                !known.info.valid_data && known.info.sample_state == SampleStates::NOT_READ
            });
            instance.entries.push_back(entry);
            return Ok(());
        }
        let at = match self.qos.destination_order {
            DestinationOrder::ByReceptionTimestamp => instance.entries.len(),
            DestinationOrder::BySourceTimestamp => {
                let key = |info: &SampleInfo| (info.source_timestamp, info.publication_handle);
                instance
                    .entries
                    .iter()
                    .rposition(|known| key(&known.info) <= key(&info))
                    .map_or(0, |at| at + 1)
            }
        };
        instance.entries.insert(at, entry);
        instance.values += 1;
        self.values += 1;
        self.next_expiry = self.next_expiry.min(expires);
        if let History::KeepLast(depth) = self.qos.history
            && instance.values > index(depth)
        {
            instance.remove_oldest_value();
            self.values -= 1;
        }
        Ok(())
    }

    /// Records that a writer has left all instances. Returns whether that changed an instance's
    /// state.
    pub(crate) fn writer_left(&mut self, writer: PublicationHandle, now: Now) -> bool {
        let mut told = false;
        for (handle, instance) in &mut self.instances {
            let before = instance.state;
            if !instance.has_writer(writer) {
                continue;
            }
            instance.leave(writer, now.elapsed);
            if before != instance.state {
                told = true;
                tell_state(*handle, instance, writer, now);
            }
        }
        self.instances.retain(|_, instance| !instance.is_over());
        told
    }

    /// Adopts the state of an instance that was kept for this reader: its writers, and whether it
    /// has ended. Returns `true` if the instance has thereby ended at this reader.
    pub(crate) fn adopt(
        &mut self,
        handle: InstanceHandle,
        writers: &[PublicationHandle],
        ended: Option<Kind>,
        now: Now,
    ) -> bool {
        let Some(instance) = self.instances.get_mut(&handle) else { return false };
        let before = instance.state;
        let last = instance.entries.back().map(|entry| entry.info.publication_handle);
        instance.adopt(writers, now.elapsed);
        if let Some(kind) = ended {
            instance.heard(kind, PublicationHandle::default(), now.elapsed);
        }
        let changed = before != instance.state;
        if changed {
            tell_state(handle, instance, last.unwrap_or_default(), now);
        }
        changed
    }

    /// Returns the selected samples in the order in which the application receives them. Taken
    /// samples are removed; the others count as read.
    pub(crate) fn select(&mut self, selection: &Selection, takes: bool, now: Now) -> Vec<Selected> {
        self.forget_expired(now.wall);
        let mut found: Vec<((Timestamp, u64), InstanceHandle, usize)> = Vec::new();
        for (handle, instance) in &self.instances {
            if !selection.means_instance(*handle, instance.view, instance.state) {
                continue;
            }
            for (at, entry) in instance.entries.iter().enumerate() {
                if selection.samples.contains(entry.info.sample_state) {
                    found.push((self.order_of(&entry.info), *handle, at));
                }
            }
        }
        if is_ordered_across(&self.qos) {
            found.sort_by_key(|(order, _, _)| *order);
        }
        found.truncate(selection.max_samples);
        let mut selected: Vec<Selected> =
            found.iter().filter_map(|(_, handle, at)| self.pick(*handle, *at)).collect();
        self.rank(&mut selected);
        let mut handles: Vec<InstanceHandle> = found.iter().map(|(_, handle, _)| *handle).collect();
        handles.dedup();
        for handle in handles {
            self.seen(handle, takes);
        }
        selected
    }

    /// Returns whether a selection currently has any samples.
    pub(crate) fn has(&mut self, selection: &Selection, now: Now) -> bool {
        self.forget_expired(now.wall);
        self.instances.iter().any(|(handle, instance)| {
            selection.means_instance(*handle, instance.view, instance.state)
                && instance
                    .entries
                    .iter()
                    .any(|entry| selection.samples.contains(entry.info.sample_state))
        })
    }

    /// Returns the instances whose deadline has passed, each with the number of missed periods.
    pub(crate) fn missed_deadlines(&mut self, now: Duration) -> Vec<(InstanceHandle, u32)> {
        let period = self.qos.deadline.period;
        let dues = self
            .instances
            .iter_mut()
            .filter_map(|(handle, instance)| Some((*handle, instance.due.as_mut()?)));
        dues.filter_map(|(handle, due)| Some((handle, missed(due, period, now)?))).collect()
    }

    /// Forgets instances that have not been alive for longer than the reader's delay.
    pub(crate) fn purge(&mut self, now: Duration) {
        let lifecycle = self.qos.reader_data_lifecycle;
        let mut gone = 0;
        self.instances.retain(|_, instance| {
            let delay = if instance.state == InstanceStates::NOT_ALIVE_DISPOSED {
                lifecycle.autopurge_disposed_samples_delay
            } else {
                lifecycle.autopurge_nowriter_samples_delay
            };
            let is_due = delay != INFINITE
                && instance.not_alive_since.is_some_and(|since| now.saturating_sub(since) >= delay);
            if is_due {
                gone += instance.values;
            }
            !is_due
        });
        self.values -= gone;
    }

    /// Returns the next time at which something becomes due.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.instances.values().filter_map(|instance| instance.due).min()
    }

    pub(crate) fn qos(&self) -> &ReaderQos {
        &self.qos
    }

    fn order_of(&self, info: &SampleInfo) -> (Timestamp, u64) {
        match self.qos.destination_order {
            DestinationOrder::ByReceptionTimestamp => (Timestamp(0), info.ordinal),
            DestinationOrder::BySourceTimestamp => (info.source_timestamp, info.ordinal),
        }
    }

    fn pick(&mut self, handle: InstanceHandle, at: usize) -> Option<Selected> {
        let instance = self.instances.get_mut(&handle)?;
        let (view, state) = (instance.view, instance.state);
        let entry = instance.entries.get_mut(at)?;
        entry.is_selected = true;
        let mut info = entry.info;
        (info.view_state, info.instance_state) = (view, state);
        let payload = entry.payload.clone();
        let given = info.source_timestamp;
        instance.latest_given = instance.latest_given.max(given);
        Some(Selected { info, payload })
    }

    /// Fills in the ranks of the samples that are returned together.
    fn rank(&self, selected: &mut [Selected]) {
        let mut last: BTreeMap<InstanceHandle, (u32, u32)> = BTreeMap::new();
        for sample in selected.iter_mut().rev() {
            let info = &mut sample.info;
            let own = info.disposed_generation_count + info.no_writers_generation_count;
            let (rank, latest) = last.entry(info.instance_handle).or_insert((0, own));
            info.sample_rank = *rank;
            info.generation_rank = latest.saturating_sub(own);
            *rank += 1;
            let all = self.instances.get(&info.instance_handle).map_or(own, Instance::generations);
            info.absolute_generation_rank = all.saturating_sub(own);
        }
    }

    /// Marks the selected samples of an instance as taken or read.
    fn seen(&mut self, handle: InstanceHandle, takes: bool) {
        let Some(instance) = self.instances.get_mut(&handle) else { return };
        instance.view = ViewStates::NOT_NEW;
        if takes {
            let before = instance.values;
            instance.remove(|entry| entry.is_selected);
            self.values -= before - instance.values;
        } else {
            for entry in &mut instance.entries {
                if std::mem::take(&mut entry.is_selected) {
                    entry.info.sample_state = SampleStates::READ;
                }
            }
        }
        self.forget_if_over(handle);
    }

    fn forget_expired(&mut self, now: Timestamp) {
        if now < self.next_expiry {
            return;
        }
        self.values = 0;
        self.next_expiry = Timestamp(i64::MAX);
        for instance in self.instances.values_mut() {
            instance.remove(|entry| entry.expires <= now);
            self.values += instance.values;
            let next = instance.entries.iter().map(|entry| entry.expires).min();
            self.next_expiry = self.next_expiry.min(next.unwrap_or(Timestamp(i64::MAX)));
        }
        self.instances.retain(|_, instance| !instance.is_over());
    }

    fn forget_if_over(&mut self, handle: InstanceHandle) {
        if self.instances.get(&handle).is_some_and(Instance::is_over) {
            self.instances.remove(&handle);
        }
    }
}

/// Adds an entry that only reports a change of an instance's state.
fn tell_state(
    handle: InstanceHandle,
    instance: &mut Instance,
    writer: PublicationHandle,
    now: Now,
) {
    let mut info = SampleInfo::of_state(handle, writer, now.wall);
    info.ordinal = instance.entries.back().map_or(0, |entry| entry.info.ordinal);
    instance.stamp(&mut info);
    instance.remove(|known| {
        !known.info.valid_data && known.info.sample_state == SampleStates::NOT_READ
    });
    let expires = Timestamp(i64::MAX);
    instance.entries.push_back(InstanceEntry { info, payload: None, expires, is_selected: false });
}

fn index(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Returns whether one more item would exceed a limit.
fn is_more(limit: Option<u32>, count: usize) -> bool {
    limit.is_some_and(|most| count >= index(most))
}

#[cfg(test)]
mod tests;
