//! External participants while they or members are killed.

use std::collections::BTreeSet;
use std::time::Duration;

use tramontane_dds::{
    DataReader, DataWriter, DdsError, History, Level, Octets, OutsideParticipant, ReaderQos,
    Selection, WaitSet, WriterQos,
};

use crate::restart::{durable, list};
use crate::support::{CARRIERS, DomainFiles, LOGGED, PATIENCE, ParticipantProcess, await_that};

/// A logged topic all of whose samples are also kept in memory, and a lease of a few seconds.
const TOPIC: &str = "[[topics]]\nname = \"Records\"\ntype = \"Octets\"\nlevel = \"logged\"\n\
                     window = 16\nsample_max = 64\nkeep_depth = 1000000\nclients = true\n";

const LEASE_MS: u64 = 6_000;

fn all() -> ReaderQos {
    ReaderQos {
        durability: Level::Logged.durability(),
        presentation: Level::Logged.presentation(),
        history: History::KeepAll,
        ..ReaderQos::default()
    }
}

fn reader(own: &OutsideParticipant) -> DataReader<Octets> {
    let topic = own.untyped_topic(LOGGED).expect("it is there");
    own.create_datareader(&topic, all()).expect("a reader")
}

pub fn write(writer: &mut DataWriter<Octets>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let sample = Octets(number.to_le_bytes().to_vec());
        // While a member is being removed, there may temporarily be no room.
        while let Err(error) = writer.write(&sample) {
            assert!(matches!(error, DdsError::Timeout(_)), "{error}");
        }
    }
}

/// Takes `count` samples, and returns the position of each in the topic's order, and its number.
pub fn take(reader: &DataReader<Octets>, count: usize) -> Vec<(u64, u64)> {
    let mut set = WaitSet::new();
    set.attach(reader.read_condition(Selection::unread()));
    let mut taken = Vec::new();
    await_that("samples come", || {
        if !set.wait(Duration::from_millis(50)).is_empty() {
            let samples = reader.take(&Selection::default());
            let values = samples.iter().filter(|sample| sample.info.valid_data);
            taken.extend(values.map(|sample| {
                let bytes = sample.data().expect("bytes").0;
                let number = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
                (sample.info.ordinal, number)
            }));
        }
        taken.len() >= count
    });
    taken
}

/// The member to which an external writer and reader are connected is killed while samples flow,
/// and restarts. Then the same happens to the other member, to which they may have switched. No
/// sample is lost or duplicated, and all readers see one order.
#[test]
fn killing_the_contact_member_loses_no_sample() {
    const COUNT: u64 = 900;
    for carrier in CARRIERS {
        let place = DomainFiles::with_lease(carrier, 3, TOPIC, LEASE_MS);
        let mut processes = place.start_all(0..3);
        let outside = OutsideParticipant::connect(place.members(2)).expect("it is taken");
        let topic = outside.untyped_topic(LOGGED).expect("it is there");
        let offers = WriterQos::of(Level::Logged);
        let mut writer = outside.create_datawriter(&topic, offers).expect("a writer");
        let early = reader(&outside);
        write(&mut writer, 0..COUNT / 3);
        for (round, victim) in (1_u64..).zip([2, 0]) {
            processes.remove(victim).kill();
            write(&mut writer, round * COUNT / 3..(round + 1) * COUNT / 3);
            let mut back = place.start(u32::try_from(victim).expect("few"));
            back.expect("joined");
            processes.insert(victim, back);
        }
        writer.wait_for_acknowledgments(PATIENCE).expect("a majority comes to have it");
        let given = take(&early, usize::try_from(COUNT).expect("few"));
        assert!(given.iter().map(|(_, number)| *number).eq(0..COUNT), "{given:?}");
        assert_eq!(early.sample_lost_status().total_count, 0);
        // A new participant receives the same samples, and so do members.
        assert_eq!(take(&reader(&outside), given.len()), given);
        for process in &mut processes {
            await_that("the same at all", || list(process) == given);
        }
        outside.close(PATIENCE).expect("nothing is under way");
        assert!(early.take(&Selection::default()).is_empty(), "nothing comes twice");
        assert!(early.sample_lost_status().total_count == 0);
    }
}

/// The topic keeps only one sample in memory, but its log has all. An external reader begins at any
/// position in the log while samples are written, and receives each sample once, up to the current
/// one and beyond.
#[test]
fn external_reader_can_begin_within_the_log() {
    for carrier in CARRIERS {
        let topic = TOPIC.replace("keep_depth = 1000000", "keep_depth = 1");
        let place = DomainFiles::with_lease(carrier, 3, &topic, 60_000);
        let mut processes = place.start_all(0..3);
        let outside = OutsideParticipant::connect(place.members(1)).expect("it is taken");
        let records = outside.untyped_topic(LOGGED).expect("it is there");
        let all_along = reader(&outside);
        processes[0].ask("write 0 300", "written");
        processes[2].tell("write 1000 1300");
        processes[2].expect("durable 1010");
        let begin = |first| {
            let own = outside.create_datareader_from(&records, all(), first);
            own.expect("the log has it")
        };
        let readers = [begin(0), begin(1), begin(100), begin(250)];
        processes[2].expect("written");
        let given = take(&all_along, 600);
        assert_eq!(given.len(), 600);
        for (reader, first) in readers.iter().zip([0, 1, 100, 250]) {
            let expected: Vec<_> = given.iter().filter(|one| one.0 >= first).copied().collect();
            assert_eq!(take(reader, expected.len()), expected, "from {first} on");
            assert_eq!(reader.sample_lost_status().total_count, 0);
            // The reader knows the existing writers once it has caught up.
            await_that("it knows the writers", || {
                reader.matched_publications().expect("no listener").len() == 2
            });
        }
        let last = given.last().expect("it is there").0;
        let refused = outside.create_datareader_from(&records, all(), last + 100);
        assert!(refused.expect_err("not yet").to_string().contains("messages so far"));
        // No sample arrives twice.
        processes[0].ask("write 2000 2001", "written");
        for reader in &readers {
            assert_eq!(take(reader, 1).len(), 1);
        }
    }
}

fn matched(process: &mut ParticipantProcess) -> String {
    process.ask("matched", "matched")
}

/// An external participant is killed. Samples that a majority had are kept. After the participant's
/// lease, members and external participants all consider its writers gone.
#[test]
fn killed_external_participant_is_removed_after_lease() {
    for carrier in CARRIERS {
        let place = DomainFiles::with_lease(carrier, 3, TOPIC, LEASE_MS);
        let mut processes = place.start_all(0..3);
        let beside = OutsideParticipant::connect(place.members(1)).expect("it is taken");
        let reader = reader(&beside);
        let mut victim = place.start_outside(0);
        let name = victim.expect("outside").replace("outside ", "");
        victim.expect("durable 1000005");
        for process in &mut processes {
            await_that("its writer is known", || matched(process) == format!("matched [{name}]"));
        }
        await_that("known outside", || reader.subscription_matched_status().current_count == 1);
        let promised: BTreeSet<u64> =
            (1_000_000..=1_000_005).chain(durable(&victim.kill())).collect();
        for process in &mut processes {
            await_that("its writer is gone", || matched(process) == "matched []");
        }
        await_that("gone outside", || reader.subscription_matched_status().current_count == 0);
        let kept = list(&mut processes[0]);
        let numbers: BTreeSet<u64> = kept.iter().map(|(_, number)| *number).collect();
        assert!(numbers.is_superset(&promised), "{promised:?}");
        assert_eq!(take(&reader, kept.len()), kept);
    }
}

/// All members are killed and restart from their logs while an external participant waits. The
/// participant continues, and receives each missing sample once.
#[test]
fn external_participant_survives_restart_of_all_members() {
    for carrier in CARRIERS {
        let place = DomainFiles::with_lease(carrier, 3, TOPIC, 60_000);
        let processes = place.start_all(0..3);
        let outside = OutsideParticipant::connect(place.members(1)).expect("it is taken");
        let topic = outside.untyped_topic(LOGGED).expect("it is there");
        let offers = WriterQos::of(Level::Logged);
        let mut writer = outside.create_datawriter(&topic, offers).expect("a writer");
        let early = reader(&outside);
        write(&mut writer, 0..50);
        writer.wait_for_acknowledgments(PATIENCE).expect("a majority has it");
        processes.into_iter().for_each(|process| drop(process.kill()));
        let mut processes = place.start_all(0..3);
        write(&mut writer, 50..100);
        writer.wait_for_acknowledgments(PATIENCE).expect("a majority comes to have it");
        let given = take(&early, 100);
        assert!(given.iter().map(|(_, number)| *number).eq(0..100), "{given:?}");
        for process in &mut processes {
            await_that("the same at all", || list(process) == given);
        }
    }
}
