//! `tramontane shards`: a replica of an overlay, whose application is a log of lines; a client that
//! sends lines; and the status of all replicas.
//!
//! | file | contents |
//! |---|---|
//! | `example` | overlay files that explain every field |
//! | `overlay_file` | reading an overlay file |
//! | `replica`, `log` | a replica's process; its handling of deliveries |
//! | `send` | a client that sends the lines of its input |
//! | `status` | the status of all replicas |

mod example;
mod log;
mod overlay_file;
mod replica;
mod send;
mod status;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use tramontane_local::exit::{Failure, Status, help};
use tramontane_local::shard_trees::Tree;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 7] = [
    Status::Input,
    Status::Resources,
    Status::Group,
    Status::PeerLost,
    Status::Device,
    Status::Out,
    Status::NodeDown,
];

pub(super) const EXAMPLES: &str = "  tramontane shards --example-config base >overlay.toml
  In a terminal for each replica, in any order; any of them may be killed and started again:
    tramontane shards --config overlay.toml --id g1.0 --log log-g1.0
    tramontane shards --config overlay.toml --id g1.1 --log log-g1.1
    tramontane shards --config overlay.toml --id g1.2 --log log-g1.2
    and so on, for each group
  printf 'a line\\nanother\\n' | tramontane shards send --config overlay.toml --to g1,g3
  tramontane shards status --config overlay.toml

The log:
  The state of a replica is its log: one line for each message of its group, identical at all \
replicas of a group. A replica that returns receives the log from another replica. Give --log to \
all replicas of a group or to none. If the group forms anew, the old contents of FILE are kept as \
FILE.1, FILE.2 and so on. SIGHUP makes a replica reopen FILE, for logrotate.

Long messages:
  By default, leaders pass whole messages on. With references_from = BYTES in the overlay file, \
clients write messages of at least that size to every replica themselves, and leaders pass on only \
their headers. The value must be the same for all replicas and clients.

Failures:
  A group continues while a majority of its replicas does. A replica that ended may be started \
again with the same command. A group that loses a majority at once has lost its state; its \
replicas report that, and exit with status 9. In this case, end all processes, and start them \
again.

On disk:
  With durable = true in the overlay file, and --data DIR for each replica, a message is answered \
once a majority of its group has saved it, and a group continues after all its replicas have \
crashed. It is lost only if a majority loses DIR.";

/// Run a replica of a shard overlay, send messages to several groups in one order, or show the
/// status of replicas
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct ShardsOptions {
    #[command(subcommand)]
    command: Option<ShardsCommand>,
    /// The overlay file
    #[arg(long, value_name = "FILE", required_unless_present = "example_config")]
    config: Option<PathBuf>,
    /// The replica to run: GROUP.RANK, with ranks from 0
    #[arg(long, value_name = "NAME", required_unless_present = "example_config")]
    id: Option<String>,
    /// Print an overlay file that explains every field: 8 groups of 3 replicas, as a tree with
    /// several levels (base), with all groups directly below one (breadth), or as a chain (depth)
    #[arg(long, value_name = "TREE", exclusive = true)]
    example_config: Option<Tree>,
    #[command(flatten)]
    replica: replica::ReplicaOptions,
}

#[derive(Subcommand, Debug)]
enum ShardsCommand {
    /// Send each line of standard input to a set of groups, and print which replicas delivered it
    #[command(after_help = help(send::EXAMPLES, &send::STATUSES))]
    Send(send::SendOptions),
    /// Print the status of all replicas: leader, round, log and lag of each
    #[command(after_help = help(status::EXAMPLES, &status::STATUSES))]
    Status(status::ReplicaStatusOptions),
}

/// Runs the requested command.
pub(super) fn run(arguments: &ShardsOptions) -> Result<(), Failure> {
    match &arguments.command {
        Some(ShardsCommand::Send(arguments)) => return send::run(arguments),
        Some(ShardsCommand::Status(arguments)) => return status::run(arguments),
        None => {}
    }
    if let Some(tree) = arguments.example_config {
        return example::print(tree);
    }
    let (Some(config), Some(id)) = (&arguments.config, &arguments.id) else {
        return Err(Failure::usage("--config or --id is missing", "give both"));
    };
    replica::run(config, id, &arguments.replica)
}
