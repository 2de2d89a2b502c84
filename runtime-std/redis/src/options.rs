//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use tramontane::typed::Durability;
use tramontane_local::exit::{Status, help};
use tramontane_local::options::{DeviceArguments, seconds};
use tramontane_local::program::LogOptions;

/// The exit statuses of this program, in addition to those of every command.
const STATUSES: [Status; 4] = [Status::Resources, Status::Group, Status::Device, Status::Out];

const EXAMPLES: &str = "  tramontane-redis --example-config >redis.toml
  In three terminals; any of them may be killed and started again:
    tramontane-redis --config redis.toml --id 0 --listen 127.0.0.1:6379
    tramontane-redis --config redis.toml --id 1 --listen 127.0.0.1:6380
    tramontane-redis --config redis.toml --id 2 --listen 127.0.0.1:6381
  redis-cli -p 6379 set colour red
  redis-cli -p 6381 get colour

Clients:
  Every node answers every client. All requests, those that only read too, travel through the \
group's order, so a reply reflects every request that any node has answered before. Requests that \
arrive together travel together: clients that pipeline are served much faster.
  A request is answered with UNKNOWN if the node ends before it knows the outcome; other nodes may \
have executed it.

Durable logs:
  With logged = true in the group file, a request is answered once it is in the logs of a majority. \
--durable here or --durable everywhere change that; with --durable none, requests that were \
answered may be lost if all nodes end at once. The log is in --data DIR, else in redis.data-K next \
to redis.toml.
  If all nodes ended, start them again in any order, with the same commands.

RequestLimits:
  The longest request is message_max of the group file, or large_max if that is larger. A longer \
one is answered with an error. A client with more than --unsent-max-mb of unread replies is \
disconnected, and so are the clients that need more memory when --memory-mb is used up.

The end:
  SIGINT and SIGTERM make the node leave; it exits with 0 once the others continue without it. A \
node that the others removed, or that lost the majority, exits with 9.";

/// The example group file.
pub(crate) const EXAMPLE: &str = include_str!("example.toml");

/// The places in which a request must be durable before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurableOption {
    /// Nowhere: in the members' memory
    None,
    /// In the log of the node that received it
    Here,
    /// In the logs of a majority of the members
    Majority,
    /// In the logs of all members
    Everywhere,
}

impl DurableOption {
    pub(crate) const fn durability(self) -> Option<Durability> {
        match self {
            Self::None => None,
            Self::Here => Some(Durability::Here),
            Self::Majority => Some(Durability::Majority),
            Self::Everywhere => Some(Durability::Everywhere),
        }
    }
}

/// A replicated server that Redis clients talk to: every node of a group answers, and the keys
/// survive the failure of nodes.
#[derive(Parser, Debug)]
#[command(name = "tramontane-redis", version, after_help = help(EXAMPLES, &STATUSES))]
pub struct RedisCommand {
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// The group file
    #[arg(long, value_name = "FILE", required_unless_present = "example_config")]
    pub(crate) config: Option<PathBuf>,
    /// Id of this node in the group file
    #[arg(long, value_name = "K", required_unless_present = "example_config")]
    pub(crate) id: Option<u32>,
    /// Print an example group file
    #[arg(long, exclusive = true)]
    pub(crate) example_config: bool,
    /// Address for Redis clients; port 0 chooses a free one
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6379")]
    pub(crate) listen: std::net::SocketAddr,
    /// Allow a --listen address that other hosts can reach; clients are neither authenticated nor
    /// encrypted
    #[arg(long)]
    pub(crate) listen_exposed: bool,
    /// Folder in which the node remembers its membership [default: state in the group file, else
    /// with the durable log]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Folder of this node's durable log, if the group is logged [default: redis.data-K next to
    /// redis.toml]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Keep about N MB of the durable log, and a snapshot; without this option, keep everything
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub(crate) data_keep_mb: Option<u64>,
    /// Durability that a request must have before it is answered [default: majority if the group is
    /// logged, else none]
    #[arg(long, value_name = "WHERE", value_enum)]
    pub(crate) durable: Option<DurableOption>,
    /// Form a new group although these nodes were members of an earlier one; give it to every
    /// initial node, once and by hand
    #[arg(long)]
    pub(crate) new_group: bool,
    /// Restart a logged group with the nodes that are present; give it to one node, once and by
    /// hand
    #[arg(long, conflicts_with = "new_group")]
    pub(crate) restart_with_less: bool,
    /// Time limit for becoming a member, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true,
          value_parser = seconds)]
    pub(crate) time_limit: Duration,
    /// Maximum number of clients; more are refused with an error
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) clients_max: u32,
    /// Maximum size of a client's unread replies, in MB
    #[arg(long, value_name = "MB", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(1..=1 << 14))]
    pub(crate) unsent_max_mb: u32,
    /// Maximum size of incomplete requests and unread replies of all clients, in MB
    #[arg(long, value_name = "MB", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) memory_mb: u32,
    /// Number of threads that serve clients
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) threads: u8,
    #[command(flatten)]
    pub(crate) device: DeviceArguments,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn command_line_is_consistent() {
        super::RedisCommand::command().debug_assert();
    }

    #[test]
    fn example_group_file_is_valid() {
        let mut description: tramontane::Description =
            toml::from_str(super::EXAMPLE).expect("it parses");
        description.complete().expect("it is right");
    }
}
