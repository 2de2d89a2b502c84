//! The driver: starts a system's members through its adapter, makes them do what a scenario says,
//! and records what happens as a history. It judges nothing and knows no implementation.
//!
//! | file | what it holds |
//! |---|---|
//! | `scenarios`, `plan`, `feature` | what is done: pure functions of a seed, the number of nodes and a scale |
//! | `driver` | one invocation: what is played, how often, in what surroundings |
//! | `stage`, `steps`, `parting`, `settling`, `leaders`, `receiving` | the one interpreter of plans |
//! | `shrinking` | fewer faults that still fail |
//! | `member`, `ledger` | what it knows of members and messages |
//! | `protocol`, `payload` | what passes between it and an adapter |
//! | `process`, `lines`, `network`, `disks`, `power`, `holder`, `interrupt` | the operating system |
//! | `folder`, `history_file` | what it leaves behind |
//! | `recorded`, `reach`, `outcome` | what the history shows, and how the scenario came out |
//!
//! Invariants:
//! - whatever a member does or does not, a scenario ends, within a few times the deadline;
//! - no process and no network is left, however the driver ends;
//! - the same seed gives each member the same commands in the same order, faults included.

mod disks;
mod driver;
mod feature;
mod folder;
mod history_file;
mod holder;
mod interrupt;
mod leaders;
mod ledger;
mod lines;
mod load_clock;
mod member;
mod network;
mod outcome;
mod parting;
mod payload;
mod plan;
mod power;
mod process;
mod protocol;
mod reach;
mod receiving;
mod recorded;
mod scenarios;
mod settling;
mod shrinking;
mod stage;
mod steps;

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use feature::Feature;
pub use interrupt::Interrupts;
pub use scenarios::{SCENARIOS, Scenario};

use crate::report::{CutShort, Run};
use driver::Driver;
use folder::Folder;
use load_clock::LoadClock;
use stage::{Introduction, Setting};

/// The most nodes that a run can have.
pub const NODES_MAX: usize = ledger::NODES_MAX;

/// What is to be driven, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The adapter's command, as one would write it in a shell.
    pub adapter: String,
    /// The hosts of the nodes, in turns; this one, if there are none. In the adapter's command
    /// `{host}` stands for a node's host, and `{node}` for its name.
    pub hosts: Vec<String>,
    /// How many nodes there are, from 1 to [`NODES_MAX`].
    pub nodes: usize,
    /// The names of the scenarios to run; all if there are none.
    pub scenarios: Vec<String>,
    /// What decides the plans.
    pub seed: u64,
    /// With how many seeds, from that one on, all scenarios are played.
    pub repeat: u64,
    /// How long they are played with ever new seeds instead.
    pub soak: Option<Duration>,
    /// Whether the first failure ends the run.
    pub until_failed: bool,
    /// How many rounds of a scenario are played at most, where it has several.
    pub rounds_max: usize,
    /// The features without which nothing is to be played.
    pub require: Vec<Feature>,
    /// Of the faults that chance draws, the numbers of those that are to come; all, if not said.
    pub faults: Option<Vec<usize>>,
    /// How long an answer, a delivery or an end may take.
    pub deadline: Duration,
    /// How many messages a sender sends where that does not matter.
    pub messages: u64,
    /// The folder for histories and logs.
    pub output: PathBuf,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum Progress {
    /// A scenario begins.
    Scenario {
        /// Its name.
        name: &'static str,
        /// How many were run before.
        place: usize,
        /// How many there are.
        of: usize,
    },
    /// Messages were sent in it.
    Sent {
        /// How many.
        done: u64,
        /// How many there will be, unless a fault takes some away.
        of: u64,
        /// How many deliveries there were.
        deliveries: u64,
    },
}

/// Why there is no run at all.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The adapter's command cannot be taken apart.
    #[error("the adapter's command cannot be understood: {0}")]
    Command(String),
    /// The adapter's command cannot be started.
    #[error("the adapter cannot be started: {command}: {source}")]
    Adapter {
        /// The command.
        command: String,
        /// What the system says.
        source: io::Error,
    },
    /// No scenario has this name.
    #[error("no scenario is called \"{0}\"")]
    NoScenario(String),
    /// The output folder was not made by a run.
    #[error("{} is not empty, and no run made it", .0.display())]
    NotOurs(PathBuf),
    /// Another run uses the output folder.
    #[error("{} is in use by another run", .0.display())]
    InUse(PathBuf),
    /// Something cannot be written, or read back.
    #[error("cannot write {}: {source}", path.display())]
    Output {
        /// What.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused something that it seldom does.
    #[error("{action}: {source}")]
    System {
        /// What.
        action: &'static str,
        /// What it says.
        source: io::Error,
    },
    /// The driver was asked to end, by this signal.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
}

impl DriveError {
    fn output(path: &Path, source: io::Error) -> Self {
        Self::Output { path: path.to_owned(), source }
    }

    fn system(action: &'static str, source: io::Error) -> Self {
        Self::System { action, source }
    }
}

/// Runs scenarios, one after the other, and judges each history. Progress is reported from this
/// thread, many times a second.
///
/// To be called from the program's main thread, or one that lives as long: the members die with it.
///
/// # Errors
/// If nothing could be run. What is wrong with the adapter is in the cases.
pub fn drive(
    options: &Options,
    interrupts: &Interrupts,
    progress: &dyn Fn(Progress),
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
            progress(Progress::Scenario { name: choice.scenario.name, place, of: chosen.len() });
            if let Err(error) = driver.run(*choice, &mut cases) {
                // What was judged before is judged, unless there is nothing.
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

/// What came of driving.
#[derive(Debug)]
pub struct Driven {
    /// The scenarios that were played to their end.
    pub run: Run,
    /// What came before all of them were.
    pub cut_short: Option<DriveError>,
}

/// A scenario that is to be played.
#[derive(Clone, Copy, Debug)]
struct Choice {
    scenario: &'static Scenario,
    /// The one round of it that is wanted, if not all are.
    round: Option<usize>,
}

/// The scenarios of these names, each once; all if there are none.
fn choose(names: &[String]) -> Result<Vec<Choice>, DriveError> {
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

/// The scenario of that name, or the round of it whose number follows the name.
fn named(name: &str) -> Option<Choice> {
    if let Some(scenario) = scenarios::named(name) {
        return Some(Choice { scenario, round: None });
    }
    let (scenario, number) = name.rsplit_once('-')?;
    let (scenario, number) = (scenarios::named(scenario)?, number.parse::<usize>().ok()?);
    let round = number.checked_sub(1).filter(|round| *round < scenario.rounds(NODES_MAX))?;
    Some(Choice { scenario, round: Some(round) })
}
