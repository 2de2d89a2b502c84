//! `tramontane-copy`: members that are killed at any moment. Either all surviving receivers have
//! everything, or none has anything, and each reports which.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::copies::{hosts, hosts_in_memory, targets};
use crate::support::{ProgramEnd, RunningProgram, TestFolder};
use rustix::process::Signal;

/// Number of copies with a killed member, for each kind of victim and each fabric.
const TRIES: u32 = 10;

/// Size of the copied file in bytes.
const BYTES: usize = 24 << 20;

/// Time limit for meeting a member that has been killed.
const JOIN_SECONDS: &str = "5";

const SENDER: usize = 0;

/// A copy from node 0 to two others.
struct Copy {
    members: Vec<RunningProgram>,
    to: [PathBuf; 2],
    place: TestFolder,
}

impl Copy {
    fn start(fabric: &str) -> Self {
        let place = TestFolder::new();
        let file = place.file("file", &vec![7; BYTES]).display().to_string();
        let to: [PathBuf; 2] = targets(&place);
        let describe = if fabric == "shm" { hosts_in_memory } else { hosts };
        let config = describe(&place, 3);
        let member = |id: &str, rest: &[&str]| {
            let limits = ["--join-timeout", JOIN_SECONDS];
            place.start(&[&["--config", &config, "--id", id], &limits[..], rest].concat())
        };
        let to_text = [0, 1].map(|number| to[number].display().to_string());
        let members = vec![
            member("0", &[&file]),
            member("1", &["--to", &to_text[0]]),
            member("2", &["--to", &to_text[1]]),
        ];
        Self { members, to, place }
    }

    /// Returns how all members exited, and whether each receiver has the file.
    fn end(self) -> (Vec<ProgramEnd>, [bool; 2]) {
        let ended = self.members.into_iter().map(RunningProgram::wait).collect();
        let has = [0, 1].map(|number| has_file(&self.to[number]));
        drop(self.place);
        (ended, has)
    }
}

/// Returns whether the file has arrived. If so, it must be complete.
fn has_file(to: &Path) -> bool {
    match std::fs::read(to.join("file")) {
        Ok(content) => {
            assert!(content.len() == BYTES && content.iter().all(|byte| *byte == 7), "half of it");
            true
        }
        Err(_) => false,
    }
}

#[test]
#[ignore = "forty copies, one after the other; CI runs it"]
fn surviving_receivers_agree_after_any_kill() {
    for fabric in ["shm", "tcp"] {
        let started = Instant::now();
        let (ended, has) = Copy::start(fabric).end();
        assert!(has == [true; 2], "{ended:?}");
        let whole = started.elapsed();
        let mut counts = [0; 2];
        for victim in [SENDER, 2] {
            for number in 0..TRIES {
                // Members spend the beginning of a run meeting, when a kill tests least.
                let at = whole.mul_f64(0.3 + 0.7 * f64::from(number) / f64::from(TRIES));
                let has = kill(fabric, victim, at);
                counts[usize::from(has)] += 1;
            }
        }
        println!("{fabric}: a whole copy takes {whole:?}; none or all had it: {counts:?}");
    }
}

/// Kills a member after `at`, and returns whether the surviving receivers have the file.
fn kill(fabric: &str, victim: usize, at: Duration) -> bool {
    let copy = Copy::start(fabric);
    std::thread::sleep(at);
    copy.members[victim].signal(Signal::KILL);
    let (ended, has) = copy.end();
    let statuses: Vec<_> = ended.iter().map(|ended| ended.status.code()).collect();
    println!("{fabric}, node {victim} after {at:?}: {statuses:?}, {has:?}");
    let told = format!("{fabric}, node {victim} after {at:?}: {ended:?}, {has:?}");
    let living: Vec<bool> = [0, 1]
        .into_iter()
        .filter(|number| number + 1 != victim)
        .map(|number| has[number])
        .collect();
    assert!(living.iter().all(|has| *has == living[0]), "{told}");
    for (member, ended) in ended.iter().enumerate().filter(|(member, _)| *member != victim) {
        let has = if member == SENDER { living[0] } else { has[member - 1] };
        match ended.status.code() {
            Some(0) => assert!(has, "{told}"),
            // Some receivers have the file: this one does, and the killed one may not.
            Some(6) if has => {
                let is_said = ["not every", "not at every", "unknown which"]
                    .iter()
                    .any(|words| ended.errors.contains(words));
                assert!(is_said, "{told}");
            }
            Some(5 | 6) => assert!(!has && !ended.errors.contains("is complete"), "{told}"),
            _ => panic!("{told}"),
        }
    }
    living[0]
}
