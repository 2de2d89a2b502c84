//! Requests by external participants that are refused, and messages from them that do no harm.

use std::time::Duration;

use tramontane_client::{Publisher, PublisherOptions};
use tramontane_dds::{
    DdsError, History, Level, Liveliness, LivelinessKind, Octets, OutsideParticipant, PolicyId,
    ReaderQos, TopicDescription, TopicPlaces, WriterQos,
};

use crate::support::{PATIENCE, TestDomain, Track, take, track, until_read_by};

const TOPIC: &str = "Tracks";

fn topic() -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(Level::Volatile).window(16).sample_max(256)
}

fn told<T>(outcome: Result<T, DdsError>) -> String {
    match outcome {
        Ok(_) => panic!("it is refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn error_names_the_unavailable_external_request() {
    let inside = TopicDescription::new("Inside", "Octets");
    let mut place = TestDomain::new(1, [topic().clients(true), inside]);
    place.domain = place.domain.with_places([TopicPlaces::new(1)]).expect("a domain");
    let member = place.join(0);
    let later = TopicDescription::new("Later", "Octets").sample_max(64);
    member.create_untyped_topic(&later, PATIENCE).expect("a place");
    let other = TopicDescription { name: "Other".into(), ..later.clone() };
    let refused = member.create_untyped_topic(&other.clients(true), PATIENCE);
    assert!(told(refused).contains("no place is free"), "the place is for members alone");

    let outside = place.connect(0);
    assert!(told(outside.untyped_topic("Inside")).contains("set clients = true"));
    assert!(told(outside.untyped_topic("Later")).contains("or when you create it"));
    assert!(told(outside.untyped_topic("None")).contains("no topic of that name has been created"));
    assert!(told(outside.topic::<Octets>(TOPIC)).contains("has the type Track"));
    let tracks = outside.topic::<Track>(TOPIC).expect("a topic");
    // The group notices the loss of a client after a minute rather than after its failure timeout.
    let (kind, lease_duration) = (LivelinessKind::Automatic, Duration::from_secs(10));
    let liveliness = Liveliness { kind, lease_duration };
    let qos = WriterQos { liveliness, ..WriterQos::of(Level::Volatile) };
    let refused = outside.create_datawriter(&tracks, qos).expect_err("it is refused");
    let is_liveliness =
        matches!(refused, DdsError::InconsistentPolicy { policy: PolicyId::Liveliness, .. });
    assert!(is_liveliness, "{refused}");

    let refused = outside.create_datareader_from(&tracks, ReaderQos::default(), 1);
    assert!(told(refused).contains("no log"));

    // A domain that admits no external participants.
    let closed = TestDomain::new(1, [topic()]);
    let _member = closed.join(0);
    let refused = OutsideParticipant::connect(closed.members(0));
    assert!(told(refused).contains("accepts no clients"));
}

/// Arbitrary bytes, and bytes that resemble a participant's messages, are sent in a topic and in
/// discovery. They do no harm, and all participants continue.
#[test]
fn invalid_external_messages_are_harmless() {
    let place = TestDomain::new(2, [topic().clients(true)]);
    let members = place.join_all(0..2);
    let outside = place.connect(1);
    let tracks = members[0].topic::<Track>(TOPIC).expect("a topic");
    let qos = || ReaderQos {
        durability: Level::Volatile.durability(),
        presentation: Level::Volatile.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    };
    let reader = members[1].create_datareader(&tracks, qos()).expect("a reader");
    let of_outside = outside.topic::<Track>(TOPIC).expect("a topic");
    let beside = outside.create_datareader(&of_outside, qos()).expect("a reader");
    let mut writer =
        members[0].create_datawriter(&tracks, WriterQos::of(Level::Volatile)).expect("a writer");

    let mut random = RepeatedRandom(7);
    for subgroup in [TOPIC, "DCPS"] {
        let members = place.members(0).subgroup(subgroup);
        let hostile = Publisher::open(members, PublisherOptions::default()).expect("a client");
        for round in 0_u32..2_000 {
            let mut line: Vec<u8> = (0..random.next() % 200).map(|_| random.byte()).collect();
            // Each line begins with a valid version and kind of a header, or number of a message,
            // so that the rest is parsed.
            for (byte, value) in line.iter_mut().zip([1, (round % 9).to_le_bytes()[0], 1, 0]) {
                if round % 3 > 0 {
                    *byte = if subgroup == TOPIC { value } else { 0 };
                }
            }
            if round % 3 == 2 && subgroup != TOPIC && !line.is_empty() {
                line[0] = (round % 5).to_le_bytes()[0];
            }
            hostile.publish(&line).expect("it is taken");
        }
        hostile.wait(PATIENCE).expect("all of it is delivered");
    }
    until_read_by(&writer, 2);
    for number in 1..=50 {
        while let Err(error) = writer.write(&track(1, number)) {
            assert!(matches!(error, DdsError::Timeout(_)), "{error}");
        }
    }
    for reader in [&reader, &beside] {
        let numbers = take(reader, 50);
        let numbers = numbers.iter().filter(|sample| sample.info.valid_data);
        let numbers = numbers.map(|sample| sample.data().expect("a track").number);
        assert!(numbers.eq(1..=50));
        assert_eq!(reader.sample_lost_status().total_count, 0);
    }
    // The store is the same on all members, so a new reader on another member receives the same
    // samples.
    let late = place.connect(0);
    let of_late = late.topic::<Track>(TOPIC).expect("a topic");
    let late = late.create_datareader(&of_late, qos()).expect("a reader");
    let kept = take(&late, 1);
    assert_eq!(kept.last().expect("one is kept").data().expect("a track"), track(1, 50));
    assert!(members.iter().all(|member| member.stopped().is_none()));
}

/// The writers and readers of an external participant are limited, because all members store them.
#[test]
fn external_participants_state_is_bounded() {
    let place = TestDomain::new(1, [topic().clients(true)]);
    let member = place.join(0);
    let tracks = member.topic::<Track>(TOPIC).expect("a topic");
    let reader = member.create_datareader(&tracks, ReaderQos::default()).expect("a reader");
    let writer =
        member.create_datawriter(&tracks, WriterQos::of(Level::Volatile)).expect("a writer");
    let outside = place.connect(0);
    let of_outside = outside.topic::<Track>(TOPIC).expect("a topic");
    let writers: Vec<_> = (0..300)
        .map(|_| outside.create_datawriter(&of_outside, WriterQos::of(Level::Volatile)))
        .collect();
    let readers: Vec<_> =
        (0..300).map(|_| outside.create_datareader(&of_outside, ReaderQos::default())).collect();
    assert!(writers.iter().all(Result::is_ok) && readers.iter().all(Result::is_ok));
    drop(outside.create_datawriter(&of_outside, WriterQos::of(Level::Volatile)));
    outside.close(PATIENCE).expect("all is said");
    assert_eq!(reader.subscription_matched_status().current_count, 256 + 1);
    assert_eq!(writer.publication_matched_status().current_count, 256 + 1);
}

/// Random numbers that are the same in every run.
struct RepeatedRandom(u64);

impl RepeatedRandom {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[3]
    }
}
