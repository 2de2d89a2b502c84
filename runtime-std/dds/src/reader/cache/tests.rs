//! Checks the cache against a model that keeps its whole input and computes every answer from it.

use proptest::prelude::*;

use super::*;
use crate::participant::ParticipantId;
use crate::qos::{Deadline, ResourceLimits};
use crate::time::Timestamp;

/// An event. Time advances in steps of a millisecond.
#[derive(Clone, Debug)]
enum CacheDeed {
    Write { instance: u8, writer: u32, lives_ms: i64 },
    End { instance: u8, writer: u32, kind: Kind },
    Leave { writer: u32 },
    Pass { ms: i64 },
    Select { takes: bool, max: usize, samples: SampleStates, states: InstanceStates },
}

fn deeds() -> impl Strategy<Value = Vec<CacheDeed>> {
    let instance = 0_u8..4;
    let writer = 0_u32..3;
    let kinds =
        prop_oneof![Just(Kind::Dispose), Just(Kind::Unregister), Just(Kind::DisposeAndUnregister)];
    let samples = prop_oneof![Just(SampleStates::all()), Just(SampleStates::NOT_READ)];
    let states = prop_oneof![Just(InstanceStates::all()), Just(InstanceStates::ALIVE)];
    let deed = prop_oneof![
        6 => (instance.clone(), writer.clone(), prop_oneof![Just(1_i64 << 40), 0_i64..20])
            .prop_map(|(instance, writer, lives_ms)| {
                CacheDeed::Write { instance, writer, lives_ms }
            }),
        2 => (instance, writer.clone(), kinds)
            .prop_map(|(instance, writer, kind)| CacheDeed::End { instance, writer, kind }),
        1 => writer.prop_map(|writer| CacheDeed::Leave { writer }),
        2 => (1_i64..10).prop_map(|ms| CacheDeed::Pass { ms }),
        2 => (any::<bool>(), 1_usize..6, samples, states)
            .prop_map(|(takes, max, samples, states)| {
                CacheDeed::Select { takes, max, samples, states }
            }),
    ];
    proptest::collection::vec(deed, 0..60)
}

/// A value in the model.
#[derive(Clone, Copy, Debug)]
struct Value {
    instance: u8,
    ordinal: u64,
    expires_ms: i64,
    is_read: bool,
}

/// The model: it holds values in order of arrival.
#[derive(Debug)]
struct CacheModel {
    history: History,
    limits: ResourceLimits,
    values: Vec<Value>,
    /// The instances: their state, their writers, their generations, and whether a state is to be
    /// reported.
    instances: BTreeMap<u8, InstanceState>,
}

#[derive(Clone, Debug, Default)]
struct InstanceState {
    /// 0 if the instance is alive, 1 if it is disposed, 2 if it has no writers.
    state: u8,
    writers: Vec<u32>,
    revivals: u32,
    /// Whether there is an unread state change, and whether there is a read one.
    notices: [bool; 2],
}

impl CacheModel {
    fn expire(&mut self, now_ms: i64) {
        self.values.retain(|value| value.expires_ms > now_ms);
        self.forget();
    }

    /// Removes instances that have nothing left.
    fn forget(&mut self) {
        let values = &self.values;
        self.instances.retain(|handle, told| {
            told.state == 0
                || !told.writers.is_empty()
                || told.notices != [false; 2]
                || values.iter().any(|value| value.instance == *handle)
        });
    }

    fn write(&mut self, value: Value, writer: u32, now_ms: i64) -> Result<(), RejectedReason> {
        self.expire(now_ms);
        if value.expires_ms <= now_ms {
            return Ok(());
        }
        let is_known = self.instances.contains_key(&value.instance);
        if !is_known
            && self.limits.max_instances.is_some_and(|most| self.instances.len() as u32 >= most)
        {
            return Err(RejectedReason::Instances);
        }
        let told = self.instances.entry(value.instance).or_default();
        if told.state != 0 {
            (told.state, told.revivals) = (0, told.revivals + 1);
        }
        if !told.writers.contains(&writer) {
            told.writers.push(writer);
        }
        let own: Vec<usize> = (0..self.values.len())
            .filter(|at| self.values[*at].instance == value.instance)
            .collect();
        if let History::KeepLast(depth) = self.history
            && own.len() as u32 >= depth
        {
            self.values.remove(own[0]);
        } else if self.limits.max_samples_per_instance.is_some_and(|most| own.len() as u32 >= most)
        {
            return Err(RejectedReason::SamplesPerInstance);
        } else if self.limits.max_samples.is_some_and(|most| self.values.len() as u32 >= most) {
            return Err(RejectedReason::Samples);
        }
        self.values.push(value);
        Ok(())
    }

    fn end(&mut self, instance: u8, writer: u32, kind: Kind) {
        if let Some(told) = self.instances.get_mut(&instance) {
            let before = told.state;
            if kind != Kind::Unregister && told.state == 0 {
                told.state = 1;
            }
            if kind != Kind::Dispose {
                told.writers.retain(|known| *known != writer);
                if told.writers.is_empty() && told.state == 0 {
                    told.state = 2;
                }
            }
            told.notices[0] |= before != told.state;
        }
        self.forget();
    }

    /// Returns the ordinals of the selected values, grouped by instance.
    fn select(&mut self, deed: &CacheDeed, now_ms: i64) -> Vec<u64> {
        let CacheDeed::Select { takes, max, samples, states } = deed else { return Vec::new() };
        self.expire(now_ms);
        let mut given = Vec::new();
        let mut left = *max;
        for (handle, told) in &mut self.instances {
            if told.state != 0 && *states == InstanceStates::ALIVE {
                continue;
            }
            // State entries are mixed with the values in an order that only the cache decides, so
            // the model is asked only for values, with a `max` that covers all values.
            for value in self.values.iter_mut().filter(|value| value.instance == *handle) {
                if (samples.contains(SampleStates::READ) || !value.is_read) && left > 0 {
                    given.push(value.ordinal);
                    left -= 1;
                    value.is_read = true;
                }
            }
        }
        if *takes {
            self.values.retain(|value| !given.contains(&value.ordinal));
        }
        given
    }
}

fn at(now_ms: i64) -> Now {
    Now {
        wall: Timestamp(now_ms * 1_000_000),
        elapsed: Duration::from_millis(now_ms.unsigned_abs()),
    }
}

fn writer(number: u32) -> PublicationHandle {
    PublicationHandle { participant: ParticipantId::Node(number), writer: 0 }
}

fn handle(instance: u8) -> InstanceHandle {
    InstanceHandle([instance; 16])
}

fn arrival(kind: Kind, instance: u8, by: u32, ordinal: u64, expires_ms: i64, now: Now) -> Arrival {
    let info =
        SampleInfo { ordinal, ..SampleInfo::of_state(handle(instance), writer(by), now.wall) };
    Arrival { kind, info, expires: Timestamp(expires_ms.saturating_mul(1_000_000)) }
}

/// Admits an arrival, and keeps it if it is admitted.
fn give(cache: &mut ReaderCache, arrival: &Arrival, now: Now) -> Result<(), RejectedReason> {
    match cache.admit(arrival, now) {
        Admission::Admitted(info) => cache.keep(info, None, arrival.expires),
        Admission::Ignored => Ok(()),
        Admission::Rejected(reason) => Err(reason),
    }
}

fn cache(change: impl FnOnce(&mut ReaderQos)) -> ReaderCache {
    let mut qos = ReaderQos::default();
    change(&mut qos);
    ReaderCache::new(qos)
}

/// Returns the values of the selected samples.
fn values(selected: &[Selected]) -> Vec<u64> {
    let values = selected.iter().filter(|sample| sample.info.valid_data);
    values.map(|sample| sample.info.ordinal).collect()
}

proptest! {
    #[test]
    fn reader_cache_matches_the_model(
        deeds in deeds(),
        depth in proptest::option::of(1_u32..4),
        max_samples in proptest::option::of(3_u32..8),
        max_instances in proptest::option::of(1_u32..4),
        each in proptest::option::of(1_u32..4),
    ) {
        let history = depth.map_or(History::KeepAll, History::KeepLast);
        let limits = ResourceLimits {
            max_samples,
            max_instances,
            max_samples_per_instance: each.map(|each| each.max(depth.unwrap_or(0))),
        };
        let mut cache = cache(|qos| (qos.history, qos.resource_limits) = (history, limits));
        let mut model =
            CacheModel { history, limits, values: Vec::new(), instances: BTreeMap::new() };
        let mut now_ms = 100;
        for (ordinal, deed) in (1..).zip(&deeds) {
            let now = at(now_ms);
            match deed {
                CacheDeed::Write { instance, writer, lives_ms } => {
                    let expires_ms = now_ms + lives_ms;
                    let value = Value { instance: *instance, ordinal, expires_ms, is_read: false };
                    let came = arrival(Kind::Data, *instance, *writer, ordinal, expires_ms, now);
                    let told = give(&mut cache, &came, now);
                    prop_assert_eq!(told, model.write(value, *writer, now_ms));
                }
                CacheDeed::End { instance, writer, kind } => {
                    model.expire(now_ms);
                    let came = arrival(*kind, *instance, *writer, ordinal, i64::MAX, now);
                    prop_assert_eq!(give(&mut cache, &came, now), Ok(()));
                    model.end(*instance, *writer, *kind);
                }
                CacheDeed::Leave { writer: gone } => {
                    cache.writer_left(writer(*gone), now);
                    for instance in 0..4 {
                        let told = model.instances.get(&instance);
                        if told.is_some_and(|told| told.writers.contains(gone)) {
                            model.end(instance, *gone, Kind::Unregister);
                        }
                    }
                }
                CacheDeed::Pass { ms } => now_ms += ms,
                CacheDeed::Select { takes, samples, states, .. } => {
                    // All samples are selected. A test below shows how state entries count towards
                    // a maximum.
                    let (takes, samples, states) = (*takes, *samples, *states);
                    let all = CacheDeed::Select { takes, max: usize::MAX, samples, states };
                    let selection = Selection {
                        samples,
                        instances: states,
                        ..Selection::default()
                    };
                    let given = cache.select(&selection, takes, now);
                    prop_assert_eq!(values(&given), model.select(&all, now_ms));
                    for sample in &given {
                        let told = &model.instances[&sample.info.instance_handle.0[0]];
                        let state = [
                            InstanceStates::ALIVE,
                            InstanceStates::NOT_ALIVE_DISPOSED,
                            InstanceStates::NOT_ALIVE_NO_WRITERS,
                        ][usize::from(told.state)];
                        prop_assert_eq!(sample.info.instance_state, state);
                        let info = &sample.info;
                        let own = info.disposed_generation_count + info.no_writers_generation_count;
                        prop_assert_eq!(told.revivals - own, info.absolute_generation_rank);
                    }
                    // State entries that have been returned are now read or removed.
                    for (instance, told) in &mut model.instances {
                        let is_meant = states == InstanceStates::all() || told.state == 0;
                        let gave = given.iter().any(|sample| {
                            let info = &sample.info;
                            info.instance_handle == handle(*instance) && !info.valid_data
                        });
                        if is_meant && gave {
                            let stays = told.notices[1] && !samples.contains(SampleStates::READ);
                            let read = !takes || stays;
                            told.notices = [false, read];
                        } else if is_meant {
                            prop_assert!(!told.notices[0], "of {} is not given out", instance);
                        }
                    }
                    model.forget();
                }
            }
        }
    }

    /// A deadline is missed once for each period that passes without a value while the instance is
    /// alive.
    #[test]
    fn deadline_misses_count_elapsed_periods(
        gaps_ms in proptest::collection::vec(1_u64..40, 1..20),
        period_ms in 2_u64..20,
    ) {
        let period = Duration::from_millis(period_ms);
        let mut cache = cache(|qos| qos.deadline = Deadline { period });
        let (mut now_ms, mut missed, mut expected) = (0_u64, 0, 0);
        for (ordinal, gap_ms) in (1..).zip(&gaps_ms) {
            let now = at(now_ms as i64);
            give(&mut cache, &arrival(Kind::Data, 0, 0, ordinal, i64::MAX, now), now).expect("room");
            // Checking every millisecond gives the same result as checking only once.
            for ms in 1..=*gap_ms {
                if ordinal.is_multiple_of(2) || ms == *gap_ms {
                    let late = cache.missed_deadlines(at((now_ms + ms) as i64).elapsed);
                    missed += late.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
                }
            }
            now_ms += gap_ms;
            expected += gap_ms / period_ms;
        }
        prop_assert_eq!(missed, expected);
        let now = at(now_ms as i64);
        give(&mut cache, &arrival(Kind::Dispose, 0, 0, 99, i64::MAX, now), now).expect("room");
        prop_assert_eq!(cache.missed_deadlines(at(now_ms as i64 + 1_000).elapsed).len(), 0);
    }

    /// The filter accepts the first sample, then the next one that arrives after the minimum
    /// separation.
    #[test]
    fn time_filter_drops_samples_that_come_too_soon(
        times_ms in proptest::collection::vec(0_i64..15, 1..30),
    ) {
        let mut cache = cache(|qos| {
            qos.history = History::KeepAll;
            qos.time_based_filter.minimum_separation = Duration::from_millis(10);
        });
        let (mut now_ms, mut last, mut expected) = (100, None, Vec::new());
        for (ordinal, gap_ms) in (1..).zip(&times_ms) {
            now_ms += gap_ms;
            let now = at(now_ms);
            give(&mut cache, &arrival(Kind::Data, 0, 0, ordinal, i64::MAX, now), now).expect("room");
            if last.is_none_or(|last| now_ms - last >= 10) {
                last = Some(now_ms);
                expected.push(ordinal);
            }
        }
        prop_assert_eq!(values(&cache.select(&Selection::default(), true, at(now_ms))), expected);
    }

    /// By source timestamp, the latest samples are kept whatever the order of arrival, and no
    /// returned sample is followed by an older one.
    #[test]
    fn source_timestamp_order_keeps_the_latest_samples(
        sources in proptest::collection::vec(0_i64..30, 1..20),
        later in proptest::collection::vec(0_i64..30, 0..10),
        depth in 1_usize..5,
    ) {
        let mut cache = cache(|qos| {
            qos.destination_order = DestinationOrder::BySourceTimestamp;
            qos.history = History::KeepLast(depth as u32);
        });
        let now = at(1_000);
        let mut ordinal = 0;
        let mut feed = |cache: &mut ReaderCache, source: i64| {
            ordinal += 1;
            let mut came = arrival(Kind::Data, 0, 0, ordinal, i64::MAX, now);
            came.info.source_timestamp = Timestamp(source);
            give(cache, &came, now).expect("it replaces");
        };
        for source in &sources {
            feed(&mut cache, *source);
        }
        let given = |cache: &mut ReaderCache| -> Vec<i64> {
            let selected = cache.select(&Selection::default(), true, now);
            selected.iter().map(|sample| sample.info.source_timestamp.0).collect()
        };
        let mut sorted = sources.clone();
        sorted.sort_unstable();
        let latest = sorted.split_off(sorted.len().saturating_sub(depth));
        prop_assert_eq!(given(&mut cache), latest.clone());
        for source in &later {
            feed(&mut cache, *source);
        }
        let mut after: Vec<i64> =
            later.iter().copied().filter(|source| Some(source) >= latest.last()).collect();
        after.sort_unstable();
        prop_assert_eq!(given(&mut cache), after.split_off(after.len().saturating_sub(depth)));
    }
}

#[test]
fn instance_states_follow_the_dds_standard() {
    let mut cache = cache(|qos| qos.history = History::KeepAll);
    let now = at(1);
    let mut ordinal = 0;
    let mut tell = |cache: &mut ReaderCache, kind, by| {
        ordinal += 1;
        give(cache, &arrival(kind, 7, by, ordinal, i64::MAX, now), now).expect("room");
    };
    tell(&mut cache, Kind::Data, 0);
    tell(&mut cache, Kind::Data, 1);
    tell(&mut cache, Kind::Unregister, 0);
    let seen = cache.select(&Selection::default(), false, now);
    assert_eq!(seen.len(), 2, "another writer has it still");
    assert_eq!(seen[0].info.view_state, ViewStates::NEW);
    assert_eq!([seen[0].info.sample_rank, seen[1].info.sample_rank], [1, 0]);

    tell(&mut cache, Kind::Unregister, 1);
    let seen = cache.select(&Selection::unread(), false, now);
    assert_eq!(seen.len(), 1);
    assert!(!seen[0].info.valid_data);
    assert_eq!(seen[0].info.view_state, ViewStates::NOT_NEW);
    assert_eq!(seen[0].info.instance_state, InstanceStates::NOT_ALIVE_NO_WRITERS);

    tell(&mut cache, Kind::Data, 0);
    tell(&mut cache, Kind::Dispose, 0);
    tell(&mut cache, Kind::Data, 0);
    let taken = cache.select(&Selection::default(), true, now);
    let last = &taken.last().expect("some").info;
    assert_eq!(last.view_state, ViewStates::NEW, "it came alive again");
    assert_eq!((last.no_writers_generation_count, last.disposed_generation_count), (1, 1));
    assert_eq!(taken[0].info.absolute_generation_rank, 2);
    assert_eq!(taken[0].info.generation_rank, 2);

    tell(&mut cache, Kind::DisposeAndUnregister, 0);
    assert_eq!(cache.select(&Selection::default(), true, now).len(), 1);
    assert_eq!(cache.instances.len(), 0, "nothing is left of it");
    tell(&mut cache, Kind::Dispose, 0);
    assert_eq!(cache.select(&Selection::default(), true, now).len(), 0, "it is unknown");
}

#[test]
fn ordered_access_returns_samples_in_topic_order() {
    for ordered in [false, true] {
        let mut cache = cache(|qos| {
            qos.history = History::KeepAll;
            qos.presentation.ordered_access = ordered;
            qos.presentation.access_scope = if ordered {
                crate::qos::AccessScope::Topic
            } else {
                crate::qos::AccessScope::Instance
            };
        });
        let now = at(1);
        for (ordinal, instance) in [(1, 2), (2, 1), (3, 2), (4, 1)] {
            give(&mut cache, &arrival(Kind::Data, instance, 0, ordinal, i64::MAX, now), now)
                .expect("room");
        }
        let first = values(&cache.select(&Selection::default().at_most(3), true, now));
        assert_eq!(first, if ordered { [1, 2, 3] } else { [2, 4, 1] });
        let rest = values(&cache.select(&Selection::default(), true, now));
        assert_eq!(rest, if ordered { [4] } else { [3] });
    }
}

#[test]
fn dead_instances_are_purged_after_their_delay() {
    let mut cache = cache(|qos| {
        qos.reader_data_lifecycle.autopurge_disposed_samples_delay = Duration::from_millis(5);
    });
    for (instance, kind) in [(0, Kind::Dispose), (1, Kind::Unregister)] {
        for kind in [Kind::Data, kind] {
            give(&mut cache, &arrival(kind, instance, 0, 1, i64::MAX, at(1)), at(1)).expect("room");
        }
    }
    cache.purge(at(5).elapsed);
    assert_eq!(cache.select(&Selection::default(), false, at(5)).len(), 4);
    cache.purge(at(6).elapsed);
    let left = cache.select(&Selection::default(), false, at(6));
    assert!(
        left.iter().all(|sample| sample.info.instance_handle == handle(1)),
        "the other has no delay"
    );
    assert_eq!((left.len(), cache.values), (2, 1));
}

/// A period of one nanosecond is missed 10^11 times in 100 s, and this is reported once and
/// immediately.
#[test]
fn nanosecond_deadline_misses_are_counted_at_once() {
    let period = Duration::from_nanos(1);
    let mut cache = cache(|qos| qos.deadline = Deadline { period });
    give(&mut cache, &arrival(Kind::Data, 0, 0, 1, i64::MAX, at(0)), at(0)).expect("room");
    let missed = cache.missed_deadlines(at(100_000).elapsed);
    assert_eq!(missed.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [u32::MAX]);
    let mut longest = self::cache(|qos| qos.deadline = Deadline { period: INFINITE - period });
    give(&mut longest, &arrival(Kind::Data, 0, 0, 1, i64::MAX, at(1)), at(1)).expect("room");
    assert_eq!(longest.missed_deadlines(at(100_000).elapsed), []);
}

/// When samples expire, conditions on them become false, and they no longer count towards the
/// limits.
#[test]
fn expired_sample_no_longer_counts() {
    let limits = ResourceLimits { max_samples: Some(1), ..ResourceLimits::default() };
    let mut cache = cache(|qos| {
        qos.history = History::KeepAll;
        qos.resource_limits = limits;
    });
    let value = arrival(Kind::Data, 0, 0, 1, 10, at(0));
    give(&mut cache, &value, at(0)).expect("room");
    assert!(cache.has(&Selection::default(), at(1)));
    assert!(cache.lacks_room_at(value.info.instance_handle, at(1)));
    assert!(!cache.lacks_room_at(value.info.instance_handle, at(11)));
    assert!(!cache.has(&Selection::default(), at(11)));
}
