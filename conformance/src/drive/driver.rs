//! One invocation of the driver: the scenarios to run, the number of repetitions, and the
//! environment.

use std::time::Instant;

use super::choice::Choice;
use super::disks::Disks;
use super::error::{DriveError, Ending};
use super::feature::Feature;
use super::folder::{ASKING, Folder, ScenarioFolder};
use super::names::node_name;
use super::network::Network;
use super::options::RunOptions;
use super::outcome::{self, Played};
use super::plan::{Condition, RunPlan, Step, Terms};
use super::scenarios::Scenario;
use super::shrinking;
use super::stage::{Introduction, Setting, Stage};
use crate::report::{Case, CaseStatus};

/// Maximum number of attempts for a scenario that has not reached its goal. Reaching it depends on
/// timing, which the plan does not control.
const ATTEMPTS_MAX: u32 = 8;

/// The output folder of a repeated run.
const AGAIN: &str = "conformance-again";

impl Introduction {
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.name, self.version).trim().to_owned()
    }

    /// Returns whether the other introduction has another name or other features.
    pub(super) fn is_of_another_system(&self, other: &Self) -> bool {
        let lacks = |one: &Self, other: &Self| {
            one.features.iter().any(|feature| !other.features.contains(feature))
        };
        self.name != other.name || lacks(self, other) || lacks(other, self)
    }
}

/// One invocation.
pub(super) struct Driver<'d> {
    pub(super) options: &'d RunOptions,
    pub(super) setting: &'d Setting<'d>,
    pub(super) folder: &'d Folder,
    pub(super) introduction: Option<Introduction>,
    /// The seed of the current plans.
    pub(super) seed: u64,
    pub(super) began: Instant,
}

impl Driver<'_> {
    /// Returns the limit of repetitions of all scenarios.
    pub(super) fn repeats(&self) -> u64 {
        if self.options.soak.is_some() { u64::MAX } else { self.options.repeat.max(1) }
    }

    /// Returns whether the time is over or a failure ends the run.
    pub(super) fn is_over(&self, cases: &[Case]) -> bool {
        let is_late = self.options.soak.is_some_and(|soak| self.began.elapsed() >= soak);
        let failed = || {
            let ends =
                |status: &CaseStatus| matches!(status, CaseStatus::Failed | CaseStatus::Broken(_));
            cases.iter().any(|case| ends(&case.status))
        };
        is_late && !cases.is_empty() || self.options.until_failed && failed()
    }

    /// Runs all rounds of a scenario. Returns one case per round, or a single case with the reason
    /// why the scenario was not run.
    pub(super) fn run(
        &mut self,
        Choice { scenario, round: chosen }: Choice,
        cases: &mut Vec<Case>,
    ) -> Result<(), DriveError> {
        if let Some(mut case) = self.prevented(scenario)? {
            case.again = self.again(&case.status, scenario.name);
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
            let round_name = name.clone();
            if self.seed != self.options.seed {
                name += &format!("@{}", self.seed);
            }
            let mut case = self.run_round(scenario, round, &name)?;
            case.again = self.again(&case.status, &round_name);
            let is_over = matches!(case.status, CaseStatus::Unsupported(_));
            cases.push(case);
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Returns the command that repeats a scenario or one of its rounds, if that is useful. The
    /// command uses a different output folder, to preserve this run's folder.
    fn again(&self, status: &CaseStatus, scenario: &str) -> Option<String> {
        if matches!(status, CaseStatus::Passed | CaseStatus::Unsupported(_)) {
            return None;
        }
        let RunOptions {
            program, adapter, hosts, nodes, messages, deadline, faults, require, ..
        } = self.options;
        let mut words = vec![program.clone(), "run".to_owned()];
        let mut add = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        add("adapter", adapter.clone());
        if !hosts.is_empty() {
            add("hosts", hosts.join(","));
        }
        add("nodes", nodes.to_string());
        add("scenario", scenario.to_owned());
        add("seed", self.seed.to_string());
        add("messages", messages.to_string());
        add("deadline", deadline.as_secs_f64().to_string());
        if let Some(faults) = faults {
            let numbers: Vec<String> = faults.iter().map(ToString::to_string).collect();
            add("faults", if numbers.is_empty() { "none".to_owned() } else { numbers.join(",") });
        }
        if !require.is_empty() {
            let names: Vec<&str> = require.iter().map(|feature| feature.name()).collect();
            add("require", names.join(","));
        }
        add("output", AGAIN.to_owned());
        Some(shell_words::join(words))
    }

    /// Returns the case of a scenario that cannot be run.
    fn prevented(&mut self, scenario: &'static Scenario) -> Result<Option<Case>, DriveError> {
        let seed = self.seed;
        if self.setting.nodes < scenario.nodes_min {
            let why = format!(
                "at least {} nodes, but there are {}",
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
                Ending::Denied(what) => Ok(Some(outcome::broken(scenario, seed, what, None))),
                Ending::Unsupported(why) => Ok(Some(outcome::unsupported(scenario, seed, why))),
                Ending::Failed(error) => Err(error),
            };
        }
        if let Some(lacking) = self.lacking(&self.options.require) {
            let what = format!("the adapter does not claim these required features: {lacking}");
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
                "fewer faults are enough to fail: --scenario {} --seed {seed} --faults {numbers}",
                scenario.name
            ));
        }
        Ok(case)
    }

    /// Runs a plan, and repeats it if it did not reach its goal.
    fn play_until_reached(
        &mut self,
        (scenario, name): (&'static Scenario, &str),
        plan: &RunPlan,
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
                    "it never reached its goal"
                } else {
                    "it did not reach its goal at first"
                };
                case.notes.push(format!("the scenario ran {attempt} times: {why}"));
            }
            return Ok(case);
        }
    }

    fn terms<'t>(&self, scale: u64, round: usize, claims: &'t [Feature]) -> Terms<'t> {
        let (seed, nodes) = (self.seed, self.setting.nodes);
        Terms { seed, nodes, scale, claims, round, faults: None }
    }

    /// Returns the features that the implementation claims, as far as they are known.
    fn claims(&self) -> Vec<Feature> {
        let names = self.introduction.iter().flat_map(|introduction| &introduction.features);
        names.filter_map(|name| Feature::named(name)).collect()
    }

    /// Builds networks for all nodes if the plan partitions them; otherwise returns `None`.
    fn network(&self, plan: &RunPlan) -> Result<Option<Network>, String> {
        if !plan.parts {
            return Ok(None);
        }
        if !self.options.hosts.is_empty() {
            return Err("nodes on this host, whose networks can be partitioned".to_owned());
        }
        let network = Network::build(self.setting.nodes);
        network
            .map(Some)
            .map_err(|why| format!("network namespaces, which this system does not allow: {why}"))
    }

    /// Mounts disks for all nodes if the plan has a disk fault; otherwise returns `None`.
    fn disks(&self, plan: &RunPlan, folder: &ScenarioFolder) -> Result<Option<Disks>, String> {
        let Some(trouble) = plan.disks else { return Ok(None) };
        if !self.options.hosts.is_empty() {
            return Err("nodes on this host, with separate disks".to_owned());
        }
        let names = (0..self.setting.nodes).map(node_name);
        let folders = names.map(|name| folder.storage(&name)).collect();
        let disks = Disks::mount(folders, trouble);
        disks.map(Some).map_err(|why| {
            format!("a file system per node, which this system does not allow: {why}")
        })
    }

    fn play(
        &mut self,
        (scenario, name): (&'static Scenario, &str),
        plan: &RunPlan,
        folder: &ScenarioFolder,
        (network, disks): (Option<Network>, Option<Disks>),
    ) -> Result<Case, DriveError> {
        let means = network
            .as_ref()
            .map(|network| format!("nodes were partitioned by {}", network.means()));
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
        let not_durable = stage.not_durable.take();
        notes.append(&mut stage.notes);
        self.introduction = self.introduction.take().or(stage.introduction.take());
        // Dropping the stage kills the members that are still running.
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
            not_durable,
            took: began.elapsed(),
        })
    }

    fn scenario_folder(&self, name: &str) -> Result<ScenarioFolder, DriveError> {
        let names: Vec<String> = (0..self.setting.nodes).map(node_name).collect();
        self.folder.scenario(name, &names)
    }

    /// Starts the members once, only to learn which features they claim. They receive the groups of
    /// a scenario, because a system may not support other groups.
    fn ask(&mut self, scenario: &Scenario) -> Result<(), Ending> {
        let everyone: Vec<usize> = (0..self.setting.nodes).collect();
        let plan = RunPlan {
            groups: scenario.plan(self.terms(1, 0, &[])).groups,
            steps: vec![
                Step::Start(everyone.clone()),
                Step::Await(Condition::Ready(everyone)),
                Step::StopAll,
            ],
            ..RunPlan::default()
        };
        let folder = self.scenario_folder(ASKING)?;
        let mut stage = Stage::set(self.setting, ASKING, None, &plan, &folder, (None, None))?;
        stage.play()?;
        self.introduction = stage.introduction.take();
        if self.introduction.is_none() {
            let what = format!("no member answered `init`; {}", stage.notes.join("; "));
            return Err(Ending::Broken { what, log: None });
        }
        Ok(())
    }

    /// Returns the features that the implementation does not claim.
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
