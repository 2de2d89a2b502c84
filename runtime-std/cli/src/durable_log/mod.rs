//! `tramontane log`: a member's log on disk, without its group. It is read alone; only `--measure`
//! writes, to a folder of its own, which it removes.

mod check;
mod measure;
mod print;

use std::path::{Path, PathBuf};

use clap::Args;
use tramontane_log::{Log, Recovery, SystemFolder};

use super::exit::{Failure, Status};

pub(super) const EXAMPLES: &str = "  tramontane log /var/lib/group/log
      its messages in their order, a line each
  tramontane log /var/lib/group/log --from 1000 --count 10 --json
      ten of them with view, place and sender, as JSON
  tramontane log /var/lib/group/log --check
      read all of it, and name what is damaged
  tramontane log /var/lib/group/log --measure
      what a log takes there, in turn with plain writers that sync as often";

/// Print, check or measure the log of a member that does not run
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The folder of the log
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The first message to print, by its number in the log [default: the first there is]
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,
    /// Print so many messages at most
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Read all of it, say what there is, and name what is damaged
    #[arg(long, conflicts_with_all = ["from", "count", "measure"])]
    check: bool,
    /// Measure what a log takes on that disk; the folder may be empty
    #[arg(long, conflicts_with_all = ["from", "count"])]
    measure: bool,
    /// With --measure: so many logs at the same time
    #[arg(long, value_name = "N", default_value_t = 1, requires = "measure",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    logs: u16,
    /// Print JSON: an object a message, or one for a check or measurement
    #[arg(long)]
    json: bool,
}

/// Prints, checks or measures.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.measure {
        return measure::run(&arguments.folder, arguments.logs, arguments.json);
    }
    let (log, recovery) = open(&arguments.folder)?;
    if arguments.check {
        return check::run(&log, &recovery, arguments.json);
    }
    print::run(&log, arguments.from, arguments.count, arguments.json)
}

fn open(folder: &Path) -> Result<(Log<SystemFolder>, Recovery), Failure> {
    let layer = SystemFolder::read_only(folder).map_err(|error| {
        let what = format_args!("cannot read {}: {error}", folder.display());
        Failure::new(Status::Input, what, "look at the path")
    })?;
    Ok(Log::open_to_read(layer)?)
}
