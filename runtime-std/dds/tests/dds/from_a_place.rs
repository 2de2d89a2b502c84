//! Readers that begin at a position of a logged topic, on members and on external participants.

use tramontane::Carrier;
use tramontane_dds::{
    DataReader, DataWriter, DdsError, Deadline, DomainParticipant, History, Level,
    OutsideParticipant, ReaderQos, TopicDescription, WriterQos,
};

use crate::support::{PATIENCE, TestDomain, Track, take_values, track, until, until_read_by};

const TOPIC: &str = "Tracks";
const CARRIERS: [Carrier; 2] = [Carrier::SharedMemory, Carrier::Tcp];

/// Returns a topic that keeps one sample in memory.
fn topic() -> TopicDescription {
    TopicDescription::new(TOPIC, "Track").level(Level::Logged).window(16).sample_max(256)
}

/// Returns policies that request all samples in the topic's order.
fn ordered() -> ReaderQos {
    ReaderQos {
        durability: Level::Logged.durability(),
        presentation: Level::Logged.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    }
}

fn inside_from(
    own: &DomainParticipant,
    qos: ReaderQos,
    first: u64,
) -> Result<DataReader<Track>, DdsError> {
    own.create_datareader_from(&own.topic::<Track>(TOPIC)?, qos, first)
}

fn outside_from(
    own: &OutsideParticipant,
    qos: ReaderQos,
    first: u64,
) -> Result<DataReader<Track>, DdsError> {
    own.create_datareader_from(&own.topic::<Track>(TOPIC)?, qos, first)
}

fn writer(own: &DomainParticipant) -> DataWriter<Track> {
    let tracks = own.topic::<Track>(TOPIC).expect("a topic");
    own.create_datawriter(&tracks, WriterQos::of(Level::Logged)).expect("a writer")
}

fn write(writer: &mut DataWriter<Track>, aircraft: u32, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        // On a busy machine, there may temporarily be no room.
        while let Err(error) = writer.write(&track(aircraft, number)) {
            assert!(matches!(error, DdsError::Timeout(_)), "{error}");
        }
    }
}

/// Returns each sample's number in the order, and its value.
fn given(reader: &DataReader<Track>, count: usize) -> Vec<(u64, Track)> {
    let values = take_values(reader, count);
    values.iter().map(|sample| (sample.info.ordinal, sample.data().expect("a track"))).collect()
}

/// Returns the first difference between two lists.
fn differing<T: PartialEq + Clone>(one: &[T], other: &[T]) -> Option<(usize, T, T)> {
    let differs = |(_, (one, other)): &(usize, (&T, &T))| one != other;
    let mut pairs = one.iter().zip(other).enumerate();
    pairs.find(differs).map(|(place, (one, other))| (place, one.clone(), other.clone()))
}

/// The reader begins in the middle while others write: each sample arrives once, up to the current
/// one and beyond.
#[test]
fn reader_can_begin_anywhere_during_writes() {
    const COUNT: u64 = 400;
    for (carrier, clients) in CARRIERS.into_iter().zip([false, true]) {
        let place = TestDomain::new(2, [topic().clients(clients)]).over(carrier);
        let members = place.join_all(0..2);
        let outside = clients.then(|| place.connect(1));
        let tracks = members[0].topic::<Track>(TOPIC).expect("a topic");
        let all_along = members[0].create_datareader(&tracks, ordered()).expect("a reader");
        let (mut one, mut other) = (writer(&members[0]), writer(&members[1]));
        write(&mut one, 1, 1..=100);
        one.wait_for_acknowledgments(PATIENCE).expect("a majority has it");
        let begin = |first| {
            let inside = members.iter().map(|own| inside_from(own, ordered(), first));
            let outside = outside.iter().map(|own| outside_from(own, ordered(), first));
            let readers =
                inside.chain(outside).map(|reader| (first, reader.expect("it is logged")));
            readers.collect::<Vec<_>>()
        };
        let (early, late) = std::thread::scope(|scope| {
            let writes = scope.spawn(|| write(&mut other, 2, 1..=COUNT));
            let early: Vec<_> = [0, 1, 2, 77].into_iter().flat_map(begin).collect();
            until("some came", || all_along.matched_publications().is_ok_and(|of| of.len() == 2));
            let late: Vec<_> = [100, 3].into_iter().flat_map(begin).collect();
            writes.join().expect("it writes");
            (early, late)
        });
        let all = usize::try_from(100 + COUNT).expect("few");
        let expected = given(&all_along, all);
        assert_eq!(expected.len(), all);
        let readers: Vec<_> = early.into_iter().chain(late).collect();
        for (first, reader) in &readers {
            let expected: Vec<_> = expected.iter().filter(|of| of.0 >= *first).cloned().collect();
            let given = given(reader, expected.len());
            assert!(given == expected, "from {first} on: {:?}", differing(&given, &expected));
            assert_eq!(reader.sample_lost_status().total_count, 0);
            // The reader knows the existing writers once it has caught up.
            until("it knows the writers", || {
                reader.matched_publications().is_ok_and(|of| of.len() == 2)
            });
        }
        until_read_by(&one, u32::try_from(readers.len() + 1).expect("few"));
        // No sample arrives twice.
        write(&mut one, 1, 101..=101);
        for (_, reader) in &readers {
            assert_eq!(given(reader, 1).len(), 1);
        }
    }
}

/// Messages that the log has dropped are counted, and the remaining ones are delivered.
#[test]
fn dropped_log_messages_are_reported_to_all_readers() {
    let mut place = TestDomain::new(1, [topic().clients(true)]);
    place.keep_bytes = Some(30_000);
    let member = place.join(0);
    let outside = place.connect(0);
    let mut writer = writer(&member);
    let mut count = 0;
    // Snapshots take a while, after which the log has dropped some messages.
    until("something is gone", || {
        write(&mut writer, 1, count + 1..=count + 100);
        count += 100;
        writer.wait_for_acknowledgments(PATIENCE).expect("it is on disk");
        let reader = inside_from(&member, ordered(), 1).expect("a reader");
        given(&reader, 1);
        reader.sample_lost_status().total_count > 0
    });
    let inside = inside_from(&member, ordered(), 1).expect("a reader");
    // The participant's member still has more messages in memory, and supplies those.
    let beside = outside_from(&outside, ordered(), 1).expect("a reader");
    for (reader, may_have_all) in [(inside, false), (beside, true)] {
        let mut all = Vec::new();
        until("the last one comes", || {
            all.extend(given(&reader, 1));
            all.last().is_some_and(|(_, track)| track.number == count)
        });
        let lost = reader.sample_lost_status().total_count;
        assert!(lost < count && (may_have_all || lost > 0), "{lost} of {count}");
        // The first two messages announce the participant and the writer.
        let expected = if lost > 0 { count + 2 - lost } else { count };
        assert_eq!(u64::try_from(all.len()).expect("few"), expected, "{lost} are lost");
        assert!(all.is_sorted_by(|one, next| one.1.number < next.1.number));
        until("it is matched", || reader.subscription_matched_status().current_count == 1);
    }
}

/// The announcement is both in the log and among the current messages, but there is only one
/// writer.
#[test]
fn log_reader_reports_mismatched_writer_once() {
    let place = TestDomain::new(1, [topic().clients(true)]);
    let member = place.join(0);
    let outside = place.connect(0);
    let mut writer = writer(&member);
    write(&mut writer, 1, 1..=5);
    let wants = || ReaderQos {
        deadline: Deadline { period: std::time::Duration::from_secs(60) },
        ..ordered()
    };
    let readers = [0, 3].map(|first| {
        let inside = inside_from(&member, wants(), first).expect("a reader");
        [inside, outside_from(&outside, wants(), first).expect("a reader")]
    });
    until("the writer is told of all", || {
        writer.offered_incompatible_qos_status().total_count == 4
    });
    for reader in readers.as_flattened() {
        until("it is told", || reader.requested_incompatible_qos_status().total_count > 0);
    }
    // All readers have caught up once they learn of another writer.
    let tracks = member.topic::<Track>(TOPIC).expect("a topic");
    let offers = WriterQos { deadline: wants().deadline, ..WriterQos::of(Level::Logged) };
    let mut matching = member.create_datawriter(&tracks, offers).expect("a writer");
    write(&mut matching, 2, 1..=1);
    for reader in readers.as_flattened() {
        assert_eq!(given(reader, 1)[0].1, track(2, 1));
        assert_eq!(reader.requested_incompatible_qos_status().total_count, 1);
    }
}

#[test]
fn reader_without_a_log_is_refused() {
    let nodes = topic().publishers([0]).subscribers([1]);
    let plain = TopicDescription::new("Plain", "Track").sample_max(256);
    let place = TestDomain::new(2, [nodes, plain]);
    let members = place.join_all(0..2);
    let told = |refused: Result<DataReader<Track>, DdsError>| {
        refused.map(drop).expect_err("it is refused").to_string()
    };
    assert!(told(inside_from(&members[0], ordered(), 1)).contains("is not a subscriber"));
    assert!(told(inside_from(&members[1], ordered(), 100)).contains("messages so far"));
    let plain = members[1].topic::<Track>("Plain").expect("a topic");
    let refused = members[1].create_datareader_from(&plain, ReaderQos::default(), 1);
    assert!(told(refused).contains("no log"));
}

/// The reader is deleted while it catches up: the writer learns of the deletion, and the reader's
/// thread ends.
#[test]
fn reader_deleted_while_catching_up_is_unmatched() {
    let place = TestDomain::new(1, [topic()]);
    let member = place.join(0);
    let mut writer = writer(&member);
    write(&mut writer, 1, 1..=500);
    for first in 0..50 {
        drop(inside_from(&member, ordered(), first * 10).expect("a reader"));
    }
    let last = inside_from(&member, ordered(), 1).expect("a reader");
    until_read_by(&writer, 1);
    assert_eq!(given(&last, 500).len(), 500);
    drop(last);
    until_read_by(&writer, 0);
    member.leave(PATIENCE).expect("it leaves");
}
