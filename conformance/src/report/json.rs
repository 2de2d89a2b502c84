//! `results.json`: all results of a run, for programs.
//!
//! `docs/results.md` in this crate defines the format. Names are stable: fields may be added; any
//! other change raises [`SCHEMA`].

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::case::{Case, OwnCheck, OwnOutcome, Run};
use super::causes::{Cause, causes};
use super::quotes::Quotes;
use super::status::Tally;
use crate::check::{Check, CheckId, Finding, Judgement, Outcome, Verdict, Witness};

/// The version of the format.
const SCHEMA: u32 = 1;

/// Length limit of a record that is copied whole.
const RECORD_CHARACTERS_MAX: usize = 4096;

/// Returns the JSON text, with a line feed at its end.
#[must_use]
pub fn render(run: &Run) -> String {
    format!("{:#}\n", results(run))
}

fn results(run: &Run) -> Value {
    json!({
        "schema": SCHEMA,
        "program": { "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") },
        "status": run.status().word(),
        "exit_status": run.status().exit_status(),
        "adapter": run.adapter,
        "implementation": run.implementation,
        "features": run.features,
        "checks": list(CheckId::ALL, |id| json!(id.check())),
        "cut_short": run.cut_short,
        "causes": list(causes(run), |cause| cause_result(&cause, run)),
        "cases": list(&run.cases, case_result),
    })
}

/// Returns the values of a list.
fn list<T>(all: impl IntoIterator<Item = T>, value: impl Fn(T) -> Value) -> Value {
    all.into_iter().map(value).collect()
}

fn cause_result(cause: &Cause<'_>, run: &Run) -> Value {
    let cases = cause.cases.iter().filter_map(|index| run.cases.get(*index));
    json!({
        "check": cause.check.check().name,
        "times": cause.times,
        "cases": list(cases, |case| json!(case.name)),
        "what": cause.what,
    })
}

fn case_result(case: &Case) -> Value {
    let quotes = Quotes::of(case);
    let judgements = case.verdict.iter().flat_map(|verdict| &verdict.judgements);
    json!({
        "name": case.name,
        "description": case.description,
        "seed": case.seed,
        "history": case.history.as_deref().map(Path::to_string_lossy),
        "again": case.again,
        "status": case.status.word(),
        "reason": case.status.reason(),
        "took_us": microseconds(case.took),
        "reached": list(&case.reached, |(goal, reached)| {
            json!({ "goal": goal, "reached": reached })
        }),
        "notes": case.notes,
        "counts": Tally::of(case),
        "judging": case.verdict.as_ref().map(judging),
        "checks": list(judgements, |judgement| check_result(judgement, &quotes)),
        "own_checks": list(&case.own_checks, |own| own_result(own, &quotes)),
    })
}

fn judging(verdict: &Verdict) -> Value {
    let unknown = list(
        &verdict.unknown,
        |(event, first_line, times)| json!({ "event": event, "first_line": first_line, "times": times }),
    );
    let cut = verdict.cut.as_ref();
    json!({
        "events": verdict.events,
        "took_us": microseconds(verdict.took),
        "memory_bytes_max": verdict.memory_bytes_max,
        "unknown": unknown,
        "cut": cut.map(|cut| json!({ "line": cut.line, "what": cut.trouble.to_string() })),
    })
}

fn check_result(judgement: &Judgement, quotes: &Quotes) -> Value {
    let Check { name, strength, .. } = *judgement.check.check();
    let mut result = match &judgement.outcome {
        Outcome::Held { judged } => json!({ "outcome": "held", "judged": judged }),
        Outcome::Inconclusive(reason) => json!({ "outcome": "inconclusive", "reason": reason }),
        Outcome::NotJudged(reason) => json!({ "outcome": "not-judged", "reason": reason }),
        Outcome::Broken { times, finding } => broken(*times, finding, quotes),
    };
    result["name"] = json!(name);
    result["strength"] = json!(strength);
    result
}

fn own_result(own: &OwnCheck, quotes: &Quotes) -> Value {
    let mut result = match &own.outcome {
        OwnOutcome::Held => json!({ "outcome": "held" }),
        OwnOutcome::Failed(reason) => json!({ "outcome": "failed", "reason": reason }),
        OwnOutcome::Broken { times, finding } => broken(*times, finding, quotes),
    };
    result["command"] = json!(own.command);
    result
}

fn broken(times: u64, finding: &Finding, quotes: &Quotes) -> Value {
    let witness = |witness: &Witness| {
        let record = quotes
            .line(witness.line)
            .map(|text| -> String { text.chars().take(RECORD_CHARACTERS_MAX).collect() });
        let mut quoted = json!(witness);
        quoted["record"] = json!(record);
        quoted
    };
    json!({
        "outcome": "broken",
        "times": times,
        "what": finding.what,
        "witness": list(&finding.witness, witness),
    })
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, everything};
    use super::*;

    fn results() -> Value {
        serde_json::from_str(&render(&everything())).expect("it is JSON")
    }

    /// Collects all names of fields in a value.
    fn names(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| names(item, found)),
            Value::Object(fields) => fields.iter().for_each(|(name, value)| {
                found.push(name.clone());
                names(value, found);
            }),
            _ => {}
        }
    }

    #[test]
    fn every_field_is_documented() {
        let definition = include_str!("../../docs/results.md");
        let tables: Vec<&str> = definition.split("```").step_by(2).collect();
        let mut found = Vec::new();
        names(&results(), &mut found);
        for name in found {
            assert!(
                tables.iter().any(|text| text.contains(&format!("`{name}`"))),
                "{name} is not explained"
            );
        }
    }

    #[test]
    fn documented_example_has_exactly_these_fields() {
        let definition = include_str!("../../docs/results.md");
        let example = definition.split("```json").nth(1).and_then(|rest| rest.split("```").next());
        let example: Value =
            serde_json::from_str(example.expect("an example")).expect("it is JSON");
        let sorted = |value: &Value| {
            let mut found = Vec::new();
            names(value, &mut found);
            found.sort();
            found.dedup();
            found
        };
        assert_eq!(sorted(&example), sorted(&results()));
    }

    #[test]
    fn json_contains_the_whole_run() {
        let results = results();
        assert_eq!(results["schema"], 1);
        assert_eq!((&results["status"], &results["exit_status"]), (&"failed".into(), &1.into()));
        assert_eq!(results["adapter"], HOSTILE);
        let cases = results["cases"].as_array().expect("a list");
        let words: Vec<&str> = cases.iter().filter_map(|case| case["status"].as_str()).collect();
        assert_eq!(words, ["passed", "failed", "inconclusive", "unsupported", "broken"]);
        assert_eq!(cases[2]["reason"], HOSTILE);
        assert!(cases[2]["judging"].is_null());
        assert_eq!(cases[1]["judging"]["cut"]["line"], 2015);
        assert_eq!(cases[1]["judging"]["unknown"][0]["times"], 3);
        assert_eq!(cases[1]["reached"][1]["reached"], false);
        assert_eq!(cases[1]["counts"]["broken_shoulds"], 1);

        let checks = cases[1]["checks"].as_array().expect("a list");
        assert_eq!(checks.len(), CheckId::ALL.len());
        let broken =
            checks.iter().find(|check| check["name"] == "total-order").expect("it is judged");
        assert_eq!((&broken["outcome"], &broken["times"]), (&"broken".into(), &3.into()));
        let witness = &broken["witness"][3];
        assert_eq!((&witness["line"], &witness["culprit"]), (&9.into(), &true.into()));
        assert!(
            witness["record"].as_str().is_some_and(|record| record.contains("\"t_ns\":80")),
            "{witness}"
        );
    }
}
