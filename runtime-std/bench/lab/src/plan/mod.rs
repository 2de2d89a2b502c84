//! `tramontane-lab plan`: prints or draws the schedule of a block multicast, before anything is
//! sent (RDM-8).

mod draw;
mod schedule;
mod summary;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU16;

use clap::Args;
use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

use schedule::{PlannedSchedule, Send};
use summary::Summary;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::options::AlgorithmName;
use tramontane_local::options::without_racks;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 1] = [Status::Resources];

pub(super) const EXAMPLES: &str = "  tramontane-lab plan --members 8 --blocks 5
      the binomial pipeline among eight members
  tramontane-lab plan --algorithm hybrid --racks 3 --members 12 --blocks 4 --rank 4
      what member 4 sends and receives
  tramontane-lab plan --algorithm chain --members 6 --blocks 4 --json
      as JSON
  tramontane-lab plan --members 7 --blocks 3 --svg >plan.svg
      as a drawing";

/// Maximum product of members and steps in a printed plan, because the summary stores the arrival
/// of every block.
const CELLS_MAX: u64 = 5_000_000;

/// Print or draw the schedule of a block multicast.
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
    /// Print only the sends and receives of this member; the root is 0
    #[arg(long, value_name = "RANK")]
    rank: Option<u16>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "svg")]
    json: bool,
    /// Print a drawing, for up to 64 members and 200 steps
    #[arg(long)]
    svg: bool,
}

/// Prints the plan.
pub(super) fn run(arguments: &PlanOptions) -> Result<(), Failure> {
    let plan = plan_of(arguments)?;
    let mut output = BufWriter::new(io::stdout().lock());
    let printed = if arguments.svg {
        let drawing = draw::svg(&plan)?;
        output.write_all(drawing.as_bytes())
    } else if arguments.json {
        json(&plan, &mut output)
    } else {
        text(&plan, &mut output)
    };
    printed.and_then(|()| output.flush()).map_err(|error| Failure::output(&error))
}

fn plan_of(arguments: &PlanOptions) -> Result<PlannedSchedule, Failure> {
    let PlanOptions { algorithm: name, members, blocks, racks, rank, .. } = *arguments;
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
    if let Some(rank) = rank.filter(|rank| *rank >= members) {
        return usage(
            format_args!("there is no member {rank} among {members}"),
            "ranks begin at 0",
        );
    }
    let members_shown = if rank.is_some() { 1 } else { u64::from(members) };
    if schedule.steps().saturating_mul(members_shown) > CELLS_MAX {
        let what =
            format_args!("{} steps of {members} members are too many to print", schedule.steps());
        return usage(what, "use fewer --blocks or --members, or one --rank");
    }
    Ok(PlannedSchedule { name, schedule, rank })
}

/// Prints one JSON object. Sends are written as they are computed.
fn json(plan: &PlannedSchedule, output: &mut impl Write) -> io::Result<()> {
    let shape = plan.schedule.shape();
    let name = serde_json::to_string(&plan.name)?;
    write!(
        output,
        "{{\"algorithm\":{name},\"members\":{},\"blocks\":{},\"steps\":{},\"sends\":[",
        shape.members,
        shape.blocks,
        plan.schedule.steps()
    )?;
    let mut summary = Summary::new(&plan.schedule, plan.rank);
    let mut comma = "";
    for send in (0..plan.schedule.steps()).flat_map(|step| plan.sends(step)) {
        summary.count(&send);
        output.write_all(comma.as_bytes())?;
        serde_json::to_writer(&mut *output, &send)?;
        comma = ",";
    }
    writeln!(output, "],\"summary\":{}}}", serde_json::to_string(&summary.finish())?)
}

fn text(plan: &PlannedSchedule, output: &mut impl Write) -> io::Result<()> {
    let mut summary = Summary::new(&plan.schedule, plan.rank);
    writeln!(output, "step  from>to:block")?;
    for step in 0..plan.schedule.steps() {
        let mut line = String::new();
        for send in plan.sends(step) {
            summary.count(&send);
            let Send { from, to, block, .. } = send;
            // Writing to a string cannot fail.
            let _ = write!(line, "  {from}>{to}:{block}");
        }
        // A single member may have nothing to do in a step.
        if !line.is_empty() {
            writeln!(output, "{step:>4}{line}")?;
        }
    }
    write!(output, "\n{}", summary.finish())
}
