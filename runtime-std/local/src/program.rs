//! The main function of all programs: it reads the command line, sets up logging, and ends with an
//! exit status and, after a failure, one line.
//!
//! Results go to standard output, and errors to standard error, as one line each. Logs, if
//! requested, also go to standard error.

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::exit::{self, Failure};
use crate::limits;

/// Environment variable with the log filter, in the syntax of `tracing-subscriber`: `warn`,
/// `tramontane_runtime=debug`.
const LOG_VARIABLE: &str = "TRAMONTANE_LOG";

/// The default log filter. The loss of a peer in a group with fixed membership is reported by the
/// command itself.
const LOG_DEFAULT: &str = "warn,tramontane_runtime::group::engine::fixed=error";

/// Options for logging.
#[derive(Args, Clone, Copy, Debug)]
pub struct LogOptions {
    /// Log to standard error: give once for events, twice for details; TRAMONTANE_LOG sets a filter
    #[arg(short, long, global = true, display_order = 100, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl LogOptions {
    fn begin(self) -> Result<(), Failure> {
        let wanted = std::env::var(LOG_VARIABLE).ok().filter(|text| !text.is_empty());
        let wanted = match (self.verbose, wanted) {
            (0, Some(wanted)) => wanted,
            (0, None) => LOG_DEFAULT.to_owned(),
            (1, _) => "info".to_owned(),
            (2, _) => "debug".to_owned(),
            _ => "trace".to_owned(),
        };
        let filter: Targets = wanted.parse().map_err(|error| {
            let what = format_args!("{LOG_VARIABLE}={wanted} is invalid: {error}");
            Failure::usage(what, "set it to a level such as info, or unset it")
        })?;
        let format = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(false);
        tracing_subscriber::registry().with(filter).with(format).init();
        Ok(())
    }
}

/// A program with this command line.
pub trait Program: Parser {
    /// The beginning of the program's lines on standard error.
    const NAME: &'static str;

    /// Returns the program's log options.
    fn log(&self) -> LogOptions;

    /// Runs the command.
    ///
    /// # Errors
    /// Fails with the reason and the exit status.
    fn run(&self) -> Result<(), Failure>;
}

/// Runs a program to its end.
#[must_use]
pub fn main<P: Program>() -> ExitCode {
    exit::set_program(P::NAME);
    tramontane_runtime::shared_memory::register_barrier();
    let watched = limits::watch().map_err(|error| Failure::system("cannot watch limits", &error));
    let parsed = watched.and_then(|()| parse::<P>());
    let outcome = parsed.and_then(|program| {
        let Some(program) = program else { return Ok(()) };
        program.log().begin()?;
        program.run()
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.status.code())
        }
    }
}

/// Reads the command line. Returns `None` if only help was requested.
fn parse<P: Program>() -> Result<Option<P>, Failure> {
    if std::env::args_os().skip(1).eq(["help", "exit-statuses"]) {
        let written = io::stdout().write_all(exit::table().as_bytes());
        return written.map(|()| None).map_err(|error| Failure::output(&error));
    }
    let error = match P::try_parse() {
        Ok(program) => return Ok(Some(program)),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return error.print().map(|()| None).map_err(|error| Failure::output(&error));
    }
    let name = P::NAME;
    let command = if P::command().has_subcommands() {
        format!("see '{name} --help' or '{name} COMMAND --help'")
    } else {
        format!("see '{name} --help'")
    };
    Err(Failure::usage(in_one_line(&error), &command))
}

/// Formats the error of a command line, with suggestions but without the usage.
#[must_use]
pub fn in_one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command is given".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| {
        !["Usage:", "For more information"].iter().any(|start| line.starts_with(start))
    });
    // One tip suggests a correction, and another explains how to pass an option as a value.
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("as a value"));
    let words: Vec<&str> = lines.collect();
    words.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ")
}
