//! `bench calibrate` and `bench predict`.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::print::print;

use super::command::{Calibrate, Predict};
use super::held_out::runs;
use super::parameters;
use super::report::{MeasuredRuns, Predictions, Row};
use super::state::State;
use super::{measuring, simulating};
use crate::error::BenchError;
use crate::machine::machine;
use crate::profiles::ParametersReport;

/// Fills a profile of this machine.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn calibrate(arguments: &Calibrate, out: &mut impl Write) -> Result<(), BenchError> {
    check_rounds(arguments.rounds)?;
    let calibrated = parameters::calibrate(arguments.fabric, arguments.rounds, &system())?;
    if let Some(path) = &arguments.output {
        write(path, &calibrated.to_file(parameters::BASE))?;
    }
    let report = ParametersReport::of(calibrated);
    Ok(print(out, arguments.json, &report, ParametersReport::text)?)
}

/// Measures runs, and predicts them.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn predict(arguments: &Predict, out: &mut impl Write) -> Result<(), BenchError> {
    check_rounds(arguments.rounds)?;
    let measured = match &arguments.measured {
        Some(path) => read(path)?,
        None => measure(arguments)?,
    };
    if let Some(path) = &arguments.measured_output {
        write(path, &to_json(&measured)?)?;
    }
    let machine = arguments.machine.machine_or(measured.fabric.profile())?;
    let row = |run: &measuring::Measured| {
        Ok(Row::of(run, simulating::predict(&run.run, &machine.profile, arguments.seed)?))
    };
    let runs = measured.runs.iter().filter(|run| !run.rounds.is_empty());
    let rows = runs.map(row).collect::<Result<Vec<_>, BenchError>>()?;
    let predictions = Predictions::new(measured, machine.name, rows);
    if let Some(path) = &arguments.output {
        write(path, &predictions.markdown(&command_line()))?;
    }
    Ok(print(out, arguments.json, &predictions, Predictions::text)?)
}

/// Measures all runs, in the state of the machine that the profile is of.
fn measure(arguments: &Predict) -> Result<MeasuredRuns, BenchError> {
    let profile = arguments.machine.machine_or(arguments.fabric.profile())?;
    let state = profile.state_ns.map(|line_ns| State::of_line_ns(line_ns as f64));
    let interrupts = Interrupts::watch()?;
    let runs = runs(arguments.fabric);
    Ok(MeasuredRuns {
        machine: machine(),
        system: system(),
        fabric: arguments.fabric,
        state_ns: profile.state_ns,
        runs: measuring::measure(runs, arguments.rounds, (state, &interrupts))?,
    })
}

fn check_rounds(rounds: usize) -> Result<(), BenchError> {
    match rounds {
        0 => Err(BenchError::Arguments("--rounds is 0: at least one is needed".into())),
        _ => Ok(()),
    }
}

/// The command as it was given.
fn command_line() -> String {
    let words = std::env::args().skip(1);
    let words = ["tramontane".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ");
    words.replace(" --", " \\\n    --")
}

/// The operating system's name and release.
fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

fn to_json(value: &impl Serialize) -> Result<String, BenchError> {
    let text = serde_json::to_string_pretty(value).map_err(std::io::Error::from)?;
    Ok(text + "\n")
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    std::fs::write(path, text)
        .map_err(|error| BenchError::Arguments(format!("cannot write {}: {error}", path.display())))
}

fn read(path: &Path) -> Result<MeasuredRuns, BenchError> {
    let wrong = |error: &dyn std::fmt::Display| {
        BenchError::Arguments(format!(
            "cannot take measured runs from {}: {error}; --measured-output writes such a file",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    serde_json::from_str(&text).map_err(|error| wrong(&error))
}
