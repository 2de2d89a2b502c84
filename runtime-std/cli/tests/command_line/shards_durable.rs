//! Durable shards: the failures on the page about them, and the remedies.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use tramontane_fixtures::random::Random;

use crate::support::overlay::{DURABLE, NAMES, Overlay};
use crate::support::small_disk::SmallDisk;
use crate::support::{RunningProgram, wait_for};

fn kill(replicas: impl IntoIterator<Item = RunningProgram>) {
    for mut replica in replicas {
        replica.signal(Signal::KILL);
        replica.wait_with_input();
    }
}

/// A process that was killed while the group formed and one whose disk is lost both have no
/// state.
#[test]
fn killed_group_forms_again() {
    let mut random = Random::stream(1, "forming");
    for fabric in ["shm", "tcp"] {
        for _ in 0..6 {
            let overlay = Overlay::with(fabric, DURABLE);
            for _ in 0..3 {
                let replicas = overlay.start_all();
                std::thread::sleep(Duration::from_millis(random.below(120)));
                replicas.iter().for_each(|replica| replica.signal(Signal::KILL));
                kill(replicas);
            }
            let _replicas = overlay.start_all();
            overlay.await_leader("g1");
            overlay.send("g1,g2", "a line\n");
            overlay.await_same("g2", 1);
        }
    }
}

#[test]
fn lost_majority_of_disks_is_reported() {
    let overlay = Overlay::with("shm", DURABLE);
    let replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1,g2", "a line\n");
    kill(replicas);
    for lost in ["g1.1", "g1.2"] {
        fs::remove_dir_all(overlay.data_path().join(lost)).expect("it was there");
    }
    let mut replicas = overlay.start_all();
    let words = ["group g1 lost a majority", "remove their data folders"];
    for replica in &mut replicas[..3] {
        replica.wait_with_input().failed_at_last(9, &words);
    }
    kill(replicas.drain(3..));
    fs::remove_dir_all(overlay.data_path()).expect("it was there");
    let _replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1", "a new line\n");
    assert!(overlay.await_same("g1", 1).contains("a new line"));
}

/// The group forms anew, but the other group remembers the lost one.
#[test]
fn group_that_lost_all_disks_is_reported() {
    for group in ["g1", "g2"] {
        let overlay = Overlay::with("shm", DURABLE);
        let mut replicas = overlay.start_all();
        overlay.await_leader("g1");
        overlay.send("g1,g2", "a line\n");
        overlay.await_same("g2", 1);
        let lost = NAMES.iter().enumerate().filter(|(_, name)| name.starts_with(group));
        for (index, name) in lost {
            replicas[index].signal(Signal::KILL);
            replicas[index].wait_with_input();
            fs::remove_dir_all(overlay.data_path().join(name)).expect("it was there");
        }
        let is_lost = |name: &&str| name.starts_with(group);
        let again: Vec<_> =
            NAMES.iter().copied().filter(is_lost).map(|name| overlay.replica(name)).collect();
        for mut replica in again {
            let words = ["remembers", "the group's state is lost", "remove all data folders"];
            replica.wait_with_input().failed_at_last(9, &words);
        }
        kill(replicas);
        fs::remove_dir_all(overlay.data_path()).expect("it was there");
        let _replicas = overlay.start_all();
        overlay.await_leader("g1");
        overlay.send("g1,g2", "a new line\n");
        assert!(overlay.await_same("g2", 1).contains("a new line"));
    }
}

#[test]
fn replica_returns_from_full_disk() {
    let overlay = Overlay::with("shm", &(DURABLE.to_owned() + "message_max = 10000\n"));
    // The disk has room for one segment of 16 MiB and a snapshot, but not for two segments.
    let Some(disk) = SmallDisk::mount(&overlay.place, "24m") else { return };
    let others = NAMES.iter().filter(|name| **name != "g1.2");
    let _others: Vec<RunningProgram> = others.map(|name| overlay.replica(name)).collect();
    let command = overlay.replica_command("g1.2", disk.path());
    let mut full = overlay.place.start(&command);
    overlay.await_leader("g1");
    let line = "x".repeat(9_990) + "\n";
    overlay.send("g1", &line.repeat(2_500));
    full.wait_with_input().failed_at_last(4, &["no space is left"]);
    disk.remount("size=200m");
    let _again = overlay.place.start(&command);
    overlay.await_leader("g1");
    overlay.send("g1", "at last\n");
    overlay.await_same("g1", 2_501);
}

/// Returns an overlay whose replicas were killed, and in whose named folders a line is damaged.
fn damaged(names: &[&str]) -> Overlay {
    let overlay = Overlay::with("shm", DURABLE);
    let replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1,g2", "a line that is damaged\n");
    overlay.await_same("g1", 1);
    kill(replicas);
    for name in names {
        let segment = overlay.data_path().join(name).join("segment-00000001");
        let mut bytes = fs::read(&segment).expect("a segment");
        let word = b"damaged";
        let at = bytes.windows(word.len()).position(|part| part == word).expect("it was saved");
        bytes[at] ^= 1;
        fs::write(&segment, bytes).expect("it is written");
    }
    overlay
}

/// The replicas know that their group had begun, so they do not form it anew.
#[test]
fn group_with_damaged_folders_is_lost() {
    let overlay = damaged(&["g1.0", "g1.1", "g1.2"]);
    for _ in 0..2 {
        let mut replicas = overlay.start_all();
        // One that starts after the others have reported the loss waits for them.
        wait_for("two replicas report the loss", || {
            let running = replicas[..3].iter_mut().filter_map(|one| one.is_running().then_some(()));
            (running.count() <= 1).then_some(())
        });
        for mut replica in replicas.drain(..3) {
            if replica.is_running() {
                kill([replica]);
            } else {
                replica.wait_with_input().failed_at_last(9, &["group g1 lost a majority"]);
            }
        }
        kill(replicas);
    }
}

#[test]
fn damaged_folder_is_kept_and_reported() {
    let overlay = damaged(&["g1.1"]);
    let _replicas = overlay.start_all();
    overlay.await_leader("g1");
    overlay.send("g1,g2", "another line\n");
    overlay.await_same("g1", 2);
    let notice = wait_for("a notice", || {
        overlay.status()["replicas"][1]["status"]["notice"].as_str().map(str::to_owned)
    });
    assert!(notice.contains("data/g1.1.1; the replica returns without it"), "{notice}");
    assert!(overlay.data_path().join("g1.1.1/segment-00000001").is_file());
}

#[test]
fn folder_and_durable_overlay_require_each_other() {
    let durable = Overlay::with("shm", DURABLE);
    let replica = |overlay: &Overlay, words: &[&str]| {
        let command = overlay.command(&[&["--id", "g1.0"], words].concat());
        overlay.place.run(&command)
    };
    replica(&durable, &[]).failed(2, &["has no data folder", "--data DIR"]);
    let data = durable.data_path().display().to_string();
    let plain = Overlay::new("shm");
    replica(&plain, &["--data", &data]).failed(2, &["not durable", "durable = true"]);
    let text = fs::read_to_string(&durable.config).expect("the overlay file");
    let replicas = durable.start_all();
    durable.await_leader("g1");
    replica(&durable, &["--data", &data, "--join-timeout", "0.1"]).failed(5, &["already running"]);
    kill(replicas);
    fs::write(&durable.config, "log_entries = 99\n".to_owned() + &text).expect("it is written");
    replica(&durable, &["--data", &data]).failed(2, &["other groups or limits", "; "]);
    let references = "references_from = 1\n".to_owned() + &text;
    fs::write(&durable.config, references).expect("it is written");
    replica(&durable, &["--data", &data]).failed(2, &["passed by reference", "; "]);
}
