//! `tramontane leave`: asks a node to leave its group, and waits until it has left.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use clap::Args;

use super::status::newest;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group_file::{GroupOptions, check_node, listed};
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::group::{GroupStatus, OperatorClient, OperatorError};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 1] = [Status::Group];

pub(super) const EXAMPLES: &str = "  tramontane leave --config group.toml --id 2

The node exits with 0 once the others continue without it, and with 9 if they had removed it \
before. It prints the numbers of the input lines that it had read but not sent. When this command \
exits with 0, the node's process has ended: its log, address and metrics port are free.";

/// Ask a node to leave its group, and wait until its process has ended
#[derive(Args, Debug)]
pub(super) struct LeaveOptions {
    #[command(flatten)]
    group: GroupOptions,
    /// Id of the node
    #[arg(long, value_name = "K")]
    id: u32,
}

/// Interval between two checks.
const PAUSE: Duration = Duration::from_millis(50);

/// Time limit for one check.
const LOOK: Duration = Duration::from_secs(1);

/// Asks a node to leave, waits until it has left, and prints that.
pub(super) fn run(arguments: &LeaveOptions) -> Result<(), Failure> {
    let (description, visits) = arguments.group.open()?;
    let (node, limit) = (arguments.id, arguments.group.time_limit);
    check_node(&description, node)?;
    let interrupts = Interrupts::watch()?;
    let until = Instant::now() + limit;
    let incarnation = visits.ask_to_leave(node, limit, interrupts.flag()).map_err(|error| {
        Failure::with_text(Status::Group, format_args!("cannot ask node {node} to leave: {error}"))
    })?;
    let mut out = None;
    loop {
        interrupts.check()?;
        out = out.or_else(|| look(&visits, node, &interrupts));
        if let Some(text) = &out
            && visits.has_ended(node, incarnation, LOOK, interrupts.flag())
        {
            return writeln!(io::stdout(), "{text}").map_err(|error| Failure::output(&error));
        }
        if Instant::now() >= until {
            return Err(too_late(node, limit, out));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Reports that the time limit has passed. `out` is the text to print if the node has left.
fn too_late(node: u32, limit: Duration, out: Option<String>) -> Failure {
    let what = match out {
        Some(text) => format!("{text}, but its process has not ended after {limit:?}"),
        None => format!("node {node} was asked to leave, but is still a member after {limit:?}"),
    };
    Failure::group(what, "see 'tramontane status', or raise --time-limit")
}

/// Returns the text to print if the node has left, or `None` if it has not.
fn look(visits: &OperatorClient, node: u32, interrupts: &Interrupts) -> Option<String> {
    let answers = visits.statuses(LOOK, interrupts.flag());
    let others = answers.iter().filter(|(other, _)| **other != node);
    let others: Vec<&GroupStatus> = others.filter_map(|(_, answer)| answer.as_ref().ok()).collect();
    match newest(others.into_iter()) {
        Some((_, members)) if members.contains(&node) => None,
        Some((view, members)) => {
            Some(format!("node {node} has left; view {view}: {}", listed(members.to_vec())))
        }
        None => {
            let is_gone = matches!(
                answers.get(&node),
                Some(Err(OperatorError::OpenSession(
                    tramontane_control::OpenSessionError::NotThere
                )))
            );
            is_gone.then(|| format!("node {node} has left; it was the last member"))
        }
    }
}
