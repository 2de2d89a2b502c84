//! External participants together with members.

use std::sync::Arc;

use tramontane::Carrier;
use tramontane_dds::{
    AccessScope, DataReader, DataReaderListener, DataWriter, DdsError, Disposition, History,
    InstanceStates, Lent, Level, Octets, OutsideParticipant, ParticipantId, PublicationHandle,
    ReaderQos, ResourceLimits, Selection, StatusMask, TopicDescription, WaitSet, WriterQos,
};

use crate::support::{
    Notes, PATIENCE, TestDomain, Track, take, take_values, track, until, until_read_by,
};

const TOPIC: &str = "Tracks";
const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

fn topic(level: Level) -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(level).window(16).sample_max(256).clients(true)
}

/// Returns policies that request all samples in the topic's order.
fn ordered(level: Level) -> ReaderQos {
    ReaderQos {
        durability: level.durability(),
        presentation: level.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    }
}

fn outside_reader(own: &OutsideParticipant, qos: ReaderQos) -> DataReader<Track> {
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    own.create_datareader(&tracks, qos).expect("a reader")
}

fn outside_writer(own: &OutsideParticipant, level: Level) -> DataWriter<Track> {
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    own.create_datawriter(&tracks, WriterQos::of(level)).expect("a writer")
}

/// A sample's writer, its number in the order and among its writer's samples, its position in the
/// group's order, and its value.
type Given = (PublicationHandle, u64, u64, (u64, u64), Track);

fn given(reader: &DataReader<Track>, count: usize) -> Vec<Given> {
    let taken = take_values(reader, count);
    let mut given: Vec<Given> = taken
        .iter()
        .map(|sample| {
            let info = &sample.info;
            let place = (info.place.0.get(), info.place.1.get());
            let data = sample.data().expect("a track");
            (info.publication_handle, info.ordinal, info.sequence, place, data)
        })
        .collect();
    given.sort_by_key(|one| one.1);
    given
}

fn write(writer: &mut DataWriter<Track>, aircraft: u32, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        // On a busy machine, there may temporarily be no room.
        while let Err(error) = writer.write(&track(aircraft, number)) {
            assert!(matches!(error, DdsError::Timeout(_)), "{error}");
        }
    }
    writer.wait_for_acknowledgments(PATIENCE).expect("all have it");
}

#[test]
fn members_and_external_participants_share_one_order() {
    const COUNT: u64 = 100;
    for carrier in CARRIERS {
        let place = TestDomain::new(2, [topic(Level::Atomic)]).over(carrier);
        let members = place.join_all(0..2);
        let outside: Vec<_> = (0..2).map(|first| place.connect(first)).collect();
        let tracks = members[0].topic::<Track>(TOPIC).expect("a topic");
        let qos = || ordered(Level::Atomic);
        let mut readers: Vec<_> = outside.iter().map(|own| outside_reader(own, qos())).collect();
        readers.extend(
            members.iter().map(|own| own.create_datareader(&tracks, qos()).expect("a reader")),
        );
        let offer = || WriterQos::of(Level::Atomic);
        let mut writers: Vec<_> =
            outside.iter().map(|own| outside_writer(own, Level::Atomic)).collect();
        writers.extend(
            members.iter().map(|own| own.create_datawriter(&tracks, offer()).expect("a writer")),
        );
        writers.iter().for_each(|writer| until_read_by(writer, 4));
        std::thread::scope(|scope| {
            for (aircraft, writer) in (0..).zip(&mut writers) {
                scope.spawn(move || write(writer, aircraft, 1..=COUNT));
            }
        });
        let all = 4 * usize::try_from(COUNT).expect("few");
        let first = given(&readers[0], all);
        assert_eq!(first.len(), all);
        for reader in &readers[1..] {
            assert_eq!(given(reader, all), first, "the same, with the same numbers");
        }
        for writer in &writers {
            let of = first.iter().filter(|one| one.0 == writer.handle());
            assert!(of.map(|one| one.2).eq(1..=COUNT), "none is lost or doubled");
        }
        let mixed = first.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        assert!(mixed > 3, "writers wrote at the same time: inconclusive");
        let mut known: Vec<_> = readers[0]
            .matched_publications()
            .expect("no listener")
            .iter()
            .map(|writer| writer.handle.participant)
            .collect();
        known.sort();
        let mut all = vec![ParticipantId::Node(0), ParticipantId::Node(1)];
        all.extend(outside.iter().map(OutsideParticipant::id));
        all.sort();
        assert_eq!(known, all);
    }
}

/// Kept samples arrive once and first, including those of deleted writers, and are followed by new
/// samples. A member that joins later receives the announcements of external writers.
#[test]
fn late_participants_receive_kept_samples_once() {
    for carrier in CARRIERS {
        let kept = ResourceLimits::default();
        let topic = topic(Level::Volatile).keep(History::KeepLast(2), kept);
        let place = TestDomain::formed_by(2, vec![0], [topic]).over(carrier);
        let member = place.join(0);
        let tracks = member.topic::<Track>(TOPIC).expect("a topic");
        let qos = || ordered(Level::Volatile);
        let mut inside =
            member.create_datawriter(&tracks, WriterQos::of(Level::Volatile)).expect("a writer");
        write(&mut inside, 1, 1..=5);
        let early = place.connect(0);
        let mut outside = outside_writer(&early, Level::Volatile);
        write(&mut outside, 2, 1..=5);
        let mut gone = outside_writer(&early, Level::Volatile);
        write(&mut gone, 3, 1..=5);
        drop(gone);

        let late = place.connect(0);
        let readers = [outside_reader(&late, qos()), outside_reader(&early, qos())];
        let joined = place.join(1);
        let again = joined.topic::<Track>(TOPIC).expect("a topic");
        let at_joined = joined.create_datareader(&again, qos()).expect("a reader");
        until_read_by(&inside, 3);
        until_read_by(&outside, 3);
        write(&mut inside, 1, 6..=7);
        write(&mut outside, 2, 6..=7);
        let first = given(&at_joined, 10);
        let told: Vec<_> = first.iter().map(|one| (one.4.aircraft, one.4.number)).collect();
        let kept = [(1, 4), (1, 5), (2, 4), (2, 5), (3, 4), (3, 5)];
        assert_eq!(told, [&kept[..], &[(1, 6), (1, 7), (2, 6), (2, 7)]].concat());
        for reader in &readers {
            assert_eq!(given(reader, 10), first);
        }
        // No sample arrives twice.
        write(&mut inside, 1, 8..=8);
        for reader in readers.iter().chain([&at_joined]) {
            assert_eq!(given(reader, 1).len(), 1);
        }
    }
}

#[test]
fn external_policy_mismatch_is_reported_at_both_ends() {
    let place = TestDomain::new(1, [topic(Level::Atomic)]);
    let member = place.join(0);
    let tracks = member.topic::<Track>(TOPIC).expect("a topic");
    let outside = place.connect(0);
    let wants = ReaderQos { durability: Level::Volatile.durability(), ..ReaderQos::default() };
    let inside_writer =
        member.create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
    let outside_writer = outside_writer(&outside, Level::Atomic);
    let inside_reader = member.create_datareader(&tracks, wants.clone()).expect("a reader");
    let outside_reader = outside_reader(&outside, wants);
    for reader in [&inside_reader, &outside_reader] {
        until("both writers offer too little", || {
            reader.requested_incompatible_qos_status().total_count == 2
        });
        assert_eq!(reader.subscription_matched_status().current_count, 0);
    }
    for writer in [&inside_writer, &outside_writer] {
        until("both readers want more", || {
            writer.offered_incompatible_qos_status().total_count == 2
        });
        assert_eq!(writer.publication_matched_status().current_count, 0);
    }
}

/// When a writer, a reader or a participant is deleted, all others notice.
#[test]
fn deleted_external_entities_are_unmatched_everywhere() {
    let place = TestDomain::new(2, [topic(Level::Atomic)]);
    let members = place.join_all(0..2);
    let tracks = members[0].topic::<Track>(TOPIC).expect("a topic");
    let (outside, other) = (place.connect(0), place.connect(1));
    let qos = ordered(Level::Atomic);
    let inside = members[1].create_datareader(&tracks, qos.clone()).expect("a reader");
    let beside = outside_reader(&other, qos.clone());
    let mut writer = outside_writer(&outside, Level::Atomic);
    let second = outside_writer(&outside, Level::Atomic);
    let member_writer =
        members[0].create_datawriter(&tracks, WriterQos::of(Level::Atomic)).expect("a writer");
    let own = outside_reader(&outside, qos);
    until_read_by(&member_writer, 3);
    until_read_by(&second, 3);
    write(&mut writer, 1, 1..=1);
    for reader in [&inside, &beside] {
        until("all writers", || reader.subscription_matched_status().current_count == 3);
        assert_eq!(take(reader, 1)[0].info.instance_state, InstanceStates::ALIVE);
    }
    drop(second);
    for reader in [&inside, &beside] {
        until("one is gone", || reader.subscription_matched_status().current_count == 2);
    }
    // The participant sends nothing more and has nothing in flight, so the group forgets it at
    // once.
    std::mem::forget(writer);
    drop(own);
    until_read_by(&member_writer, 2);
    outside.close(PATIENCE).expect("nothing is under way");
    for reader in [&inside, &beside] {
        assert_eq!(reader.subscription_matched_status().current_count, 2, "its writer lives");
    }
    drop(other);
    until("its reader lives", || member_writer.publication_matched_status().current_count == 2);
}

/// All members are lost at once, and the domain starts again. The reader reports that the history
/// has changed for the samples read before, and reads the new ones from the beginning.
#[test]
fn external_reader_detects_a_restarted_domain() {
    let place = TestDomain::new(
        1,
        [topic(Level::Volatile).keep(History::KeepLast(9), ResourceLimits::default())],
    );
    let write_as_member = |count| {
        let member = place.join(0);
        let tracks = member.topic::<Track>(TOPIC).expect("a topic");
        let offer = WriterQos::of(Level::Volatile);
        let mut writer = member.create_datawriter(&tracks, offer).expect("a writer");
        write(&mut writer, 1, 1..=count);
        (writer, member)
    };
    let before = write_as_member(5);
    let outside = place.connect(0);
    let reader = outside_reader(&outside, ordered(Level::Volatile));
    let first = given(&reader, 5)[0].1;
    assert_eq!(reader.sample_lost_status().history_changed_from, None);
    drop(before);
    place.forget(0);
    let _after = write_as_member(3);
    let mut changed = None;
    until("another history", || {
        changed = reader.sample_lost_status().history_changed_from;
        changed.is_some()
    });
    // The message before the first sample, which is the writer's announcement, may be the same.
    assert!(changed <= Some(first), "{changed:?}");
    let again = given(&reader, 3);
    assert_eq!((again.len(), again[0].1), (3, first));
}

#[derive(Clone, Default)]
struct Listener(Notes<(u64, bool)>);

impl DataReaderListener<Octets> for Listener {
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        if sample.info().valid_data {
            let bytes = sample.data().expect("bytes").0;
            let is_whole = bytes.iter().all(|byte| *byte == bytes[0]);
            let note = (u64::try_from(bytes.len()).expect("few"), is_whole);
            self.0.lock().expect("no panic").push(note);
        }
        Disposition::Taken
    }
}

/// External participants also build samples in place, and their listeners also borrow them. The
/// topic's other writers and readers may be anywhere.
#[test]
fn external_participants_build_and_borrow_samples_in_place() {
    let bytes = TopicDescription::new("Bytes", "Octets").sample_max(2_000).clients(true);
    let place = TestDomain::new(1, [bytes]);
    let _member = place.join(0);
    let (writes, reads) = (place.connect(0), place.connect(0));
    let topic = reads.topic::<Octets>("Bytes").expect("a topic");
    let listener = Listener::default();
    let notes = Arc::clone(&listener.0);
    let mut qos = ReaderQos::default();
    (qos.presentation.access_scope, qos.presentation.ordered_access) = (AccessScope::Topic, true);
    let reader = reads.create_datareader_with_listener(&topic, qos, listener).expect("a reader");
    let topic = writes.topic::<Octets>("Bytes").expect("a topic");
    let mut writer =
        writes.create_datawriter(&topic, WriterQos::of(Level::Atomic)).expect("a writer");
    until_read_by(&writer, 1);
    for size in [1, 1_500, 7] {
        let mut loan = writer.loan_octets(size).expect("a place");
        loan.bytes().fill(u8::try_from(size % 251).expect("small"));
        loan.write().expect("room");
    }
    drop(writer.loan_octets(5).expect("a place"));
    writer.write(&Octets(vec![9; 3])).expect("room");
    writer.loan_octets(2_001).map(drop).expect_err("larger than the topic takes");
    until("all came", || notes.lock().expect("no panic").len() == 4);
    let all = [1, 1_500, 7, 3].map(|bytes| (bytes, true));
    assert_eq!(*notes.lock().expect("no panic"), all);
    let mut set = WaitSet::new();
    set.attach(reader.status_condition(StatusMask::SUBSCRIPTION_MATCHED));
    assert!(!set.wait(PATIENCE).is_empty());
    assert!(reader.take(&Selection::default()).is_empty(), "the listener took all");
}
