//! `tramontane status`: the status of a group's nodes, as they report it.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;

use tramontane_local::exit::{Failure, Status};
use tramontane_local::group_file::{GroupOptions, check_node, listed};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::table::Table;
use tramontane_runtime::group::{
    ClientStatus, CutClient, DurableStatus, GroupStatus, OperatorClient, OperatorError, SlowMember,
};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 2] = [Status::Group, Status::NodeDown];

pub(super) const EXAMPLES: &str = "  tramontane status --config group.toml
  tramontane status --config group.toml --watch
  tramontane status --config group.toml --expect-all >/dev/null || echo 'a node is down'
  tramontane status --config group.toml --json | jq '.nodes[] | select(.status == null)'

It exits with 0 if all members of the newest view answer, and with 5 if not. With --id, only that \
node counts. With --expect-all, it exits with 10 if all members answer but a node of the group \
file is not a member.";

/// Print the status of all nodes of a group
#[derive(Args, Debug)]
pub(super) struct StatusOptions {
    #[command(flatten)]
    group: GroupOptions,
    /// Ask only this node
    #[arg(long, value_name = "K")]
    id: Option<u32>,
    /// Exit with status 10 if a node of the group file is not a member of the newest view, or does
    /// not answer
    #[arg(long, conflicts_with_all = ["id", "watch"])]
    expect_all: bool,
    /// Print JSON, with everything that the nodes report
    #[arg(long)]
    json: bool,
    /// Print the status every second, until interrupted
    #[arg(long)]
    watch: bool,
}

/// Time without progress after which a stalled client is named.
const STALL_NAMED_MS: u64 = 1_000;

/// Interval between two queries.
const WATCH: Duration = Duration::from_secs(1);

/// The answer of each node, or the reason why there is none.
type Answers = BTreeMap<u32, Result<GroupStatus, OperatorError>>;

/// All answers, as JSON.
#[derive(Serialize)]
struct StatusReport<'a> {
    group: &'a str,
    nodes: Vec<NodeReport<'a>>,
}

#[derive(Serialize)]
struct NodeReport<'a> {
    node: u32,
    /// `None` if the node does not answer.
    status: Option<&'a GroupStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Asks the nodes, and prints their answers.
pub(super) fn run(arguments: &StatusOptions) -> Result<(), Failure> {
    let (description, visits) = arguments.group.open()?;
    if let Some(node) = arguments.id {
        check_node(&description, node)?;
    }
    let interrupts = Interrupts::watch()?;
    loop {
        let started = Instant::now();
        let answers = arguments.ask(&visits, &interrupts);
        interrupts.check()?;
        arguments.print(&description.name, &answers).map_err(|error| Failure::output(&error))?;
        if !arguments.watch {
            return judge(&answers, arguments.expect_all);
        }
        while started.elapsed() < WATCH {
            interrupts.check()?;
            std::thread::sleep(WATCH / 20);
        }
    }
}

impl StatusOptions {
    fn ask(&self, visits: &OperatorClient, interrupts: &Interrupts) -> Answers {
        let limit = self.group.time_limit;
        match self.id {
            Some(node) => BTreeMap::from([(node, visits.status(node, limit, interrupts.flag()))]),
            None => visits.statuses(limit, interrupts.flag()),
        }
    }

    fn print(&self, group: &str, answers: &Answers) -> io::Result<()> {
        let mut output = io::stdout().lock();
        if self.json {
            let nodes = answers.iter().map(|(node, answer)| NodeReport {
                node: *node,
                status: answer.as_ref().ok(),
                error: answer.as_ref().err().map(ToString::to_string),
            });
            let report = StatusReport { group, nodes: nodes.collect() };
            serde_json::to_writer(&mut output, &report)?;
            writeln!(output)?;
        } else {
            if self.watch && output.is_terminal() {
                // Moves to the upper left corner and clears the screen.
                write!(output, "\x1b[H\x1b[2J")?;
            }
            write!(output, "{}", table(answers))?;
            for note in answers.values().flatten().flat_map(notes) {
                writeln!(output, "{note}")?;
            }
        }
        output.flush()
    }
}

fn table(answers: &Answers) -> Table {
    let headings = "node  state  view  members  suspected  msgs/s  delivered  sent  frontiers";
    let mut table = Table::new(headings, &[1, 3, 4, 8]);
    for (node, answer) in answers {
        match answer {
            Ok(status) => table.row(row(status)),
            Err(error) => table.row([node.to_string(), in_short(error)]),
        }
    }
    table
}

fn row(status: &GroupStatus) -> [String; 9] {
    let frontiers = status.subgroups.iter().map(|subgroup| {
        let closed = if subgroup.closed { " closed" } else { "" };
        // Positions in a log count from the beginning of the group. Other positions restart with
        // each view.
        let progress = match subgroup.durable {
            Some(DurableStatus { delivered, here, majority, all, .. }) => {
                format!("{delivered} durable {here}/{majority}/{all}")
            }
            None => format!("{}/{}", subgroup.delivered, subgroup.received),
        };
        format!("{} {progress}{closed}", subgroup.name)
    });
    let joining = listed(status.joining.iter().copied());
    let state = if joining.is_empty() { String::new() } else { format!(", joining: {joining}") };
    [
        status.node.to_string(),
        format!("{}{state}", status.state.name()),
        status.view.to_string(),
        listed(status.members.iter().copied()),
        if status.suspected.is_empty() {
            "-".into()
        } else {
            listed(status.suspected.iter().copied())
        },
        status.delivered_per_second.to_string(),
        status.delivered.to_string(),
        status.sent.to_string(),
        frontiers.collect::<Vec<_>>().join(", "),
    ]
}

/// Returns a node's notes on members that delay the others, and on its clients.
fn notes(status: &GroupStatus) -> Vec<String> {
    let GroupStatus { node, notices, slow, clients, cut, .. } = status;
    let seconds = |ms: u64| format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    let mut notes: Vec<String> =
        notices.iter().map(|notice| format!("node {node}: {notice}")).collect();
    for SlowMember { node: slow, subgroup, holds, lasts_ms } in slow {
        let (holds, lasts) = (listed(holds.iter().copied()), seconds(*lasts_ms));
        notes.push(format!(
            "node {node} reports that {slow} has been holding back {holds} in {subgroup} for \
             {lasts}"
        ));
    }
    for client in clients.iter().filter(|client| client.stalled_ms >= STALL_NAMED_MS) {
        let ClientStatus { name, stalled_ms, .. } = client;
        notes.push(format!(
            "node {node}: client {name} has read nothing for {}",
            seconds(*stalled_ms)
        ));
    }
    for CutClient { name, why } in cut {
        let why = why.split(';').next().unwrap_or_default();
        notes.push(format!("node {node}: client {name} was disconnected: {why}"));
    }
    if !clients.is_empty() {
        let count = |kind| clients.iter().filter(|client| client.kind == kind).count();
        let publishers = count("publisher");
        let subscribers = count("subscriber") + count("follower");
        notes.push(format!("node {node}: clients: {publishers} publish, {subscribers} subscribe"));
    }
    notes
}

/// Formats an error without the remedy, for which the table has no room.
fn in_short(error: &OperatorError) -> String {
    let text = error.to_string();
    if let OperatorError::Forming { .. } = error {
        // The node reports only which nodes it is waiting for.
        return text;
    }
    text.split(';').next().unwrap_or_default().to_owned()
}

/// Returns the newest view in all answers, and its members.
pub(super) fn newest<'a>(
    statuses: impl Iterator<Item = &'a GroupStatus>,
) -> Option<(u64, &'a [u32])> {
    statuses.max_by_key(|status| status.view).map(|status| (status.view, status.members.as_slice()))
}

fn judge(answers: &Answers, expect_all: bool) -> Result<(), Failure> {
    let wrong = |what: String, advice| Err(Failure::group(what, advice));
    if let (1, Some((node, Err(error)))) = (answers.len(), answers.first_key_value()) {
        return Err(Failure::with_text(Status::Group, format_args!("node {node}: {error}")));
    }
    let Some((view, members)) = newest(answers.values().flatten()) else {
        let failure = answers.values().find_map(|answer| match answer {
            Err(OperatorError::OpenSession(tramontane_control::OpenSessionError::NotThere))
            | Ok(_) => None,
            Err(error) => Some(format!("no node answers as a member: {error}")),
        });
        return match failure {
            Some(text) => Err(Failure::with_text(Status::Group, text)),
            None => wrong("no node is running".into(), "start them: tramontane node"),
        };
    };
    if answers.len() == 1 {
        return Ok(());
    }
    let missing = members.iter().filter(|node| !matches!(answers.get(node), Some(Ok(_))));
    let missing = listed(missing.copied());
    if !missing.is_empty() {
        let what = format!("these members of view {view} do not answer: {missing}");
        return wrong(what, "restart those that have ended");
    }
    let down = listed(answers.keys().filter(|node| !members.contains(node)).copied());
    if expect_all && !down.is_empty() {
        let what = format!("these nodes of the group file are not members of view {view}: {down}");
        return Err(Failure::new(Status::NodeDown, what, "start them: tramontane node"));
    }
    Ok(())
}
