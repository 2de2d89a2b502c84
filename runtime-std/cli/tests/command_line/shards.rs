//! `tramontane shards`: replicas as processes, which are killed and come back; clients; status; and
//! the bank.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Process, free_addresses, wait_for};

/// An overlay of two groups, g1 above g2, in a place of its own.
struct Overlay {
    place: Place,
    config: PathBuf,
}

impl Overlay {
    fn new(is_tcp: bool) -> Self {
        let place = Place::new();
        let group = |name: &str, parent: &str| {
            let replicas = if is_tcp { format!("{:?}", free_addresses(3)) } else { "3".to_owned() };
            format!("[[groups]]\nname = \"{name}\"\n{parent}replicas = {replicas}\n")
        };
        let fabric = if is_tcp { "tcp" } else { "shm" };
        let head = format!("name = \"test\"\nfabric = \"{fabric}\"\nfailure_timeout_ms = 2000\n");
        let text = head + &group("g1", "") + &group("g2", "parent = \"g1\"\n");
        let config = place.file("overlay.toml", text.as_bytes());
        Self { place, config }
    }

    fn command(&self, words: &[&str]) -> Vec<String> {
        let config = self.config.display().to_string();
        let words = words.iter().map(|word| (*word).to_owned());
        ["shards".to_owned()].into_iter().chain(words).chain(["--config".into(), config]).collect()
    }

    fn replica(&self, name: &str) -> Process {
        let log = self.log_path(name).display().to_string();
        let mut command = self.command(&[]);
        command.extend(["--id", name, "--log", &log].map(str::to_owned));
        self.place.start(&command)
    }

    fn log_path(&self, name: &str) -> PathBuf {
        self.place.path().join(format!("log-{name}"))
    }

    fn log(&self, name: &str) -> String {
        std::fs::read_to_string(self.log_path(name)).unwrap_or_default()
    }

    /// Sends lines, and gives what is printed of them.
    fn send(&self, to: &str, lines: &str) -> String {
        let mut command = self.command(&["send", "--to", to]);
        command.extend(["--time-limit", "60"].map(str::to_owned));
        let mut client = self.place.start(&command);
        client.write(lines.as_bytes());
        String::from_utf8(client.wait().succeeded()).expect("text")
    }

    fn status(&self) -> Value {
        let ended = self.place.run(&self.command(&["status", "--json"]));
        serde_json::from_slice(&ended.output).unwrap_or_default()
    }

    /// The state of each replica, by name.
    fn states(&self) -> Vec<(String, String)> {
        let status = self.status();
        let replicas = status["replicas"].as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or("down").to_owned();
        replicas.iter().map(|of| (text(&of["replica"]), text(&of["status"]["state"]))).collect()
    }

    /// Waits until all replicas count, and gives the leader of a group.
    fn await_leader(&self, group: &str) -> String {
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

    /// Waits until all replicas of a group have the same log, with so many lines.
    fn await_same(&self, group: &str, count: usize) -> String {
        let logs = || [0, 1, 2].map(|rank| self.log(&format!("{group}.{rank}")));
        wait_for("equal logs", || {
            let [first, second, third] = logs();
            (first.lines().count() == count && first == second && first == third).then_some(first)
        })
    }
}

fn survives(is_tcp: bool) {
    let overlay = Overlay::new(is_tcp);
    let names = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];
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

#[test]
fn leaders_are_killed_and_come_back_over_shared_memory() {
    survives(false);
}

#[test]
fn leaders_are_killed_and_come_back_over_tcp() {
    survives(true);
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let overlay = Overlay::new(false);
    let place = &overlay.place;
    let id =
        |name: &str| place.run(&[overlay.command(&[]), vec!["--id".into(), name.into()]].concat());
    id("g3.0").failed(2, &["\"g3.0\" is no replica", "g2.2"]);
    let send = |to: &str| place.run(&overlay.command(&["send", "--time-limit", "0.2", "--to", to]));
    send("g1,g7").failed(2, &["\"g7\" is no group", "g1, g2"]);
    send("g1").failed(5, &["g1.0, g1.1, g1.2"]);
    place.run(&overlay.command(&["status"])).failed_after_output(5, &["group g1 has no majority"]);
    let cycle = "name = \"a\"\n[[groups]]\nname = \"x\"\nparent = \"y\"\nreplicas = 3\n\
                 [[groups]]\nname = \"y\"\nparent = \"x\"\nreplicas = 3\n";
    let config = place.file("cycle.toml", cycle.as_bytes()).display().to_string();
    place
        .run(&["shards", "--config", &config, "--id", "x.0"])
        .failed(2, &["group \"x\" is its own ancestor"]);
}

#[test]
fn a_line_that_is_too_long_is_refused_by_its_number() {
    let overlay = Overlay::new(false);
    let names = ["g1.0", "g1.1", "g1.2", "g2.0", "g2.1", "g2.2"];
    let _replicas = names.map(|name| overlay.replica(name));
    overlay.await_leader("g2");
    let mut client = overlay.place.start(&overlay.command(&["send", "--to", "g2"]));
    client.write(format!("short\n{}\nlast\n", "x".repeat(2000)).as_bytes());
    let ended = client.wait();
    ended.failed_at_last(3, &["1 lines are longer than 1024 bytes"]);
    assert!(ended.errors.contains("line 2 is too long"), "{}", ended.errors);
    assert_eq!(String::from_utf8_lossy(&ended.output).lines().count(), 2);
    overlay.await_same("g2", 2);
}

/// How long clients make transfers.
fn seconds() -> String {
    std::env::var("TRAMONTANE_SHARDS_SECONDS").unwrap_or_else(|_| "2".to_owned())
}

#[test]
fn the_bank_keeps_all_its_money() {
    let place = Place::new();
    let seconds = seconds();
    let words = ["demo", "--shards", "--json", "--clients", "2", "--rate", "300", "--duration"];
    let started = Instant::now();
    let output =
        place.run(&[&words[..], &[&seconds, "--kill-interval", "0.5"]].concat()).succeeded();
    let outcome: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(outcome["suite"], "passed", "{outcome}");
    assert_eq!(outcome["conserved"], true);
    assert_eq!(outcome["replicas_equal"], true);
    assert_eq!(outcome["transfers"], outcome["delivered"]);
    assert!(outcome["transfers"].as_u64() > Some(0));
    let had_time = started.elapsed() > Duration::from_secs(1);
    assert!(had_time && outcome["leader_kills"].as_u64() > Some(0), "{outcome}");
    place.assert_empty();
}
