//! Topics created and deleted at run time, used by external participants.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane::Carrier;
use tramontane_dds::{
    DataReader, DdsError, DomainParticipant, History, Level, OutsideParticipant, ReaderQos,
    ResourceLimits, Selection, TopicDescription, TopicPlaces, TypeSupport, WriterQos,
};

use crate::support::{PATIENCE, TestDomain, Track, take, take_values, track, until, until_read_by};

const TOPIC: &str = "Tracks";
const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];
const LEVEL: Level = Level::Volatile;

fn places(count: u32, clients: bool) -> TopicPlaces {
    TopicPlaces { level: LEVEL, window: 16, sample_max: 256, clients, ..TopicPlaces::new(count) }
}

fn topic() -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(LEVEL).window(16).sample_max(256).clients(true)
}

/// Returns policies that request all samples in the topic's order.
fn ordered() -> ReaderQos {
    ReaderQos {
        durability: LEVEL.durability(),
        presentation: LEVEL.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    }
}

fn inside(own: &DomainParticipant) -> DataReader<Track> {
    let tracks = own.find_topic::<Track>(TOPIC, PATIENCE).expect("it comes");
    own.create_datareader(&tracks, ordered()).expect("a reader")
}

fn outside(own: &OutsideParticipant) -> DataReader<Track> {
    let tracks = own.find_topic::<Track>(TOPIC, PATIENCE).expect("it comes");
    own.create_datareader(&tracks, ordered()).expect("a reader")
}

/// Returns the number of each value in the order, and the value.
fn values(samples: &[tramontane_dds::Sample<Track>]) -> Vec<(u64, Track)> {
    let values = samples.iter().filter(|sample| sample.info.valid_data);
    values.map(|sample| (sample.info.ordinal, sample.data().expect("a track"))).collect()
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

/// The topic is deleted while members and external participants write: all readers receive the same
/// samples up to the deletion. Another topic may then use the same name and place.
#[test]
fn external_readers_receive_same_samples_until_topic_deletion() {
    for carrier in CARRIERS {
        let place = TestDomain::with_places(carrier, 2, [places(1, true)]);
        let members = place.join_all(0..2);
        let outsiders: Vec<_> = (0..2).map(|first| place.connect(first)).collect();
        assert!(outsiders[0].topic::<Track>(TOPIC).is_err(), "there is none yet");
        for round in 0..3_u32 {
            let made = members[1].create_topic::<Track>(&topic(), PATIENCE);
            drop(made.expect("the place is free"));
            let mut readers: Vec<_> = members.iter().map(inside).collect();
            readers.extend(outsiders.iter().map(outside));
            let mut writers = Vec::new();
            let offer = || WriterQos::of(LEVEL);
            for own in &members {
                let tracks = own.topic::<Track>(TOPIC).expect("it is there");
                writers.push(own.create_datawriter(&tracks, offer()).expect("a writer"));
            }
            for own in &outsiders {
                let tracks = own.topic::<Track>(TOPIC).expect("it is there");
                writers.push(own.create_datawriter(&tracks, offer()).expect("a writer"));
            }
            writers.iter().for_each(|writer| until_read_by(writer, 4));
            let writing = AtomicU32::new(0);
            std::thread::scope(|scope| {
                for (aircraft, mut writer) in (10 * round..).zip(writers) {
                    let writing = &writing;
                    scope.spawn(move || {
                        let mut number = 1;
                        let told = loop {
                            match writer.write(&track(aircraft, number)) {
                                Ok(()) => number += 1,
                                Err(DdsError::Timeout(_)) => continue,
                                Err(error) => break error,
                            }
                            if number == 20 {
                                writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
                                writing.fetch_add(1, Ordering::Relaxed);
                            }
                        };
                        assert!(matches!(told, DdsError::TopicDeleted), "{told:?}");
                        assert!(writer.is_topic_deleted());
                    });
                }
                until("samples flow", || writing.load(Ordering::Relaxed) == 4);
                members[0].delete_topic(TOPIC, PATIENCE).expect("it goes");
            });
            for reader in &readers {
                until("readers are told", || reader.is_topic_deleted());
                assert_eq!(reader.subscription_matched_status().current_count, 0);
            }
            let first = values(&readers[0].take(&Selection::default()));
            for reader in &readers[1..] {
                let given = values(&reader.take(&Selection::default()));
                assert!(
                    given == first,
                    "{} and not {}, in round {round}",
                    given.len(),
                    first.len()
                );
                assert_eq!(reader.sample_lost_status().total_count, 0);
            }
            for aircraft in 10 * round..10 * round + 4 {
                let of = first.iter().filter(|(_, track)| track.aircraft == aircraft);
                let numbers: Vec<u64> = of.map(|(_, track)| track.number).collect();
                assert!(numbers.len() > 10, "inconclusive: {numbers:?}");
                assert!(numbers.iter().copied().eq((1..).take(numbers.len())), "{numbers:?}");
            }
            assert!(outsiders[0].topic::<Track>(TOPIC).is_err(), "it is gone");
        }
        let plots = TopicDescription { type_name: "Plot".into(), ..topic() };
        drop(members[0].create_topic::<Plot>(&plots, PATIENCE).expect("a place again"));
        let plots = outsiders[1].find_topic::<Plot>(TOPIC, PATIENCE).expect("it comes");
        assert!(outsiders[1].topic::<Track>(TOPIC).is_err(), "it has another type");
        let reader = outsiders[1].create_datareader(&plots, ordered()).expect("a reader");
        let plots = outsiders[0].find_topic::<Plot>(TOPIC, PATIENCE).expect("it comes");
        let mut writer =
            outsiders[0].create_datawriter(&plots, WriterQos::of(LEVEL)).expect("a writer");
        writer.write(&Plot(9)).expect("room");
        let taken = take(&reader, 1);
        assert_eq!((taken[0].data().expect("a plot").0, taken[0].info.ordinal), (9, 2));
        drop((reader, writer));
        for own in outsiders {
            own.close(PATIENCE).expect("what was deleted is not waited for");
        }
    }
}

#[test]
fn late_external_participant_finds_created_topics() {
    let place =
        TestDomain::with_places(Carrier::SharedMemory, 1, [places(2, true), places(1, false)]);
    let member = place.join(0);
    let kept = topic().keep(History::KeepLast(2), ResourceLimits::default());
    let tracks = member.create_topic::<Track>(&kept, PATIENCE).expect("a place");
    let gone = TopicDescription { name: "Gone".into(), ..topic() };
    let gone_inside = member.create_topic::<Track>(&gone, PATIENCE).expect("a place");
    let alone = TopicDescription { name: "Alone".into(), ..topic().clients(false) };
    member.create_topic::<Track>(&alone, PATIENCE).expect("a place for members alone");
    let mut writer = member.create_datawriter(&tracks, WriterQos::of(LEVEL)).expect("a writer");
    (1..=5).for_each(|number| writer.write(&track(1, number)).expect("room"));
    let early = place.connect(0);
    let found = early.find_topic::<Track>("Gone", PATIENCE).expect("it is there");
    let mut outside_writer =
        early.create_datawriter(&found, WriterQos::of(LEVEL)).expect("a writer");
    member.delete_topic("Gone", PATIENCE).expect("it goes");
    until("it hears of it", || outside_writer.is_topic_deleted());
    let told = outside_writer.write(&track(1, 1)).expect_err("it is deleted");
    assert!(matches!(told, DdsError::TopicDeleted), "{told}");
    let old = early.create_datareader(&found, ReaderQos::default());
    assert!(matches!(old, Err(DdsError::TopicDeleted)), "the handle is of the old one");
    drop(gone_inside);

    let late = place.connect(0);
    assert_eq!(late.topics(), member.topics());
    let told = late.topic::<Track>("Alone").expect_err("it is for members alone");
    assert!(told.to_string().contains("does not admit external participants"), "{told}");
    let timed_out = late.find_topic::<Track>("Gone", Duration::from_millis(10));
    assert!(matches!(timed_out, Err(DdsError::Timeout(_))));
    let reader = outside(&late);
    until_read_by(&writer, 1);
    writer.write(&track(1, 6)).expect("room");
    let numbers: Vec<u64> =
        values(&take_values(&reader, 3)).into_iter().map(|(_, track)| track.number).collect();
    assert_eq!(numbers, [4, 5, 6]);
}
