//! `tramontane plan`: who sends which block to whom in which step, before anything is sent (RDM-8).

mod draw;
mod summary;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroU16;

use clap::Args;
use serde::Serialize;
use tramontane_core::ids::{Rank, Step};
use tramontane_core::rdmc::{Algorithm, Schedule, Shape};

use super::exit::{Failure, Status};
use super::options::AlgorithmName;
use summary::Summary;

pub(super) const EXAMPLES: &str = "  tramontane plan --members 8 --blocks 5
      the binomial pipeline among eight members
  tramontane plan --algorithm hybrid --racks 3 --members 12 --blocks 4 --rank 4
      what member 4 sends and receives
  tramontane plan --algorithm chain --members 6 --blocks 4 --json
      as JSON
  tramontane plan --members 7 --blocks 3 --svg >plan.svg
      as a drawing";

/// Beyond so many members times steps a plan is no longer printed: the summary remembers when blocks came.
const CELLS_MAX: u64 = 5_000_000;

/// Print or draw the schedule of a block multicast.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// How blocks go
    #[arg(long, value_enum, default_value_t = AlgorithmName::Pipeline)]
    algorithm: AlgorithmName,
    /// Members of the group, the root among them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    members: u16,
    /// Blocks of the message
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    blocks: u32,
    /// Racks of the hybrid; members are dealt to them in rank order, as evenly as can be
    #[arg(long, value_name = "R", required_if_eq("algorithm", "hybrid"))]
    racks: Option<NonZeroU16>,
    /// Only what this member sends and receives; the root is 0
    #[arg(long, value_name = "RANK")]
    rank: Option<u16>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "svg")]
    json: bool,
    /// Print a drawing, for up to 64 members and 200 steps
    #[arg(long)]
    svg: bool,
}

/// A block's way from one member to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Send {
    step: u64,
    from: u16,
    to: u16,
    block: u32,
}

/// A schedule, and whose part of it is wanted.
struct Plan {
    name: AlgorithmName,
    schedule: Schedule,
    rank: Option<u16>,
}

/// Prints the plan.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = Plan::of(arguments)?;
    let mut output = BufWriter::new(io::stdout().lock());
    let printed = if arguments.svg {
        let drawing = draw::svg(&plan)?;
        output.write_all(drawing.as_bytes())
    } else if arguments.json {
        plan.json(&mut output)
    } else {
        plan.text(&mut output)
    };
    printed.and_then(|()| output.flush()).map_err(|error| Failure::output(&error))
}

impl Plan {
    fn of(arguments: &Arguments) -> Result<Self, Failure> {
        let Arguments { algorithm: name, members, blocks, racks, rank, .. } = *arguments;
        let usage =
            |what: std::fmt::Arguments<'_>, advice| Err(Failure::new(Status::Usage, what, advice));
        let Some(shape) = Shape::new(members, blocks) else {
            return usage(
                format_args!("nobody, or nothing to send"),
                "give --members and --blocks from 1",
            );
        };
        if racks.is_some() && name != AlgorithmName::Hybrid {
            return usage(
                format_args!("only the hybrid has racks"),
                "leave --racks, or take --algorithm hybrid",
            );
        }
        let algorithm = match name {
            AlgorithmName::Hybrid => Algorithm::Hybrid { racks: racks.unwrap_or(NonZeroU16::MIN) },
            name => name.without_racks()?,
        };
        let Ok(schedule) = Schedule::new(algorithm, shape) else {
            return usage(
                format_args!("more racks than members"),
                "take fewer --racks or more --members",
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
            let what = format_args!(
                "{} steps of {members} members are too many to print",
                schedule.steps()
            );
            return usage(what, "take fewer --blocks or --members, or one --rank");
        }
        Ok(Self { name, schedule, rank })
    }

    fn members(&self) -> u16 {
        self.schedule.shape().members.get()
    }

    /// The sends of a step: all, or those of the wanted member.
    fn sends(&self, step: u64) -> impl Iterator<Item = Send> + '_ {
        let senders = self.rank.map_or(0..self.members(), |rank| rank..rank + 1);
        let sent = senders.flat_map(move |from| {
            let hops = self.schedule.sent(Rank(from), Step(step)).into_iter().flatten();
            hops.map(move |hop| Send { step, from, to: hop.peer.0, block: hop.block.0 })
        });
        let received = self.rank.and_then(|to| {
            let hop = self.schedule.received(Rank(to), Step(step))?;
            Some(Send { step, from: hop.peer.0, to, block: hop.block.0 })
        });
        sent.chain(received)
    }

    /// One JSON object. Sends are written as they are worked out.
    fn json(&self, output: &mut impl Write) -> io::Result<()> {
        let shape = self.schedule.shape();
        let name = serde_json::to_string(&self.name)?;
        write!(
            output,
            "{{\"algorithm\":{name},\"members\":{},\"blocks\":{},\"steps\":{},\"sends\":[",
            shape.members,
            shape.blocks,
            self.schedule.steps()
        )?;
        let mut summary = Summary::new(&self.schedule, self.rank);
        let mut comma = "";
        for send in (0..self.schedule.steps()).flat_map(|step| self.sends(step)) {
            summary.count(&send);
            output.write_all(comma.as_bytes())?;
            serde_json::to_writer(&mut *output, &send)?;
            comma = ",";
        }
        writeln!(output, "],\"summary\":{}}}", serde_json::to_string(&summary.finish())?)
    }

    fn text(&self, output: &mut impl Write) -> io::Result<()> {
        let mut summary = Summary::new(&self.schedule, self.rank);
        writeln!(output, "step  from>to:block")?;
        for step in 0..self.schedule.steps() {
            let mut line = String::new();
            for send in self.sends(step) {
                summary.count(&send);
                let Send { from, to, block, .. } = send;
                // Writing to a string cannot fail.
                let _ = write!(line, "  {from}>{to}:{block}");
            }
            // One member may have nothing to do.
            if !line.is_empty() {
                writeln!(output, "{step:>4}{line}")?;
            }
        }
        write!(output, "\n{}", summary.finish())
    }
}
