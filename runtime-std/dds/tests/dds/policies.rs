//! Policies and statuses through real groups. A model next to the cache tests the effect of time on
//! a reader's cache; these tests show that time is checked.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tramontane_dds::{
    DataReaderListener, DataWriter, DataWriterListener, DeadlineMissedStatus, Disposition,
    DomainParticipant, Durability, History, Lent, Level, LivelinessChangedStatus, LivelinessKind,
    LivelinessLostStatus, OnSample, PolicyId, ReaderQos, ReliabilityKind, SampleLostStatus,
    Selection, StatusMask, TopicDescription, WaitSet, WriterQos,
};

use crate::support::{Notes, PATIENCE, TestDomain, Track, take, track, until};

const TOPIC: &str = "Tracks";

fn place() -> TestDomain {
    TestDomain::new(1, [TopicDescription::new(TOPIC, "Track").window(4).sample_max(256)])
}

fn tracks(own: &DomainParticipant) -> tramontane_dds::Topic<Track> {
    own.topic::<Track>(TOPIC).expect("a topic")
}

#[test]
fn mismatched_ends_report_policies_and_exchange_nothing() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let mut offered = WriterQos::of(Level::Atomic);
    offered.reliability.kind = ReliabilityKind::BestEffort;
    offered.user_data = b"radar".to_vec();
    let mut writer = own.create_datawriter(&topic, offered).expect("a writer");
    let mut wanted = ReaderQos { durability: Durability::Transient, ..ReaderQos::default() };
    wanted.deadline.period = Duration::from_secs(1);
    let wants = own.create_datareader(&topic, wanted).expect("a reader");
    let mut modest = ReaderQos::default();
    modest.reliability.kind = ReliabilityKind::BestEffort;
    let modest = own.create_datareader(&topic, modest).expect("a reader");
    until("they are compared", || {
        writer.status_changes().contains(StatusMask::OFFERED_INCOMPATIBLE_QOS)
            && modest.subscription_matched_status().current_count == 1
    });
    let differing = [PolicyId::Durability, PolicyId::Deadline, PolicyId::Reliability];
    for told in
        [wants.requested_incompatible_qos_status(), writer.offered_incompatible_qos_status()]
    {
        assert_eq!(told.policies, differing.map(|policy| (policy, 1)));
        assert_eq!(told.last_policy, Some(PolicyId::Durability));
    }
    assert!(!writer.status_changes().contains(StatusMask::OFFERED_INCOMPATIBLE_QOS), "it was read");
    until("the writer is matched", || writer.publication_matched_status().current_count == 1);
    writer.write(&track(1, 1)).expect("room");
    assert_eq!(take(&modest, 1).len(), 1);
    assert!(wants.take(&Selection::default()).is_empty());
    assert!(wants.matched_publications().expect("no listener").is_empty());
    let matched = modest.matched_publications().expect("no listener");
    assert_eq!(matched[0].qos.user_data, b"radar");
    assert_eq!(writer.matched_subscriptions().expect("no listener")[0].handle, modest.handle());
    drop(modest);
    until("it is gone", || writer.publication_matched_status().current_count == 0);
}

#[test]
fn unknown_type_or_topic_is_refused() {
    let place = place();
    let own = place.join(0);
    assert!(own.topic::<tramontane_dds::Octets>(TOPIC).is_err());
    assert!(own.topic::<Track>("Trucks").is_err());
}

/// A listener that records missed deadlines and leases.
struct Late(Notes<&'static str>);

impl DataReaderListener<Track> for Late {
    fn on_requested_deadline_missed(&mut self, _: &DeadlineMissedStatus) {
        self.0.lock().expect("no panic").push("requested");
    }

    fn on_liveliness_changed(&mut self, status: &LivelinessChangedStatus) {
        let what = if status.alive_count > 0 { "alive" } else { "not alive" };
        self.0.lock().expect("no panic").push(what);
    }
}

impl DataWriterListener for Late {
    fn on_offered_deadline_missed(&mut self, _: &DeadlineMissedStatus) {
        self.0.lock().expect("no panic").push("offered");
    }

    fn on_liveliness_lost(&mut self, _: &LivelinessLostStatus) {
        self.0.lock().expect("no panic").push("lost");
    }
}

#[test]
fn missed_deadline_is_reported_at_both_ends() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let notes: Notes<&'static str> = Arc::default();
    let (mut offered, mut wanted) = (WriterQos::of(Level::Atomic), ReaderQos::default());
    offered.deadline.period = Duration::from_millis(5);
    wanted.deadline.period = Duration::from_millis(5);
    let reader = own
        .create_datareader_with_listener(&topic, wanted, Late(Arc::clone(&notes)))
        .expect("a reader");
    let mut writer = own.create_datawriter(&topic, offered).expect("a writer");
    writer.set_listener(Late(Arc::clone(&notes))).expect("no listener");
    writer.write(&track(3, 1)).expect("room");
    until("both are told", || {
        let notes = notes.lock().expect("no panic");
        notes.contains(&"requested") && notes.contains(&"offered")
    });
    let missed = reader.requested_deadline_missed_status();
    assert_eq!(missed.last_instance, take(&reader, 1)[0].info.instance_handle);
    assert!(writer.offered_deadline_missed_status().total_count > 0);
    // An instance that has ended has no deadline.
    writer.unregister_instance(&3).expect("it has it");
    writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
    let _ = (reader.requested_deadline_missed_status(), writer.offered_deadline_missed_status());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(reader.requested_deadline_missed_status().total_count_change, 0);
    assert_eq!(writer.offered_deadline_missed_status().total_count_change, 0);
}

#[test]
fn silent_manual_writer_is_not_alive() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let notes: Notes<&'static str> = Arc::default();
    let reader = own
        .create_datareader_with_listener(&topic, ReaderQos::default(), Late(Arc::clone(&notes)))
        .expect("a reader");
    let mut offered = WriterQos::of(Level::Atomic);
    offered.liveliness.kind = LivelinessKind::ManualByTopic;
    offered.liveliness.lease_duration = Duration::from_millis(10);
    let mut writer = own.create_datawriter(&topic, offered).expect("a writer");
    writer.set_listener(Late(Arc::clone(&notes))).expect("no listener");
    writer.write(&track(3, 1)).expect("room");
    until("it falls silent", || {
        let notes = notes.lock().expect("no panic");
        notes.contains(&"not alive") && notes.contains(&"lost")
    });
    let ended = reader.take(&Selection::default()).pop().expect("its end");
    assert!(!ended.info.valid_data, "its instances have no writer");
    assert_eq!(writer.liveliness_lost_status().total_count, 1);
    notes.lock().expect("no panic").clear();
    writer.assert_liveliness().expect("room");
    until("it lives again", || notes.lock().expect("no panic").contains(&"alive"));
}

/// One of two writers asserts its liveliness, which speaks for both.
#[test]
fn one_writer_asserts_liveliness_of_participant() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let notes: Notes<&'static str> = Arc::default();
    let _reader = own
        .create_datareader_with_listener(&topic, ReaderQos::default(), Late(Arc::clone(&notes)))
        .expect("a reader");
    let mut offered = WriterQos::of(Level::Atomic);
    offered.liveliness.kind = LivelinessKind::ManualByParticipant;
    offered.liveliness.lease_duration = Duration::from_secs(1);
    offered.reliability.max_blocking_time = PATIENCE;
    let silent = own.create_datawriter(&topic, offered.clone()).expect("a writer");
    let mut speaker = own.create_datawriter(&topic, offered).expect("a writer");
    let started = Instant::now();
    let mut last = started;
    while started.elapsed() < Duration::from_millis(1_500) {
        speaker.assert_liveliness().expect("room");
        let pause = last.elapsed();
        if pause > Duration::from_millis(800) {
            eprintln!("inconclusive: the machine paused for {pause:?}");
            return;
        }
        last = Instant::now();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(silent.liveliness_lost_status().total_count, 0);
    assert!(!notes.lock().expect("no panic").contains(&"not alive"));
    let lost = |speaker: &DataWriter<Track>, times| {
        let counts = [&silent, speaker].map(|writer| writer.liveliness_lost_status().total_count);
        counts == [times; 2] && notes.lock().expect("no panic").contains(&"not alive")
    };
    until("both fall silent", || lost(&speaker, 1));
    notes.lock().expect("no panic").clear();
    speaker.assert_liveliness().expect("room");
    let alive = || notes.lock().expect("no panic").iter().filter(|what| **what == "alive").count();
    until("both live again", || alive() >= 2);
    until("both fall silent again", || lost(&speaker, 2));
}

#[test]
fn best_effort_drops_are_reported_to_readers() {
    /// A listener that delays delivery until it may continue.
    struct SlowListener(Arc<Mutex<()>>, Notes<u64>);
    impl DataReaderListener<Track> for SlowListener {
        fn on_sample(&mut self, sample: &Lent<'_, Track>) -> Disposition {
            drop(self.0.lock().expect("no panic"));
            if let Ok(track) = sample.data() {
                self.1.lock().expect("no panic").push(track.number);
            }
            Disposition::Taken
        }

        fn on_sample_lost(&mut self, status: &SampleLostStatus) {
            assert!(status.total_count_change > 0);
        }
    }
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let (gate, notes) = (Arc::new(Mutex::new(())), Notes::default());
    let mut wanted = ReaderQos::default();
    wanted.reliability.kind = ReliabilityKind::BestEffort;
    let slow = SlowListener(Arc::clone(&gate), Arc::clone(&notes));
    let reader = own.create_datareader_with_listener(&topic, wanted, slow).expect("a reader");
    let mut offered = WriterQos::of(Level::Atomic);
    offered.reliability.kind = ReliabilityKind::BestEffort;
    let mut writer = own.create_datawriter(&topic, offered).expect("a writer");
    let held = gate.lock().expect("no panic");
    // The window is 4, so at most four samples are in flight.
    (1..=50).for_each(|number| writer.write(&track(1, number)).expect("never an error"));
    assert!(writer.dropped() > 0, "there was room for all: inconclusive");
    drop(held);
    until("there is room again", || {
        let before = writer.dropped();
        writer.write(&track(1, 51)).expect("never an error");
        writer.dropped() == before
    });
    let dropped = writer.dropped();
    until("the last came", || notes.lock().expect("no panic").last() == Some(&51));
    assert_eq!(reader.sample_lost_status().total_count, dropped);
}

#[test]
fn expired_sample_is_never_delivered() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let reader = own.create_datareader(&topic, ReaderQos::default()).expect("a reader");
    let mut offered = WriterQos::of(Level::Atomic);
    offered.lifespan.duration = Duration::from_millis(500);
    let mut writer = own.create_datawriter(&topic, offered).expect("a writer");
    let long_ago = tramontane_dds::Timestamp(tramontane_dds::Timestamp::now().0 - 600_000_000);
    writer.write_w_timestamp(&track(1, 1), long_ago).expect("room");
    writer.write(&track(2, 2)).expect("room");
    let taken = reader.read(&Selection::default());
    let only = if taken.is_empty() { take(&reader, 1) } else { taken };
    assert_eq!(only.len(), 1);
    assert_eq!(only[0].data().expect("a track").number, 2);
    writer.write(&track(3, 3)).expect("room");
    let mut set = WaitSet::new();
    set.attach(reader.read_condition(Selection::unread()));
    assert_eq!(set.wait(PATIENCE), [0]);
    std::thread::sleep(Duration::from_millis(550));
    assert!(reader.take(&Selection::default()).is_empty(), "it has expired meanwhile");
}

#[test]
fn status_conditions_and_read_conditions_end_a_wait() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let reader = own.create_datareader(&topic, ReaderQos::default()).expect("a reader");
    let mut set = WaitSet::new();
    let matched = set.attach(reader.status_condition(StatusMask::SUBSCRIPTION_MATCHED));
    let readable = set.attach(reader.read_condition(Selection::unread()));
    assert!(set.wait(Duration::ZERO).is_empty());
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    assert_eq!(set.wait(PATIENCE), [matched]);
    assert_eq!(reader.subscription_matched_status().current_count, 1);
    writer.write(&track(1, 1)).expect("room");
    assert_eq!(set.wait(PATIENCE), [readable]);
    let available = reader.status_condition(StatusMask::DATA_AVAILABLE);
    until("that is told too", || available.trigger_value());
    assert_eq!(reader.take(&Selection::default()).len(), 1);
    assert!(!available.trigger_value());
    assert!(set.wait(Duration::ZERO).is_empty());
}

#[test]
fn samples_kept_by_listener_remain_readable() {
    let place = place();
    let own = place.join(0);
    let topic = tracks(&own);
    let odd = OnSample(|sample: &Lent<'_, Track>| match sample.data() {
        Ok(track) if track.number % 2 == 1 => Disposition::Taken,
        _ => Disposition::Keep,
    });
    let wanted = ReaderQos { history: History::KeepAll, ..ReaderQos::default() };
    let reader = own.create_datareader_with_listener(&topic, wanted, odd).expect("a reader");
    let mut writer = own.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    (1..=6).for_each(|number| writer.write(&track(1, number)).expect("room"));
    let kept: Vec<u64> =
        take(&reader, 3).iter().map(|sample| sample.data().expect("a track").number).collect();
    assert_eq!(kept, [2, 4, 6]);
}
