//! Makes the table of `docs/defects.md`: which checks see which planted defect, in how many
//! of three seeds, with 3 and with 5 nodes. All scenarios are played, up to the first that fails.
//!
//! ```text
//! cargo build -p tramontane-conformance --bins
//! cargo run -p tramontane-conformance --example defects -- target/debug [DEFECT...] >table.md
//! ```
//! The first argument is the folder of the programs. Without further ones, all defects are judged
//! that have a scenario without shards. It takes some minutes; what is seen in fewer than three of
//! three seeds is marked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// How many runs are made at once: they mostly wait.
const AT_ONCE: usize = 8;

/// The sizes.
const NODES: [usize; 2] = [3, 5];

/// The seeds.
const SEEDS: [u64; 3] = [1, 2, 3];

/// A line of `tramontane-reference --list-mutants`.
struct Defect {
    name: String,
    at: String,
    what: String,
}

/// One run: a defect, the number of nodes, the seed.
type Job = (usize, usize, u64);

/// The checks that were broken in a run, each with the first scenario in which it was.
type Seen = BTreeMap<String, String>;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(programs) = arguments.next().map(PathBuf::from) else {
        eprintln!("name the folder of the programs");
        std::process::exit(2);
    };
    let wanted: BTreeSet<String> = arguments.collect();
    let defects = defects(&programs, &wanted);
    let jobs: Vec<Job> = (0..defects.len())
        .flat_map(|defect| NODES.map(|nodes| SEEDS.map(|seed| (defect, nodes, seed))))
        .flatten()
        .collect();
    let (next, seen) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let of = run(&programs, &defects[job.0], *job);
                    seen.lock().expect("no run panics").insert(*job, of);
                }
            });
        }
    });
    let seen = seen.into_inner().expect("no run panicked");
    println!("| defect | what is wrong | seen by, with 3 nodes | seen by, with 5 nodes |");
    println!("|---|---|---|---|");
    for (place, defect) in defects.iter().enumerate() {
        let cells = NODES.map(|nodes| cell(&seen, place, nodes));
        println!("| `{}` | {} | {} | {} |", defect.name, defect.what, cells[0], cells[1]);
    }
}

fn defects(programs: &Path, wanted: &BTreeSet<String>) -> Vec<Defect> {
    let listed = Command::new(programs.join("tramontane-reference")).arg("--list-mutants").output();
    let text = String::from_utf8(listed.expect("the reference is built").stdout);
    let defect = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, _checks, scenario, at, what] = fields[..] else { return None };
        let is_wanted = wanted.is_empty() || wanted.contains(name);
        (is_wanted && !scenario.starts_with("shards")).then(|| Defect {
            name: name.to_owned(),
            at: at.to_owned(),
            what: what.to_owned(),
        })
    };
    text.expect("it is text").lines().filter_map(defect).collect()
}

/// Runs all scenarios. Where the defect depends on what is done to the node, all nodes have it.
fn run(programs: &Path, defect: &Defect, (_, nodes, seed): Job) -> Seen {
    let folder = tempfile::tempdir().expect("a folder");
    let all = if defect.at == "any" { "" } else { " --at all" };
    let reference = programs.join("tramontane-reference");
    let adapter = format!("'{}' --mutant {}{all}", reference.display(), defect.name);
    let mut command = Command::new(programs.join("tramontane-conformance"));
    command.args(["run", "--quiet", "--until-failed", "--deadline=1", "--adapter", &adapter]);
    command.args([format!("--nodes={nodes}"), format!("--seed={seed}")]);
    command.arg("--output").arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().expect("the suite is built");
    let results = std::fs::read(folder.path().join("results.json")).unwrap_or_default();
    let results: Value = serde_json::from_slice(&results).unwrap_or_default();
    let mut seen = Seen::new();
    for case in results["cases"].as_array().into_iter().flatten() {
        for check in case["checks"].as_array().into_iter().flatten() {
            if let (Some("broken"), Some(name), Some(scenario)) =
                (check["outcome"].as_str(), check["name"].as_str(), case["name"].as_str())
            {
                seen.entry(name.to_owned()).or_insert_with(|| scenario.to_owned());
            }
        }
    }
    seen
}

/// Which checks saw a defect, each with in how many seeds; marked if fewer than all saw any.
fn cell(seen: &BTreeMap<Job, Seen>, defect: usize, nodes: usize) -> String {
    let of = |seed| seen.get(&(defect, nodes, seed)).into_iter();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for check in SEEDS.into_iter().flat_map(of).flat_map(Seen::keys) {
        *counts.entry(check).or_default() += 1;
    }
    let caught = SEEDS.into_iter().filter(|seed| of(*seed).any(|seen| !seen.is_empty())).count();
    let of_all = SEEDS.len();
    let mut ranked: Vec<(&str, usize)> = counts.into_iter().collect();
    ranked.sort_by_key(|(name, count)| (of_all - count, *name));
    let checks: Vec<String> =
        ranked.into_iter().map(|(name, count)| format!("{name} {count}/{of_all}")).collect();
    let checks = if checks.is_empty() { "nothing".to_owned() } else { checks.join(", ") };
    if caught < of_all { format!("**{caught}/{of_all}**: {checks}") } else { checks }
}
