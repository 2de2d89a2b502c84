//! Forgetting changes no verdict, except that it may make one inconclusive.

use std::collections::BTreeMap;

use tramontane_conformance::check::{CheckId, Judge, Outcome, Verdict};
use tramontane_conformance::history::{Event, HistoryError, Reader, Trouble};
use tramontane_conformance::random::Random;

use crate::{good_history, random_histories};

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutcomeKind {
    Held,
    Broken,
    Inconclusive,
    NotJudged,
}

pub fn kinds(verdict: &Verdict) -> Vec<(CheckId, OutcomeKind)> {
    let kind = |outcome: &Outcome| match outcome {
        Outcome::Held { .. } => OutcomeKind::Held,
        Outcome::Broken { .. } => OutcomeKind::Broken,
        Outcome::Inconclusive(_) => OutcomeKind::Inconclusive,
        Outcome::NotJudged(_) => OutcomeKind::NotJudged,
    };
    verdict.judgements.iter().map(|of| (of.check, kind(&of.outcome))).collect()
}

pub fn judged(history: &[u8], messages: usize) -> Result<Verdict, HistoryError> {
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

/// Checks that may become inconclusive because messages were forgotten.
const DOUBTFUL: [CheckId; 3] = [CheckId::TotalOrder, CheckId::AcyclicOrder, CheckId::PrefixOrder];

#[test]
fn forgetting_does_not_change_verdicts() {
    let histories = std::env::var("TRAMONTANE_HISTORIES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_500);
    let mut differed: BTreeMap<(CheckId, OutcomeKind, OutcomeKind), u64> = BTreeMap::new();
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
                let doubt = DOUBTFUL.contains(&check) && kind == OutcomeKind::Inconclusive;
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

/// Returns whether a message is definitely refused after a node delivered it. Checks have then
/// already counted the message, and the history is broken anyway.
fn late_refusals(history: &[u8]) -> bool {
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

/// A node is killed early and comes back halfway: it replays its deliveries long after the judge
/// has forgotten them.
const RESTART: good_history::HistoryShape = good_history::HistoryShape {
    events: 60_000,
    nodes: 4,
    groups: 1,
    views: false,
    grouped_by_node: false,
    kill: true,
    restart: true,
    durable: true,
};

/// Changes the lines of the restarted node's replays.
fn with_replays(change: impl Fn(&mut Vec<String>)) -> String {
    let mut text = Vec::new();
    good_history::write(&RESTART, &mut text).expect("memory takes everything");
    let text = String::from_utf8(text).expect("it is text");
    let (mut replays, mut others): (Vec<String>, Vec<String>) =
        text.lines().map(str::to_owned).partition(|line| line.contains("replayed"));
    assert!(replays.len() > 10, "{}", replays.len());
    let first = text.lines().position(|line| line.contains("replayed")).expect("there are some");
    change(&mut replays);
    others.splice(first..first, replays);
    others.join("\n") + "\n"
}

pub fn broken(verdict: &Verdict) -> Vec<CheckId> {
    kinds(verdict)
        .into_iter()
        .filter(|(_, kind)| *kind == OutcomeKind::Broken)
        .map(|(check, _)| check)
        .collect()
}

#[test]
fn replays_of_forgotten_messages_are_judged() {
    type Change = fn(&mut Vec<String>);
    let cases: [(Change, &[CheckId]); 6] = [
        (|_| {}, &[]),
        (|replays| replays.swap(2, 3), &[CheckId::TotalOrder, CheckId::DurableKept]),
        (
            |replays| replays[4] = replays[4].replace(r#""digest":"#, r#""digest":"0","was":"#),
            &[CheckId::IntegrityBytes],
        ),
        (
            |replays| replays[4] = replays[4].replace(r#""bytes":100"#, r#""bytes":99"#),
            &[CheckId::IntegrityBytes],
        ),
        (
            |replays| replays.insert(4, replays[3].clone()),
            &[CheckId::IntegrityOnce, CheckId::DurableKept],
        ),
        (
            |replays| replays[4] = replays[4].replace(r#""sender":"n"#, r#""sender":"m"#),
            &[CheckId::IntegritySent],
        ),
    ];
    for (number, (change, expected)) in cases.into_iter().enumerate() {
        let history = with_replays(change);
        for messages in [usize::MAX, 16, 0] {
            let found = broken(&judged(history.as_bytes(), messages).expect("it keeps its rules"));
            assert_eq!(found, expected, "case {number}, holding {messages}");
        }
    }
}
