//! Replicas of a durable overlay are killed and start at random, often all at once, and lose single
//! disks, or get back older ones, while clients send. In the end all replicas run: each has every
//! answered line once, and all agree on the order.
//!
//! The seed determines the plan; its outcome also depends on the machine. A failure prints the
//! seed. `TRAMONTANE_SEED` is the first seed, and `TRAMONTANE_SEEDS` the number of seeds.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tramontane_fixtures::random::Random;

use crate::node_lost_disks::copy_folder;
use crate::support::overlay::{DURABLE, NAMES, Overlay};
use crate::support::{LONG, RunningProgram, random_seeds, wait_for};

/// The exit status of a replica that ends on request while it starts.
const TERMINATED: i32 = 143;

/// The time within which a replica with an older disk is rejected.
const REJECTION: Duration = Duration::from_secs(2);

/// The time within which the others have saved what they have seen of a disk.
const SEEN: Duration = Duration::from_millis(500);

const PAUSES_MS: [u64; 5] = [0, 20, 100, 300, 1000];

/// The destinations of the clients.
const DESTINATIONS: [&str; 3] = ["g1", "g2", "g1,g2"];

struct ShardLives {
    random: Random,
    overlay: Overlay,
    replicas: [Option<RunningProgram>; NAMES.len()],
    clients: [RunningProgram; DESTINATIONS.len()],
    written: usize,
    /// The replica whose disk was last replaced with an older copy.
    rolled_back: Option<usize>,
    /// Number of replicas that were rejected because of an older disk.
    rejected: usize,
}

impl ShardLives {
    fn new(seed: u64) -> Self {
        let mut random = Random::stream(seed, "shard lives");
        let fabric = ["shm", "tcp"][random.index(2)];
        // Short logs and snapshots lead to more cases.
        let lines = DURABLE.to_owned() + "log_entries = 64\n";
        let overlay = Overlay::with(fabric, &lines);
        let replicas = NAMES.map(|name| Some(overlay.replica(name)));
        let clients = DESTINATIONS.map(|to| {
            overlay.place.start(&overlay.command(&["send", "--to", to, "--time-limit", "120"]))
        });
        let (written, rolled_back, rejected) = (0, None, 0);
        Self { random, overlay, replicas, clients, written, rolled_back, rejected }
    }

    fn disk(&self, index: usize) -> PathBuf {
        self.overlay.data_path().join(NAMES[index])
    }

    fn is_up(&mut self, index: usize) -> bool {
        self.replicas[index].as_mut().is_some_and(RunningProgram::is_running)
    }

    fn start(&mut self, index: usize) {
        if self.is_up(index) {
            return;
        }
        if let Some(mut before) = self.replicas[index].take() {
            let ended = before.wait_with_input();
            if ended.errors.contains("this replica is an older copy") {
                assert_eq!(self.rolled_back, Some(index), "its disk is sound: {}", ended.errors);
                assert_eq!(ended.status.code(), Some(9));
                fs::remove_dir_all(self.disk(index)).expect("it was there");
                self.rejected += 1;
            } else if let Some(code) =
                ended.status.code().filter(|code| ![0, TERMINATED].contains(code))
            {
                eprintln!("{} exited with {code}: {}", NAMES[index], ended.errors);
            }
        }
        self.replicas[index] = Some(self.overlay.replica(NAMES[index]));
    }

    fn signal(&mut self, index: usize, signal: Signal) {
        if self.is_up(index)
            && let Some(replica) = &self.replicas[index]
        {
            replica.signal(signal);
        }
    }

    fn write(&mut self) {
        let count = [1, 10, 100][self.random.index(3)];
        for (client, to) in self.clients.iter_mut().zip(DESTINATIONS) {
            let lines: String = (self.written..self.written + count)
                .map(|number| format!("to {to} {number}\n"))
                .collect();
            if !client.is_running() {
                panic!("the client to {to} has ended: {:?}", client.wait_with_input());
            }
            client.write(lines.as_bytes());
        }
        self.written += count;
    }

    /// Kills a replica and removes its disk. A group survives the loss of one disk at a time.
    fn lose_disk(&mut self, index: usize) {
        self.come_back();
        self.signal(index, Signal::KILL);
        if let Some(replica) = &mut self.replicas[index] {
            replica.wait_with_input();
        }
        fs::remove_dir_all(self.disk(index)).expect("it was there");
        if self.random.chance(50) {
            self.kill_all();
        }
        self.come_back();
    }

    /// Kills a replica or all of them, and puts back a copy of the replica's disk from the same
    /// run. The others reject the replica if they have seen more.
    fn roll_back_disk(&mut self, index: usize) {
        self.come_back();
        let (disk, copy) = (self.disk(index), self.overlay.data_path().join("copy"));
        self.signal(index, Signal::STOP);
        copy_folder(&disk, &copy);
        self.signal(index, Signal::CONT);
        self.write();
        let pause_ms = PAUSES_MS[self.random.index(PAUSES_MS.len())];
        std::thread::sleep(Duration::from_millis(pause_ms));
        let kills_all = self.random.chance(50);
        if kills_all {
            std::thread::sleep(SEEN);
            (0..NAMES.len()).for_each(|each| self.signal(each, Signal::KILL));
        } else {
            self.signal(index, Signal::KILL);
        }
        if let Some(replica) = &mut self.replicas[index] {
            replica.wait_with_input();
        }
        fs::remove_dir_all(&disk).expect("it was there");
        fs::rename(&copy, &disk).expect("the same file system");
        self.rolled_back = Some(index);
        if kills_all {
            // The older copy and one other replica would be a quorum.
            let other = index / 3 * 3 + (index + 1 + self.random.index(2)) % 3;
            self.start(other);
        } else {
            self.await_another_leader(index);
        }
        self.start(index);
        let begin = Instant::now();
        while self.is_up(index) && begin.elapsed() < REJECTION {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.come_back();
    }

    /// Waits until another replica of its group leads. Until then, a replica with an older disk
    /// could help to elect one that lacks the entries which only its killed process and the leader
    /// had.
    fn await_another_leader(&self, index: usize) {
        let group = &NAMES[index][..2];
        wait_for("another replica leads", || {
            let leads = |(name, state): &(String, String)| {
                name != NAMES[index] && name.starts_with(group) && state == "leading"
            };
            self.overlay.states().iter().any(leads).then_some(())
        });
    }

    fn kill_all(&mut self) {
        let signal = [Signal::KILL, Signal::KILL, Signal::TERM][self.random.index(3)];
        (0..NAMES.len()).for_each(|index| self.signal(index, signal));
    }

    fn step(&mut self) {
        let index = self.random.index(NAMES.len());
        match self.random.index(15) {
            0 | 1 => self.signal(index, Signal::KILL),
            2 => self.signal(index, Signal::TERM),
            3 => (0..3).for_each(|rank| self.signal(index / 3 * 3 + rank, Signal::KILL)),
            4 => self.kill_all(),
            5 => {
                self.signal(index, Signal::STOP);
                std::thread::sleep(Duration::from_millis(200));
                self.signal(index, Signal::CONT);
            }
            6 => self.lose_disk(index),
            7 => self.roll_back_disk(index),
            8..=11 => self.write(),
            _ => self.start(index),
        }
        let pause_ms = PAUSES_MS[self.random.index(PAUSES_MS.len())];
        std::thread::sleep(Duration::from_millis(pause_ms));
    }

    /// Starts all replicas that are down, until all count.
    fn come_back(&mut self) {
        let begin = Instant::now();
        wait_for("all replicas count", || {
            (0..NAMES.len()).for_each(|index| self.start(index));
            if begin.elapsed() > LONG - Duration::from_millis(500) {
                // The test is about to fail.
                eprintln!("{}", self.overlay.status());
            }
            let counts = |(_, state): &(String, String)| state == "leading" || state == "following";
            let states = self.overlay.states();
            (states.len() == NAMES.len() && states.iter().all(counts)).then_some(())
        });
    }

    /// Checks the logs after all lines have been answered.
    fn agree(mut self) {
        self.write();
        self.come_back();
        for client in self.clients {
            client.wait().succeeded();
        }
        let mut orders = Vec::new();
        for group in ["g1", "g2"] {
            let to_it = DESTINATIONS.iter().filter(|to| to.contains(group)).count();
            let log = self.overlay.await_same(group, to_it * self.written);
            let lines: Vec<String> = log
                .lines()
                .map(|line| line.splitn(4, ' ').nth(3).expect("a message").to_owned())
                .collect();
            for to in DESTINATIONS.iter().filter(|to| to.contains(group)) {
                let prefix = format!("to {to} ");
                let numbers = lines.iter().filter_map(|line| line.strip_prefix(&prefix));
                let expected = (0..self.written).map(|number| number.to_string());
                assert!(numbers.eq(expected), "{group} lacks or repeats lines to {to}");
            }
            orders.push(lines);
        }
        let common: BTreeSet<&String> =
            orders[0].iter().filter(|line| line.starts_with("to g1,g2 ")).collect();
        let of = |lines: &'_ [String]| -> Vec<String> {
            lines.iter().filter(|line| common.contains(line)).cloned().collect()
        };
        assert!(of(&orders[0]) == of(&orders[1]), "the groups disagree");
    }
}

#[test]
fn random_kills_lose_no_answered_line() {
    for seed in random_seeds(2) {
        eprintln!("TRAMONTANE_SEED={seed}");
        let mut lives = ShardLives::new(seed);
        for _ in 0..lives.random.between(5, 30) {
            lives.step();
        }
        eprintln!("{} older disks rejected", lives.rejected);
        lives.agree();
    }
}
