//! Comparison of the fast judge with the naive one.

use std::collections::BTreeSet;
use std::panic::catch_unwind;

use tramontane_conformance::check::{self, CheckId, Judge, Outcome, Verdict};
use tramontane_conformance::history::{Event, Reader, Trouble};

use crate::naive::{self, CheckOutcome};

/// The result for a history: the outcome of each check, or the line at which it was refused.
pub type JudgedHistory = Result<Vec<(CheckId, CheckOutcome)>, u64>;

/// Returns the result of the naive implementation.
pub fn naively(history: &[u8]) -> JudgedHistory {
    naive::judge(history).map_err(|error| error.line)
}

/// Returns the result of the judge.
pub fn fast(history: &[u8]) -> JudgedHistory {
    check::judge(history).map(|verdict| kinds(&verdict)).map_err(|error| error.line)
}

/// Returns the result of a judge that forgets messages from the start; by default it forgets only
/// after thousands.
pub fn forgetful(history: &[u8], messages: usize) -> JudgedHistory {
    let mut judge = Judge::holding(messages);
    let mut reader = Reader::new(history);
    loop {
        match reader.next_event() {
            Ok(Some((line, event))) => judge.take(line, &event).map_err(|error| error.line)?,
            Err(error) if error.trouble != Trouble::Cut => return Err(error.line),
            Ok(None) | Err(_) => return Ok(kinds(&judge.finish())),
        }
    }
}

fn kinds(verdict: &Verdict) -> Vec<(CheckId, CheckOutcome)> {
    let kind = |outcome: &Outcome| match outcome {
        Outcome::Held { judged } => {
            assert!(*judged > 0, "held, and nothing was judged");
            CheckOutcome::Held
        }
        Outcome::Broken { .. } => CheckOutcome::Broken,
        Outcome::Inconclusive(_) => CheckOutcome::Inconclusive,
        Outcome::NotJudged(_) => CheckOutcome::NotJudged,
    };
    verdict.judgements.iter().map(|said| (said.check, kind(&said.outcome))).collect()
}

/// Numbers of messages that the forgetful judges hold.
pub const HOLDING: [usize; 2] = [0, 3];

/// Describes the difference between the judges, if any. A panic differs from everything.
pub fn difference(history: &[u8]) -> Option<String> {
    let naively = naively(history);
    let Ok(fast) = catch_unwind(|| fast(history)) else {
        return Some("the fast judge panics".to_owned());
    };
    if let Some(difference) = difference_of("fast", &fast, &naively, false) {
        return Some(difference);
    }
    if is_refused_late(history) {
        return None;
    }
    HOLDING.iter().find_map(|messages| {
        let Ok(forgetful) = catch_unwind(|| forgetful(history, *messages)) else {
            return Some(format!("the fast judge that holds {messages} panics"));
        };
        difference_of(&format!("fast, holding {messages},"), &forgetful, &naively, true)
    })
}

/// Describes the difference from the naive result. A forgetful judge may be inconclusive.
fn difference_of(
    name: &str,
    said: &JudgedHistory,
    naively: &JudgedHistory,
    may_doubt: bool,
) -> Option<String> {
    match (said, naively) {
        (Ok(said), Ok(naively)) => {
            let in_doubt = |kind: CheckOutcome| may_doubt && kind == CheckOutcome::Inconclusive;
            let differing =
                said.iter().zip(naively).filter(|(one, other)| one != other && !in_doubt(one.1));
            let said: Vec<String> = differing
                .map(|((id, kind), (_, naive))| format!("{id}: {name} {kind:?}, naive {naive:?}"))
                .collect();
            (!said.is_empty()).then(|| said.join("\n"))
        }
        (Err(line), Err(other)) if line == other => None,
        (said, naively) => {
            let line = |said: &JudgedHistory| {
                said.as_ref()
                    .map_or_else(|line| format!("refused at line {line}"), |_| "taken".into())
            };
            Some(format!("{name}: {}, naive: {}", line(said), line(naively)))
        }
    }
}

/// Returns whether a message is definitely refused after a node delivered it. A judge that has
/// forgotten the message has already counted it by then, and the history is broken anyway.
fn is_refused_late(history: &[u8]) -> bool {
    let mut delivered = BTreeSet::new();
    let mut reader = Reader::new(history);
    while let Ok(Some((_, event))) = reader.next_event() {
        match event {
            Event::Deliver { msg: Some(msg), .. } => {
                delivered.insert(msg.into_owned());
            }
            Event::Refused { msg, definite: true, .. } if delivered.contains(msg.as_ref()) => {
                return true;
            }
            _ => {}
        }
    }
    false
}

/// Removes the lines that are not needed to reproduce the fault.
pub fn shrunk(history: &[u8], is_wrong: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut lines: Vec<&[u8]> = history.split_inclusive(|byte| *byte == b'\n').collect();
    loop {
        let before = lines.len();
        let mut place = 0;
        while place < lines.len() {
            let line = lines.remove(place);
            if !is_wrong(&lines.concat()) {
                lines.insert(place, line);
                place += 1;
            }
        }
        if lines.len() == before {
            return lines.concat();
        }
    }
}

/// If the two judges differ, fails with the smallest history that shows the difference.
pub fn assert_agreed(which: &str, history: &[u8]) {
    let Some(difference) = difference(history) else { return };
    let history = shrunk(history, |history| self::difference(history).is_some());
    let still = self::difference(&history).unwrap_or_default();
    panic!(
        "{which} is judged in two ways:\n{difference}\nat its smallest:\n{still}\n{}",
        String::from_utf8_lossy(&history)
    );
}
