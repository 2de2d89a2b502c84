//! Runs of `tramontane-conformance run`, and their results.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The parameters of a run.
pub struct RunParameters<'a> {
    /// The adapter's command.
    pub adapter: String,
    /// Number of nodes.
    pub nodes: u32,
    /// The scenarios; all if none is named.
    pub scenarios: &'a [&'a str],
    /// The seed of the plans.
    pub seed: u64,
    /// The driver's time limit for each wait.
    pub deadline_s: f64,
}

/// The results.
pub struct Results {
    /// The program's output, to diagnose a failed test.
    pub told: String,
    json: Value,
}

impl RunParameters<'_> {
    /// Executes the run, with all its files in this folder.
    pub fn run(&self, folder: &Path) -> Results {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tramontane-conformance"));
        command.args(["run", "--adapter", &self.adapter]).arg("--output").arg(folder);
        command.args([format!("--nodes={}", self.nodes), format!("--seed={}", self.seed)]);
        command.arg(format!("--deadline={}", self.deadline_s));
        command.args(self.scenarios.iter().flat_map(|scenario| ["--scenario", scenario]));
        let Output { status, stdout, stderr } = command.output().expect("the program is built");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let told = format!("{command:?}\n{status}\n{}{}", text(&stdout), text(&stderr));
        let results = folder.join("results.json");
        let results =
            std::fs::read_to_string(results).unwrap_or_else(|error| panic!("{error}\n{told}"));
        let json = serde_json::from_str(&results).expect("results are JSON");
        Results { told, json }
    }
}

/// Number of seeds with which a scenario may try to reach its goal. Whether messages of two senders
/// alternate, or a kill finds a message in flight, depends on chance.
const SEEDS: u64 = 6;

/// The status of a scenario that is inconclusive because the machine was too slow.
pub const STARVED: &str = "starved";

/// Returns the result of each of these scenarios, or of all if none is named. No case may be
/// broken. A scenario that has not reached its goal is retried with more seeds.
pub fn play(
    adapter: &str,
    nodes: u32,
    scenarios: Vec<String>,
    deadline_s: f64,
    folder: &Path,
) -> BTreeMap<String, String> {
    let mut statuses = BTreeMap::new();
    let mut open = scenarios;
    for seed in 1..=SEEDS {
        let scenarios: Vec<&str> = open.iter().map(String::as_str).collect();
        let run = RunParameters {
            adapter: adapter.to_owned(),
            nodes,
            scenarios: &scenarios,
            seed,
            deadline_s,
        };
        let results = run.run(&folder.join(seed.to_string()));
        assert_eq!(results.broken(), [""; 0], "{}", results.told);
        let starved = results.starved();
        for (scenario, status) in results.cases() {
            assert_ne!(status, "broken", "{}", results.told);
            let status = if starved.contains(&scenario) { STARVED } else { status };
            statuses.insert(scenario_of(scenario).to_owned(), status.to_owned());
        }
        let unreached = statuses
            .iter()
            .filter(|(_, status)| ["inconclusive", STARVED].contains(&status.as_str()));
        open = unreached.map(|(scenario, _)| scenario.clone()).collect();
        if open.is_empty() {
            break;
        }
    }
    statuses
}

/// Returns the scenario of a case; the case's name may end with the number of a round.
fn scenario_of(case: &str) -> &str {
    case.trim_end_matches(|end: char| end.is_ascii_digit()).trim_end_matches('-')
}

impl Results {
    /// Returns the scenarios and their results.
    pub fn cases(&self) -> Vec<(&str, &str)> {
        let cases = self.json["cases"].as_array().expect("there are cases").iter();
        cases.map(|case| (text(&case["name"]), text(&case["status"]))).collect()
    }

    /// Returns the scenarios that are inconclusive because the machine was too slow for a deadline.
    pub fn starved(&self) -> Vec<&str> {
        let cases = self.json["cases"].as_array().expect("there are cases").iter();
        let is_starved = |case: &&Value| {
            case.to_string().contains("passed while the machine granted the run only")
        };
        cases.filter(is_starved).map(|case| text(&case["name"])).collect()
    }

    /// Returns the checks that are broken in any of the cases, in the order of reports.
    pub fn broken(&self) -> Vec<&str> {
        let cases = self.json["cases"].as_array().expect("there are cases").iter();
        let checks = cases.flat_map(|case| case["checks"].as_array().into_iter().flatten());
        checks
            .filter(|check| check["outcome"] == "broken")
            .map(|check| text(&check["name"]))
            .collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
