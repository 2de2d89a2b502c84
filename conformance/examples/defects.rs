//! Makes the table of `docs/defects.md`: which checks detect which planted defect, in how many of
//! three seeds, with 3 and with 5 nodes. All scenarios are played, up to the first that fails.
//!
//! ```text
//! cargo build -p tramontane-conformance --bins
//! cargo run -p tramontane-conformance --example defects
//! ```
//! The result of each run is stored in a folder, and the run is not repeated. The table can
//! therefore be made in parts (`--seeds 1`, `--nodes 3`, names of defects), and contains the
//! results so far. All of it takes an hour on two processors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The control without a defect: a check that detects it is wrong.
const CONTROL: &str = "none";

/// The numbers of nodes, with one column each in the table.
const NODES: [usize; 2] = [3, 5];

/// The seeds for each defect.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The marks before and after the table in the page.
const MARKS: [&str; 2] = ["<!-- made by the example defects -->", "<!-- up to here -->"];

/// The first lines of the table.
const HEAD: &str = "| defect | what is wrong | seen by, with 3 nodes | seen by, with 5 nodes |
|---|---|---|---|
";

/// Part of the driver's message if the machine was too slow.
const STARVED: &str = "passed while the machine granted the run only";

/// Plays planted defects, and makes the table of the checks that detect them
#[derive(Parser)]
struct DefectsArguments {
    /// The defects to play; all those without shards if none is named
    defects: Vec<String>,
    /// The folder of the programs
    #[arg(long, default_value = "target/debug")]
    programs: PathBuf,
    /// Numbers of nodes
    #[arg(long, value_delimiter = ',', default_values_t = NODES)]
    nodes: Vec<usize>,
    /// Seeds to use
    #[arg(long, value_delimiter = ',', default_values_t = SEEDS)]
    seeds: Vec<u64>,
    /// Number of concurrent runs, which mostly wait
    #[arg(long, default_value_t = 4)]
    at_once: usize,
    /// The folder of stored results
    #[arg(long, default_value = "target/defects")]
    results: PathBuf,
    /// Repeat runs that detected nothing
    #[arg(long)]
    again: bool,
    /// The page that contains the table
    #[arg(long, default_value = "conformance/docs/defects.md")]
    page: PathBuf,
}

/// A line of `tramontane-reference --list-mutants`.
struct Defect {
    name: String,
    /// The scenario meant for the defect, and the node that has the defect there.
    scenario: String,
    at: String,
    what: String,
}

/// The result of a run.
#[derive(Default, Serialize, Deserialize)]
struct Shown {
    /// The broken checks, each with the first scenario in which it was broken.
    seen: BTreeMap<String, String>,
    /// Whether the machine was too slow for a deadline.
    starved: bool,
}

/// One run: a defect, the number of nodes, the seed.
type DefectRun<'d> = (&'d Defect, usize, u64);

fn main() {
    let arguments = DefectsArguments::parse();
    std::fs::create_dir_all(&arguments.results).expect("a folder for what is seen");
    let all = defects(&arguments.programs);
    let wanted: BTreeSet<&String> = arguments.defects.iter().collect();
    let jobs: Vec<DefectRun<'_>> = all
        .iter()
        .filter(|defect| wanted.is_empty() || wanted.contains(&defect.name))
        .flat_map(|defect| arguments.nodes.iter().map(move |nodes| (defect, *nodes)))
        .flat_map(|(defect, nodes)| arguments.seeds.iter().map(move |seed| (defect, nodes, *seed)))
        .filter(|job| match kept(&arguments.results, job) {
            Some(shown) => arguments.again && shown.seen.is_empty(),
            None => true,
        })
        .collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..arguments.at_once.max(1) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let shown = run(&arguments.programs, job);
                    let text = serde_json::to_vec(&shown).expect("it is text");
                    std::fs::write(place(&arguments.results, job), text).expect("it is kept");
                }
            });
        }
    });
    let table = table(&arguments.results, &all);
    let page = std::fs::read_to_string(&arguments.page).expect("there is a page");
    let [begin, end] = MARKS.map(|mark| page.find(mark).expect("the page has a place for it"));
    let (before, after) = (&page[..begin + MARKS[0].len()], &page[end..]);
    std::fs::write(&arguments.page, format!("{before}\n{table}{after}")).expect("it is written");
}

/// Returns all defects with a scenario without shards, and the control.
fn defects(programs: &Path) -> Vec<Defect> {
    let listed = Command::new(programs.join("tramontane-reference")).arg("--list-mutants").output();
    let text = String::from_utf8(listed.expect("the reference is built").stdout);
    let defect = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, _checks, scenario, at, what] = fields[..] else { return None };
        (!scenario.starts_with("shards")).then(|| Defect {
            name: name.to_owned(),
            scenario: scenario.to_owned(),
            at: at.to_owned(),
            what: what.to_owned(),
        })
    };
    let text = text.expect("it is text");
    let control = Defect {
        name: CONTROL.to_owned(),
        scenario: String::new(),
        at: "any".to_owned(),
        what: "nothing".to_owned(),
    };
    std::iter::once(control).chain(text.lines().filter_map(defect)).collect()
}

/// Returns the file for the result of a run.
fn place(results: &Path, (defect, nodes, seed): &DefectRun<'_>) -> PathBuf {
    results.join(format!("{}-{nodes}-{seed}.json", defect.name))
}

fn kept(results: &Path, job: &DefectRun<'_>) -> Option<Shown> {
    let text = std::fs::read(place(results, job)).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Runs all scenarios. If the defect only shows at a node that is killed or leaves, all nodes have
/// it, because which node that is differs between scenarios. If the defect would disappear when all
/// nodes have it, only one node has it.
fn run(programs: &Path, job: &DefectRun<'_>) -> Shown {
    let (defect, nodes, seed) = job;
    let folder = tempfile::tempdir().expect("a folder");
    let mutant = match (defect.name.as_str(), defect.at.as_str()) {
        (CONTROL, _) => String::new(),
        (name, "any") => format!(" --mutant {name}"),
        (name, "member" | "survivor") => {
            let node = meant_node(programs, job).unwrap_or_else(|| "n0".to_owned());
            format!(" --mutant {name} --at {node}")
        }
        (name, _) => format!(" --mutant {name} --at all"),
    };
    let mut command = suite(programs, folder.path(), (*nodes, *seed), &mutant);
    command.args(["--until-failed"]).status().expect("the suite is built");
    let results = std::fs::read_to_string(folder.path().join("results.json")).unwrap_or_default();
    let mut shown = Shown { starved: results.contains(STARVED), ..Shown::default() };
    let results: Value = serde_json::from_str(&results).unwrap_or_default();
    for case in results["cases"].as_array().into_iter().flatten() {
        for check in case["checks"].as_array().into_iter().flatten() {
            if let (Some("broken"), Some(name), Some(scenario)) =
                (check["outcome"].as_str(), check["name"].as_str(), case["name"].as_str())
            {
                shown.seen.entry(name.to_owned()).or_insert_with(|| scenario.to_owned());
            }
        }
    }
    shown
}

/// Runs the suite against the reference.
fn suite(programs: &Path, output: &Path, (nodes, seed): (usize, u64), mutant: &str) -> Command {
    let reference = programs.join("tramontane-reference");
    let reference = reference.canonicalize().expect("the reference is built");
    let adapter = format!("'{}'{mutant}", reference.display());
    let mut command = Command::new(programs.join("tramontane-conformance"));
    command.args(["run", "--quiet", "--adapter", &adapter]);
    command.args([format!("--nodes={nodes}"), format!("--seed={seed}")]);
    command.arg("--output").arg(output).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the node with the defect: a member of the group or a node that lives to the end, in the
/// scenario meant for the defect. The seed decides which node that is. Returns `None` if that
/// scenario needs more nodes.
fn meant_node(programs: &Path, (defect, nodes, seed): &DefectRun<'_>) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = suite(programs, folder.path(), (*nodes, *seed), "");
    command.args(["--scenario", &defect.scenario]).status().expect("the suite is built");
    let history = folder.path().join(&defect.scenario).join("history.jsonl");
    let history = std::fs::read_to_string(history).ok()?;
    let records = history.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut nodes = records.filter_map(|record| match defect.at.as_str() {
        "member" if record["ev"] == "group" => record["members"][0].as_str().map(str::to_owned),
        "survivor" if record["reason"] == "done" => record["node"].as_str().map(str::to_owned),
        _ => None,
    });
    nodes.next()
}

fn table(results: &Path, defects: &[Defect]) -> String {
    let mut table = HEAD.to_owned();
    for defect in defects {
        let cells = NODES.map(|nodes| {
            let shown = SEEDS.iter().filter_map(|seed| kept(results, &(defect, nodes, *seed)));
            cell(&shown.collect::<Vec<_>>(), defect.name == CONTROL)
        });
        let Defect { name, what, .. } = defect;
        table += &format!("| `{name}` | {what} | {} | {} |\n", cells[0], cells[1]);
    }
    table
}

/// Returns the checks that detected a defect, each with its scenario and the number of runs. The
/// total is marked if some runs missed the defect or, for the control, if any check detected
/// something.
fn cell(runs: &[Shown], is_control: bool) -> String {
    if runs.is_empty() {
        return "not run".to_owned();
    }
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for shown in runs {
        for (check, scenario) in &shown.seen {
            *counts.entry((check, scenario_of(scenario))).or_default() += 1;
        }
    }
    let caught = runs.iter().filter(|shown| !shown.seen.is_empty()).count();
    let starved = runs.iter().filter(|shown| shown.seen.is_empty() && shown.starved).count();
    let mut ranked: Vec<_> = counts.into_iter().collect();
    ranked.sort_by_key(|(names, count)| (runs.len() - count, *names));
    let seen: Vec<String> =
        ranked.into_iter().map(|((check, at), count)| format!("{check} ({at}) {count}")).collect();
    let of = runs.len();
    let is_right = if is_control { caught == 0 } else { caught == of };
    let total = if !is_right { format!("**{caught}/{of}**") } else { format!("{caught}/{of}") };
    let starved =
        if starved > 0 { format!("; machine too slow in {starved}") } else { String::new() };
    let seen = if seen.is_empty() { "nothing".to_owned() } else { seen.join(", ") };
    format!("{total}: {seen}{starved}")
}

/// Returns the scenario of a case, without the number of its round.
fn scenario_of(case: &str) -> &str {
    case.trim_end_matches(|end: char| end.is_ascii_digit()).trim_end_matches('-')
}
