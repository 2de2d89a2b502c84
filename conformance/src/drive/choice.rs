//! The selection of scenarios to run.

use super::error::DriveError;
use super::ledger::NODES_MAX;
use super::scenarios::{self, SCENARIOS, Scenario};

/// A scenario to run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) scenario: &'static Scenario,
    /// The only round to run; if absent, all rounds.
    pub(super) round: Option<usize>,
}

/// Returns the scenarios of these names, each once; all scenarios if no name is given.
pub(super) fn choose(names: &[String]) -> Result<Vec<Choice>, DriveError> {
    if names.is_empty() {
        let usual = SCENARIOS.iter().filter(|scenario| scenario.name != scenarios::RANDOM);
        return Ok(usual.map(|scenario| Choice { scenario, round: None }).collect());
    }
    let mut chosen: Vec<Choice> = Vec::new();
    for name in names {
        let choice = named(name).ok_or_else(|| DriveError::NoScenario(name.clone()))?;
        let is_choice = |other: &Choice| {
            other.scenario.name == choice.scenario.name && other.round == choice.round
        };
        if !chosen.iter().any(is_choice) {
            chosen.push(choice);
        }
    }
    Ok(chosen)
}

/// Returns the scenario of this name, or one of its rounds if the name is followed by a round's
/// number.
fn named(name: &str) -> Option<Choice> {
    if let Some(scenario) = scenarios::named(name) {
        return Some(Choice { scenario, round: None });
    }
    let (scenario, number) = name.rsplit_once('-')?;
    let (scenario, number) = (scenarios::named(scenario)?, number.parse::<usize>().ok()?);
    let round = number.checked_sub(1).filter(|round| *round < scenario.rounds(NODES_MAX))?;
    Some(Choice { scenario, round: Some(round) })
}
