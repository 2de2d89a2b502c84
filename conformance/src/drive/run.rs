//! One run of the driver, from its options to its report.

use std::time::Instant;

use super::choice::choose;
use super::driver::Driver;
use super::error::DriveError;
use super::folder::Folder;
use super::interrupt::Interrupts;
use super::ledger::NODES_MAX;
use super::load_clock::LoadClock;
use super::options::{RunOptions, RunProgress};
use super::stage::{Introduction, Setting};
use crate::report::{CutShort, Run};

/// Runs scenarios in turn, and judges each history. Reports progress from this thread, many times
/// per second.
///
/// Must be called from the program's main thread or one that lives as long, because the members die
/// with it.
///
/// # Errors
/// Fails if nothing could be run. Errors of the adapter are in the cases.
pub fn drive(
    options: &RunOptions,
    interrupts: &Interrupts,
    progress: &dyn Fn(RunProgress),
) -> Result<Driven, DriveError> {
    let adapter = shell_words::split(&options.adapter)
        .map_err(|error| DriveError::Command(error.to_string()))?;
    if adapter.is_empty() {
        return Err(DriveError::Command("it is empty".to_owned()));
    }
    let chosen = choose(&options.scenarios)?;
    let folder = Folder::take(&options.output)?;
    let load_clock = LoadClock::start();
    let setting = Setting {
        load_clock: &load_clock,
        adapter: &adapter,
        hosts: &options.hosts,
        nodes: options.nodes.clamp(1, NODES_MAX),
        seed: options.seed,
        deadline: options.deadline,
        interrupts,
        progress,
    };
    let mut driver = Driver {
        options,
        setting: &setting,
        folder: &folder,
        introduction: None,
        seed: options.seed,
        began: Instant::now(),
    };
    let (mut cases, mut cut_short, mut not_run) = (Vec::new(), None, Vec::new());
    'seeds: for repeated in 0..driver.repeats() {
        driver.seed = options.seed.wrapping_add(repeated);
        for (place, choice) in chosen.iter().enumerate() {
            if driver.is_over(&cases) {
                break 'seeds;
            }
            progress(RunProgress::Scenario { name: choice.scenario.name, place, of: chosen.len() });
            if let Err(error) = driver.run(*choice, &mut cases) {
                // The cases judged so far are returned, unless there are none.
                if cases.is_empty() {
                    return Err(error);
                }
                cut_short = Some(error);
                not_run = chosen[place..].iter().map(|one| one.scenario.name.to_owned()).collect();
                break 'seeds;
            }
        }
    }
    let introduction = driver.introduction;
    let run = Run {
        adapter: Some(options.adapter.clone()),
        implementation: introduction.as_ref().map(Introduction::title),
        features: introduction.map(|introduction| introduction.features).unwrap_or_default(),
        cases,
        cut_short: cut_short
            .as_ref()
            .map(|error: &DriveError| CutShort { why: error.to_string(), not_run }),
    };
    Ok(Driven { run, cut_short })
}

/// The result of driving.
#[derive(Debug)]
pub struct Driven {
    /// The scenarios that ran to their end.
    pub run: Run,
    /// The error that ended the run before all scenarios had run.
    pub cut_short: Option<DriveError>,
}
