//! The driver: starts a system's members through its adapter, makes them do what a scenario says,
//! and records what happens as a history. It judges nothing and knows no implementation.
//!
//! | file | what it holds |
//! |---|---|
//! | `scenarios`, `plan`, `feature` | what is done: pure functions of a seed, the number of nodes and a scale |
//! | `stage`, `steps`, `parting`, `settling`, `leaders`, `receiving` | the one interpreter of plans |
//! | `shrinking` | fewer faults that still fail |
//! | `member`, `ledger` | what it knows of members and messages |
//! | `protocol`, `payload` | what passes between it and an adapter |
//! | `process`, `lines`, `network`, `disks`, `holder`, `interrupt` | the operating system |
//! | `folder`, `history_file` | what it leaves behind |
//! | `recorded`, `reach`, `outcome` | what the history shows, and how the scenario came out |
//!
//! Invariants:
//! - whatever a member does or does not, a scenario ends, within a few times the deadline;
//! - no process and no network is left, however the driver ends;
//! - the same seed gives each member the same commands in the same order, faults included.

mod disks;
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

use crate::report::{Case, CaseStatus, CutShort, Run};
use disks::Disks;
use folder::{Folder, ScenarioFolder};
use load_clock::LoadClock;
use network::Network;
use outcome::Played;
use plan::{Condition, Plan, Step, Terms};
use stage::{Ending, Introduction, Setting, Stage};

/// The most nodes that a run can have.
pub const NODES_MAX: usize = ledger::NODES_MAX;

/// How often a scenario is played at most that did not reach what it is for: it is a matter of
/// timing, which the plan does not decide.
const ATTEMPTS_MAX: u32 = 3;

/// The folder in which an adapter is asked what it claims, where no scenario did so before.
const ASKING: &str = "asking";

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

impl Introduction {
    fn title(&self) -> String {
        format!("{} {}", self.name, self.version).trim().to_owned()
    }
}

/// One invocation.
struct Driver<'d> {
    options: &'d Options,
    setting: &'d Setting<'d>,
    folder: &'d Folder,
    introduction: Option<Introduction>,
    /// The seed of the plans now.
    seed: u64,
    began: Instant,
}

impl Driver<'_> {
    /// How often all scenarios are played at most.
    fn repeats(&self) -> u64 {
        if self.options.soak.is_some() { u64::MAX } else { self.options.repeat.max(1) }
    }

    /// Whether the time is over, or a failure ends the run.
    fn is_over(&self, cases: &[Case]) -> bool {
        let is_late = self.options.soak.is_some_and(|soak| self.began.elapsed() >= soak);
        let failed = || cases.iter().any(|case| case.status == CaseStatus::Failed);
        is_late && !cases.is_empty() || self.options.until_failed && failed()
    }

    /// Plays a scenario, in as many rounds as it has: a case for each, or one that says why not.
    fn run(
        &mut self,
        Choice { scenario, round: chosen }: Choice,
        cases: &mut Vec<Case>,
    ) -> Result<(), DriveError> {
        if let Some(case) = self.prevented(scenario)? {
            cases.push(case);
            return Ok(());
        }
        let rounds = scenario.rounds(self.setting.nodes);
        let played = |round: &usize| match chosen {
            Some(chosen) => chosen == *round,
            None => *round < self.options.rounds_max,
        };
        let played: Vec<usize> = (0..rounds).filter(played).collect();
        for round in played {
            let mut name = scenario.name.to_owned();
            if rounds > 1 {
                name += &format!("-{}", round + 1);
            }
            if self.seed != self.options.seed {
                name += &format!("@{}", self.seed);
            }
            let case = self.run_round(scenario, round, &name)?;
            let is_over = matches!(case.status, CaseStatus::Unsupported(_));
            cases.push(case);
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// The case of a scenario that cannot be played at all.
    fn prevented(&mut self, scenario: &'static Scenario) -> Result<Option<Case>, DriveError> {
        let seed = self.seed;
        if self.setting.nodes < scenario.nodes_min {
            let why = format!(
                "{} nodes or more, and there are {}",
                scenario.nodes_min, self.setting.nodes
            );
            return Ok(Some(outcome::unsupported(scenario, seed, why)));
        }
        if (!scenario.needs.is_empty() || !self.options.require.is_empty())
            && self.introduction.is_none()
            && let Err(ending) = self.ask(scenario)
        {
            return match ending {
                Ending::Broken { what, log } => {
                    Ok(Some(outcome::broken(scenario, seed, what, log)))
                }
                Ending::Unsupported(why) => Ok(Some(outcome::unsupported(scenario, seed, why))),
                Ending::Failed(error) => Err(error),
            };
        }
        if let Some(lacking) = self.lacking(&self.options.require) {
            let what = format!("it does not claim what is required: {lacking}");
            return Ok(Some(outcome::broken(scenario, seed, what, None)));
        }
        Ok(self
            .lacking(scenario.needs)
            .map(|lacking| outcome::unsupported(scenario, seed, lacking)))
    }

    fn run_round(
        &mut self,
        scenario: &'static Scenario,
        round: usize,
        name: &str,
    ) -> Result<Case, DriveError> {
        let claims = self.claims();
        let options = self.options;
        let faults = options.faults.as_deref();
        let terms = Terms { faults, ..self.terms(options.messages, round, &claims) };
        let plan = scenario.plan(terms);
        let mut case = self.play_until_reached((scenario, name), &plan)?;
        let drawn: Vec<usize> =
            plan.faults.iter().filter(|fault| fault.is_kept).map(|fault| fault.number).collect();
        if case.status == CaseStatus::Failed && drawn.len() > 1 {
            let kept = shrinking::fewest(drawn, |faults| {
                let plan = scenario.plan(Terms { faults: Some(faults), ..terms });
                let smaller =
                    self.play_until_reached((scenario, &format!("{name}-shrunk")), &plan)?;
                Ok(smaller.status == CaseStatus::Failed)
            })?;
            let numbers: Vec<String> = kept.iter().map(ToString::to_string).collect();
            let numbers = if kept.is_empty() { "none".to_owned() } else { numbers.join(",") };
            let seed = self.seed;
            case.notes.push(format!(
                "fewer faults fail too: --scenario {} --seed {seed} --faults {numbers}",
                scenario.name
            ));
        }
        Ok(case)
    }

    /// Plays a plan, again if it did not reach what it is for.
    fn play_until_reached(
        &mut self,
        (scenario, name): (&'static Scenario, &str),
        plan: &Plan,
    ) -> Result<Case, DriveError> {
        let mut attempt = 1;
        loop {
            let folder = self.scenario_folder(name)?;
            let around =
                self.network(plan).and_then(|network| Ok((network, self.disks(plan, &folder)?)));
            let mut case = match around {
                Ok(around) => self.play((scenario, name), plan, &folder, around)?,
                Err(why) => return Ok(outcome::unsupported(scenario, self.seed, why)),
            };
            let timing = outcome::is_matter_of_timing(&case);
            if timing && attempt < ATTEMPTS_MAX {
                attempt += 1;
                continue;
            }
            if attempt > 1 {
                let why = if timing {
                    "it never reached what it is for"
                } else {
                    "at first it did not reach what it is for"
                };
                case.notes.push(format!("played {attempt} times: {why}"));
            }
            return Ok(case);
        }
    }

    fn terms<'t>(&self, scale: u64, round: usize, claims: &'t [Feature]) -> Terms<'t> {
        let (seed, nodes) = (self.seed, self.setting.nodes);
        Terms { seed, nodes, scale, claims, round, faults: None }
    }

    /// What the implementation claims, as far as that is known.
    fn claims(&self) -> Vec<Feature> {
        let names = self.introduction.iter().flat_map(|introduction| &introduction.features);
        names.filter_map(|name| Feature::named(name)).collect()
    }

    /// Networks of their own for all nodes, if the plan parts them; else nothing.
    fn network(&self, plan: &Plan) -> Result<Option<Network>, String> {
        if !plan.parts {
            return Ok(None);
        }
        if !self.options.hosts.is_empty() {
            return Err("nodes on this host, whose networks can be parted".to_owned());
        }
        let network = Network::build(self.setting.nodes);
        network
            .map(Some)
            .map_err(|why| format!("network namespaces, and this system has none for us: {why}"))
    }

    /// Disks of their own for all nodes, if the plan fills some; else nothing.
    fn disks(&self, plan: &Plan, folder: &ScenarioFolder) -> Result<Option<Disks>, String> {
        if !plan.fills {
            return Ok(None);
        }
        if !self.options.hosts.is_empty() {
            return Err("nodes on this host, whose disks can be filled".to_owned());
        }
        let names = (0..self.setting.nodes).map(stage::node_name);
        let folders = names.map(|name| folder.storage(&name)).collect();
        let disks = Disks::mount(folders);
        disks.map(Some).map_err(|why| {
            format!("file systems of the nodes' own, and this system has none for us: {why}")
        })
    }

    fn play(
        &mut self,
        (scenario, name): (&'static Scenario, &str),
        plan: &Plan,
        folder: &ScenarioFolder,
        (network, disks): (Option<Network>, Option<Disks>),
    ) -> Result<Case, DriveError> {
        let means =
            network.as_ref().map(|network| format!("nodes were parted by {}", network.means()));
        let mut notes: Vec<String> = means.into_iter().collect();
        for fault in plan.faults.iter().filter(|fault| fault.is_kept) {
            notes.push(format!("fault {}: {}", fault.number, fault.what));
        }
        let began = Instant::now();
        let title = self.introduction.as_ref().map(Introduction::title);
        let around = (network, disks);
        let mut stage = Stage::set(self.setting, name, title.as_deref(), plan, folder, around)?;
        let outcome = stage.play();
        let starved = stage.starved.take();
        notes.append(&mut stage.notes);
        self.introduction = self.introduction.take().or(stage.introduction.take());
        // This kills the members that still run.
        drop(stage);
        outcome::conclude(Played {
            scenario,
            name: name.to_owned(),
            seed: self.seed,
            history: folder.history(),
            reach: &plan.reach,
            outcome,
            claims: self.claims(),
            notes,
            starved,
            took: began.elapsed(),
        })
    }

    fn scenario_folder(&self, name: &str) -> Result<ScenarioFolder, DriveError> {
        let names: Vec<String> = (0..self.setting.nodes).map(stage::node_name).collect();
        self.folder.scenario(name, &names)
    }

    /// Starts the members once, only to learn what they claim: in the groups of a scenario, since
    /// a system may not have those of another.
    fn ask(&mut self, scenario: &Scenario) -> Result<(), Ending> {
        let everyone: Vec<usize> = (0..self.setting.nodes).collect();
        let plan = Plan {
            groups: scenario.plan(self.terms(1, 0, &[])).groups,
            steps: vec![
                Step::Start(everyone.clone()),
                Step::Await(Condition::Ready(everyone)),
                Step::StopAll,
            ],
            ..Plan::default()
        };
        let folder = self.scenario_folder(ASKING)?;
        let mut stage = Stage::set(self.setting, ASKING, None, &plan, &folder, (None, None))?;
        stage.play()?;
        self.introduction = stage.introduction.take();
        if self.introduction.is_none() {
            let what = format!("no member answered init; {}", stage.notes.join("; "));
            return Err(Ending::Broken { what, log: None });
        }
        Ok(())
    }

    /// Which of these features the implementation does not claim.
    fn lacking(&self, features: &[Feature]) -> Option<String> {
        let claims = self.claims();
        let lacking: Vec<&str> = features
            .iter()
            .filter(|feature| !claims.contains(feature))
            .map(|feature| feature.name())
            .collect();
        (!lacking.is_empty()).then(|| lacking.join(", "))
    }
}
