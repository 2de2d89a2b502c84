//! Topics that are created and deleted while participants are killed.

use std::time::{Duration, Instant};

use crate::support::{CARRIERS, DomainFiles, PATIENCE, await_that};

const PLACES: &str = "[[places]]\ncount = 3\nwindow = 16\nsample_max = 256\n";

/// A participant is killed at some moment while it creates and deletes a topic. All survivors, and
/// a participant that joins later, agree whether the topic exists, and all places remain usable.
#[test]
fn kill_during_topic_creation_leaves_topics_consistent() {
    for carrier in CARRIERS {
        let place = DomainFiles::new(carrier, 3, PLACES);
        let mut processes = place.start_all(0..3);
        // Kills the keeper of the places, and then another participant, at different moments.
        for (round, wait_ms) in [0_u64, 1, 2, 5, 9, 17].into_iter().enumerate() {
            let victim = if round % 2 == 0 { 2 } else { 0 };
            processes[victim].tell("churn Churned");
            processes[victim].expect("deleted");
            std::thread::sleep(Duration::from_millis(wait_ms));
            processes.remove(victim).kill();
            let came_again = place.start(u32::try_from(victim).expect("few"));
            processes.insert(victim, came_again);
            processes[victim].expect("joined");
            await_same(&mut processes);
            let left = topics(&processes[1].ask("topics", "topics"));
            if left.contains(&"Churned".to_owned()) {
                processes[1].ask("delete Churned", "deleted");
            }
            for name in ["a", "b", "c"] {
                // The deleted topic's place may not be free yet.
                await_that("a place is free", || {
                    processes[1].ask(&format!("create {name}"), "").starts_with("created")
                });
            }
            let told = processes[1].ask("create d", "not d");
            assert!(told.contains("no place is free"), "{told}");
            for name in ["a", "b", "c"] {
                processes[victim].ask(&format!("delete {name}"), "deleted");
            }
            await_same(&mut processes);
        }
    }
}

fn topics(said: &str) -> Vec<String> {
    let names = said.strip_prefix("topics ").expect("so it begins");
    let names = names.split_once(" at ").expect("so it goes on").0;
    names.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Waits until all processes have the same topics and members.
fn await_same(processes: &mut [crate::support::ParticipantProcess]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut said: Vec<String> =
            processes.iter_mut().map(|process| process.ask("topics", "topics")).collect();
        said.dedup();
        let is_whole = |said: &String| said.matches(", ").count() == 2;
        if said.len() == 1 && said.iter().all(is_whole) {
            return;
        }
        assert!(Instant::now() < until, "{said:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
