//! Runs over many seeds, and the report of the first that fails.

use std::fmt::{Debug, Write as _};
use std::ops::RangeInclusive;

use tramontane::StateMachine;
use tramontane_fixtures::world::{Plan, run, shrink};

use crate::plan::plan;
use crate::proposer::Proposer;
use crate::replay::Replay;
use crate::violation::Violation;

/// The environment variable with the only seed to run.
const SEED: &str = "TRAMONTANE_SEED";

/// Number of smaller groups to try after a failure.
const SHRINKS_MAX: usize = 300;

/// A second implementation: it takes commands in their order, and returns their answers.
pub(crate) type ModelAnswers<S> =
    Box<dyn FnMut(<S as StateMachine>::Command) -> <S as StateMachine>::Answer>;

type Propose<S> = Box<dyn Fn(&mut Proposer<'_, S>) -> <S as StateMachine>::Command>;
type Holds<S> = Box<dyn Fn(&S) -> Result<(), String>>;

/// Simulated groups, one for each seed, whose members run a state machine.
#[must_use = "nothing runs before `run`"]
pub struct Trials<S: StateMachine> {
    pub(crate) initial: Box<dyn Fn() -> S>,
    pub(crate) propose: Propose<S>,
    pub(crate) invariant: Option<Holds<S>>,
    pub(crate) model: Option<Box<dyn Fn() -> ModelAnswers<S>>>,
    seeds: RangeInclusive<u64>,
    is_logged: bool,
}

/// Counts of all runs: what the state machine has been exposed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// Groups, one for each seed.
    pub groups: u64,
    /// Commands that were proposed.
    pub proposed: u64,
    /// Commands that were answered. The proposers of the others crashed or were removed.
    /// In a group that logs, an answer is given once its command is durable.
    pub answered: u64,
    /// Members that crashed.
    pub crashes: u64,
    /// Members that joined and took over a state.
    pub joins: u64,
    /// Times that nodes were cut off from the others.
    pub partitions: u64,
    /// Times that all members were killed, and the group restarted from its logs.
    pub restarts: u64,
    /// Disks that were lost, or came back changed, before a restart.
    pub disks_lost: u64,
    /// Views that members entered.
    pub views: u64,
}

/// A run that failed.
struct FailedRun {
    violation: Violation,
    events: Vec<String>,
}

impl<S> Trials<S>
where
    S: StateMachine + Debug + PartialEq,
    S::Command: Debug,
    S::Answer: Debug + PartialEq,
{
    /// Prepares 100 groups whose members begin with the state that `initial` returns, and propose
    /// the commands that `propose` returns. `propose` must take its random choices from the
    /// [`Proposer`], so that a seed determines the run.
    pub fn new(
        initial: impl Fn() -> S + 'static,
        propose: impl Fn(&mut Proposer<'_, S>) -> S::Command + 'static,
    ) -> Self {
        Self {
            initial: Box::new(initial),
            propose: Box::new(propose),
            invariant: None,
            model: None,
            seeds: 1..=100,
            is_logged: false,
        }
    }

    /// Sets the seeds, one for each group.
    pub fn seeds(mut self, seeds: RangeInclusive<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Lets the members log the commands, as in a group with `logged = true`. All members of each
    /// group are killed once or twice, and the group restarts from its logs. By then, up to a
    /// minority of the disks is lost, or comes back emptied, shortened or in an older state.
    /// Proposers have an answer once their command is durable at a majority.
    pub fn logged(mut self) -> Self {
        self.is_logged = true;
        self
    }

    /// Checks states after each command. `holds` returns what is wrong.
    pub fn invariant(mut self, holds: impl Fn(&S) -> Result<(), String> + 'static) -> Self {
        self.invariant = Some(Box::new(holds));
        self
    }

    /// Compares all answers with those of a model, which `answer` applies commands to.
    pub fn model<M: 'static>(
        mut self,
        initial: impl Fn() -> M + 'static,
        answer: impl Fn(&mut M, S::Command) -> S::Answer + Clone + 'static,
    ) -> Self {
        self.model = Some(Box::new(move || {
            let (mut model, answer) = (initial(), answer.clone());
            Box::new(move |command| answer(&mut model, command))
        }));
        self
    }

    /// Runs all groups, or only that of the seed in the environment variable `TRAMONTANE_SEED`.
    ///
    /// # Panics
    /// Panics if a run fails, with what was wrong in the smallest group that fails in the same way,
    /// and the events that led to it.
    pub fn run(self) -> Ran {
        let only = std::env::var(SEED).ok().map(|text| text.parse::<u64>());
        let seeds = match only {
            None => self.seeds.clone(),
            Some(Ok(seed)) => seed..=seed,
            Some(Err(error)) => panic!("{SEED} is not a number: {error}"),
        };
        let mut all = Ran::default();
        for seed in seeds {
            match self.simulate(&self.plan(seed)) {
                Ok(ran) => all.add(&ran),
                Err(failed) => panic!("{}", self.report(seed, failed)),
            }
        }
        all
    }

    /// Returns the first violation, in the smallest group that shows one of its kind, or `None` if
    /// all runs pass. For tests of tests.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        let failed = |seed| Some((seed, self.simulate(&self.plan(seed)).err()?));
        let (seed, failed) = self.seeds.clone().find_map(failed)?;
        Some(self.smallest(seed, failed).1.violation)
    }

    fn plan(&self, seed: u64) -> Plan {
        plan(seed, self.is_logged)
    }

    /// Runs one group.
    fn simulate(&self, plan: &Plan) -> Result<Ran, FailedRun> {
        let failed = |violation| FailedRun { violation, events: Vec::new() };
        let outcome = match run(plan) {
            Ok(outcome) => outcome,
            Err(error) => return Err(failed(Violation::Order { what: error.to_string() })),
        };
        if let Some(complaint) = outcome.complaints.first() {
            return Err(failed(Violation::Order { what: complaint.clone() }));
        }
        let mut replay = Replay::new(self, &outcome.history, plan);
        match replay.run() {
            Ok(()) => Ok(replay.ran),
            Err(violation) => Err(FailedRun { violation, events: replay.events.last().to_vec() }),
        }
    }

    /// Returns the smallest group that fails in the same way, and its failure.
    fn smallest(&self, seed: u64, failed: FailedRun) -> (Plan, FailedRun) {
        let kind = std::mem::discriminant(&failed.violation);
        let fails = |plan: &Plan| {
            self.simulate(plan)
                .is_err_and(|failed| std::mem::discriminant(&failed.violation) == kind)
        };
        let (plan, _) = shrink(&self.plan(seed), SHRINKS_MAX, fails);
        let failed = self.simulate(&plan).err().unwrap_or(failed);
        (plan, failed)
    }

    fn report(&self, seed: u64, failed: FailedRun) -> String {
        let (plan, FailedRun { violation, events }) = self.smallest(seed, failed);
        let mut report = format!("{violation}\n\nThe smallest group that fails, and its end:\n");
        let nodes: Vec<u32> = plan.members.iter().map(|node| node.get()).collect();
        let _ = writeln!(report, "nodes {nodes:?}");
        events.iter().for_each(|event| report.extend([event, "\n"]));
        let _ = write!(report, "\nRepeat it with {SEED}={seed}");
        report
    }
}

impl Ran {
    fn add(&mut self, other: &Self) {
        self.groups += other.groups;
        self.proposed += other.proposed;
        self.answered += other.answered;
        self.crashes += other.crashes;
        self.joins += other.joins;
        self.partitions += other.partitions;
        self.restarts += other.restarts;
        self.disks_lost += other.disks_lost;
        self.views += other.views;
    }
}
