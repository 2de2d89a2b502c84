//! `tramontane-lab plan`: prints the schedule of a block multicast before anything is sent (RDM-8).

mod summary;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU16;

use clap::Args;
use serde::Serialize;
use tramontane_core::ids::{Rank, Step};
use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

use summary::Summary;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::options::AlgorithmName;
use tramontane_local::options::without_racks;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 1] = [Status::Resources];

pub(super) const EXAMPLES: &str = "  tramontane-lab plan --members 8 --blocks 5
      the binomial pipeline among eight members
  tramontane-lab plan --algorithm hybrid --racks 3 --members 12 --blocks 4
      a pipeline among three racks, and one in each
  tramontane-lab plan --algorithm chain --members 6 --blocks 4 --json
      as JSON";

/// Maximum product of members and steps in a printed plan, because the summary stores the arrival
/// of every block.
const CELLS_MAX: u64 = 5_000_000;

/// Print the schedule of a block multicast.
#[derive(Args, Debug)]
pub(super) struct PlanOptions {
    /// The algorithm that schedules blocks
    #[arg(long, value_enum, default_value_t = AlgorithmName::Pipeline)]
    algorithm: AlgorithmName,
    /// The number of members, including the root
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    members: u16,
    /// The number of blocks in the message
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    blocks: u32,
    /// Number of racks, for the hybrid algorithm; members are assigned to racks in rank order,
    /// evenly
    #[arg(long, value_name = "R", required_if_eq("algorithm", "hybrid"))]
    racks: Option<NonZeroU16>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A block that one member sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Send {
    step: u64,
    from: u16,
    to: u16,
    block: u32,
}

/// Returns the sends in a step.
fn sends(schedule: &Schedule, step: u64) -> impl Iterator<Item = Send> + '_ {
    (0..schedule.shape().members.get()).flat_map(move |from| {
        let hops = schedule.sent(Rank(from), Step(step)).into_iter().flatten();
        hops.map(move |hop| Send { step, from, to: hop.peer.0, block: hop.block.0 })
    })
}

/// Prints the plan.
pub(super) fn run(arguments: &PlanOptions) -> Result<(), Failure> {
    let plan = plan_of(arguments)?;
    let mut output = BufWriter::new(io::stdout().lock());
    let printed = if arguments.json {
        json(arguments.algorithm, &plan, &mut output)
    } else {
        text(&plan, &mut output)
    };
    printed.and_then(|()| output.flush()).map_err(|error| Failure::output(&error))
}

fn plan_of(arguments: &PlanOptions) -> Result<Schedule, Failure> {
    let PlanOptions { algorithm: name, members, blocks, racks, .. } = *arguments;
    let usage = |what: std::fmt::Arguments<'_>, advice| Err(Failure::usage(what, advice));
    let Some(shape) = Shape::new(members, blocks) else {
        return usage(
            format_args!("a schedule needs at least one member and one block"),
            "set --members and --blocks to 1 or more",
        );
    };
    if racks.is_some() && name != AlgorithmName::Hybrid {
        return usage(
            format_args!("only the hybrid algorithm has racks"),
            "omit --racks, or use --algorithm hybrid",
        );
    }
    let algorithm = match name {
        AlgorithmName::Hybrid => Algorithm::Hybrid { racks: racks.unwrap_or(NonZeroU16::MIN) },
        name => without_racks(name)?,
    };
    let Ok(schedule) = Schedule::new(algorithm, shape) else {
        return usage(
            format_args!("there are more racks than members"),
            "use fewer --racks or more --members",
        );
    };
    if schedule.steps().saturating_mul(u64::from(members)) > CELLS_MAX {
        let what =
            format_args!("{} steps of {members} members are too many to print", schedule.steps());
        return usage(what, "use fewer --blocks or --members");
    }
    Ok(schedule)
}

/// Prints one JSON object. Sends are written as they are computed.
fn json(name: AlgorithmName, plan: &Schedule, output: &mut impl Write) -> io::Result<()> {
    let shape = plan.shape();
    let name = serde_json::to_string(&name)?;
    write!(
        output,
        "{{\"algorithm\":{name},\"members\":{},\"blocks\":{},\"steps\":{},\"sends\":[",
        shape.members,
        shape.blocks,
        plan.steps()
    )?;
    let mut summary = Summary::new(plan);
    let mut comma = "";
    for send in (0..plan.steps()).flat_map(|step| sends(plan, step)) {
        summary.count(&send);
        output.write_all(comma.as_bytes())?;
        serde_json::to_writer(&mut *output, &send)?;
        comma = ",";
    }
    writeln!(output, "],\"summary\":{}}}", serde_json::to_string(&summary.finish())?)
}

fn text(plan: &Schedule, output: &mut impl Write) -> io::Result<()> {
    let mut summary = Summary::new(plan);
    writeln!(output, "step  from>to:block")?;
    for step in 0..plan.steps() {
        let mut line = String::new();
        for send in sends(plan, step) {
            summary.count(&send);
            let Send { from, to, block, .. } = send;
            // Writing to a string cannot fail.
            let _ = write!(line, "  {from}>{to}:{block}");
        }
        writeln!(output, "{step:>4}{line}")?;
    }
    write!(output, "\n{}", summary.finish())
}
