//! External participants use topics created at run time while members are killed.

use tramontane_dds::{DdsError, History, Level, Octets, OutsideParticipant, ReaderQos, WriterQos};

use crate::outside::{take, write};
use crate::support::{CARRIERS, DomainFiles, PATIENCE, await_that};

const PLACES: &str =
    "[[places]]\ncount = 1\nlevel = \"volatile\"\nwindow = 16\nsample_max = 256\nclients = true\n";

/// While an external participant writes and reads a topic created at run time, its member and the
/// keeper of the places are killed and restart. No sample is lost or duplicated. Deleting the topic
/// takes effect for the participant too, and another topic may use its place. All this happens
/// twice.
#[test]
fn external_participant_keeps_topic_despite_killed_members() {
    const COUNT: u64 = 300;
    for carrier in CARRIERS {
        let place = DomainFiles::new(carrier, 3, PLACES);
        let mut processes = place.start_all(0..3);
        let outside = OutsideParticipant::connect(place.members(0)).expect("it is taken");
        for (round, victim) in [0_usize, 1].into_iter().enumerate() {
            let name = format!("Made-{round}");
            // The previous topic's place may not be free yet.
            await_that("a place is free", || {
                processes[2].ask(&format!("create {name} outside"), "").starts_with("created")
            });
            let topic = outside.find_topic::<Octets>(&name, PATIENCE).expect("it comes");
            let qos = ReaderQos {
                durability: Level::Volatile.durability(),
                presentation: Level::Volatile.presentation(),
                history: History::KeepAll,
                ..ReaderQos::default()
            };
            let reader = outside.create_datareader(&topic, qos).expect("a reader");
            let offers = WriterQos::of(Level::Volatile);
            let mut writer = outside.create_datawriter(&topic, offers).expect("a writer");
            await_that("they match", || writer.publication_matched_status().current_count == 1);
            write(&mut writer, 0..COUNT / 2);
            processes.remove(victim).kill();
            write(&mut writer, COUNT / 2..COUNT);
            writer.wait_for_acknowledgments(PATIENCE).expect("those that go on have it");
            let mut back = place.start(u32::try_from(victim).expect("few"));
            back.expect("joined");
            processes.insert(victim, back);
            let given = take(&reader, usize::try_from(COUNT).expect("few"));
            assert!(given.iter().map(|(_, number)| *number).eq(0..COUNT), "{given:?}");
            assert_eq!(reader.sample_lost_status().total_count, 0);
            processes[victim].ask(&format!("delete {name}"), "deleted");
            await_that("it is told", || reader.is_topic_deleted());
            let told = writer.write(&Octets(vec![0])).expect_err("it is deleted");
            assert!(matches!(told, DdsError::TopicDeleted), "{told}");
        }
        outside.close(PATIENCE).expect("nothing is under way");
    }
}
