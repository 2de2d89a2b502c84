//! The `run` command: drives an implementation through its adapter, and judges its behaviour.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use signal_hook::consts::SIGTERM;

use super::exit::{Failure, Status};
use crate::drive::{
    DriveError, Driven, Feature, Interrupts, NODES_MAX, RunOptions, RunProgress, SCENARIOS, drive,
};
use crate::report::Run;

/// The examples at the end of the command's help.
pub(super) const EXAMPLES: &str = "  tramontane-conformance run --adapter ./my-adapter --nodes 3
  tramontane-conformance run --adapter 'python3 my_adapter.py' --nodes 4 --scenario kill-sender --seed 7
  tramontane-conformance run --adapter 'ssh {host} ./my-adapter' --hosts alpha,beta,gamma --nodes 3
  tramontane-conformance --list";

/// Duration after which a run shows a progress bar.
const BAR_AFTER: Duration = Duration::from_secs(2);

/// Interval between updates of the bar.
const BAR_INTERVAL: Duration = Duration::from_millis(100);

/// Drive an implementation through scenarios and judge its behaviour
#[derive(clap::Args, Debug)]
pub struct RunArguments {
    /// The adapter's command, started once per member, without a shell
    #[arg(long, value_name = "CMD")]
    adapter: String,
    /// The hosts of the nodes, assigned in turn; in the adapter's command "{host}" stands for a
    /// node's host and "{node}" for its name
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    hosts: Vec<String>,
    /// Number of nodes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=NODES_MAX as u64))]
    nodes: u64,
    /// A scenario to run, or one round of it, such as "partition-2"; all scenarios if none is named
    #[arg(long = "scenario", value_name = "NAME")]
    scenarios: Vec<String>,
    /// Seed of each node's actions and their times: the same seed gives the same commands
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Play everything with this many seeds, starting with --seed
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "soak",
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    /// Play everything with new seeds for this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = soak_seconds)]
    soak: Option<f64>,
    /// End the run at the first failure or broken adapter
    #[arg(long)]
    until_failed: bool,
    /// Maximum number of rounds for scenarios that are played in rounds
    #[arg(long, value_name = "N", default_value_t = NODES_MAX)]
    rounds: usize,
    /// Features that the implementation must claim; if one is missing, the run counts as broken
    #[arg(long, value_name = "FEATURES", value_delimiter = ',', value_parser = feature)]
    require: Vec<Feature>,
    /// The numbers of the faults in "random-faults" to inject, or "none"
    #[arg(long, value_name = "NUMBERS", value_parser = numbers)]
    faults: Option<Numbers>,
    /// Time limit for an answer, a delivery or an end, in seconds of an idle machine; a busy
    /// machine is given longer
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0, value_parser = seconds)]
    deadline: f64,
    /// Number of messages that each sender sends, unless the scenario sets it
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(8..=100_000))]
    messages: u64,
    /// The folder for histories, members' logs and reports
    #[arg(long, value_name = "FOLDER", default_value = "conformance-results")]
    output: PathBuf,
}

impl RunArguments {
    /// Returns the folder for histories and reports. It exists after [`run`] has returned.
    pub(super) fn output(&self) -> &Path {
        &self.output
    }

    fn options(&self) -> RunOptions {
        RunOptions {
            adapter: self.adapter.clone(),
            hosts: self.hosts.clone(),
            nodes: usize::try_from(self.nodes).unwrap_or(NODES_MAX),
            scenarios: self.scenarios.clone(),
            // Without an argument, the program's name is the best guess.
            program: std::env::args_os().next().map_or_else(
                || env!("CARGO_PKG_NAME").to_owned(),
                |program| program.to_string_lossy().into_owned(),
            ),
            seed: self.seed,
            repeat: self.repeat,
            soak: self.soak.map(Duration::from_secs_f64),
            until_failed: self.until_failed,
            rounds_max: self.rounds,
            require: self.require.clone(),
            faults: self.faults.as_ref().map(|Numbers(numbers)| numbers.clone()),
            deadline: Duration::from_secs_f64(self.deadline),
            messages: self.messages,
            output: self.output.clone(),
        }
    }
}

/// The numbers of faults.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers(Vec<usize>);

fn numbers(text: &str) -> Result<Numbers, String> {
    if text == "none" {
        return Ok(Numbers(Vec::new()));
    }
    let numbers = text.split(',').map(str::parse).collect::<Result<_, _>>();
    numbers.map(Numbers).map_err(|_| "numbers with commas between them, or \"none\"".to_owned())
}

fn feature(text: &str) -> Result<Feature, String> {
    Feature::named(text).ok_or_else(|| {
        let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
        format!("features are {}", names.join(", "))
    })
}

/// Parses the duration of a soak run.
fn soak_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (1.0..=1e7).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("1 to 10000000 seconds".to_owned())
    }
}

/// Parses a duration that the driver can wait.
fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().map_err(|error| error.to_string())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(seconds)
    } else {
        Err("0.1 to 3600 seconds".to_owned())
    }
}

/// Returns the name of each scenario, with a sentence on what it does and what it needs.
pub(super) fn scenarios() -> Vec<(String, String)> {
    let described = SCENARIOS.iter().map(|scenario| {
        let needs = scenario.needs.iter().map(|feature| format!(", {feature}"));
        let needs = format!("needs {} nodes{}", scenario.nodes_min, needs.collect::<String>());
        let sentence =
            format!("{} ({needs}; must show that {})", scenario.sentence, scenario.reaches);
        (scenario.name.to_owned(), sentence)
    });
    described.collect()
}

/// Runs the scenarios, and shows progress on standard error unless `quiet`. If the run was cut
/// short, the cause is also returned, and the run contains the cases that ended before.
///
/// # Errors
/// Fails with the reason why the run could not start. Errors within a scenario are in its case.
pub fn run(arguments: &RunArguments, quiet: bool) -> Result<(Run, Option<Failure>), Failure> {
    let interrupts = Interrupts::watch().map_err(|error| {
        Failure::new(Status::Broken, format_args!("cannot watch for signals: {error}"), "try again")
    })?;
    let bar = Bar::new(!quiet && io::stderr().is_terminal());
    let outcome = drive(&arguments.options(), &interrupts, &|progress| bar.show(progress));
    bar.remove();
    let Driven { run, cut_short } = outcome.map_err(|error| failure(&error))?;
    Ok((run, cut_short.as_ref().map(failure)))
}

fn of_signal(signal: i32) -> Status {
    if signal == SIGTERM { Status::Terminated } else { Status::Interrupted }
}

fn failure(error: &DriveError) -> Failure {
    match error {
        DriveError::Interrupted(signal) => Failure::silent(of_signal(*signal)),
        DriveError::Command(_) => Failure::new(Status::Usage, error, "quote it as in a shell"),
        DriveError::NoScenario(_) => {
            Failure::new(Status::Usage, error, "run with --list to see all scenarios")
        }
        DriveError::Adapter { .. } => {
            Failure::new(Status::Broken, error, "check the path of the adapter's program")
        }
        DriveError::NotOurs(_) | DriveError::InUse(_) => {
            Failure::new(Status::Usage, error, "choose a different folder with --output")
        }
        DriveError::Output { path, source } => Failure::output(path.display(), source),
        DriveError::System { .. } => {
            Failure::new(Status::Broken, error, "fix the reported problem and try again")
        }
    }
}

/// The progress of a run, on a terminal.
struct Bar {
    bar: ProgressBar,
    began: Instant,
    shown: Cell<bool>,
    drawn: Cell<Instant>,
    scenario: RefCell<String>,
}

impl Bar {
    /// Creates a bar that is still hidden, and stays hidden unless `wanted`.
    fn new(wanted: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::hidden());
        let style = "{msg} [{bar:30}] {pos}/{len} messages {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        let now = Instant::now();
        Self {
            bar,
            began: now,
            shown: Cell::new(!wanted),
            drawn: Cell::new(now),
            scenario: RefCell::default(),
        }
    }

    fn show(&self, progress: RunProgress) {
        match progress {
            RunProgress::Scenario { name, place, of } => {
                *self.scenario.borrow_mut() = format!("{}/{of} {name}", place + 1);
                self.bar.set_position(0);
            }
            RunProgress::Sent { .. } if self.drawn.get().elapsed() < BAR_INTERVAL => {}
            RunProgress::Sent { done, of, deliveries } => {
                self.drawn.set(Instant::now());
                if !self.shown.get() && self.began.elapsed() > BAR_AFTER {
                    self.shown.set(true);
                    self.bar.set_draw_target(ProgressDrawTarget::stderr());
                }
                self.bar.set_length(of);
                self.bar.set_position(done);
                self.bar
                    .set_message(format!("{}, {deliveries} deliveries", self.scenario.borrow()));
                self.bar.tick();
            }
        }
    }

    fn remove(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_must_be_a_reasonable_duration() {
        assert_eq!(seconds("2.5"), Ok(2.5));
        for wrong in ["", "x", "0", "-1", "NaN", "inf", "1e9"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn interrupting_signal_determines_the_exit_status() {
        for (signal, status) in [(2, Status::Interrupted), (SIGTERM, Status::Terminated)] {
            assert_eq!(failure(&DriveError::Interrupted(signal)), Failure::silent(status));
        }
    }

    #[test]
    fn scenario_list_includes_requirements() {
        let described = scenarios();
        assert_eq!(described.len(), SCENARIOS.len());
        let (_, kill) =
            described.iter().find(|(name, _)| name == "kill-sender").expect("there is one");
        assert!(kill.contains("3 nodes, crash"), "{kill}");
    }
}
