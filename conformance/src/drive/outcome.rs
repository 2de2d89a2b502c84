//! Turns the result of playing a scenario into a case.

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

/// The result of playing a scenario.
pub(super) struct Played<'p> {
    pub(super) scenario: &'static Scenario,
    /// The case's name: the scenario's name, with the round if there are several.
    pub(super) name: String,
    pub(super) seed: u64,
    pub(super) history: PathBuf,
    /// The conditions that must have been reached.
    pub(super) reach: &'p [Reach],
    /// Whether the plan ran to its end, or the reason why it did not.
    pub(super) outcome: Result<bool, Ending>,
    /// The features that the implementation claims, once reported.
    pub(super) claims: Vec<Feature>,
    pub(super) notes: Vec<String>,
    /// The reason why the machine was too slow for a deadline, if it was.
    pub(super) starved: Option<String>,
    /// The members that claimed to report durable deliveries, but did not before the deadline.
    pub(super) not_durable: Option<String>,
    pub(super) took: Duration,
}

/// Returns the case of a scenario that did not run because a requirement is missing.
pub(super) fn unsupported(scenario: &Scenario, seed: u64, why: String) -> Case {
    Case {
        description: scenario.sentence.to_owned(),
        seed: Some(seed),
        ..Case::new(scenario.name.to_owned(), CaseStatus::Unsupported(why))
    }
}

/// Returns the case of a scenario that could not begin because an adapter broke.
pub(super) fn broken(scenario: &Scenario, seed: u64, what: String, log: Option<String>) -> Case {
    let status = CaseStatus::Broken(what);
    Case { status, notes: log.into_iter().collect(), ..unsupported(scenario, seed, String::new()) }
}

/// Returns whether the plan was carried out, and nothing is wrong except that the scenario did not
/// reach its goal.
pub(super) fn is_matter_of_timing(case: &Case) -> bool {
    let finished = case.reached.first().is_some_and(|(_, finished)| *finished);
    let missed = case.reached.iter().any(|(_, reached)| !reached);
    matches!(case.status, CaseStatus::Inconclusive(_)) && finished && missed
}

/// The checks that report missing events. On an overloaded machine, an event may only be late.
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

/// Makes checks inconclusive if they depended on a deadline for which the machine was too slow.
fn leave_open(verdict: &mut Verdict, why: &str) {
    for judgement in &mut verdict.judgements {
        let is_broken = matches!(judgement.outcome, Outcome::Broken { .. });
        if is_broken && MISSING.contains(&judgement.check) {
            judgement.outcome = Outcome::Inconclusive(why.to_owned());
        }
    }
}

/// Judges the history and returns the case.
///
/// # Errors
/// Fails if the driver could not continue, or cannot read the history that it wrote.
pub(super) fn conclude(played: Played<'_>) -> Result<Case, DriveError> {
    let mut case = unsupported(played.scenario, played.seed, String::new());
    case.name.clone_from(&played.name);
    case.notes = played.notes.clone();
    case.took = played.took;
    case.history = Some(played.history.clone());
    match &played.outcome {
        Ok(finished) => conclude_played(&mut case, &played, *finished)?,
        Err(Ending::Unsupported(why)) => case.status = CaseStatus::Unsupported(why.clone()),
        Err(Ending::Denied(what)) => {
            let what = format!("{what}, although {}", claimed(played.scenario));
            conclude_broken(&mut case, &played, &what, &None)?;
        }
        Err(Ending::Broken { what, log }) => conclude_broken(&mut case, &played, what, log)?,
        // Destructured here because the error is moved.
        Err(Ending::Failed(_)) => {
            return match played.outcome {
                Err(Ending::Failed(error)) => Err(error),
                _ => Ok(case),
            };
        }
    }
    Ok(case)
}

/// Names the claims without which a scenario does not run.
fn claimed(scenario: &Scenario) -> String {
    let needs: Vec<&str> = scenario.needs.iter().map(|feature| feature.name()).collect();
    if needs.is_empty() {
        "this scenario needs no feature".to_owned()
    } else {
        format!("the implementation claims {}", needs.join(", "))
    }
}

fn conclude_played(case: &mut Case, played: &Played<'_>, finished: bool) -> Result<(), DriveError> {
    let verdict = match judged(played)? {
        Ok(verdict) => verdict,
        Err(error) => {
            case.status = refused(&error);
            return Ok(());
        }
    };
    // The judge has just read the history, so it is readable.
    let recorded = Recorded::read(open(played)?).unwrap_or_default();
    case.reached = reached(played, finished, &recorded);
    let unproven = unproven(&recorded, &played.claims).filter(|_| finished);
    let unproven = unproven.or_else(|| played.not_durable.clone());
    case.status = match CaseStatus::of(&verdict) {
        CaseStatus::Failed => CaseStatus::Failed,
        _ if let Some(why) = unproven
            && played.starved.is_none() =>
        {
            CaseStatus::Broken(why)
        }
        open => {
            let missed = case.reached.iter().find(|(_, reached)| !reached);
            let missed =
                missed.map(|(what, _)| format!("the scenario did not reach its goal: {what}"));
            played.starved.clone().or(missed).map_or(open, CaseStatus::Inconclusive)
        }
    };
    case.verdict = Some(verdict);
    Ok(())
}

/// Returns the case of a broken adapter. Its system gets no verdict, unless it had already broken a
/// promise.
fn conclude_broken(
    case: &mut Case,
    played: &Played<'_>,
    what: &str,
    log: &Option<String>,
) -> Result<(), DriveError> {
    case.notes.extend(log.clone());
    case.status = match &played.starved {
        None => CaseStatus::Broken(what.to_owned()),
        // The deadline may have been the reason, so this proves nothing.
        Some(why) => CaseStatus::Inconclusive(format!("{what}; {why}")),
    };
    match judged(played)? {
        Ok(verdict) if CaseStatus::of(&verdict) == CaseStatus::Failed => {
            case.notes.push(format!("after that, the adapter failed: {what}"));
            case.status = CaseStatus::Failed;
            case.verdict = Some(verdict);
        }
        Ok(_) => {}
        Err(error) => case.notes.push(format!("the history was also refused: {error}")),
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
    CaseStatus::Broken(format!("the driver wrote an invalid history; please report this: {error}"))
}

fn reached(played: &Played<'_>, finished: bool, recorded: &Recorded) -> Vec<(String, bool)> {
    let plan = [("the plan was carried out to its end".to_owned(), finished)];
    let goals = played.reach.iter().map(|reach| (reach.to_string(), reach.is_reached(recorded)));
    plan.into_iter().chain(goals).collect()
}

/// Returns a claimed feature without evidence: the history has deliveries but none of the records
/// that the claim requires.
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
        "the implementation claims {feature}, but no member wrote a `{line}` line in {deliveries} deliveries"
    ))
}
