//! `tramontane demo`: a group of real processes on this machine, real input, and a comparison of what every
//! one of them delivered.
//!
//! | file | what it holds |
//! |---|---|
//! | `records` | input as lines or blocks |
//! | `spool` | the records in memory that all members map |
//! | `deal` | which record is whose |
//! | `talk` | what parent and members say to each other |
//! | `member` | a member's process |
//! | `ledger` | what a member notes of every delivery |
//! | `crew` | the parent: starts members, hears them, and finds out which one failed |
//! | `report` | the comparison, as a table or JSON |

mod crew;
mod deal;
mod ledger;
mod member;
mod records;
mod report;
mod spool;
mod talk;

pub(super) use crew::MEMBER_COMMAND;

use std::fs::File;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use tramontane_core::layout::MEMBERS_MAX;

use super::exit::{Failure, Status};
use super::interrupt::Interrupts;
use super::options::{JoinOption, WindowOption, record_bytes};
use crate::configuration::{GroupConfiguration, MESSAGE_MAX_DEFAULT};
use crate::local::Carrier;
use crate::rdma::DeviceOptions;
use crate::shared_memory::Root;
use records::{Cut, CutError, cut};
use spool::{Filling, Spool};

pub(super) const EXAMPLES: &str = "  tramontane demo
      three processes multicast recorded air traffic to each other
  tramontane demo --nodes 4 --senders 1 --input access.log --repeat 10
      the lines of a file, ten times over, from one of four members
  tramontane demo --fabric verbs
      over RDMA, where this machine has a device and this program is built with it
  head -c 1G /dev/urandom | tramontane demo --input /dev/stdin --block 10240 --json
      blocks of 10 KB; the result as JSON";

/// Run a group of processes here: multicast real input, and compare what each of them delivered.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Members of the group, each a process
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..=MEMBERS_MAX as i64))]
    nodes: u16,
    /// How many of them send [default: all]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u16).range(1..=MEMBERS_MAX as i64))]
    senders: Option<u16>,
    /// A file to take records from, any that can be read; several are taken one after the other
    /// [default: recorded air-traffic messages, part of this program]
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// Cut the input into blocks of this size instead of lines
    #[arg(long, value_name = "BYTES")]
    block: Option<NonZeroUsize>,
    /// The largest record that is taken, and the size of a slot [default: 10240, and slots as large as the
    /// largest record that there is]
    #[arg(long, value_name = "BYTES", value_parser = record_bytes::<0>)]
    message_max: Option<u32>,
    #[command(flatten)]
    window: WindowOption,
    /// Send the input so many times
    #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    #[command(flatten)]
    join: JoinOption,
    /// What carries the writes
    #[arg(long, value_enum, default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    #[command(flatten)]
    device: DeviceOptions,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// A member of a demo: a process that `demo` starts.
#[derive(Args, Debug)]
pub(super) struct MemberArguments {
    /// What it is to do, as JSON
    brief: String,
}

/// What a run is to do, all checked.
#[derive(Debug)]
struct Plan {
    group: GroupConfiguration,
    /// Messages in all, repetitions included.
    total: u64,
    repeat: u64,
    join: JoinOption,
    fabric: Carrier,
    device: DeviceOptions,
}

/// Runs the demo.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let senders = arguments.senders.unwrap_or(arguments.nodes);
    if senders > arguments.nodes {
        let what = format_args!("{senders} senders among {} members", arguments.nodes);
        return Err(Failure::new(Status::Usage, what, "take fewer --senders or more --nodes"));
    }
    let root = Root::from_env();
    let swept = root.sweep()?;
    if !swept.is_empty() {
        tracing::info!(?swept, "removed what earlier runs left");
    }
    let spool = take_in(arguments, &root)?;
    let largest = u32::try_from(spool.record_max).unwrap_or(u32::MAX);
    let message_max = arguments.message_max.unwrap_or(largest);
    let records = spool.shape().records as u64;
    let Some(total) = records.checked_mul(arguments.repeat) else {
        let what = format_args!("{records} records {} times are too many", arguments.repeat);
        return Err(Failure::new(Status::Usage, what, "take a smaller --repeat"));
    };
    let group =
        GroupConfiguration::single(arguments.nodes, senders, arguments.window.window, message_max);
    group.with_layout(|layout| tracing::debug!(digest = layout.digest(), "the layout"))?;
    let plan = Plan {
        group,
        total,
        repeat: arguments.repeat,
        join: arguments.join,
        fabric: arguments.fabric,
        device: arguments.device.clone(),
    };

    // From here on there are processes to be ended in order; before, a signal may just end this one.
    let interrupts = Interrupts::watch()?;
    let outcome = crew::run(&plan, &spool, &interrupts);
    if let Err(error) = root.sweep() {
        tracing::warn!(%error, "cannot look for what is left in shared memory");
    }
    let outcome = report::compare(&plan, spool.shape().bytes, &outcome?);
    let text = if arguments.json { outcome.json()? + "\n" } else { outcome.table() };
    let mut output = io::stdout().lock();
    write!(output, "{text}")
        .and_then(|()| output.flush())
        .map_err(|error| Failure::output(&error))?;
    outcome.verdict()
}

/// Runs one member of a demo; a status other than success if that did not go well.
pub(super) fn run_member(arguments: &MemberArguments) -> Option<Status> {
    member::run(&arguments.brief)
}

/// Puts all input into a spool.
fn take_in(arguments: &Arguments, root: &Root) -> Result<Spool, Failure> {
    let limit = arguments.message_max.unwrap_or(MESSAGE_MAX_DEFAULT) as usize;
    let how = arguments.block.map_or(Cut::Lines, Cut::Blocks);
    if let Some(block) = arguments.block.filter(|block| block.get() > limit) {
        let what =
            format_args!("blocks of {block} bytes are larger than the largest record of {limit}");
        return Err(Failure::new(
            Status::Usage,
            what,
            "take a smaller --block or a larger --message-max",
        ));
    }
    let folder = root.path().parent().unwrap_or(root.path());
    let mut filling = Filling::new(folder)?;
    if arguments.input.is_empty() {
        let embedded = tramontane_fixtures::samples::ADSB;
        cut(embedded, how, limit, |record| filling.push(record))
            .map_err(|error| explain("the embedded sample", limit, error))?;
    }
    for path in &arguments.input {
        let name = path.display().to_string();
        let cannot = |error| explain(&name, limit, CutError::Read(error));
        let file = File::open(path).map_err(cannot)?;
        cut(file, how, limit, |record| filling.push(record))
            .map_err(|error| explain(&name, limit, error))?;
    }
    if filling.records() == 0 {
        let names: Vec<_> = arguments.input.iter().map(|path| path.display().to_string()).collect();
        let what = format_args!("no records in {}: the input is empty", names.join(", "));
        return Err(Failure::new(Status::Input, what, "give a file with at least one line"));
    }
    filling.finish()
}

fn explain(name: &str, limit: usize, error: CutError<Failure>) -> Failure {
    match error {
        CutError::Read(error) => {
            let what = format_args!("cannot read {name}: {error}");
            Failure::new(Status::Input, what, "give a file that you may read")
        }
        CutError::TooLarge(number) => {
            let what = format_args!("record {number} of {name} is larger than {limit} bytes");
            Failure::new(Status::Input, what, "raise --message-max, or cut the input with --block")
        }
        CutError::Refused(failure) => failure,
    }
}
