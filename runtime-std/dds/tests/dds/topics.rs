//! Topics that are created and deleted at run time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane::Carrier;
use tramontane_dds::{
    DataReader, DdsError, Disposition, DomainParticipant, History, Lent, Level, OnSample,
    ParticipantId, ReaderQos, ResourceLimits, Selection, TopicDescription, TopicPlaces,
    TypeSupport, WriterQos,
};

use crate::support::{Notes, PATIENCE, TestDomain, Track, take, track, until, until_read_by};

const TOPIC: &str = "Tracks";
const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

fn places(level: Level, count: u32) -> TopicPlaces {
    TopicPlaces { level, window: 16, sample_max: 256, ..TopicPlaces::new(count) }
}

fn topic(level: Level) -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(level).window(16).sample_max(256)
}

/// A received sample: its writer's participant and number, and the sample's number.
type Given = ((ParticipantId, u32), u64);

fn noting(own: &DomainParticipant) -> (DataReader<Track>, Notes<Given>) {
    let notes: Notes<Given> = Arc::default();
    let noted = Arc::clone(&notes);
    let listener = OnSample(move |sample: &Lent<'_, Track>| {
        let info = sample.info();
        if info.valid_data {
            let writer = (info.publication_handle.participant, info.publication_handle.writer);
            let number = sample.data().expect("a track").number;
            noted.lock().expect("no panic").push((writer, number));
        }
        Disposition::Taken
    });
    let tracks = own.find_topic::<Track>(TOPIC, PATIENCE).expect("it comes");
    let reader = own.create_datareader_with_listener(&tracks, ReaderQos::default(), listener);
    (reader.expect("a reader"), notes)
}

/// A different type for the same topic name.
#[derive(Debug, Serialize, Deserialize)]
struct Plot(u32);

impl TypeSupport for Plot {
    const TYPE_NAME: &'static str = "Plot";
    type Key = u32;
    fn key(&self) -> u32 {
        self.0
    }
}

#[test]
fn topic_is_created_deleted_and_recreated_by_views() {
    for carrier in CARRIERS {
        let place = TestDomain::with_places(carrier, 3, [places(Level::Atomic, 1)]);
        let participants = place.join_all(0..3);
        assert_eq!(participants[0].status().view, 1);
        assert!(participants[2].topic::<Track>(TOPIC).is_err(), "there is none yet");
        let made = participants[1].create_topic::<Track>(&topic(Level::Atomic), PATIENCE);
        let tracks = made.expect("there is a place");
        until("all are in the next view", || participants.iter().all(|one| one.status().view == 2));

        let readers: Vec<_> = participants.iter().map(noting).collect();
        let mut writers = Vec::new();
        for own in &participants {
            let tracks = own.topic::<Track>(TOPIC).expect("it is there");
            let mut qos = WriterQos::of(Level::Atomic);
            qos.reliability.max_blocking_time = PATIENCE;
            let writer = own.create_datawriter(&tracks, qos).expect("a writer");
            until_read_by(&writer, 3);
            writers.push(writer);
        }
        std::thread::scope(|scope| {
            for writer in &mut writers {
                scope.spawn(|| {
                    (1..=50).for_each(|number| writer.write(&track(1, number)).expect("room"));
                    writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
                });
            }
        });
        until("everything came", || {
            readers.iter().all(|(_, notes)| notes.lock().expect("no panic").len() == 150)
        });
        let first = readers[0].1.lock().expect("no panic").clone();
        assert!(readers.iter().all(|(_, notes)| *notes.lock().expect("no panic") == first));

        participants[2].delete_topic(TOPIC, PATIENCE).expect("it goes");
        until("all are in the next view", || participants.iter().all(|one| one.status().view == 3));
        for ((reader, _), writer) in readers.iter().zip(&mut writers) {
            until("readers are told", || reader.is_topic_deleted());
            assert_eq!(reader.subscription_matched_status().current_count, 0);
            let told = writer.write(&track(1, 51));
            assert!(matches!(told, Err(DdsError::TopicDeleted)), "{told:?}");
            assert!(writer.is_topic_deleted());
        }
        let old = participants[1].create_datareader(&tracks, ReaderQos::default());
        assert!(matches!(old, Err(DdsError::TopicDeleted)), "the handle is of the old one");

        // This topic has the same name and place, but is a different one.
        let plots = TopicDescription::new(TOPIC, "Plot").window(16).sample_max(256);
        let plots = participants[0].create_topic::<Plot>(&plots, PATIENCE).expect("a place again");
        until("it is in the next view", || participants[0].status().view == 4);
        let late = participants[0].create_datareader(&plots, ReaderQos::default());
        let late = late.expect("a reader");
        assert!(writers[0].write(&track(1, 52)).is_err(), "an old writer writes no new topic");
        let qos = WriterQos::of(Level::Atomic);
        let mut fresh = participants[0].create_datawriter(&plots, qos).expect("a writer");
        fresh.write(&Plot(9)).expect("room");
        let taken = take(&late, 1);
        assert_eq!((taken[0].data().expect("a plot").0, taken[0].info.ordinal), (9, 2));
        drop((readers, writers));
    }
}

#[test]
fn identical_topic_is_shared_but_differing_one_refused() {
    let place = TestDomain::with_places(Carrier::SharedMemory, 2, [places(Level::Volatile, 1)]);
    let participants = place.join_all(0..2);
    let wanted = topic(Level::Volatile);
    std::thread::scope(|scope| {
        for own in &participants {
            scope.spawn(|| own.create_topic::<Track>(&wanted, PATIENCE).expect("one for both"));
        }
    });
    until("one topic, one view", || participants[0].status().view == 2);
    let differs = TopicDescription::new(TOPIC, "Plot").level(Level::Volatile);
    let told = participants[1].create_topic::<Plot>(&differs, PATIENCE).expect_err("it differs");
    assert!(told.to_string().contains("differs in type, window, sample_max"), "{told}");
    let told = participants[1].topic::<Plot>(TOPIC).expect_err("another type");
    assert!(told.to_string().contains("has the type Track"), "{told}");
    let told = participants[1].create_topic::<Plot>(&wanted, PATIENCE).expect_err("another type");
    assert!(told.to_string().contains("has the type Track"), "{told}");

    let another = TopicDescription { name: "Other".into(), ..topic(Level::Volatile) };
    let told = participants[0].create_topic::<Track>(&another, PATIENCE).expect_err("no place");
    assert!(matches!(&told, DdsError::NoPlace(why) if why.contains("Other")), "{told}");
    let unknown = participants[0].delete_topic("Other", PATIENCE).expect_err("there is none");
    assert!(unknown.to_string().contains("Other"), "{unknown}");
    let long = TopicDescription { topic_data: "x".repeat(700), ..another };
    let told = participants[0].create_topic::<Track>(&long, PATIENCE).expect_err("too long");
    assert!(matches!(told, DdsError::TooLong { .. }), "{told}");
    assert_eq!(participants[1].topics(), [wanted]);
    assert_eq!(participants[0].status().view, 2, "what is refused changes no view");
}

#[test]
fn joiner_finds_created_topics_and_their_samples() {
    for carrier in CARRIERS {
        let mut place = TestDomain::with_places(
            carrier,
            3,
            [places(Level::Volatile, 2), places(Level::Atomic, 1)],
        );
        place.domain = place.domain.with_group(|group| group.initial = vec![0, 1]);
        let participants = place.join_all(0..2);
        let wanted = topic(Level::Volatile).keep(History::KeepLast(5), ResourceLimits::default());
        let tracks = participants[0].create_topic::<Track>(&wanted, PATIENCE).expect("a place");
        let atomic = TopicDescription::new("Plots", "Plot").window(16).sample_max(256);
        participants[1].create_topic::<Plot>(&atomic, PATIENCE).expect("a place");
        let gone = TopicDescription { name: "Gone".into(), ..topic(Level::Volatile) };
        participants[1].create_topic::<Track>(&gone, PATIENCE).expect("a place");
        participants[0].delete_topic("Gone", PATIENCE).expect("it goes");
        let qos = WriterQos::of(Level::Volatile);
        let mut writer = participants[0].create_datawriter(&tracks, qos).expect("a writer");
        (1..=9).for_each(|number| writer.write(&track(1, number)).expect("room"));
        writer.wait_for_acknowledgments(PATIENCE).expect("all have it");

        let late = place.join(2);
        assert_eq!(late.topics(), participants[0].topics());
        let names: Vec<String> = late.topics().into_iter().map(|topic| topic.name).collect();
        assert_eq!(names, [TOPIC, "Plots"]);
        let qos = ReaderQos {
            durability: Level::Volatile.durability(),
            history: History::KeepAll,
            ..ReaderQos::default()
        };
        let tracks = late.topic::<Track>(TOPIC).expect("it is there");
        let reader = late.create_datareader(&tracks, qos).expect("a reader");
        until_read_by(&writer, 1);
        writer.write(&track(1, 10)).expect("room");
        let taken = take(&reader, 6);
        let numbers: Vec<u64> =
            taken.iter().map(|sample| sample.data().expect("a track").number).collect();
        assert_eq!(numbers, [5, 6, 7, 8, 9, 10]);
        let third = TopicDescription { name: "Third".into(), ..topic(Level::Volatile) };
        late.create_topic::<Track>(&third, PATIENCE).expect("a place for who came late too");
    }
}

#[test]
fn readers_receive_same_samples_until_topic_deletion() {
    for carrier in CARRIERS {
        let place = TestDomain::with_places(carrier, 3, [places(Level::Atomic, 1)]);
        let participants = place.join_all(0..3);
        let mut lengths = Vec::new();
        for round in 0..4_u32 {
            let made = participants[0].create_topic::<Track>(&topic(Level::Atomic), PATIENCE);
            made.expect("a place");
            let readers: Vec<_> = participants.iter().map(noting).collect();
            let writing = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for own in &participants {
                    let writing = &writing;
                    scope.spawn(move || {
                        let tracks = own.topic::<Track>(TOPIC).expect("it is there");
                        let qos = WriterQos::of(Level::Atomic);
                        let mut writer = own.create_datawriter(&tracks, qos).expect("a writer");
                        until_read_by(&writer, 3);
                        let mut number = 1;
                        let told = loop {
                            match writer.write(&track(round, number)) {
                                Ok(()) => number += 1,
                                Err(DdsError::Timeout(_)) => continue,
                                Err(error) => break error,
                            }
                            writing.fetch_add(u32::from(number == 20), Ordering::Relaxed);
                        };
                        assert!(matches!(told, DdsError::TopicDeleted), "{told:?}");
                    });
                }
                until("samples flow", || writing.load(Ordering::Relaxed) == 3);
                participants[1].delete_topic(TOPIC, PATIENCE).expect("it goes");
            });
            until("readers are told", || readers.iter().all(|(own, _)| own.is_topic_deleted()));
            let first = readers[0].1.lock().expect("no panic").clone();
            for (_, notes) in &readers {
                assert_eq!(*notes.lock().expect("no panic"), first, "one end for all");
            }
            for own in 0..3 {
                let of = first
                    .iter()
                    .filter(|((participant, _), _)| *participant == ParticipantId::Node(own));
                let numbers: Vec<u64> = of.map(|(_, number)| *number).collect();
                let expected: Vec<u64> = (1..).take(numbers.len()).collect();
                assert_eq!(numbers, expected, "from the first, of this round, without a gap");
            }
            lengths.push(first.len());
        }
        assert!(lengths.iter().all(|length| *length > 20), "inconclusive: {lengths:?}");
    }
}

/// The keeper of the places is lost during creations, and another participant completes them.
#[test]
fn topic_creation_completes_although_its_keeper_dies() {
    for carrier in CARRIERS {
        let place = TestDomain::with_places(carrier, 4, [places(Level::Atomic, 3)]);
        let mut participants = place.join_all(0..4);
        let lost = participants.remove(0);
        let names = ["a", "b", "c"];
        std::thread::scope(|scope| {
            for (own, name) in participants.iter().zip(names) {
                scope.spawn(move || {
                    let wanted = TopicDescription { name: name.into(), ..topic(Level::Atomic) };
                    own.create_topic::<Track>(&wanted, PATIENCE).expect("it comes all the same");
                });
            }
            std::thread::sleep(Duration::from_millis(3));
            drop(lost);
        });
        for own in &participants {
            for name in names {
                own.find_topic::<Track>(name, PATIENCE).expect("all have all");
            }
            assert_eq!(own.topics(), participants[0].topics());
        }
        let made = participants[1].topic::<Track>("a").expect("it is there");
        let mut writer =
            participants[1].create_datawriter(&made, WriterQos::of(Level::Atomic)).expect("one");
        let made = participants[2].topic::<Track>("a").expect("it is there");
        let reader =
            participants[2].create_datareader(&made, ReaderQos::default()).expect("a reader");
        until_read_by(&writer, 1);
        writer.write(&track(1, 1)).expect("room");
        assert_eq!(take(&reader, 1).len(), 1);
        assert!(reader.take(&Selection::default()).is_empty());
    }
}
