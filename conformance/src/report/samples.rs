//! Sample runs for this module's tests, with verdicts on the histories in `fixtures`.

use std::path::PathBuf;
use std::time::Duration;

use super::case::{Case, CaseStatus, OwnCheck, OwnOutcome, Run};
use crate::check::{CheckId, Finding, Judgement, Outcome, Strength, Verdict, Witness};
use crate::history::{HistoryError, Trouble};

/// A hostile text.
pub(super) const HOSTILE: &str = "</td><script>alert(1)</script>\"'&\u{1b}[2J\u{0}\u{202e}";

/// Returns the path of a history in `fixtures`.
pub(super) fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../fixtures/histories/{name}.jsonl"))
}

/// Returns a finding with these lines as witnesses; the last one is the culprit.
pub(super) fn finding(what: &str, lines: &[u64]) -> Outcome {
    let witness = lines.iter().map(|line| Witness {
        line: *line,
        role: "what this line shows",
        culprit: Some(line) == lines.last(),
    });
    Outcome::Broken {
        times: 3,
        finding: Finding { what: what.to_owned(), witness: witness.collect() },
    }
}

/// Returns a verdict in which all promises hold except these.
pub(super) fn verdict(except: &[(CheckId, Outcome)]) -> Verdict {
    let outcome = |id: CheckId| {
        let other = except.iter().find(|(other, _)| *other == id);
        other.map_or(Outcome::Held { judged: 1600 }, |(_, outcome)| outcome.clone())
    };
    Verdict {
        judgements: CheckId::ALL
            .iter()
            .map(|id| Judgement { check: *id, outcome: outcome(*id) })
            .collect(),
        events: 2014,
        unknown: Vec::new(),
        cut: None,
        took: Duration::from_micros(6042),
        memory_bytes_max: Some(13 << 20),
    }
}

/// Returns a case with this verdict.
pub(super) fn case(name: &str, history: Option<PathBuf>, verdict: Verdict) -> Case {
    Case {
        name: name.to_owned(),
        description: "All nodes send all the time.".to_owned(),
        seed: Some(7),
        history,
        again: None,
        status: CaseStatus::of(&verdict),
        verdict: Some(verdict),
        own_checks: Vec::new(),
        reached: vec![("each node delivered 300 messages".to_owned(), true)],
        notes: Vec::new(),
        took: Duration::from_millis(2345),
    }
}

/// Returns a case that produced no history.
pub(super) fn without_history(name: &str, status: CaseStatus) -> Case {
    Case { status, verdict: None, history: None, ..case(name, None, verdict(&[])) }
}

/// Returns a run of these cases.
pub(super) fn run(cases: Vec<Case>) -> Run {
    Run {
        cut_short: None,
        adapter: Some("./my-adapter --fast".to_owned()),
        implementation: Some("example 0.1".to_owned()),
        features: vec!["views".to_owned(), "pause".to_owned()],
        cases,
    }
}

/// Returns a run with every kind of result, and hostile text in every field that takes untrusted
/// text.
pub(super) fn everything() -> Run {
    let should = CheckId::ALL.iter().copied().find(|id| id.check().strength == Strength::Should);
    let mut broken = verdict(&[
        (CheckId::TotalOrder, finding(HOSTILE, &[6, 7, 8, 9])),
        (should.expect("there are shoulds"), finding("a should is broken", &[10])),
        (CheckId::Validity, Outcome::Inconclusive(HOSTILE.to_owned())),
        (CheckId::DurableKept, Outcome::NotJudged(HOSTILE.to_owned())),
    ]);
    broken.unknown = vec![(HOSTILE.to_owned(), 12, 3)];
    broken.cut = Some(HistoryError { line: 2015, trouble: Trouble::Cut });
    let mut failed = case("failed-case", Some(fixture("bad/total-order-two-orders")), broken);
    failed.notes =
        vec![HOSTILE.to_owned(), "the log of n0 ends: no /home/me/my-system/x.log".to_owned()];
    failed.again = Some("tramontane-conformance run --adapter /home/me/adapter".to_owned());
    let own = |outcome| OwnCheck { command: HOSTILE.to_owned(), outcome };
    if let Outcome::Broken { times, finding } = finding(HOSTILE, &[6]) {
        failed.own_checks = vec![
            own(OwnOutcome::Held),
            own(OwnOutcome::Broken { times, finding }),
            own(OwnOutcome::Failed(HOSTILE.to_owned())),
        ];
    }
    failed.reached.push((HOSTILE.to_owned(), false));
    let mut run = run(vec![
        case("passed-case", Some(fixture("good/suspended")), verdict(&[])),
        failed,
        without_history("open-case", CaseStatus::Inconclusive(HOSTILE.to_owned())),
        without_history("unsupported-case", CaseStatus::Unsupported(HOSTILE.to_owned())),
        without_history(HOSTILE, CaseStatus::Broken(HOSTILE.to_owned())),
    ]);
    run.adapter = Some(HOSTILE.to_owned());
    run.implementation = Some(HOSTILE.to_owned());
    run.features.push(HOSTILE.to_owned());
    run
}
