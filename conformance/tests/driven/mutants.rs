//! The reference and its mutants under the driver. The correct program passes, and each defect is
//! detected by its own check and by no other.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use serde_json::Value;
use tempfile::TempDir;
use tramontane_conformance::check::CheckId;
use tramontane_conformance::drive::SCENARIOS;

use crate::runs::{self, Results, RunParameters};

const REFERENCE: &str = env!("CARGO_BIN_EXE_tramontane-reference");

/// Number of nodes for the mutants: the minimum for which any two groups of a node have another
/// member in common in `across-groups`.
const NODES: u32 = 4;

/// Number of nodes in scenarios with groups of replicas: three groups of three, and two clients.
const NODES_OF_SHARDS: u32 = 11;

/// The prefix of these scenarios' names.
const SHARDS: &str = "shards";

/// The scenarios in which nodes have separate disks.
const WITH_DISKS: [&str; 3] = ["full-disk", "power-loss", "power-loss-1"];

/// Maximum number of seeds until a mutant must misbehave, because the occasion can depend on
/// chance. It is rarer on a busy machine: of sixteen runs with six busy threads, one had no
/// occasion in six seeds.
const SEEDS: u64 = 24;

/// Time for which the driver waits for messages that a mutant has lost, on an idle machine; on a
/// busy one it waits longer. The correct program needs a hundredth of this time.
const DEADLINE_S: f64 = 3.0;

/// A line of `--list-mutants`.
struct Mutant {
    name: String,
    checks: Vec<String>,
    scenario: String,
    at: String,
}

fn mutants() -> Vec<Mutant> {
    let listed =
        std::process::Command::new(REFERENCE).arg("--list-mutants").output().expect("it is built");
    let text = String::from_utf8(listed.stdout).expect("it is text");
    let mutant = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, checks, scenario, at, _what] = fields[..] else {
            panic!("five fields: {line:?}")
        };
        let checks = checks.split(' ').map(str::to_owned).collect();
        Mutant { name: name.to_owned(), checks, scenario: scenario.to_owned(), at: at.to_owned() }
    };
    text.lines().map(mutant).collect()
}

fn run(folder: &Path, scenario: &str, seed: u64, arguments: &str) -> Results {
    let (nodes, mode) =
        if is_of_shards(scenario) { (NODES_OF_SHARDS, "--shards") } else { (NODES, "") };
    let adapter = format!("'{REFERENCE}' {mode} {arguments}");
    RunParameters { adapter, nodes, scenarios: &[scenario], seed, deadline_s: DEADLINE_S }
        .run(folder)
}

pub fn reference_adapter_passes_every_scenario() {
    let folder = TempDir::new().expect("a folder");
    // Scenarios with shards need more nodes, and have a separate test.
    let statuses = passes("", 5, Vec::new(), folder.path(), |scenario| {
        let needs_disks = WITH_DISKS.contains(&scenario);
        scenario != "partition" && !is_of_shards(scenario) && (!needs_disks || can_mount())
    });
    assert!(statuses > 20, "{statuses}");
    let results = std::fs::read(folder.path().join("1/results.json")).expect("there are results");
    let results: Value = serde_json::from_slice(&results).expect("results are JSON");
    assert!(results["implementation"].as_str().is_some_and(|name| name.starts_with("reference")));
    assert_nothing_is_left_behind(folder.path());
}

pub fn reference_adapter_without_views_passes_shard_scenarios() {
    let folder = TempDir::new().expect("a folder");
    let shards = SCENARIOS.iter().map(|scenario| scenario.name).filter(|name| is_of_shards(name));
    let shards: Vec<String> = shards.map(str::to_owned).collect();
    let statuses = passes("--shards", NODES_OF_SHARDS, shards, folder.path(), |scenario| {
        // The reference adapter keeps no shards on disks.
        !["shards-partition", "shards-restart-all", "shards-power-loss"].contains(&scenario)
    });
    assert!(statuses >= 10, "{statuses}");
    assert_nothing_is_left_behind(folder.path());
}

/// Returns whether this system allows mounting file systems.
fn can_mount() -> bool {
    let words = ["--mount", "mount", "-t", "tmpfs", "tmpfs", "/tmp"];
    let mut command = std::process::Command::new("unshare");
    let output = command.args(words).output();
    output.is_ok_and(|output| output.status.success())
}

fn is_of_shards(scenario: &str) -> bool {
    scenario.starts_with(SHARDS)
}

/// Runs these scenarios or all, and returns the number of scenarios. All possible scenarios must
/// pass; the others are unsupported, because members communicate over sockets in a folder.
fn passes(
    mode: &str,
    nodes: u32,
    scenarios: Vec<String>,
    folder: &Path,
    is_possible: impl Fn(&str) -> bool,
) -> usize {
    let adapter = format!("'{REFERENCE}' {mode}");
    let statuses = runs::play(&adapter, nodes, scenarios, DEADLINE_S, folder);
    for (scenario, status) in &statuses {
        let expected = if is_possible(scenario) { "passed" } else { "unsupported" };
        if status == runs::STARVED {
            println!("inconclusive: this machine has no time for {scenario}");
            continue;
        }
        assert_eq!(status, expected, "{scenario}");
    }
    statuses.len()
}

/// Returns a named test for each mutant.
pub fn each() -> impl Iterator<Item = Trial> {
    mutants().into_iter().map(|mutant| {
        Trial::test(format!("mutants::{}", mutant.name), move || {
            assert_mutant_breaks_only_its_checks(&mutant);
            Ok(())
        })
    })
}

fn assert_mutant_breaks_only_its_checks(mutant: &Mutant) {
    if WITH_DISKS.contains(&mutant.scenario.as_str()) && !can_mount() {
        return println!("inconclusive: this system has no disks to fill");
    }
    let folder = TempDir::new().expect("a folder");
    let results = show(mutant, folder.path());
    let broken: BTreeSet<&str> = results.broken().into_iter().collect();
    let meant: BTreeSet<&str> = mutant.checks.iter().map(String::as_str).collect();
    if broken.is_empty() && !results.starved().is_empty() {
        println!("inconclusive: this machine has no time for {}", mutant.name);
    } else {
        assert_eq!(broken, meant, "in {}\n{}", mutant.scenario, results.told);
    }
    assert_nothing_is_left_behind(folder.path());
}

/// Runs the mutant until it misbehaves, with a different seed each time.
fn show(mutant: &Mutant, folder: &Path) -> Results {
    let once = |seed: u64| {
        let at = mutant.node(&folder.join(format!("{seed}-right")), seed);
        let at = at.map(|node| format!(" --at {node}")).unwrap_or_default();
        let arguments = format!("--mutant {}{at}", mutant.name);
        run(&folder.join(format!("{seed}-wrong")), &mutant.scenario, seed, &arguments)
    };
    let mut results = once(1);
    for seed in 2..=SEEDS {
        if !results.broken().is_empty() {
            break;
        }
        results = once(seed);
    }
    results
}

pub fn every_check_is_broken_by_a_mutant() {
    let mutants = mutants();
    let named: BTreeSet<&str> =
        mutants.iter().flat_map(|mutant| &mutant.checks).map(String::as_str).collect();
    let all: BTreeSet<&str> = CheckId::ALL.iter().map(|id| id.check().name).collect();
    assert_eq!(named, all);
}

pub fn cyclic_order_across_overlapping_groups_is_detected() {
    let folder = TempDir::new().expect("a folder");
    let mutant = Mutant {
        name: "reorder-across-groups".to_owned(),
        checks: vec!["acyclic-order".to_owned()],
        scenario: "overlapping-groups".to_owned(),
        at: "any".to_owned(),
    };
    let results = show(&mutant, folder.path());
    assert!(
        results.broken() == ["acyclic-order"] || !results.starved().is_empty(),
        "{}",
        results.told
    );
    assert_nothing_is_left_behind(folder.path());
}

impl Mutant {
    /// Returns the node with the defect, if the choice matters. The seed determines the node that a
    /// fault affects, so this node is the same for the correct program.
    fn node(&self, folder: &Path, seed: u64) -> Option<String> {
        let is_meant: fn(&Value) -> bool = match self.at.as_str() {
            "any" => return None,
            "killed" => |record| record["kind"] == "kill",
            "leaver" => |record| record["reason"] == "left",
            "survivor" => |record| record["reason"] == "done",
            "member" => |record| record["ev"] == "group",
            "client" => |record| record["ev"] == "multicast",
            at => panic!("which node is {at}?"),
        };
        run(folder, &self.scenario, seed, "");
        let history = std::fs::read_to_string(folder.join(&self.scenario).join("history.jsonl"));
        let history = history.expect("there is a history");
        let mut records =
            history.lines().map(|line| serde_json::from_str(line).expect("a record is JSON"));
        let record: Value = records.find(is_meant).expect("it is done to somebody");
        let node = record["node"].as_str().or(record["nodes"][0].as_str());
        let node = node.or(record["members"][0].as_str());
        Some(node.expect("the record names a node").to_owned())
    }
}

/// Checks that the sequencers have ended and released their locks, as they do when no member is
/// connected.
fn assert_nothing_is_left_behind(folder: &Path) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let locks = locks_below(folder);
    assert!(!locks.is_empty(), "there were sequencers");
    while locks.iter().any(|lock| lock.try_lock().is_err()) {
        assert!(Instant::now() < deadline, "a sequencer is left");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn locks_below(folder: &Path) -> Vec<File> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    let locks = entries.map(|path| match path.file_name() {
        Some(name) if name == "sequencer.lock" => {
            vec![File::open(&path).expect("it can be opened")]
        }
        _ if path.is_dir() => locks_below(&path),
        _ => Vec::new(),
    });
    locks.flatten().collect()
}
