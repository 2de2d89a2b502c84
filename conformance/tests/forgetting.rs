//! What the judge forgets on its way changes no verdict, save that it may not be able to tell any more.

mod random_histories;

use std::collections::BTreeMap;

use tramontane_conformance::check::{CheckId, Judge, Outcome, Verdict};
use tramontane_conformance::history::{HistoryError, Reader, Trouble};
use tramontane_fixtures::random::Random;

/// What becomes of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Held,
    Broken,
    Inconclusive,
    NotJudged,
}

fn kinds(verdict: &Verdict) -> Vec<(CheckId, Kind)> {
    let kind = |outcome: &Outcome| match outcome {
        Outcome::Held { .. } => Kind::Held,
        Outcome::Broken { .. } => Kind::Broken,
        Outcome::Inconclusive(_) => Kind::Inconclusive,
        Outcome::NotJudged(_) => Kind::NotJudged,
    };
    verdict.judgements.iter().map(|of| (of.check, kind(&of.outcome))).collect()
}

fn judged(history: &[u8], messages: usize) -> Result<Verdict, HistoryError> {
    let mut judge = Judge::holding(messages);
    let mut reader = Reader::new(history);
    loop {
        match reader.next_event() {
            Ok(Some((line, event))) => judge.take(line, &event)?,
            Ok(None) => return Ok(judge.finish()),
            Err(error) if error.trouble == Trouble::Cut => {
                judge.cut(error);
                return Ok(judge.finish());
            }
            Err(error) => return Err(error),
        }
    }
}

/// Checks on which a verdict may be in doubt because messages were forgotten.
const DOUBTFUL: [CheckId; 3] = [CheckId::TotalOrder, CheckId::AcyclicOrder, CheckId::PrefixOrder];

#[test]
fn who_forgets_says_the_same() {
    let histories = std::env::var("TRAMONTANE_HISTORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(4_000);
    let mut differed: BTreeMap<(CheckId, Kind, Kind), u64> = BTreeMap::new();
    for seed in 0..histories {
        let history = random_histories::history(&mut Random::stream(seed, "histories"));
        let Ok(whole) = judged(&history, usize::MAX) else {
            assert!((0..3).all(|messages| judged(&history, messages).is_err()), "seed {seed}");
            continue;
        };
        let is_late = |check: CheckId| late_refusals(&history) && check != CheckId::IntegritySent;
        for messages in [0, 1, 4] {
            let forgetful = judged(&history, messages).expect("it was readable before");
            for ((check, whole), (_, kind)) in kinds(&whole).into_iter().zip(kinds(&forgetful)) {
                if whole == kind {
                    continue;
                }
                *differed.entry((check, whole, kind)).or_default() += 1;
                let doubt = DOUBTFUL.contains(&check) && kind == Kind::Inconclusive;
                assert!(
                    doubt || is_late(check),
                    "seed {seed}, holding {messages}: {check} is {whole:?}, and {kind:?} when messages are forgotten\n{}",
                    String::from_utf8_lossy(&history)
                );
            }
        }
    }
    println!("{differed:#?}");
}

/// Whether a message is surely refused after somebody delivered it. Then checks have already taken it for a message,
/// and the history is broken anyhow.
fn late_refusals(history: &[u8]) -> bool {
    use tramontane_conformance::history::Event;
    let mut reader = Reader::new(history);
    let mut delivered = std::collections::BTreeSet::new();
    while let Ok(Some((_, event))) = reader.next_event() {
        match event {
            Event::Deliver { msg: Some(msg), .. } => {
                delivered.insert(msg.into_owned());
            }
            Event::Refused { msg, definite: true, .. } if delivered.contains(&*msg) => return true,
            _ => {}
        }
    }
    false
}
