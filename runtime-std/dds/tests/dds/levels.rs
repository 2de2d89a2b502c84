//! The guarantees of each level.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tramontane_dds::{
    AccessScope, Disposition, DomainParticipant, Durability, History, Lent, Level, OnSample,
    ParticipantId, PublicationHandle, ReaderQos, ResourceLimits, TopicDescription, WriterQos,
};

use crate::support::{Notes, PATIENCE, TestDomain, Track, take, track, until, until_read_by};

const TOPIC: &str = "Tracks";

fn topic(level: Level) -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(level).window(16).sample_max(256)
}

/// A delivered sample: its writer, its number, and its position in the topic's order.
type Handed = (PublicationHandle, u64, u64);

/// Returns a reader that records every sample that it borrows.
fn noting(
    participant: &DomainParticipant,
    qos: ReaderQos,
) -> (tramontane_dds::DataReader<Track>, Notes<Handed>) {
    let notes: Notes<Handed> = Arc::default();
    let noted = Arc::clone(&notes);
    let listener = OnSample(move |sample: &Lent<'_, Track>| {
        let info = sample.info();
        if info.valid_data {
            let number = sample.data().expect("a track").number;
            assert_eq!(number, info.sequence, "none is lost or doubled");
            noted.lock().expect("no panic").push((info.publication_handle, number, info.ordinal));
        }
        Disposition::Taken
    });
    let tracks = participant.topic::<Track>(TOPIC).expect("a topic");
    let reader =
        participant.create_datareader_with_listener(&tracks, qos, listener).expect("a reader");
    (reader, notes)
}

fn ordered() -> ReaderQos {
    let mut qos = ReaderQos::default();
    (qos.presentation.access_scope, qos.presentation.ordered_access) = (AccessScope::Topic, true);
    qos
}

#[test]
fn readers_see_all_writers_in_one_order() {
    let place = TestDomain::new(3, [topic(Level::Atomic)]);
    let participants = place.join_all(0..3);
    let readers: Vec<_> = participants.iter().map(|own| noting(own, ordered())).collect();
    let count = 200;
    std::thread::scope(|scope| {
        for own in &participants {
            scope.spawn(move || {
                let tracks = own.topic::<Track>(TOPIC).expect("a topic");
                let mut writer =
                    own.create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
                until_read_by(&writer, 3);
                for number in 1..=count {
                    writer.write(&track(7, number)).expect("room");
                }
                writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
                // The member's end is reported too, because the others continue.
                until("all came", || {
                    let notes = own.status();
                    notes.view == 1
                });
            });
        }
    });
    let all = 3 * usize::try_from(count).expect("few");
    until("everything came", || {
        readers.iter().all(|(_, notes)| notes.lock().expect("no panic").len() == all)
    });
    let first = readers[0].1.lock().expect("no panic").clone();
    for (_, notes) in &readers {
        assert_eq!(*notes.lock().expect("no panic"), first, "one order, with the same ordinals");
    }
    let by_writer = |handle| first.iter().filter(move |(writer, ..)| *writer == handle);
    for participant in (0..3).map(ParticipantId::Node) {
        assert_eq!(by_writer(PublicationHandle { participant, writer: 0 }).count(), all / 3);
    }
    let mixed = first.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    assert!(mixed > 3, "writers wrote at the same time: inconclusive");
}

#[test]
fn unordered_samples_keep_each_writers_order() {
    let place = TestDomain::new(2, [topic(Level::Unordered)]);
    let participants = place.join_all(0..2);
    let readers: Vec<_> =
        participants.iter().map(|own| noting(own, ReaderQos::default())).collect();
    std::thread::scope(|scope| {
        for own in &participants {
            scope.spawn(move || {
                let tracks = own.topic::<Track>(TOPIC).expect("a topic");
                let mut writer = own
                    .create_datawriter(&tracks, WriterQos::of(Level::Unordered))
                    .expect("a writer");
                until_read_by(&writer, 2);
                (1..=100).for_each(|number| writer.write(&track(1, number)).expect("room"));
                let told = writer.wait_for_acknowledgments(PATIENCE);
                assert!(told.is_err(), "who has what is not known without order");
            });
        }
    });
    // The listener checks that each writer's numbers have no gaps.
    until("everything came", || {
        readers.iter().all(|(_, notes)| notes.lock().expect("no panic").len() == 200)
    });
}

#[test]
fn unordered_topic_does_not_match_ordered_request() {
    let place = TestDomain::new(1, [topic(Level::Unordered)]);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let refused = own.create_datawriter(&tracks, WriterQos::of(Level::Atomic));
    assert!(refused.is_err(), "a writer cannot offer what its topic does not give");
    let writer = own.create_datawriter(&tracks, WriterQos::of(Level::Unordered)).expect("a writer");
    let reader = own.create_datareader(&tracks, ordered()).expect("a reader");
    until("both ends are told", || {
        reader.requested_incompatible_qos_status().total_count == 1
            && writer.offered_incompatible_qos_status().total_count == 1
    });
}

fn kept(level: Level) -> ReaderQos {
    ReaderQos { durability: level.durability(), history: History::KeepAll, ..ordered() }
}

fn keeping(level: Level, depth: u32) -> TopicDescription {
    topic(level).keep(History::KeepLast(depth), ResourceLimits::default())
}

/// Returns the numbers of tracks, by aircraft.
fn numbers(taken: &[tramontane_dds::Sample<Track>]) -> BTreeMap<u32, Vec<u64>> {
    let mut numbers: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for sample in taken.iter().filter(|sample| sample.info.valid_data) {
        let track = sample.data().expect("a track");
        numbers.entry(track.aircraft).or_default().push(track.number);
    }
    numbers
}

#[test]
fn late_readers_and_participants_receive_kept_samples() {
    assert_late_readers_receive_kept_samples(Level::Volatile);
}

/// This also holds at the level logged, where an acknowledgement means that a sample is on disk.
#[test]
fn late_readers_and_participants_receive_logged_samples() {
    assert_late_readers_receive_kept_samples(Level::Logged);
}

fn assert_late_readers_receive_kept_samples(level: Level) {
    let place = TestDomain::formed_by(3, vec![0, 1], [keeping(level, 3)]);
    let mut participants = place.join_all(0..2);
    let tracks = participants[0].topic::<Track>(TOPIC).expect("a topic");
    let mut writer =
        participants[0].create_datawriter(&tracks, WriterQos::of(level)).expect("a writer");
    for number in 1..=20 {
        writer.write(&track(u32::try_from(number % 2).expect("few"), number)).expect("room");
    }
    writer.dispose(&1).expect("it wrote it");
    writer.unregister_instance(&1).expect("it wrote it");
    for number in 21..=22 {
        writer.write(&track(2, number)).expect("room");
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
    let expected = BTreeMap::from([(0, vec![16, 18, 20]), (2, vec![21, 22])]);

    // Another member has received all samples, and its reader is created later.
    until("the other member has delivered it", || {
        let late = participants[1].create_datareader(&tracks, kept(level)).expect("a reader");
        numbers(&late.take(&tramontane_dds::Selection::default())) == expected
    });
    let fresh = ReaderQos { durability: Durability::Volatile, ..kept(level) };
    let fresh = participants[1].create_datareader(&tracks, fresh).expect("a reader");
    assert!(fresh.take(&tramontane_dds::Selection::default()).is_empty(), "it asked for nothing");

    // A participant that joins later receives the state, and misses nothing after it.
    let third = place.join(2);
    let late = third.create_datareader(&tracks, kept(level)).expect("a reader");
    let taken = take(&late, 5);
    assert_eq!(numbers(&taken), expected);
    assert!(taken.iter().all(|sample| sample.info.is_historical));
    let ordinals: Vec<u64> = taken.iter().map(|sample| sample.info.ordinal).collect();
    assert!(ordinals.is_sorted(), "in the topic's order: {ordinals:?}");
    writer.write(&track(2, 23)).expect("room");
    let next = take(&late, 1);
    assert_eq!((next[0].data().expect("a track").number, next[0].info.is_historical), (23, false));
    assert_eq!(take(&fresh, 1)[0].info.ordinal, next[0].info.ordinal, "the same place for both");

    // Kept samples outlive their writer's participant.
    drop(writer);
    participants.remove(0).leave(PATIENCE).expect("it leaves");
    let survivor = third.create_datareader(&tracks, kept(level)).expect("a reader");
    let after = take(&survivor, 6);
    let after: Vec<u64> = numbers(&after).into_values().flatten().collect();
    assert_eq!(after, [16, 18, 20, 21, 22, 23]);
}

#[test]
fn survivors_agree_on_a_lost_members_samples() {
    let place = TestDomain::new(3, [topic(Level::Atomic)]);
    let mut participants = place.join_all(0..3);
    let readers: Vec<_> = participants[..2].iter().map(|own| noting(own, ordered())).collect();
    let lost = participants.pop().expect("three");
    let tracks = lost.topic::<Track>(TOPIC).expect("a topic");
    let mut writer =
        lost.create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
    until_read_by(&writer, 2);
    let writing = std::thread::spawn(move || {
        let mut number = 1;
        while writer.write(&track(1, number)).is_ok() {
            number += 1;
        }
    });
    until("some came", || {
        readers.iter().all(|(_, notes)| notes.lock().expect("no panic").len() > 50)
    });
    // The participant disappears silently while it is writing.
    drop(lost);
    writing.join().expect("it ends");
    until("both are told", || {
        readers.iter().all(|(reader, _)| {
            let status = reader.subscription_matched_status();
            (status.total_count, status.current_count) == (1, 0)
        })
    });
    let (one, other) = (&readers[0].1, &readers[1].1);
    assert_eq!(*one.lock().expect("no panic"), *other.lock().expect("no panic"));
    for (reader, _) in &readers {
        let lives = reader.liveliness_changed_status();
        assert_eq!((lives.alive_count, lives.not_alive_count), (0, 0));
    }
}

#[test]
fn full_keep_all_reader_delays_then_rejects() {
    let place = TestDomain::new(1, [topic(Level::Atomic)]);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let mut qos = ReaderQos { history: History::KeepAll, ..ReaderQos::default() };
    qos.resource_limits.max_samples = Some(3);
    qos.reliability.max_blocking_time = PATIENCE;
    let patient = own.create_datareader(&tracks, qos.clone()).expect("a reader");
    let mut writer =
        own.create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
    let writing = std::thread::spawn(move || {
        (1..=6).for_each(|number| writer.write(&track(1, number)).expect("room"));
        writer
    });
    // If taken as they arrive, all six samples are received, although the reader keeps only three.
    let taken = take(&patient, 6);
    assert_eq!(numbers(&taken)[&1], [1, 2, 3, 4, 5, 6]);
    assert_eq!(patient.sample_rejected_status().total_count, 0);
    let mut writer = writing.join().expect("it ends");
    drop(patient);
    qos.reliability.max_blocking_time = Duration::from_millis(1);
    let hasty = own.create_datareader(&tracks, qos).expect("a reader");
    (7..=11).for_each(|number| writer.write(&track(1, number)).expect("room"));
    until("two are rejected", || hasty.sample_rejected_status().total_count == 2);
    assert_eq!(numbers(&take(&hasty, 3))[&1], [7, 8, 9]);
}

#[test]
fn listener_may_write_but_not_wait() {
    let answers = TopicDescription::new("Answers", "Track").sample_max(256);
    let place = TestDomain::new(1, [topic(Level::Atomic), answers]);
    let own = place.join(0);
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    let answered = own.topic::<Track>("Answers").expect("a topic");
    let mut answering =
        own.create_datawriter(&answered, WriterQos::of(Level::Atomic)).expect("a writer");
    let waited = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&waited);
    let listener = OnSample(move |sample: &Lent<'_, Track>| {
        if sample.info().valid_data {
            answering.write(&sample.data().expect("a track")).expect("room");
            let told =
                answering.wait_for_acknowledgments(PATIENCE).map_err(|error| error.to_string());
            *noted.lock().expect("no panic") = Some(told);
        }
        Disposition::Taken
    });
    let _reader = own
        .create_datareader_with_listener(&tracks, ReaderQos::default(), listener)
        .expect("a reader");
    let answers = own.create_datareader(&answered, ReaderQos::default()).expect("a reader");
    let mut writer =
        own.create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
    writer.write(&track(4, 1)).expect("room");
    assert_eq!(take(&answers, 1)[0].data().expect("a track"), track(4, 1));
    let told = waited.lock().expect("no panic").clone().expect("it was called");
    assert!(told.expect_err("refused").contains("listener"));
}
