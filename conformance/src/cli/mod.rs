//! The command line of `tramontane-conformance`.
//!
//! | file | contents |
//! |---|---|
//! | `check` | judges histories |
//! | `run` | drives an implementation, and judges its behaviour |
//! | `list` | the checks and the scenarios |
//! | `outputs`, `standard` | destinations of reports; standard output |
//! | `exit` | exit statuses and errors |
//!
//! The report goes to standard output; errors go to standard error, one line each.

mod check;
mod exit;
mod list;
mod outputs;
mod run;
mod standard;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::report::{CaseStatus, Run};
use exit::{Failure, Status, help};
use outputs::{Outputs, ReportOptions};
use standard::check_written;

const EXAMPLES: &str = "  tramontane-conformance check history.jsonl
  tramontane-conformance check --html report.html runs/*.jsonl
  tramontane-conformance run --adapter ./my-adapter --nodes 3
  tramontane-conformance --list";

/// Judge any atomic multicast: drive it through its adapter, and check what its members delivered.
#[derive(Parser, Debug)]
#[command(name = "tramontane-conformance", version, after_help = help(EXAMPLES),
          args_conflicts_with_subcommands = true, arg_required_else_help = true)]
struct Cli {
    /// Print the checks with their strength, sentence and source, and the scenarios
    #[arg(long)]
    list: bool,
    /// With --list: as JSON
    #[arg(long, requires = "list")]
    json: bool,
    #[command(subcommand)]
    command: Option<SuiteCommand>,
}

#[derive(Subcommand, Debug)]
enum SuiteCommand {
    #[command(after_help = help(check::EXAMPLES))]
    Check(CheckCommand),
    #[command(after_help = help(run::EXAMPLES))]
    Run(RunCommand),
}

/// Judge histories offline, whether or not this program's driver recorded them
#[derive(clap::Args, Debug)]
struct CheckCommand {
    #[command(flatten)]
    arguments: check::CheckArguments,
    #[command(flatten)]
    reports: ReportOptions,
}

/// Drive an implementation through scenarios, and judge its behaviour
#[derive(clap::Args, Debug)]
struct RunCommand {
    #[command(flatten)]
    arguments: run::RunArguments,
    #[command(flatten)]
    reports: ReportOptions,
}

/// Reads the command line and runs the command.
#[must_use]
pub fn main() -> ExitCode {
    let outcome = parse().and_then(|cli| cli.map_or(Ok(Status::Passed), |cli| obey(&cli)));
    let status = outcome.unwrap_or_else(|failure| {
        failure.report();
        failure.status
    });
    ExitCode::from(status.code())
}

fn obey(cli: &Cli) -> Result<Status, Failure> {
    match &cli.command {
        Some(SuiteCommand::Check(CheckCommand { arguments, reports })) => {
            let outputs = reports.outputs(None)?;
            let mut run = check::check(arguments);
            reports.judge(&mut run)?;
            Ok(finish(&run, &outputs))
        }
        Some(SuiteCommand::Run(RunCommand { arguments, reports })) => {
            let outputs = reports.outputs(Some(arguments.output()))?;
            let (mut run, cut_short) = run::run(arguments, outputs.quiet)?;
            reports.judge(&mut run)?;
            let status = finish(&run, &outputs);
            Ok(cut_short.map_or(status, |failure| {
                failure.report();
                status.worse(failure.status)
            }))
        }
        None if cli.list => list::print(cli.json),
        None => Err(Failure::new(Status::Usage, "no command is given", ADVICE)),
    }
}

/// Writes the reports, and prints errors on standard error. If a report cannot be written, the
/// others are still written, and the exit status still shows a broken promise.
fn finish(run: &Run, outputs: &Outputs) -> Status {
    for case in &run.cases {
        if let CaseStatus::Broken(how) = &case.status {
            Failure::with_advice(Status::Broken, format_args!("{}: {how}", case.name)).report();
        }
    }
    outputs.write(run).into_iter().fold(run.status().into(), |status: Status, failure| {
        failure.report();
        status.worse(failure.status)
    })
}

const ADVICE: &str =
    "see 'tramontane-conformance --help' or 'tramontane-conformance COMMAND --help'";

/// Reads the command line; returns nothing if only help was requested.
fn parse() -> Result<Option<Cli>, Failure> {
    let parsed =
        Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let error = match parsed {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return check_written(error.print().and_then(|()| io::stdout().flush()), "the help")
            .map(|()| None);
    }
    Err(Failure::new(Status::Usage, in_one_line(&error), ADVICE))
}

/// Returns the error in a command line with clap's suggestion, but without the usage.
fn in_one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command is given".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| {
        !["Usage:", "For more information"].iter().any(|start| line.starts_with(start))
    });
    // One tip suggests the intended option. Another explains how to pass an option as a value,
    // which does not help here.
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("as a value"));
    let words: Vec<&str> = lines.collect();
    words.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conformance_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn invalid_command_line_fails_with_one_line() {
        let wrong: [&[&str]; 6] = [
            &[],
            &["nonsense"],
            &["check"],
            &["--json"],
            &["check", "a", "--json"],
            &["--list", "check", "a"],
        ];
        for arguments in wrong {
            let arguments = std::iter::once(&"tramontane-conformance").chain(arguments);
            let error = Cli::try_parse_from(arguments).expect_err("wrong");
            let line = in_one_line(&error);
            assert!(!line.contains('\n') && !line.contains("Usage") && line.len() > 10, "{line:?}");
        }
        let mistyped = Cli::try_parse_from(["tramontane-conformance", "chekc", "a"]);
        let line = in_one_line(&mistyped.expect_err("wrong"));
        assert!(line.contains("; ") && line.contains("'check'"), "{line:?}");
    }
}
