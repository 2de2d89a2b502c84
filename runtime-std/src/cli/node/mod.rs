//! `tramontane node`: one member of a group that survives its members. Standard input goes in, the group's order comes
//! out; its state is the log of it, which whoever comes (back) takes over.
//!
//! | file | what it holds |
//! |---|---|
//! | `application`, `log` | what is done with deliveries; what is kept of them |
//! | `input`, `told` | lines that are sent, in a thread of its own; what is told of those that were not |
//! | `life` | the main thread: waits for what ends the member, and ends it |
//! | `metrics`, `meter`, `page` | figures for Prometheus; those that a node takes itself; a page for whoever comes |

mod application;
mod input;
mod life;
mod log;
mod meter;
mod metrics;
mod page;
mod told;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use tramontane_core::ids::SubgroupId;

use super::exit::{Failure, Status};
use super::group_file;
use super::hint::Hint;
use super::interrupt::Interrupts;
use super::options::seconds;
use super::output::Output;
use crate::group::{
    Description, Forming, Running, StartOptions, SubgroupDescription, Waiting, start,
};
use crate::local::Carrier;
use crate::member::Settings;
use crate::rdma::DeviceOptions;
use crate::shared_memory::Root;
use application::{Application, Printing};
use input::{Input, Lines};
use life::Life;
use log::{Log, LogFile, Recent};
use meter::Meter;

pub(super) const EXAMPLES: &str = "  tramontane node --example-config >group.toml
  In three terminals, in any order; any of them may be killed and started again:
    tramontane node --config group.toml --id 0 --log log-0
    tramontane node --config group.toml --id 1 --log log-1
    tramontane node --config group.toml --id 2 --log log-2
  tramontane status --config group.toml
  tramontane leave --config group.toml --id 2

A node's state is its log: whoever joins takes it over from a member, so that the logs of all members are the same
bytes. Give all of them --log, or none: without it a node keeps, and hands on, the last 1000 lines (16 MB at most), which a
node with --log refuses if there were more.
FILE is replaced once the node is a member; where the group starts anew it is kept as FILE.1, FILE.2, and so on.
The folder FILE.state, or --state DIR, remembers that the node was a member. Once all nodes
have ended, the group is formed anew only if each initial node is started with --new-group;
without it they end with status 5, and their logs stay as they are.
Where the group file has several subgroups, each has its own log: FILE.NAME.
SIGINT and SIGTERM let the node leave: it ends with 0 when the others go on without it. A second signal, half a
second later, ends it at once. A node that was taken for dead, or that lost the majority, ends with 9.
A line of the input that is too long is refused by its number, and the node goes on; with --leave-at-end it ends with 3 then.
A node that ends says which lines it had read and not sent. FILE is a regular file: a device or a pipe is refused.
A node whose output nobody reads leaves after a quarter of failure_timeout_ms, and ends with 141. One that was asked to end
waits 5 s for a reader of the rest.";

/// Be a member of a group that survives its members: it forms when its first nodes come, and nodes come and go
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The group file
    #[arg(long, value_name = "FILE", required_unless_present = "example_config")]
    config: Option<PathBuf>,
    /// Which of its nodes this is
    #[arg(long, value_name = "K", required_unless_present = "example_config")]
    id: Option<u32>,
    /// Print a group file that explains every field
    #[arg(long, exclusive = true)]
    example_config: bool,
    /// The subgroup that lines of the input go to [default: the first in which this node sends]
    #[arg(long, value_name = "NAME")]
    subgroup: Option<String>,
    /// Append what is delivered to FILE, and not to the output
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Remember in folder DIR which views this node was in, so that it forms no second group [default: that of the group
    /// file; else FILE.state beside --log FILE]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Form the group anew although its nodes were in one before; at each initial node. Say it once, and by hand: members of
    /// the earlier group that are only out of reach go on as another group. Logs are set aside
    #[arg(long)]
    new_group: bool,
    /// Print nothing of what is delivered
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print deliveries and views as JSON, an object a line
    #[arg(long)]
    json: bool,
    /// Leave when the input ends; otherwise the node goes on without
    #[arg(long)]
    leave_at_end: bool,
    /// How long it may take to become a member, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true, value_parser = seconds)]
    time_limit: Duration,
    /// Serve figures for Prometheus at http://ADDRESS/metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<SocketAddr>,
    /// Let --metrics have an address that other hosts can reach: whoever can, reads the figures
    #[arg(long, requires = "metrics")]
    metrics_exposed: bool,
    #[command(flatten)]
    device: DeviceOptions,
}

/// Which part of the failure timeout a delivery waits for a reader that takes nothing: well before the others would remove this
/// member, it leaves by itself.
const UNREAD_SHARE: u32 = 4;

/// A group file that explains every field.
const EXAMPLE: &str = include_str!("example.toml");

/// What happens to a node.
#[derive(Debug)]
pub(super) enum Event {
    /// The input ended, and all of it was sent.
    InputEnded,
    /// Something that this node needs does not work: it leaves.
    Failed(Failure),
    /// Nothing can be written any more.
    OutputFailed(io::Error),
    /// To be told on standard error.
    Said(String),
    /// Part of the input was not sent, for a reason of its own; to be told too.
    Refused(String),
}

/// Runs a node.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (Some(config), Some(node), false) =
        (&arguments.config, arguments.id, arguments.example_config)
    else {
        return io::stdout().write_all(EXAMPLE.as_bytes()).map_err(|error| Failure::output(&error));
    };
    let description = group_file::read(config)?;
    group_file::check_node(&description, node)?;
    if let (true, Some(option)) = (description.fabric != Carrier::Verbs, arguments.device.given()) {
        let what = format_args!("{option} is about RDMA devices");
        let advice = "leave it out, or say fabric = \"verbs\" in the group file, of all members";
        return Err(Failure::new(Status::Usage, what, advice));
    }
    let input = arguments.input_subgroup(&description, node)?;
    if description.key_file.is_some() {
        // What is sealed on the way is no other user's to read in a log either.
        umask(Mode::RWXG | Mode::RWXO);
    }
    let interrupts = Interrupts::watch()?;
    let (board, meter) = (Arc::new(OnceLock::new()), Meter::new(input));
    if let Some(address) = arguments.metrics {
        metrics::serve(address, arguments.metrics_exposed, Arc::clone(&board), Arc::clone(&meter))?;
    }
    let (sender, events) = mpsc::channel();
    let failed = sender.clone();
    // The others wait so long for a member that does not deliver, and no longer.
    let patience = Duration::from_millis(description.failure_timeout_ms) / UNREAD_SHARE;
    let output = Output::start(Some(patience), move |error| {
        // The command may be over already.
        let _ = failed.send(Event::OutputFailed(error));
    });
    let output = output.map_err(|error| cannot_start(&error))?;
    let application = Application::new(
        Printing { deliveries: !arguments.quiet && arguments.log.is_none(), json: arguments.json },
        output.clone(),
        sender.clone(),
        arguments.logs(&description, node)?,
        description.subgroups.iter().map(|subgroup| subgroup.name.clone()).collect(),
        Arc::clone(&meter),
    );
    let line_max = input.map_or(usize::MAX, |id| line_max(&description, id));
    let unsent_max = input.map_or(0, |id| unsent_max(&description, id));
    let running = become_member(description, node, arguments, &interrupts, application);
    let mut life = match running {
        Ok(running) => Life::new(running, output, events, arguments.leave_at_end),
        Err(failure) => return Err(life::reason(&events).unwrap_or(failure)),
    };
    let _ = board.set(life.running().board());
    let lines_to = input.and_then(|id| life.running().sender(id));
    let lines = Lines { sender: lines_to, line_max, unsent_max, meter };
    let outcome = match Input::start(lines, sender) {
        Ok(input) => {
            life.read(input);
            life.attend(&interrupts)
        }
        Err(error) => Err(cannot_start(&error)),
    };
    life.end(outcome, &interrupts)
}

fn become_member(
    description: Description,
    node: u32,
    arguments: &Arguments,
    interrupts: &Interrupts,
    application: Application,
) -> Result<Running, Failure> {
    let options = StartOptions {
        node,
        root: Root::from_env(),
        listener: None,
        device: arguments.device.clone(),
        time_limit: arguments.time_limit,
        cancel: interrupts.flag(),
        settings: Settings::default(),
        forming: arguments.forming(&description, node),
    };
    let is_shared = description.fabric == Carrier::SharedMemory;
    let hint = is_shared.then(|| Hint::begin(&options.root)).flatten();
    let running = start(description, options, application);
    drop(hint);
    if running.is_err() {
        // Who is asked to end while it waits is not to blame for those who did not come.
        interrupts.check()?;
    }
    Ok(running?)
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::system("cannot start a thread", error)
}

fn line_max(description: &Description, subgroup: SubgroupId) -> usize {
    let longest =
        |subgroup: &SubgroupDescription| subgroup.large_max.max(subgroup.message_max.into());
    let longest = description.subgroups.get(subgroup.index()).map_or(0, longest);
    usize::try_from(longest).unwrap_or(usize::MAX)
}

/// How many messages a member may end without: those of a view's ring, and what it carries over from the one before.
fn unsent_max(description: &Description, subgroup: SubgroupId) -> usize {
    let window = description.subgroups.get(subgroup.index()).map_or(0, |subgroup| subgroup.window);
    usize::try_from(window).unwrap_or(usize::MAX).saturating_mul(2)
}

impl Arguments {
    fn forming(&self, description: &Description, node: u32) -> Forming {
        let listed = description.nodes.iter().find(|listed| listed.id == node);
        let beside_log = || self.log.as_deref().map(|log| log::with_ending(log, "state"));
        let state = self.state.clone().or_else(|| listed?.state.clone()).or_else(beside_log);
        let told = |waiting: &Waiting| {
            // There is nowhere else to say it.
            let _ = writeln!(io::stderr(), "{waiting}");
        };
        Forming { state, new_group: self.new_group, told: Some(told) }
    }

    /// Where lines go; nothing if this node sends nowhere.
    fn input_subgroup(
        &self,
        description: &Description,
        node: u32,
    ) -> Result<Option<SubgroupId>, Failure> {
        let wrong = |what: &str, advice| Err(Failure::new(Status::Usage, what, advice));
        let Some(name) = &self.subgroup else {
            let mut subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
            return Ok(subgroups.find(|(_, s)| s.senders().contains(&node)).map(|(id, _)| id));
        };
        let Some(id) = description.subgroup(name) else {
            let what = format!("--subgroup {name} is not in the group file");
            return wrong(&what, "take one that is");
        };
        let sends =
            description.subgroups.get(id.index()).is_some_and(|s| s.senders().contains(&node));
        if !sends {
            let what = format!("node {node} does not send in subgroup {name}");
            return wrong(
                &what,
                "take another --subgroup, or add it to the senders in the group file",
            );
        }
        Ok(Some(id))
    }

    /// The state of each subgroup that the node belongs to.
    fn logs(
        &self,
        description: &Description,
        node: u32,
    ) -> Result<BTreeMap<SubgroupId, Log>, Failure> {
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        let ours = subgroups.filter(|(_, subgroup)| subgroup.members().contains(&node));
        let is_one = description.subgroups.len() == 1;
        let open = |(id, subgroup): (SubgroupId, &crate::group::SubgroupDescription)| {
            let log = match &self.log {
                None => Log::Recent(Recent::default()),
                Some(path) if is_one => open_log(path)?,
                Some(path) => open_log(&log_of_subgroup(path, &subgroup.name)?)?,
            };
            Ok((id, log))
        };
        ours.map(open).collect()
    }
}

fn log_of_subgroup(path: &Path, name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') || name.contains('\0') {
        let what = format_args!("subgroup \"{name}\" cannot be part of a file's name");
        return Err(Failure::new(Status::Usage, what, "give it another one, or leave out --log"));
    }
    Ok(log::with_ending(path, name))
}

fn open_log(path: &Path) -> Result<Log, Failure> {
    let wrong = |error: &io::Error| {
        let what = format_args!("cannot open the log {}: {error}", path.display());
        Failure::new(Status::Usage, what, "give each node a --log of its own that it may write")
    };
    LogFile::open(path).map(Log::File).map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_group_file_and_names_every_field() {
        let mut description: Description = toml::from_str(EXAMPLE).expect("it parses");
        description.complete().expect("it is right");
        let defaults = "name = \"log\"\nnodes = [{ id = 0 }, { id = 1 }, { id = 2 }]\n";
        let mut defaults: Description = toml::from_str(defaults).expect("it parses");
        defaults.complete().expect("it is right");
        defaults.subgroups[0].name = "lines".into();
        assert_eq!(description, defaults, "the example shows the defaults");
    }
}
