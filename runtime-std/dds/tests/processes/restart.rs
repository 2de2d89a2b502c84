//! Participants that restart from their logs.

use std::collections::BTreeSet;

use crate::support::{CARRIERS, DomainFiles, ParticipantProcess, await_that};

const TOPIC: &str = "[[topics]]\nname = \"Records\"\ntype = \"Octets\"\nlevel = \"logged\"\n\
                     window = 16\nsample_max = 64\n";

/// Describes a logged topic all of whose samples are also kept in memory.
fn keeping() -> String {
    format!("{TOPIC}keep_depth = 1000000\n")
}

/// Parses a list of positions and numbers.
pub fn listed(said: &str) -> Vec<(u64, u64)> {
    let list = said.split_once(' ').map_or("", |(_, list)| list);
    list.split(',')
        .filter(|one| !one.is_empty())
        .map(|one| {
            let (place, number) = one.split_once(':').expect("two numbers");
            (place.parse().expect("a number"), number.parse().expect("a number"))
        })
        .collect()
}

/// Returns the numbers that a process has reported as held by a majority.
pub fn durable(said: &[String]) -> impl Iterator<Item = u64> {
    let numbers = said.iter().filter_map(|said| said.strip_prefix("durable "));
    numbers.map(|number| number.parse().expect("a number"))
}

/// Returns the samples that a new reader receives, and checks that they are in order and without
/// duplicates.
pub fn list(process: &mut ParticipantProcess) -> Vec<(u64, u64)> {
    let list = listed(&process.ask("list", "list"));
    assert!(list.is_sorted_by(|one, next| one.0 < next.0), "in the topic's order: {list:?}");
    let numbers: BTreeSet<u64> = list.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers.len(), list.len(), "none is doubled");
    list
}

/// Waits until all processes know exactly these writers, because messages that a participant sends
/// at its start may still be in flight.
fn await_matched(processes: &mut [ParticipantProcess], matched: &str) {
    for process in processes {
        await_that(matched, || process.ask("matched", "matched") == matched);
    }
}

/// All participants are killed while they write, and restart, three times. Readers receive every
/// sample that was reported as durable once, and all readers receive the same.
#[test]
fn all_participants_recover_logged_samples() {
    for carrier in CARRIERS {
        let place = DomainFiles::new(carrier, 3, &keeping());
        let (mut promised, mut before) = (BTreeSet::new(), Vec::new());
        for round in 0..3_u64 {
            let mut processes = place.start_all(0..3);
            let lists: Vec<_> = processes.iter_mut().map(list).collect();
            assert!(lists.iter().all(|list| *list == lists[0]), "the same at all: {lists:?}");
            assert!(lists[0].starts_with(&before), "what was there stays: {lists:?}, {before:?}");
            let numbers: BTreeSet<u64> = lists[0].iter().map(|(_, number)| *number).collect();
            assert!(numbers.is_superset(&promised), "all that was durable: {promised:?}");
            before.clone_from(&lists[0]);
            // When a process is gone, its writers are gone too.
            await_matched(&mut processes, "matched []");
            for (node, process) in (0_u64..).zip(&mut processes) {
                let from = round * 100_000 + node * 10_000;
                process.tell(&format!("write {from} {}", from + 10_000));
            }
            for (node, process) in (0_u64..).zip(&mut processes) {
                process.expect(&format!("durable {}", round * 100_000 + node * 10_000 + 5));
                promised.extend((0..=5).map(|number| round * 100_000 + node * 10_000 + number));
            }
            for process in processes {
                promised.extend(durable(&process.kill()));
            }
        }
        assert!(promised.len() > 30, "inconclusive");
    }
}

/// One participant is killed and restarts while the others write. It then has the same samples as
/// the others, and does not mistake its own previous writer, or any other writer that is gone, for
/// alive.
#[test]
fn restarted_participant_receives_missed_samples() {
    for carrier in CARRIERS {
        let place = DomainFiles::new(carrier, 3, &keeping());
        let mut processes = place.start_all(0..3);
        assert_eq!(processes[1].ask("read", "reads"), "reads");
        processes[2].ask("write 200 220", "written");
        for round in 0..2_u64 {
            processes.remove(2).kill();
            let from = 1_000 * (round + 1);
            processes[0].tell(&format!("write {from} {}", from + 60));
            processes[0].expect("durable");
            let mut back = place.start(2);
            back.expect("joined");
            processes.push(back);
            processes[0].expect("written");
            let from = 300 + 100 * round;
            processes[2].ask(&format!("write {from} {}", from + 5), "written");
            let own = list(&mut processes[2]);
            // A majority has the sample, but not every participant need have delivered it.
            await_that("the same at all", || {
                (0..2).all(|other| list(&mut processes[other]) == own)
            });
            assert_eq!(own.len() as u64, 20 + (round + 1) * 65);
            await_matched(&mut processes, "matched [0, 2]");
        }
        // A reader that was present all the time received each sample once.
        let given = listed(&processes[1].ask("taken", "taken"));
        assert_eq!(given, list(&mut processes[1]));
        // Node 0 has written, and restarts without writing. A participant that joins after that
        // knows its writers only from its log.
        processes.remove(0).kill();
        let mut back = place.start(0);
        back.expect("joined");
        processes.insert(0, back);
        processes.remove(2).kill();
        let mut back = place.start(2);
        back.expect("joined");
        processes.push(back);
        await_matched(&mut processes, "matched []");
        let own = list(&mut processes[2]);
        assert_eq!(list(&mut processes[0]), own);
        assert_eq!(own.len(), 150);
    }
}

/// If a topic keeps one sample in memory, a member still has all samples in its log, even those
/// that it missed while it was down, and even after all members were killed.
#[test]
fn restarted_member_can_read_within_its_log() {
    for carrier in CARRIERS {
        let place = DomainFiles::new(carrier, 3, &format!("{TOPIC}keep_depth = 1\n"));
        let mut processes = place.start_all(0..3);
        processes[0].ask("write 0 40", "written");
        processes.remove(2).kill();
        processes[1].ask("write 100 140", "written");
        let mut back = place.start(2);
        back.expect("joined");
        processes.push(back);
        let from = |process: &mut ParticipantProcess, first: u64, count: u64| {
            listed(&process.ask(&format!("from {first} {count}"), "from"))
        };
        let all = from(&mut processes[0], 1, 80);
        assert!(all.iter().map(|(_, number)| *number).eq((0..40).chain(100..140)), "{all:?}");
        for process in &mut processes {
            assert_eq!(from(process, 1, 80), all);
            let (first, rest) = (all[50].0, &all[50..]);
            assert_eq!(from(process, first, 30), rest);
        }
        processes.into_iter().for_each(|process| drop(process.kill()));
        let mut processes = place.start_all(0..3);
        processes[2].ask("write 200 210", "written");
        let again = from(&mut processes[2], 1, 90);
        assert!(again.starts_with(&all), "{again:?}, and before {all:?}");
        for process in &mut processes {
            assert_eq!(from(process, 1, 90), again);
        }
    }
}
