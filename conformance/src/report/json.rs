//! `results.json`: all results of a run, for programs.
//!
//! `docs/results.md` in this crate defines the format. Names are stable: fields may be added; any
//! other change raises [`SCHEMA`].

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use super::case::{Case, CutShort, OwnCheck, OwnOutcome, Run};
use super::causes::{Cause, causes};
use super::quotes::Quotes;
use super::status::Tally;
use crate::check::{Check, CheckId, Finding, Judgement, Outcome, Strength, Verdict, Witness};

/// The version of the format.
const SCHEMA: u32 = 1;

/// Length limit of a record that is copied whole.
const RECORD_CHARACTERS_MAX: usize = 4096;

/// Returns the JSON text, with a line feed at its end.
#[must_use]
pub fn render(run: &Run) -> String {
    // Serialising fails only for maps whose keys are not strings, and there are none here.
    let mut text = serde_json::to_string_pretty(&Results::of(run)).unwrap_or_default();
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Results<'a> {
    schema: u32,
    program: Program,
    status: &'static str,
    exit_status: u8,
    adapter: Option<&'a str>,
    implementation: Option<&'a str>,
    features: &'a [String],
    checks: Vec<&'static Check>,
    cut_short: Option<CutShortResult<'a>>,
    causes: Vec<CauseResult<'a>>,
    cases: Vec<CaseResult<'a>>,
}

#[derive(Serialize)]
struct CutShortResult<'a> {
    why: &'a str,
    not_run: &'a [String],
}

#[derive(Serialize)]
struct Program {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
struct CaseResult<'a> {
    name: &'a str,
    description: &'a str,
    seed: Option<u64>,
    history: Option<Cow<'a, str>>,
    again: Option<&'a str>,
    status: &'static str,
    reason: Option<&'a str>,
    took_us: u64,
    reached: Vec<Goal<'a>>,
    notes: &'a [String],
    counts: Tally,
    judging: Option<Judging<'a>>,
    checks: Vec<CheckResult<'a>>,
    own_checks: Vec<OwnResult<'a>>,
}

#[derive(Serialize)]
struct OwnResult<'a> {
    command: &'a str,
    #[serde(flatten)]
    outcome: OwnOutcomeResult<'a>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum OwnOutcomeResult<'a> {
    Held,
    Broken { times: u64, what: &'a str, witness: Vec<WitnessResult<'a>> },
    Failed { reason: &'a str },
}

#[derive(Serialize)]
struct CauseResult<'a> {
    check: &'static str,
    times: u64,
    cases: Vec<&'a str>,
    what: &'a str,
}

#[derive(Serialize)]
struct Goal<'a> {
    goal: &'a str,
    reached: bool,
}

#[derive(Serialize)]
struct Judging<'a> {
    events: u64,
    took_us: u64,
    memory_bytes_max: Option<u64>,
    unknown: Vec<UnknownEvent<'a>>,
    cut: Option<Cut>,
}

#[derive(Serialize)]
struct UnknownEvent<'a> {
    event: &'a str,
    first_line: u64,
    times: u64,
}

#[derive(Serialize)]
struct Cut {
    line: u64,
    what: String,
}

#[derive(Serialize)]
struct CheckResult<'a> {
    name: &'static str,
    strength: Strength,
    #[serde(flatten)]
    outcome: OutcomeResult<'a>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum OutcomeResult<'a> {
    Held { judged: u64 },
    Broken { times: u64, what: &'a str, witness: Vec<WitnessResult<'a>> },
    Inconclusive { reason: &'a str },
    NotJudged { reason: &'a str },
}

#[derive(Serialize)]
struct WitnessResult<'a> {
    #[serde(flatten)]
    witness: &'a Witness,
    record: Option<String>,
}

impl<'a> Results<'a> {
    fn of(run: &'a Run) -> Self {
        Self {
            schema: SCHEMA,
            program: Program { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
            status: run.status().word(),
            exit_status: run.status().exit_status(),
            adapter: run.adapter.as_deref(),
            implementation: run.implementation.as_deref(),
            features: &run.features,
            checks: CheckId::ALL.iter().map(|id| id.check()).collect(),
            cut_short: run
                .cut_short
                .as_ref()
                .map(|CutShort { why, not_run }| CutShortResult { why, not_run }),
            causes: causes(run).into_iter().map(|cause| CauseResult::of(cause, run)).collect(),
            cases: run.cases.iter().map(CaseResult::of).collect(),
        }
    }
}

impl<'a> CauseResult<'a> {
    fn of(cause: Cause<'a>, run: &'a Run) -> Self {
        let cases = cause.cases.iter().filter_map(|index| run.cases.get(*index));
        Self {
            check: cause.check.check().name,
            times: cause.times,
            cases: cases.map(|case| &*case.name).collect(),
            what: cause.what,
        }
    }
}

impl<'a> OwnResult<'a> {
    fn of(own: &'a OwnCheck, quotes: &Quotes) -> Self {
        let outcome = match &own.outcome {
            OwnOutcome::Held => OwnOutcomeResult::Held,
            OwnOutcome::Failed(reason) => OwnOutcomeResult::Failed { reason },
            OwnOutcome::Broken { times, finding } => OwnOutcomeResult::Broken {
                times: *times,
                what: &finding.what,
                witness: WitnessResult::all(finding, quotes),
            },
        };
        Self { command: &own.command, outcome }
    }
}

impl<'a> WitnessResult<'a> {
    /// Returns the witnesses of a finding.
    fn all(finding: &'a Finding, quotes: &Quotes) -> Vec<Self> {
        let record = |line| -> Option<String> {
            quotes.line(line).map(|text| text.chars().take(RECORD_CHARACTERS_MAX).collect())
        };
        let quoted = |witness: &'a Witness| Self { witness, record: record(witness.line) };
        finding.witness.iter().map(quoted).collect()
    }
}

impl<'a> CaseResult<'a> {
    fn of(case: &'a Case) -> Self {
        let quotes = Quotes::of(case);
        let judgements = case.verdict.iter().flat_map(|verdict| &verdict.judgements);
        Self {
            name: &case.name,
            description: &case.description,
            seed: case.seed,
            history: case.history.as_deref().map(std::path::Path::to_string_lossy),
            again: case.again.as_deref(),
            status: case.status.word(),
            reason: case.status.reason(),
            took_us: microseconds(case.took),
            reached: case
                .reached
                .iter()
                .map(|(goal, reached)| Goal { goal, reached: *reached })
                .collect(),
            notes: &case.notes,
            counts: Tally::of(case),
            judging: case.verdict.as_ref().map(Judging::of),
            checks: judgements.map(|judgement| CheckResult::of(judgement, &quotes)).collect(),
            own_checks: case.own_checks.iter().map(|own| OwnResult::of(own, &quotes)).collect(),
        }
    }
}

impl<'a> Judging<'a> {
    fn of(verdict: &'a Verdict) -> Self {
        let unknown = verdict.unknown.iter().map(|(event, first_line, times)| UnknownEvent {
            event,
            first_line: *first_line,
            times: *times,
        });
        Self {
            events: verdict.events,
            took_us: microseconds(verdict.took),
            memory_bytes_max: verdict.memory_bytes_max,
            unknown: unknown.collect(),
            cut: verdict
                .cut
                .as_ref()
                .map(|cut| Cut { line: cut.line, what: cut.trouble.to_string() }),
        }
    }
}

impl<'a> CheckResult<'a> {
    fn of(judgement: &'a Judgement, quotes: &Quotes) -> Self {
        let Check { name, strength, .. } = *judgement.check.check();
        let outcome = match &judgement.outcome {
            Outcome::Held { judged } => OutcomeResult::Held { judged: *judged },
            Outcome::Inconclusive(reason) => OutcomeResult::Inconclusive { reason },
            Outcome::NotJudged(reason) => OutcomeResult::NotJudged { reason },
            Outcome::Broken { times, finding } => OutcomeResult::Broken {
                times: *times,
                what: &finding.what,
                witness: WitnessResult::all(finding, quotes),
            },
        };
        Self { name, strength, outcome }
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{HOSTILE, everything};
    use super::*;
    use serde_json::Value;

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
