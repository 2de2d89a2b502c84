//! The program `tramontane`: groups, their logs, their clients and their operators.
//!
//! | file | contents |
//! |---|---|
//! | `demo` | a group of processes on this machine, and a comparison of their deliveries |
//! | `cast` | one member as a filter |
//! | `node`, `status`, `leave` | a member of a group that survives failures; the status of all nodes; a request to leave |
//! | `publish`, `subscribe` | clients of such a group, which are not members |
//! | `shards` | replicas of groups in a tree, clients of several of them, and their status |
//! | `durable_log` | `tramontane log`: a member's log on disk, without its group |
//! | `layout` | memory maps |
//! | `devices`, `verbs_check` | RDMA devices; an acceptance test of RDMA between two hosts |
//! | `log_file` | log files of nodes and of replicas, and their rotation |

mod cast;
mod demo;
mod devices;
mod durable_log;
mod layout;
mod leave;
mod log_file;
mod node;
mod publish;
mod shards;
mod status;
mod subscribe;
mod verbs_check;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use tramontane_local::exit::{Failure, help};
use tramontane_local::program::{self, LogOptions, Program};

const EXAMPLES: &str = "  tramontane demo
  tramontane cast --group log --id 0 --nodes 3
  tramontane node --config group.toml --id 0
  tramontane publish --config group.toml 'a line'
  tramontane subscribe --config group.toml --from 0
  tramontane shards --config overlay.toml --id g1.0
  tramontane layout --nodes 4
  tramontane verbs devices

Other programs: tramontane-copy (files to several places), tramontane-dds (DDS topics),
tramontane-lab (measurements, plans, simulations), tramontane-redis (a server for Redis clients).";

/// Atomic multicast over remote memory: every member delivers the same messages in the same order.
#[derive(Parser, Debug)]
#[command(name = "tramontane", version, after_help = help(EXAMPLES, &[]))]
struct CommandLine {
    #[command(flatten)]
    log: LogOptions,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(after_help = help(demo::EXAMPLES, &demo::STATUSES))]
    Demo(demo::DemoOptions),
    #[command(after_help = help(cast::EXAMPLES, &cast::STATUSES))]
    Cast(cast::CastOptions),
    #[command(after_help = help(node::EXAMPLES, &node::STATUSES))]
    Node(node::NodeOptions),
    #[command(after_help = help(status::EXAMPLES, &status::STATUSES))]
    Status(status::StatusOptions),
    #[command(after_help = help(leave::EXAMPLES, &leave::STATUSES))]
    Leave(leave::LeaveOptions),
    #[command(after_help = help(publish::EXAMPLES, &publish::STATUSES))]
    Publish(publish::PublishOptions),
    #[command(after_help = help(subscribe::EXAMPLES, &subscribe::STATUSES))]
    Subscribe(subscribe::SubscribeOptions),
    #[command(after_help = help(shards::EXAMPLES, &shards::STATUSES))]
    Shards(shards::ShardsOptions),
    #[command(after_help = help(durable_log::EXAMPLES, &durable_log::STATUSES))]
    Log(durable_log::DurableLogOptions),
    #[command(after_help = help(layout::EXAMPLES, &layout::STATUSES))]
    Layout(layout::LayoutOptions),
    /// List the RDMA devices of this machine, and check RDMA between two hosts
    #[command(subcommand, after_help = help(devices::EXAMPLES, &devices::STATUSES))]
    Verbs(devices::VerbsCommand),
    #[command(hide = true)]
    DemoMember { task: String },
}

impl Program for CommandLine {
    const NAME: &'static str = "tramontane";

    fn log(&self) -> LogOptions {
        self.log
    }

    fn run(&self) -> Result<(), Failure> {
        match &self.command {
            Command::Demo(options) => demo::run(options),
            Command::Cast(options) => cast::run(options),
            Command::Node(options) => node::run(options),
            Command::Status(options) => status::run(options),
            Command::Leave(options) => leave::run(options),
            Command::Publish(options) => publish::run(options),
            Command::Subscribe(options) => subscribe::run(options),
            Command::Shards(options) => shards::run(options),
            Command::Log(options) => durable_log::run(options),
            Command::Layout(options) => layout::run(options),
            Command::Verbs(command) => devices::run(command),
            Command::DemoMember { task } => demo::run_member(task),
        }
    }
}

fn main() -> ExitCode {
    program::main::<CommandLine>()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use tramontane_local::program::in_one_line;

    use super::*;

    #[test]
    fn tramontane_command_line_is_well_formed() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn each_command_has_examples_and_exit_statuses() {
        let mut waiting = vec![CommandLine::command()];
        while let Some(command) = waiting.pop() {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let is_whole = text.starts_with("Examples:") && text.contains("Exit status:");
            assert!(is_whole, "{}: {text}", command.get_name());
            let visible = command.get_subcommands().filter(|command| !command.is_hide_set());
            waiting.extend(visible.cloned());
        }
    }

    #[test]
    fn invalid_tramontane_command_line_fails_with_one_line() {
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
            let error = CommandLine::try_parse_from(arguments).expect_err("wrong");
            let line = in_one_line(&error);
            assert!(!line.contains('\n') && !line.contains("Usage") && line.len() > 10, "{line:?}");
        }
    }

    #[test]
    fn mistyped_names_are_reported_with_suggestions() {
        let mistyped: [(&[&str], &str); 4] = [
            (&["stauts"], "'status'"),
            (&["node", "--confg", "group.toml"], "'--config'"),
            (&["subscribe", "--form", "0"], "'--from'"),
            (&["verbs", "device"], "'devices'"),
        ];
        for (arguments, meant) in mistyped {
            let arguments = std::iter::once(&"tramontane").chain(arguments);
            let line = in_one_line(&CommandLine::try_parse_from(arguments).expect_err("wrong"));
            assert!(line.contains("; ") && line.contains(meant), "{line:?}");
        }
    }
}
