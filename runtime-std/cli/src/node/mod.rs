//! `tramontane node`: one member of a group that survives its members. It sends standard input and
//! prints the group's order. The node's state is its log, which a joining node receives.
//!
//! | file | contents |
//! |---|---|
//! | `application`, `log` | the node's handling and storage of deliveries |
//! | `event` | reports of its threads to the main one |
//! | `input`, `sent_lines` | the thread that sends lines; the report of lines that were not sent |
//! | `running` | the main thread: waits until the member has to end, and ends it |
//! | `metrics`, `meter`, `http` | metrics for Prometheus; those that the node measures; HTTP |

mod application;
mod event;
mod http;
mod input;
mod log;
mod meter;
mod metrics;
mod rdma_figures;
mod running;
mod sent_lines;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use clap::Args;
use rustix::fs::Mode;
use rustix::process::umask;
use tramontane_control::HostAddress;
use tramontane_core::ids::SubgroupId;

use super::log_file::{Rotation, SharedLogFile, with_ending};
use application::{NodeApplication, Printing, Subgroups};
use event::NodeEvent;
use input::{Input, Lines};
use log::{Recent, SubgroupLog};
use meter::Meter;
use running::RunningNode;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group_file;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::seconds;
use tramontane_local::output::{Output, print_notice};
use tramontane_local::waiting_notice::WaitingNotice;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{
    Description, Forming, Membership, Running, StartError, StartOptions, SubgroupDescription,
    Waiting, start,
};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Input, Status::Resources, Status::Group, Status::Device, Status::Out];

pub(super) const EXAMPLES: &str = "  tramontane node --example-config >group.toml
  In three terminals, in any order; any of them may be killed and started again:
    tramontane node --config group.toml --id 0 --log log-0
    tramontane node --config group.toml --id 1 --log log-1
    tramontane node --config group.toml --id 2 --log log-2
  tramontane status --config group.toml
  tramontane leave --config group.toml --id 2

The log:
  The logs of all members are identical: 'tail -F log-0 log-1 log-2' follows them. A joining node \
receives the log from a member, or restores it from its durable log. FILE must be a regular file, \
which is replaced once the node is a member. If the group is formed anew, the old log is kept as \
FILE.1, FILE.2, and so on. If there are several subgroups, each has its own log: FILE.NAME.
  In a subgroup that is not logged, give --log to all nodes or to none: a node that differs is \
refused. Without --log, a node keeps the last 1000 lines, at most 16 MB, and passes them on to \
joining nodes.
  SIGHUP makes a node reopen FILE, for logrotate. A node that joins later receives only the lines \
since then, unless the subgroup is logged.

Durable logs:
  With logged = true in a subgroup of the group file, each of its members has a folder for durable \
logs: --data DIR, else FILE.data next to --log FILE, else group.data-K next to group.toml. With \
--json, it prints how much is durable whenever that changes: \
{\"durable\":{\"here\":N,\"majority\":M,\"all\":K}} counts the lines since the group began that \
are on the disk of this node, of a majority, and of all members.
  A node whose disk fails or is full exits with status 4, and durable messages are kept. \
'tramontane log DIR/NAME' prints, checks and measures such a log.
  If all nodes ended, start them again in any order, with the same commands. The group continues \
once a majority of its last members is running, with everything that was durable at a majority; \
the other members may return later. Each node reports which nodes it is waiting for. \
--restart-with-less at one node continues without them.

Forming the group:
  The folder FILE.state, or --state DIR, remembers that the node was a member. Once all nodes have \
ended, the group is formed anew only if every initial node is started with --new-group. Otherwise \
the nodes exit with status 5, and their logs are left unchanged.

The end:
  SIGINT and SIGTERM make the node leave. It exits with 0 when the others continue without it. A \
second signal, half a second later, ends it at once. A node that the others removed, or that lost \
the majority, exits with 9.
  A node that ends prints the numbers of the lines that it had read but not sent. A line that is \
too long is refused, with its number, and the node continues; with --leave-at-end, it exits with 3 \
at the end.
  If the output is not read, the node leaves after a quarter of failure_timeout_ms and exits with \
141. A node that was asked to end waits 5 s for the rest to be read.";

/// Run a member of a group that survives failures: nodes may fail, leave and join
#[derive(Args, Debug)]
pub(super) struct NodeOptions {
    /// The group file
    #[arg(long, value_name = "FILE", required_unless_present = "example_config")]
    config: Option<PathBuf>,
    /// Id of this node in the group file
    #[arg(long, value_name = "K", required_unless_present = "example_config")]
    id: Option<u32>,
    /// Print an example group file that explains every field
    #[arg(long, exclusive = true)]
    example_config: bool,
    /// Subgroup to which input lines are sent [default: the first in which this node may send]
    #[arg(long, value_name = "NAME")]
    subgroup: Option<String>,
    /// Append deliveries to FILE instead of printing them
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Folder in which the node remembers its views, so that it does not form a second group
    /// [default: state in the group file, else view in the --data folder, else FILE.state next to
    /// --log FILE]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Folder of this node's durable logs: messages delivered in a logged subgroup (logged = true
    /// in the group file) are made durable in DIR/NAME [default: FILE.data next to --log FILE, else
    /// group.data-K next to the group file]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Keep about N MB of each durable log, and at most twice as much; without this option, keep
    /// everything. A node that returns after older messages were removed receives its state from
    /// the others
    #[arg(long, value_name = "MB", conflicts_with = "log",
          value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    data_keep_mb: Option<u64>,
    /// Form a new group although these nodes were members of an earlier one. Give this option to
    /// every initial node, once and by hand: members of the earlier group that are merely
    /// unreachable continue as a separate group. Old logs are kept
    #[arg(long)]
    new_group: bool,
    /// Restart a logged group with the nodes that are present, if the others will never return.
    /// Messages that only the missing nodes have are lost, and the node records this. Give this
    /// option to one node, once and by hand
    #[arg(long, conflicts_with = "new_group")]
    restart_with_less: bool,
    /// Do not print deliveries
    #[arg(long, conflicts_with = "json")]
    quiet: bool,
    /// Print deliveries and views as JSON, one object per line
    #[arg(long)]
    json: bool,
    /// Leave when the input ends; without this option, the node continues without input
    #[arg(long)]
    leave_at_end: bool,
    /// Time limit for becoming a member, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "60", allow_negative_numbers = true,
          value_parser = seconds)]
    time_limit: Duration,
    /// Serve metrics for Prometheus at http://HOST:PORT/metrics
    #[arg(long, value_name = "HOST:PORT")]
    metrics: Option<HostAddress>,
    /// Allow a --metrics address that other hosts can reach; the metrics are not password-protected
    #[arg(long, requires = "metrics")]
    metrics_exposed: bool,
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
}

/// The part of the failure timeout (one in this many) for which a delivery waits for a reader that
/// reads nothing. The member then leaves of its own accord, well before the others would remove it.
const UNREAD_SHARE: u32 = 4;

/// Example group file that explains every field.
const EXAMPLE: &str = include_str!("example.toml");

/// Runs a node.
pub(super) fn run(arguments: &NodeOptions) -> Result<(), Failure> {
    let (Some(config), Some(node), false) =
        (&arguments.config, arguments.id, arguments.example_config)
    else {
        return io::stdout().write_all(EXAMPLE.as_bytes()).map_err(|error| Failure::output(&error));
    };
    let description = group_file::read(config)?;
    group_file::check_node(&description, node)?;
    if let (true, Some(option)) = (description.fabric != Carrier::Verbs, arguments.device.given()) {
        let what = format_args!("{option} applies only to RDMA devices");
        let advice = "omit it, or set fabric = \"verbs\" in the group file of all members";
        return Err(Failure::usage(what, advice));
    }
    let input = arguments.input_subgroup(&description, node)?;
    if description.key_file.is_some() {
        // Lines that are encrypted on the wire must not be readable by other users in a log either.
        umask(Mode::RWXG | Mode::RWXO);
    }
    let interrupts = Interrupts::watch()?;
    let (board, meter) = (Arc::new(OnceLock::new()), Meter::new(input));
    if let Some(address) = &arguments.metrics {
        metrics::serve(address, arguments.metrics_exposed, Arc::clone(&board), Arc::clone(&meter))?;
    }
    let (sender, events) = mpsc::channel();
    let failed = sender.clone();
    // The others remove a member that delivers nothing for this time.
    let patience = Duration::from_millis(description.failure_timeout_ms) / UNREAD_SHARE;
    let output = Output::start(Some(patience), move |error| {
        // The command may have ended already.
        let _ = failed.send(NodeEvent::OutputFailed(error));
    });
    let output = output.map_err(|error| cannot_start(&error))?;
    let logs = arguments.logs(&description, node)?;
    let files = logs.values().filter_map(SubgroupLog::file).cloned().collect();
    let rotation = Rotation::watch(files)?;
    let application = NodeApplication::new(
        Printing { deliveries: !arguments.quiet && arguments.log.is_none(), json: arguments.json },
        output.clone(),
        sender.clone(),
        logs,
        Subgroups::of(&description),
        Arc::clone(&meter),
    );
    let line_max = input.map_or(usize::MAX, |id| line_max(&description, id));
    let unsent_max = input.map_or(0, |id| unsent_max(&description, id));
    let running = become_member(description, node, arguments, &interrupts, application);
    let mut node = match running {
        Ok(running) => RunningNode::new(running, output, events, rotation, arguments.leave_at_end),
        Err(failure) => return Err(running::reason(&events).unwrap_or(failure)),
    };
    for notice in node.running().log_notices() {
        // This thread owns the receiver.
        let _ = sender.send(NodeEvent::Notice(notice.to_string()));
    }
    let _ = board.set(node.running().shared_status());
    let lines_to = input.and_then(|id| node.running().sender_of(id));
    let lines = Lines { sender: lines_to, line_max, unsent_max, meter };
    let outcome = match Input::start(lines, sender) {
        Ok(input) => {
            node.read(input);
            node.wait_for_end(&interrupts)
        }
        Err(error) => Err(cannot_start(&error)),
    };
    node.end(outcome, &interrupts)
}

fn become_member(
    description: Description,
    node: u32,
    arguments: &NodeOptions,
    interrupts: &Interrupts,
    application: NodeApplication,
) -> Result<Running, Failure> {
    let hands_on_state = description.membership == Membership::Changing
        && description.subgroups.iter().any(|subgroup| !subgroup.logged);
    let data = arguments.data_folder(&description, node)?;
    let options = StartOptions {
        device: arguments.device.options(),
        time_limit: arguments.time_limit,
        cancel: interrupts.flag(),
        forming: arguments.forming(&description, node, data.is_some()),
        data,
        data_keep_bytes: arguments.data_keep_mb.map(|megabytes| megabytes << 20),
        // Compared between the nodes that form a group, before any of them has a state to hand on.
        terms: u64::from(hands_on_state && arguments.log.is_some()),
        ..StartOptions::new(node)
    };
    let is_shared = description.fabric == Carrier::SharedMemory;
    let notice = is_shared.then(|| WaitingNotice::begin(&options.root)).flatten();
    let running = start(description, options, application);
    drop(notice);
    if running.is_err() {
        // A node that is asked to end while waiting does not report the missing nodes.
        interrupts.check()?;
    }
    match running {
        Err(StartError::OtherConfiguration { node, fields })
            if fields.is_empty() && hands_on_state =>
        {
            let with = if arguments.log.is_some() { "without" } else { "with" };
            let what =
                format_args!("node {node} was started {with} --log, or with another group file");
            let advice = "give --log to all nodes or to none, and the same file to all";
            Err(Failure::group(what, advice))
        }
        running => Ok(running?),
    }
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

/// Returns the maximum number of messages that a member may leave unsent when it ends: the size of
/// one view's ring, plus the messages carried over from the previous view.
fn unsent_max(description: &Description, subgroup: SubgroupId) -> usize {
    let window = description.subgroups.get(subgroup.index()).map_or(0, |subgroup| subgroup.window);
    usize::try_from(window).unwrap_or(usize::MAX).saturating_mul(2)
}

impl NodeOptions {
    /// Returns the folder of the node's durable logs: the given folder, or one next to the log or
    /// the group file, which is then reported on standard error.
    fn data_folder(
        &self,
        description: &Description,
        node: u32,
    ) -> Result<Option<PathBuf>, Failure> {
        let is_logged = description
            .subgroups
            .iter()
            .any(|subgroup| subgroup.logged && subgroup.members().contains(&node));
        if self.data.is_some() || !is_logged {
            if self.data.is_none() && self.data_keep_mb.is_some() {
                let what =
                    format_args!("--data-keep-mb is given, but node {node} has no durable log");
                let advice = "omit it, or set logged = true in the group file of all members";
                return Err(Failure::usage(what, advice));
            }
            return Ok(self.data.clone());
        }
        let beside_config = || Some(self.config.as_deref()?.with_extension(format!("data-{node}")));
        let beside_log = self.log.as_deref().map(|log| with_ending(log, "data"));
        let folder = beside_log.or_else(beside_config);
        if let Some(folder) = &folder {
            let text = format!("the durable log is in {} (--data DIR)", folder.display());
            print_notice(&text);
        }
        Ok(folder)
    }

    fn forming(&self, description: &Description, node: u32, has_data: bool) -> Forming {
        let listed = description.nodes.iter().find(|listed| listed.id == node);
        // With a data folder, the membership is stored there.
        let log = self.log.as_deref().filter(|_| !has_data);
        let beside_log = || log.map(|log| with_ending(log, "state"));
        let state = self.state.clone().or_else(|| listed?.state.clone()).or_else(beside_log);
        let print = |waiting: &Waiting| {
            // If standard error fails, there is nowhere else to write.
            let _ = writeln!(io::stderr(), "{waiting}");
        };
        Forming {
            state,
            new_group: self.new_group,
            with_less: self.restart_with_less,
            told: Some(print),
            ..Forming::default()
        }
    }

    /// Returns the subgroup that lines go to, or `None` if this node does not send.
    fn input_subgroup(
        &self,
        description: &Description,
        node: u32,
    ) -> Result<Option<SubgroupId>, Failure> {
        let wrong = |what: &str, advice| Err(Failure::usage(what, advice));
        let Some(name) = &self.subgroup else {
            let mut subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
            return Ok(subgroups.find(|(_, s)| s.senders().contains(&node)).map(|(id, _)| id));
        };
        let Some(id) = description.subgroup(name) else {
            let what = format!("--subgroup {name} is not in the group file");
            return wrong(&what, "choose one of its subgroups");
        };
        let sends =
            description.subgroups.get(id.index()).is_some_and(|s| s.senders().contains(&node));
        if !sends {
            let what = format!("node {node} does not send in subgroup {name}");
            return wrong(
                &what,
                "choose a different --subgroup, or add the node to the senders in the group file",
            );
        }
        Ok(Some(id))
    }

    /// Opens the state of each subgroup to which the node belongs.
    fn logs(
        &self,
        description: &Description,
        node: u32,
    ) -> Result<BTreeMap<SubgroupId, SubgroupLog>, Failure> {
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups);
        let ours = subgroups.filter(|(_, subgroup)| subgroup.members().contains(&node));
        let is_one = description.subgroups.len() == 1;
        let open =
            |(id, subgroup): (SubgroupId, &tramontane_runtime::group::SubgroupDescription)| {
                let log = match &self.log {
                    None => SubgroupLog::Recent(Recent::default()),
                    Some(path) if is_one => SubgroupLog::File(SharedLogFile::open(path)?),
                    Some(path) => SubgroupLog::File(SharedLogFile::open(&log_of_subgroup(
                        path,
                        &subgroup.name,
                    )?)?),
                };
                Ok((id, log))
            };
        ours.map(open).collect()
    }
}

fn log_of_subgroup(path: &Path, name: &str) -> Result<PathBuf, Failure> {
    if name.contains('/') || name.contains('\0') {
        let what = format_args!("the name of subgroup \"{name}\" cannot be part of a file name");
        return Err(Failure::usage(what, "rename the subgroup, or omit --log"));
    }
    Ok(with_ending(path, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_group_file_names_every_field() {
        let mut description: Description = toml::from_str(EXAMPLE).expect("it parses");
        description.complete().expect("it is right");
        let defaults = "name = \"log\"\nnodes = [{ id = 0 }, { id = 1 }, { id = 2 }]\n";
        let mut defaults: Description = toml::from_str(defaults).expect("it parses");
        defaults.complete().expect("it is right");
        defaults.subgroups[0].name = "lines".into();
        // The first lines that a user types must not be lost.
        defaults.subgroups[0].logged = true;
        assert_eq!(description, defaults, "the example shows the defaults");
    }
}
