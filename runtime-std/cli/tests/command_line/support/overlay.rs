//! An overlay of shards whose replicas are processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use super::{RunningProgram, TestFolder, free_addresses, wait_for};

/// An overlay of two groups, g1 above g2, in a folder of its own.
pub struct Overlay {
    pub place: TestFolder,
    pub config: PathBuf,
    is_durable: bool,
}

impl Overlay {
    /// Creates an overlay over the fabric with that name.
    pub fn new(fabric: &str) -> Self {
        Self::with(fabric, "")
    }

    /// Creates an overlay with these additional lines in its file.
    pub fn with(fabric: &str, lines: &str) -> Self {
        let place = TestFolder::new();
        let is_shared = fabric == "shm";
        let group = |name: &str, parent: &str| {
            let replicas =
                if is_shared { "3".to_owned() } else { format!("{:?}", free_addresses(3)) };
            format!("[[groups]]\nname = \"{name}\"\n{parent}replicas = {replicas}\n")
        };
        let head = format!("name = \"test\"\nfabric = \"{fabric}\"\nfailure_timeout_ms = 2000\n");
        let text = head + lines + &group("g1", "") + &group("g2", "parent = \"g1\"\n");
        let config = place.file("overlay.toml", text.as_bytes());
        Self { place, config, is_durable: lines.contains(DURABLE) }
    }

    /// Returns the words of a command about the overlay.
    pub fn command(&self, words: &[&str]) -> Vec<String> {
        let config = self.config.display().to_string();
        let words = words.iter().map(|word| (*word).to_owned());
        ["shards".to_owned()].into_iter().chain(words).chain(["--config".into(), config]).collect()
    }

    /// Starts a replica with its own log.
    pub fn replica(&self, name: &str) -> RunningProgram {
        self.place.start(&self.replica_command(name, &self.data_path()))
    }

    /// Returns the words of the command of a replica, which saves its log in `data` if the overlay
    /// is durable.
    pub fn replica_command(&self, name: &str, data: &Path) -> Vec<String> {
        let log = self.log_path(name).display().to_string();
        let mut command = self.command(&["--id", name, "--log", &log]);
        if self.is_durable {
            command.extend(["--data".to_owned(), data.display().to_string()]);
        }
        command
    }

    /// Returns the folder in which the replicas of a durable overlay save their logs.
    pub fn data_path(&self) -> PathBuf {
        self.place.path().join("data")
    }

    /// Starts all replicas.
    pub fn start_all(&self) -> Vec<RunningProgram> {
        NAMES.iter().map(|name| self.replica(name)).collect()
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.place.path().join(format!("log-{name}"))
    }

    pub fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.log_path(name)).unwrap_or_default()
    }

    /// Sends lines, and returns the printed reports.
    pub fn send(&self, to: &str, lines: &str) -> String {
        let mut command = self.command(&["send", "--to", to]);
        command.extend(["--time-limit", "60"].map(str::to_owned));
        let mut client = self.place.start(&command);
        client.write(lines.as_bytes());
        String::from_utf8(client.wait().succeeded()).expect("text")
    }

    pub fn status(&self) -> Value {
        let ended = self.place.run(&self.command(&["status", "--json"]));
        serde_json::from_slice(&ended.output).unwrap_or_default()
    }

    /// Returns the state of each replica by name.
    pub fn states(&self) -> Vec<(String, String)> {
        let status = self.status();
        let replicas = status["replicas"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or("down").to_owned();
        replicas.iter().map(|of| (text(&of["replica"]), text(&of["status"]["state"]))).collect()
    }

    /// Waits until each replica has this number of connected clients.
    pub fn await_clients(&self, count: usize) {
        wait_for("clients", || {
            let status = self.status();
            let replicas = status["replicas"].as_array().cloned().unwrap_or_default();
            let has_all = |of: &Value| of["status"]["clients"].as_u64() == Some(count as u64);
            (replicas.len() == NAMES.len() && replicas.iter().all(has_all)).then_some(())
        });
    }

    /// Waits until all replicas count, and returns the leader of a group.
    pub fn await_leader(&self, group: &str) -> String {
        wait_for("replicas that count", || {
            let states = self.states();
            let counts = |state: &str| state == "leading" || state == "following";
            if states.len() < 6 || !states.iter().all(|(_, state)| counts(state)) {
                return None;
            }
            let leads =
                |(name, state): &&(String, String)| name.starts_with(group) && state == "leading";
            states.iter().find(leads).map(|(name, _)| name.clone())
        })
    }

    /// Waits until all replicas of a group have the same log with `count` lines.
    pub fn await_same(&self, group: &str, count: usize) -> String {
        self.await_equal(group, |log| log.lines().count() == count)
    }

    /// Waits until all replicas of a group have the same log, which ends with `text`.
    fn await_last(&self, group: &str, text: &str) -> String {
        self.await_equal(group, |log| log.trim_end().ends_with(text))
    }

    fn await_equal(&self, group: &str, is_whole: impl Fn(&str) -> bool) -> String {
        let logs = || [0, 1, 2].map(|rank| self.log(&format!("{group}.{rank}")));
        wait_for("equal logs", || {
            let [first, second, third] = logs();
            (is_whole(&first) && first == second && first == third).then_some(first)
        })
    }
}

/// The line that makes an overlay durable.
pub const DURABLE: &str = "durable = true\n";

/// All replicas.
pub const NAMES: [&str; 6] = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];

/// Returns `count` lines that begin with `word`.
fn lines(word: &str, count: usize) -> String {
    (0..count).map(|number| format!("{word} {number}\n")).collect()
}

/// Kills a client while it sends, then a leader and a follower while another client sends. No line
/// from the second client is lost, and all replicas are equal in the end.
pub fn a_client_and_replicas_are_killed_under_load(overlay: &Overlay) {
    const EACH: usize = 3_000;
    let mut replicas: BTreeMap<&str, RunningProgram> =
        NAMES.iter().map(|name| (*name, overlay.replica(name))).collect();
    overlay.await_leader("g1");
    let send = || overlay.place.start(&overlay.command(&["send", "--to", "g1,g2"]));
    let mut killed = send();
    killed.write(lines("killed", 200).as_bytes());
    killed.await_more_output();
    killed.signal(Signal::KILL);
    let mut client = send();
    for leads in [true, false] {
        client.write(lines(if leads { "first" } else { "second" }, EACH).as_bytes());
        client.await_more_output();
        let leader = overlay.await_leader("g2");
        let is_it = |name: &&&str| name.starts_with("g2") && (**name == leader) == leads;
        let name = NAMES.iter().find(is_it).expect("one of three");
        let process = replicas.get_mut(name).expect("it runs");
        process.signal(Signal::KILL);
        *process = overlay.replica(name);
        overlay.await_leader("g2");
    }
    client.wait().succeeded();
    overlay.send("g1,g2", "at last\n");
    for group in ["g1", "g2"] {
        let log = overlay.await_last(group, "at last");
        let texts: Vec<&str> = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3)).collect();
        let of = |word: &str| -> Vec<&str> {
            texts.iter().copied().filter(|text| text.starts_with(word)).collect()
        };
        for word in ["first", "second"] {
            assert!(of(word).iter().copied().eq(lines(word, EACH).lines()), "{group}: {word}");
        }
        // Some prefix of the killed client's lines may have been delivered.
        let before = of("killed");
        assert!(before.iter().copied().eq(lines("killed", before.len()).lines()), "{group}");
    }
}

/// Calls `before`, then kills the leader of each group and restarts it. No message is lost.
pub fn leaders_are_killed_and_come_back(overlay: &Overlay, before: impl Fn()) {
    let names = NAMES;
    let mut replicas = names.map(|name| (name, overlay.replica(name)));
    overlay.await_leader("g1");
    let printed = overlay.send("g1,g2", "one\ntwo\n");
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2, "{printed}");
    assert!(lines.iter().all(|line| line.contains("g1.") && line.contains("g2.")), "{printed}");
    let mut count = 2;
    for group in ["g1", "g2"] {
        let leader = overlay.await_leader(group);
        let (name, process) =
            replicas.iter_mut().find(|(name, _)| *name == leader).expect("it is one of them");
        before();
        process.signal(Signal::KILL);
        overlay.send("g1,g2", "while it is away\n");
        overlay.send(group, "for one group\n");
        *process = overlay.replica(name);
        count += 1;
    }
    overlay.await_leader("g1");
    overlay.send("g1,g2", "at last\n");
    for group in ["g1", "g2"] {
        let log = overlay.await_same(group, count + 2);
        let texts: Vec<&str> = log.lines().filter_map(|line| line.splitn(4, ' ').nth(3)).collect();
        assert_eq!((texts[0], texts[1]), ("one", "two"));
        assert_eq!(texts.last(), Some(&"at last"));
    }
    for (_, mut replica) in replicas {
        replica.signal(Signal::TERM);
        assert!(replica.wait_with_input().status.success());
    }
    overlay.place.assert_empty();
}
