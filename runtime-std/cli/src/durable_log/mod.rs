//! `tramontane log`: reads a member's log on disk, without its group. The log is never modified.

mod check;
mod print;

use std::path::{Path, PathBuf};

use clap::Args;
use tramontane_log::{Log, Noted, Recovery, SystemFolder};

use tramontane_local::exit::{Failure, Status};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 3] = [Status::Input, Status::Resources, Status::Group];

pub(super) const EXAMPLES: &str = "  tramontane log /var/lib/group/log
      its messages in order, one per line
  tramontane log /var/lib/group/log --from 1000 --count 10 --json
      ten of them as JSON, with view, position and sender
  tramontane log /var/lib/group/log --check
      read the whole log, and name any damage";

/// Print or check the log of a member that is not running
#[derive(Args, Debug)]
pub(super) struct DurableLogOptions {
    /// Folder of the log
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Number of the first message to print [default: the first in the log]
    #[arg(long, value_name = "SEQUENCE")]
    from: Option<u64>,
    /// Print at most N messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Read the whole log, summarise its contents, and name any damage
    #[arg(long, conflicts_with_all = ["from", "count"])]
    check: bool,
    /// With --check: the node's --state folder, which stores the number of records that the log has
    /// had [default: the folder named view next to the log, if it exists]
    #[arg(long, value_name = "DIR", requires = "check")]
    state: Option<PathBuf>,
    /// Print JSON: one object per message, or one for a check
    #[arg(long)]
    json: bool,
}

/// Prints or checks the log.
pub(super) fn run(arguments: &DurableLogOptions) -> Result<(), Failure> {
    if arguments.check {
        return check::run(&arguments.folder, arguments.state.as_deref(), arguments.json);
    }
    let (log, _) = open(&arguments.folder, None)?;
    print::run(&log, arguments.from, arguments.count, arguments.json)
}

fn open(folder: &Path, noted: Option<Noted>) -> Result<(Log<SystemFolder>, Recovery), Failure> {
    let layer = SystemFolder::read_only(folder).map_err(|error| {
        let what = format_args!("cannot read {}: {error}", folder.display());
        Failure::new(Status::Input, what, "give the folder of a log that you may read")
    })?;
    Ok(Log::open_to_read(layer, noted)?)
}
