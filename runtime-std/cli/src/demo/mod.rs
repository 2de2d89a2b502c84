//! `tramontane demo`: a group of real processes on this machine with real input, and a comparison
//! of their deliveries.
//!
//! | file | contents |
//! |---|---|
//! | `records` | input as lines or blocks |
//! | `input` | the records in memory that all members map |
//! | `share` | the records that each sender sends |
//! | `plan` | the plan of a run |
//! | `messages` | messages between parent and members |
//! | `member` | a member's process |
//! | `ledger` | a member's record of every delivery |
//! | `supervisor` | the parent: starts members, takes their reports, and finds the one that failed |
//! | `report` | the comparison, as a table or JSON |

mod input;
mod ledger;
mod member;
mod messages;
mod plan;
mod records;
mod report;
mod share;
mod supervisor;

pub(super) use member::run as run_member;

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use tramontane_core::layout::MEMBERS_MAX;

use input::{Input, InputWriter};
use plan::DemoPlan;
use records::{Cut, CutError, cut};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::{JoinOption, WindowOption, record_bytes};
use tramontane_local::output::print_result;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, MESSAGE_MAX_DEFAULT, View};
use tramontane_runtime::shared_memory::Root;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 6] = [
    Status::Input,
    Status::Resources,
    Status::Group,
    Status::PeerLost,
    Status::Disagreement,
    Status::Device,
];

pub(super) const EXAMPLES: &str = "  tramontane demo
      three processes multicast recorded air traffic among themselves
  tramontane demo --nodes 4 --senders 1 --input access.log --repeat 10
      the lines of a file, ten times over, from one of four members
  tramontane demo --fabric verbs
      over RDMA, if this machine has a device
  head -c 1G /dev/urandom | tramontane demo --input /dev/stdin --block 10240 --json
      blocks of 10 KB; the result as JSON";

/// Run a group of processes on this machine: multicast real input, and compare what each process
/// delivered.
#[derive(Args, Debug)]
pub(super) struct DemoOptions {
    /// Number of members; each is a separate process
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=MEMBERS_MAX as i64))]
    nodes: u32,
    /// Number of members that send [default: all]
    #[arg(long, value_name = "S",
          value_parser = clap::value_parser!(u32).range(1..=MEMBERS_MAX as i64))]
    senders: Option<u32>,
    /// File of records; several files are read in turn [default: recorded air traffic, which is
    /// built in]
    #[arg(long, value_name = "FILE")]
    input: Vec<PathBuf>,
    /// Cut the input into blocks of this size in bytes instead of lines
    #[arg(long, value_name = "BYTES")]
    block: Option<NonZeroUsize>,
    /// Size of the largest record and of a slot, in bytes [default: limit of 10240, and slots as
    /// large as the largest record in the input]
    #[arg(long, value_name = "BYTES", value_parser = record_bytes::<0>)]
    message_max: Option<u32>,
    #[command(flatten)]
    window: WindowOption,
    /// Number of times to send the input
    #[arg(long, value_name = "TIMES", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..))]
    repeat: u64,
    #[command(flatten)]
    join: JoinOption,
    /// Transport for messages
    #[arg(long, value_parser = tramontane_local::options::carrier(),
          default_value_t = Carrier::SharedMemory)]
    fabric: Carrier,
    #[command(flatten)]
    device: tramontane_local::options::DeviceArguments,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Recorded air traffic, one report per line.
const SAMPLE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/data/adsb-lax.txt"));

/// Runs the demo.
pub(super) fn run(arguments: &DemoOptions) -> Result<(), Failure> {
    let senders = arguments.senders.unwrap_or(arguments.nodes);
    if senders > arguments.nodes {
        let what = format_args!("{senders} senders are more than the {} members", arguments.nodes);
        return Err(Failure::usage(what, "give a smaller --senders or a larger --nodes"));
    }
    let root = Root::from_env();
    let swept = root.sweep()?;
    if !swept.is_empty() {
        tracing::info!(?swept, "removed the files of earlier runs");
    }
    let input = take_in(arguments, &root)?;
    let largest = u32::try_from(input.record_max).unwrap_or(u32::MAX);
    let message_max = arguments.message_max.unwrap_or(largest);
    let records = input.shape().records as u64;
    let Some(total) = records.checked_mul(arguments.repeat) else {
        let what =
            format_args!("{records} records, repeated {} times, are too many", arguments.repeat);
        return Err(Failure::usage(what, "give a smaller --repeat"));
    };
    let group = Description::builder("demo")
        .nodes(arguments.nodes)
        .senders(senders)
        .window(arguments.window.window)
        .message_max(message_max)
        .fixed()
        .build()?;
    let layout = group.view_layout(&View::of_all(&group))?;
    tracing::debug!(digest = layout.get().digest(), "the layout");
    let plan = DemoPlan {
        group,
        total,
        repeat: arguments.repeat,
        join: arguments.join,
        fabric: arguments.fabric,
        device: arguments.device.options(),
    };

    // From here on, the processes must be shut down in order. Before this point, a signal could
    // simply end this process.
    let interrupts = Interrupts::watch()?;
    let outcome = supervisor::run(&plan, &input, &interrupts);
    if let Err(error) = root.sweep() {
        tracing::warn!(%error, "cannot remove the files of earlier runs in shared memory");
    }
    let outcome = report::compare(&plan, input.shape().bytes, &outcome?);
    print_result(arguments.json, &outcome, report::DemoOutcome::table)?;
    outcome.verdict()
}

/// Copies all records into memory that members can map.
fn take_in(arguments: &DemoOptions, root: &Root) -> Result<Input, Failure> {
    let limit = arguments.message_max.unwrap_or(MESSAGE_MAX_DEFAULT) as usize;
    let how = arguments.block.map_or(Cut::Lines, Cut::Blocks);
    if let Some(block) = arguments.block.filter(|block| block.get() > limit) {
        let what = format_args!(
            "blocks of {block} bytes are larger than the largest permitted record of {limit}"
        );
        return Err(Failure::usage(what, "give a smaller --block or a larger --message-max"));
    }
    let folder = root.path().parent().unwrap_or(root.path());
    let mut writer = InputWriter::new(folder)?;
    if arguments.input.is_empty() {
        let embedded = SAMPLE;
        cut(embedded, how, limit, |record| writer.push(record))
            .map_err(|error| explain("the embedded sample", limit, error))?;
    }
    for path in &arguments.input {
        let name = path.display().to_string();
        let cannot = |error| explain(&name, limit, CutError::Read(error));
        let file = File::open(path).map_err(cannot)?;
        cut(file, how, limit, |record| writer.push(record))
            .map_err(|error| explain(&name, limit, error))?;
    }
    if writer.records() == 0 {
        let names: Vec<_> = arguments.input.iter().map(|path| path.display().to_string()).collect();
        let what = format_args!("no records in {}: the input is empty", names.join(", "));
        return Err(Failure::input(what, "give a file with at least one line"));
    }
    writer.finish()
}

fn explain(name: &str, limit: usize, error: CutError<Failure>) -> Failure {
    match error {
        CutError::Read(error) => {
            let what = format_args!("cannot read {name}: {error}");
            Failure::input(what, "give a readable file")
        }
        CutError::TooLarge(number) => {
            let what = format_args!("record {number} of {name} is larger than {limit} bytes");
            Failure::input(what, "raise --message-max, or cut the input with --block")
        }
        CutError::Refused(failure) => failure,
    }
}
