//! From what a scenario left behind to how it came out.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::time::Duration;

use super::error::{DriveError, Ending};
use super::feature::Feature;
use super::reach::Reach;
use super::recorded::Recorded;
use super::scenarios::Scenario;
use crate::check::{CheckId, Outcome, Verdict, judge};
use crate::history::HistoryError;
use crate::report::{Case, CaseStatus};

/// What a scenario left behind.
pub(super) struct Played<'p> {
    pub(super) scenario: &'static Scenario,
    /// The case's name: the scenario's, and the round where there are several.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) history: PathBuf,
    /// What must have been reached.
    pub(super) reach: &'p [Reach],
    /// Whether the plan was played to its end, or why it was not.
    pub(super) outcome: Result<bool, Ending>,
    /// What the implementation claims, once it said so.
    pub(super) claims: Vec<Feature>,
    pub(super) notes: Vec<String>,
    /// That the machine had no time for a deadline, if so.
    pub(super) starved: Option<String>,
    pub(super) took: Duration,
}

/// A scenario that was not played, because something that it needs is missing.
pub(super) fn unsupported(scenario: &Scenario, seed: u64, why: String) -> Case {
    Case {
        description: scenario.sentence.to_owned(),
        seed: Some(seed),
        ..Case::new(scenario.name.to_owned(), CaseStatus::Unsupported(why))
    }
}

/// A scenario that could not even begin, because an adapter broke.
pub(super) fn broken(scenario: &Scenario, seed: u64, what: String, log: Option<String>) -> Case {
    let status = CaseStatus::Broken(what);
    Case { status, notes: log.into_iter().collect(), ..unsupported(scenario, seed, String::new()) }
}

/// Whether the plan was carried out and nothing is wrong, only that what the scenario is for did
/// not come about.
pub(super) fn is_matter_of_timing(case: &Case) -> bool {
    let finished = case.reached.first().is_some_and(|(_, finished)| *finished);
    let missed = case.reached.iter().any(|(_, reached)| !reached);
    matches!(case.status, CaseStatus::Inconclusive(_)) && finished && missed
}

/// The checks that miss something: on a machine that had no time for it, it may only be late.
const MISSING: [CheckId; 8] = [
    CheckId::Validity,
    CheckId::Agreement,
    CheckId::UniformAgreement,
    CheckId::PrefixOrder,
    CheckId::ViewSameSet,
    CheckId::RemovedSilent,
    CheckId::DurableKept,
    CheckId::Liveness,
];

/// Leaves open what a deadline decided for which the machine had no time.
fn leave_open(verdict: &mut Verdict, why: &str) {
    for judgement in &mut verdict.judgements {
        let is_broken = matches!(judgement.outcome, Outcome::Broken { .. });
        if is_broken && MISSING.contains(&judgement.check) {
            judgement.outcome = Outcome::Inconclusive(why.to_owned());
        }
    }
}

/// Judges the history, and says how the scenario came out.
///
/// # Errors
/// If the driver could not go on, or cannot read what it wrote.
pub(super) fn conclude(played: Played<'_>) -> Result<Case, DriveError> {
    let mut case = unsupported(played.scenario, played.seed, String::new());
    case.name.clone_from(&played.name);
    case.notes = played.notes.clone();
    case.took = played.took;
    case.history = Some(played.history.clone());
    match &played.outcome {
        Ok(finished) => conclude_played(&mut case, &played, *finished)?,
        Err(Ending::Unsupported(why)) => case.status = CaseStatus::Unsupported(why.clone()),
        Err(Ending::Broken { what, log }) => conclude_broken(&mut case, &played, what, log)?,
        // Taken apart, because it is handed on.
        Err(Ending::Failed(_)) => {
            return match played.outcome {
                Err(Ending::Failed(error)) => Err(error),
                _ => Ok(case),
            };
        }
    }
    Ok(case)
}

fn conclude_played(case: &mut Case, played: &Played<'_>, finished: bool) -> Result<(), DriveError> {
    let verdict = match judged(played)? {
        Ok(verdict) => verdict,
        Err(error) => {
            case.status = refused(&error);
            return Ok(());
        }
    };
    // The judge has just read it: it can be read.
    let recorded = Recorded::read(open(played)?).unwrap_or_default();
    case.reached = reached(played, finished, &recorded);
    let unproven = unproven(&recorded, &played.claims).filter(|_| finished);
    case.status = match CaseStatus::of(&verdict) {
        CaseStatus::Failed => CaseStatus::Failed,
        _ if let Some(why) = unproven
            && played.starved.is_none() =>
        {
            CaseStatus::Broken(why)
        }
        open => {
            let missed = case.reached.iter().find(|(_, reached)| !reached);
            let missed = missed
                .map(|(what, _)| format!("the scenario did not reach what it is for: {what}"));
            played.starved.clone().or(missed).map_or(open, CaseStatus::Inconclusive)
        }
    };
    case.verdict = Some(verdict);
    Ok(())
}

/// An adapter that breaks leaves no verdict on its system, unless a promise was broken before.
fn conclude_broken(
    case: &mut Case,
    played: &Played<'_>,
    what: &str,
    log: &Option<String>,
) -> Result<(), DriveError> {
    case.notes.extend(log.clone());
    case.status = match &played.starved {
        None => CaseStatus::Broken(what.to_owned()),
        Some(why) => {
            case.notes.push(what.to_owned());
            CaseStatus::Inconclusive(why.clone())
        }
    };
    match judged(played)? {
        Ok(verdict) if CaseStatus::of(&verdict) == CaseStatus::Failed => {
            case.notes.push(format!("the adapter broke then: {what}"));
            case.status = CaseStatus::Failed;
            case.verdict = Some(verdict);
        }
        Ok(_) => {}
        Err(error) => case.notes.push(format!("and the history is refused: {error}")),
    }
    Ok(())
}

fn judged(played: &Played<'_>) -> Result<Result<Verdict, HistoryError>, DriveError> {
    let mut judged = judge(open(played)?);
    if let (Ok(verdict), Some(why)) = (&mut judged, &played.starved) {
        leave_open(verdict, why);
    }
    Ok(judged)
}

fn open(played: &Played<'_>) -> Result<BufReader<File>, DriveError> {
    let file =
        File::open(&played.history).map_err(|error| DriveError::output(&played.history, error))?;
    Ok(BufReader::new(file))
}

fn refused(error: &HistoryError) -> CaseStatus {
    CaseStatus::Broken(format!(
        "the driver made a history that is refused, please report this: {error}"
    ))
}

fn reached(played: &Played<'_>, finished: bool, recorded: &Recorded) -> Vec<(String, bool)> {
    let plan = [("the plan was carried out to its end".to_owned(), finished)];
    let goals = played.reach.iter().map(|reach| (reach.to_string(), reach.is_reached(recorded)));
    plan.into_iter().chain(goals).collect()
}

/// A claim of which each history with deliveries must have a record, and has none.
fn unproven(recorded: &Recorded, claims: &[Feature]) -> Option<String> {
    let deliveries = recorded.deliveries.len();
    let shown = [
        (Feature::Views, !recorded.views.is_empty(), "view"),
        (Feature::Durable, recorded.any_durable, "durable"),
    ];
    let (feature, _, line) = shown
        .into_iter()
        .find(|(feature, shown, _)| deliveries > 0 && !shown && claims.contains(feature))?;
    Some(format!(
        "the implementation claims {feature}, and in {deliveries} deliveries no member wrote a \
         {line} line"
    ))
}
