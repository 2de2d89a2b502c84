//! Every sample history, judged by both implementations of every check.

use tramontane_conformance::check::{self, CheckId, Outcome};
use tramontane_conformance::history::HistoryError;

use crate::naive::{self, CheckOutcome};
use crate::samples::{BAD, GOOD, MALFORMED, all};

/// The names of the checks that a history breaks.
type Broken = Result<Vec<&'static str>, HistoryError>;

fn naively(history: &[u8]) -> Broken {
    let broken =
        naive::judge(history)?.into_iter().filter(|(_, kind)| *kind == CheckOutcome::Broken);
    Ok(broken.map(|(id, _)| id.check().name).collect())
}

fn fast(history: &[u8]) -> Broken {
    let verdict = check::judge(history)?;
    let broken =
        verdict.judgements.iter().filter(|said| matches!(said.outcome, Outcome::Broken { .. }));
    Ok(broken.map(|said| said.check.check().name).collect())
}

/// Describes each sample that is not judged as intended.
fn misjudged(judge: fn(&[u8]) -> Broken) -> String {
    let mut misjudged = String::new();
    for sample in all() {
        let broken = judge(sample.text.as_bytes());
        if broken.as_deref() != Ok(Vec::from_iter(sample.breaks).as_slice()) {
            misjudged.push_str(&format!("{}: {broken:?}\n", sample.name));
        }
    }
    misjudged
}

#[test]
fn bad_samples_violate_exactly_their_checks() {
    assert_eq!(misjudged(fast), "");
}

#[test]
fn naive_judge_agrees_on_samples() {
    assert_eq!(misjudged(naively), "");
}

#[test]
fn each_check_has_two_bad_samples() {
    for id in CheckId::ALL {
        let name = id.check().name;
        let count = BAD.iter().filter(|sample| sample.breaks == Some(name)).count();
        assert!(count >= 2, "{name} has {count}");
    }
    assert!(
        BAD.iter().all(|sample| sample.breaks.is_some_and(|name| name.parse::<CheckId>().is_ok()))
    );
    assert!(GOOD.len() >= 12 && GOOD.iter().all(|sample| sample.breaks.is_none()));
}

#[test]
fn malformed_sample_error_names_the_line() {
    for text in MALFORMED {
        for judge in [fast, naively] {
            let line = judge(text.bytes).err().map(|error| error.line);
            assert_eq!(line, Some(text.line), "{}", text.name);
        }
    }
}

#[test]
fn findings_cite_records_of_the_history() {
    for sample in BAD {
        let verdict = check::judge(sample.text.as_bytes()).expect("it is a history");
        let lines = sample.text.lines().count() as u64;
        for judgement in &verdict.judgements {
            let Outcome::Broken { times, finding } = &judgement.outcome else { continue };
            assert!(*times > 0 && !finding.what.is_empty(), "{}", sample.name);
            assert!(!finding.witness.is_empty(), "{} shows nothing", sample.name);
            assert!(
                finding.witness.iter().all(|witness| (1..=lines).contains(&witness.line)),
                "{}",
                sample.name
            );
            assert!(
                finding.witness.iter().any(|witness| witness.culprit),
                "{} has no culprit",
                sample.name
            );
        }
    }
}
