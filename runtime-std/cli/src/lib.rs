//! The command line of `tramontane`.
//!
//! | file | what it holds |
//! |---|---|
//! | `demo` | a group of processes on this machine, compared |
//! | `cast` | one member as a filter |
//! | `copy` | files to several places at once |
//! | `node`, `status`, `leave` | a member of a group that survives its members; the status of all; one leaves |
//! | `publish`, `subscribe` | clients of such a group, which are no members; `client_options`: where its members are |
//! | `shards` | replicas of groups in a tree, clients of several of them, and their status |
//! | `dds` | `tramontane dds`: what a topic carries, and how fast |
//! | `durable_log` | `tramontane log`: a member's log on disk, without its group |
//! | `layout` | memory maps |
//! | `plan` | schedules of block multicasts |
//! | `adapter` | one member, driven by the conformance suite |
//! | `devices` | RDMA devices, and which of them a group would use |
//! | `verbs_check` | an acceptance of RDMA between two hosts |
//! | `exit`, `failures` | exit statuses; what the errors of each layer come to |
//! | `network` | where members of several hosts meet |
//! | `group_file` | the group file, and the errors of commands that read it |
//! | `limits` | limits of the system that would end the program without a line |
//! | `log_file` | log files of nodes and of replicas, and their rotation |
//! | `waiting_notice` | a notice of other users' folders, for a member that waits |
//! | `options`, `lines`, `output`, `record` | what commands share |
//!
//! Results go to standard output, errors as one line each to standard error, and logs, where asked
//! for, to standard error too.

mod adapter;
mod cast;
mod client_options;
mod copy;
mod dds;
mod demo;
mod devices;
mod durable_log;
mod exit;
mod failures;
#[cfg(any(test, fuzzing))]
pub mod garbage;
mod group_file;
mod layout;
mod leave;
mod limits;
mod lines;
mod log_file;
mod network;
mod node;
mod options;
mod output;
mod plan;
mod publish;
mod record;
mod shards;
mod status;
mod subscribe;
mod verbs_check;
mod waiting_notice;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use exit::{Failure, help};
use tramontane_bench as bench;
use tramontane_local::interrupt;

/// What is logged, as `tracing-subscriber` has it: `warn`, `tramontane_runtime=debug`.
const LOG_VARIABLE: &str = "TRAMONTANE_LOG";

/// What is logged by default. That a peer of a group with fixed membership is lost is an error of
/// the command, which prints it.
const LOG_DEFAULT: &str = "warn,tramontane_runtime::group::fixed=error";

const BENCH_EXAMPLES: &str = "  tramontane bench multicast --probe
  tramontane bench latency
  tramontane bench multicast --fabric verbs --senders one --bytes 10240
  tramontane bench multicast --fabric sim --nodes 4,8,16 --plot spindle.svg
  tramontane bench blocks --experiment algorithms,scale
  tramontane bench views --ways kill,leave";

const EXAMPLES: &str = "  tramontane demo
  tramontane cast --group log --id 0 --nodes 3
  tramontane node --config group.toml --id 0
  tramontane publish --config group.toml 'a line'
  tramontane subscribe --config group.toml --from 0
  tramontane shards --config overlay.toml --id g1.0
  tramontane copy data.bin --to /mnt/a,/mnt/b
  tramontane dds perf --subscribers 3
  tramontane layout --nodes 4
  tramontane bench latency
  tramontane verbs devices";

/// Atomic multicast over remote memory: every member delivers the same messages in the same order.
#[derive(Parser, Debug)]
#[command(name = "tramontane", version, after_help = help(EXAMPLES))]
struct Cli {
    /// Log to standard error: once for events, twice for details; TRAMONTANE_LOG takes a filter
    #[arg(short, long, global = true, display_order = 100, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(after_help = help(demo::EXAMPLES))]
    Demo(demo::Arguments),
    #[command(after_help = help(cast::EXAMPLES))]
    Cast(cast::Arguments),
    #[command(after_help = help(copy::EXAMPLES))]
    Copy(copy::Arguments),
    #[command(after_help = help(node::EXAMPLES))]
    Node(node::Arguments),
    #[command(after_help = help(status::EXAMPLES))]
    Status(status::Arguments),
    #[command(after_help = help(leave::EXAMPLES))]
    Leave(leave::Arguments),
    #[command(after_help = help(publish::EXAMPLES))]
    Publish(publish::Arguments),
    #[command(after_help = help(subscribe::EXAMPLES))]
    Subscribe(subscribe::Arguments),
    #[command(after_help = help(shards::EXAMPLES))]
    Shards(shards::Arguments),
    #[command(after_help = help(durable_log::EXAMPLES))]
    Log(durable_log::Arguments),
    /// DDS topics: measure them on this machine, and print what one carries
    #[command(subcommand, after_help = help(dds::EXAMPLES))]
    Dds(dds::Command),
    #[command(after_help = help(layout::EXAMPLES))]
    Layout(layout::Arguments),
    #[command(after_help = help(plan::EXAMPLES))]
    Plan(plan::Arguments),
    /// Benchmarks of multicast, blocks, latency, idle groups and views; over shared memory, TCP or
    /// RDMA, or simulated
    #[command(subcommand, after_help = help(BENCH_EXAMPLES))]
    Bench(Box<bench::command::Command>),
    #[command(after_help = help(adapter::EXAMPLES))]
    Adapter(adapter::Arguments),
    /// List the RDMA devices of this machine, and check RDMA between two hosts
    #[command(subcommand, after_help = help(devices::EXAMPLES))]
    Verbs(devices::Command),
    #[command(hide = true)]
    DemoMember { task: String },
    #[command(hide = true)]
    DdsMember { task: String },
    #[command(hide = true)]
    DemoShard { task: String },
    #[command(hide = true)]
    CopyMember { task: String },
}

/// The program: reads the command line, and does what it says.
#[must_use]
pub fn main() -> ExitCode {
    tramontane_runtime::shared_memory::register_barrier();
    let watched = limits::watch().map_err(|error| Failure::system("cannot watch limits", &error));
    let parsed = watched.and_then(|()| parse());
    let outcome = parsed.and_then(|cli| cli.map_or(Ok(()), |cli| run(&cli)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            failure.report();
            ExitCode::from(failure.status.code())
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    log(cli.verbose)?;
    match &cli.command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Cast(arguments) => cast::run(arguments),
        Command::Copy(arguments) => copy::run(arguments),
        Command::Node(arguments) => node::run(arguments),
        Command::Status(arguments) => status::run(arguments),
        Command::Leave(arguments) => leave::run(arguments),
        Command::Publish(arguments) => publish::run(arguments),
        Command::Subscribe(arguments) => subscribe::run(arguments),
        Command::Shards(arguments) => shards::run(arguments),
        Command::Log(arguments) => durable_log::run(arguments),
        Command::Dds(command) => dds::run(command),
        Command::Layout(arguments) => layout::run(arguments),
        Command::Plan(arguments) => plan::run(arguments),
        Command::Bench(command) => Ok(bench::run(command, &mut io::stdout().lock())?),
        Command::Adapter(arguments) => adapter::run(arguments),
        Command::Verbs(command) => devices::run(command),
        Command::DemoMember { task } => demo::run_member(task),
        Command::DdsMember { task } => dds::run_member(task),
        Command::DemoShard { task } => demo::run_shards_member(task),
        Command::CopyMember { task } => copy::run_member(task),
    }
}

/// Reads the command line; nothing if all that was wanted is help.
fn parse() -> Result<Option<Cli>, Failure> {
    let parsed =
        Cli::command().try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    let error = match parsed {
        Ok(cli) => return Ok(Some(cli)),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return error.print().map(|()| None).map_err(|error| Failure::output(&error));
    }
    Err(Failure::usage(
        in_one_line(&error),
        "see 'tramontane --help' or 'tramontane COMMAND --help'",
    ))
}

/// What is wrong with a command line, with what may have been meant, and without the usage.
fn in_one_line(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "no command is given".to_owned();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim).take_while(|line| {
        !["Usage:", "For more information"].iter().any(|start| line.starts_with(start))
    });
    // A tip says what may have been meant, and another how to pass an option on as a value.
    let lines = lines.filter(|line| !line.is_empty() && !line.contains("as a value"));
    let words: Vec<&str> = lines.collect();
    words.join(" ").trim_start_matches("error: ").replace(" tip: ", "; ")
}

/// Logs to standard error what is wanted.
fn log(verbose: u8) -> Result<(), Failure> {
    let wanted = std::env::var(LOG_VARIABLE).ok().filter(|text| !text.is_empty());
    let wanted = match (verbose, wanted) {
        (0, Some(wanted)) => wanted,
        (0, None) => LOG_DEFAULT.to_owned(),
        (1, _) => "info".to_owned(),
        (2, _) => "debug".to_owned(),
        _ => "trace".to_owned(),
    };
    let filter: Targets = wanted.parse().map_err(|error| {
        let what = format_args!("{LOG_VARIABLE}={wanted} is not understood: {error}");
        Failure::usage(what, "set it to a level such as info, or leave it")
    })?;
    let format = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    tracing_subscriber::registry().with(filter).with(format).init();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wrong_command_line_is_told_in_one_line() {
        let wrong: [&[&str]; 6] = [
            &[],
            &["nonsense"],
            &["demo", "--nodes", "0"],
            &["demo", "--nodes", "x"],
            &["cast"],
            &["layout", "--config", "a", "--nodes", "3"],
        ];
        for arguments in wrong {
            let arguments = std::iter::once(&"tramontane").chain(arguments);
            let error = Cli::try_parse_from(arguments).expect_err("wrong");
            let line = in_one_line(&error);
            assert!(!line.contains('\n') && !line.contains("Usage") && line.len() > 10, "{line:?}");
        }
    }

    #[test]
    fn mistyped_names_are_told_with_what_may_be_meant() {
        let mistyped: [(&[&str], &str); 4] = [
            (&["stauts"], "'status'"),
            (&["node", "--confg", "group.toml"], "'--config'"),
            (&["subscribe", "--form", "0"], "'--from'"),
            (&["verbs", "device"], "'devices'"),
        ];
        for (arguments, meant) in mistyped {
            let arguments = std::iter::once(&"tramontane").chain(arguments);
            let line = in_one_line(&Cli::try_parse_from(arguments).expect_err("wrong"));
            assert!(line.contains("; ") && line.contains(meant), "{line:?}");
        }
    }
}
