//! The two implementations of every check, compared on small random histories.
//!
//! `TRAMONTANE_HISTORIES=N` sets the number of histories; `TRAMONTANE_HISTORY_SEED=N` judges only
//! the one of that seed.

use std::collections::BTreeMap;

use tramontane_conformance::check::{self, CheckId};
use tramontane_conformance::history::Trouble;
use tramontane_conformance::random::Random;

use crate::judges::{HOLDING, assert_agreed, fast, forgetful, naively, shrunk};
use crate::naive::{self, CheckOutcome};
use crate::random_histories;

fn random_history(seed: u64) -> Vec<u8> {
    random_histories::history(&mut Random::stream(seed, "histories"))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is a number, not {text:?}")))
}

/// Returns whether a forgetful judge is inconclusive about something that the history decides.
fn is_in_doubt(history: &[u8]) -> bool {
    HOLDING.iter().any(|messages| forgetful(history, *messages) != fast(history))
}

/// Number of times that each check had each outcome.
#[derive(Default)]
struct OutcomeCounts {
    kinds: BTreeMap<(CheckId, CheckOutcome), u64>,
    refused: u64,
    cut: u64,
    in_doubt: u64,
}

impl OutcomeCounts {
    fn add(&mut self, history: &[u8]) {
        match naive::judge(history) {
            Ok(kinds) => {
                for said in kinds {
                    *self.kinds.entry(said).or_default() += 1;
                }
                let verdict = check::judge(history).expect("the two agree");
                self.in_doubt += u64::from(is_in_doubt(history));
                self.cut +=
                    u64::from(verdict.cut.is_some_and(|error| error.trouble == Trouble::Cut));
            }
            Err(_) => self.refused += 1,
        }
    }

    fn assert_all(&self, histories: u64) {
        // These minimums are far below the usual counts, so that chance cannot fail the test, but a
        // generator that no longer reaches a case does.
        let least = histories / 2_000;
        for id in CheckId::ALL {
            for kind in possible(*id) {
                let count = self.kinds.get(&(*id, *kind)).copied().unwrap_or(0);
                println!("{id} {kind:?}: {count}");
                assert!(count > least, "{id} was {kind:?} {count} times in {histories} histories");
            }
        }
        println!("refused: {}, cut: {}, in doubt: {}", self.refused, self.cut, self.in_doubt);
        assert!(
            self.in_doubt <= histories / 50,
            "a judge that forgets is in doubt {} times",
            self.in_doubt
        );
        assert!(
            self.refused > least && self.cut > least,
            "refused {}, cut {}",
            self.refused,
            self.cut
        );
    }
}

/// Returns the outcomes that a check can have.
fn possible(id: CheckId) -> &'static [CheckOutcome] {
    match id {
        CheckId::Validity
        | CheckId::Agreement
        | CheckId::UniformAgreement
        | CheckId::RemovedSilent
        | CheckId::DurableKept
        | CheckId::Liveness => &[
            CheckOutcome::Held,
            CheckOutcome::Broken,
            CheckOutcome::Inconclusive,
            CheckOutcome::NotJudged,
        ],
        _ => &[CheckOutcome::Held, CheckOutcome::Broken, CheckOutcome::NotJudged],
    }
}

#[test]
fn both_judges_agree_on_random_histories() {
    if let Some(seed) = number("TRAMONTANE_HISTORY_SEED") {
        let history = random_history(seed);
        println!("{}", String::from_utf8_lossy(&history));
        return assert_agreed(&format!("the history of seed {seed}"), &history);
    }
    let histories = number("TRAMONTANE_HISTORIES").unwrap_or(3_000);
    let mut reached = OutcomeCounts::default();
    for seed in 0..histories {
        let history = random_history(seed);
        assert_agreed(&format!("the history of seed {seed}"), &history);
        reached.add(&history);
    }
    reached.assert_all(histories);
}

#[test]
fn model_histories_rarely_break_promises() {
    let mut broken: BTreeMap<CheckId, u64> = BTreeMap::new();
    for seed in 0..500 {
        let history = random_histories::right(&mut Random::stream(seed, "right"));
        assert_agreed(&format!("the history of seed {seed}"), &history);
        let kinds = naively(&history).expect("the model writes histories");
        for (id, _) in kinds.into_iter().filter(|(_, kind)| *kind == CheckOutcome::Broken) {
            *broken.entry(id).or_default() += 1;
        }
    }
    println!("{broken:?}");
    // The model lets nodes hang and give up, which breaks `liveness`. After a whole group has
    // crashed, its behaviour is arbitrary and may break other checks.
    broken.remove(&CheckId::Liveness);
    assert!(broken.values().sum::<u64>() <= 5, "{broken:?}");
}

#[test]
fn failing_history_shrinks_to_few_lines() {
    let once = |history: &[u8]| {
        naively(history)
            .is_ok_and(|said| said.contains(&(CheckId::IntegrityOnce, CheckOutcome::Broken)))
    };
    let history = (0..).map(random_history).find(|history| once(history)).expect("there are many");
    let smallest = shrunk(&history, once);
    // A group, one or two starts, a multicast, and the message twice; and the records before a
    // node's second start.
    let lines = smallest.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    assert!((5..=8).contains(&lines) && once(&smallest), "{}", String::from_utf8_lossy(&smallest));
}
