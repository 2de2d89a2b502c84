//! The program `tramontane-copy`: copies files and directories to several destinations at once, at
//! nearly the cost of one copy.
//!
//! A copy is a group of processes: one sending member, and its receivers. The group's order carries
//! the manifest, the readiness of each receiver, and the commit. Its views show which member
//! failed. The data is sent by block multicast.
//!
//! | file | contents |
//! |---|---|
//! | `group` | the group of a copy: its two subgroups, its limits, and joining it |
//! | `messages` | the messages between members |
//! | `ledger` | the state that all members share, and the decision |
//! | `member` | a process in the group: it sends notices, and waits for changes of the shared state |
//! | `sending` | the sending member |
//! | `source` | the files and directories to copy |
//! | `archive` | files as entries of an archive |
//! | `receiving` | a receiver: unpacks next to the destination, and moves everything there after the commit |
//! | `stream` | bytes as chunks, and chunks as bytes |
//! | `stall` | a copy without progress, and the cause |
//! | `nested` | destinations inside the source |
//! | `place`, `directories` | the destination directory; the directories that arrive in it |
//! | `entries` | a receiver's limits on an archive |
//! | `crew` | receivers on this machine, each a process |
//! | `report` | progress, and the table at the end |
//!
//! # The steps of a copy
//! 1. All members meet. The sender announces the manifest: names, size, and block settings.
//! 2. Each receiver accepts the manifest, or reports why not. Then the archive arrives in chunks,
//!    and each receiver unpacks it into a temporary directory inside the destination directory,
//!    next to where the files will be.
//! 3. Once a receiver has the whole archive on its disk, it reports that it is ready, with its
//!    checksum.
//! 4. When all are ready with the checksum of the source, the sender commits. A receiver that
//!    delivers the commit moves everything to its destination, and reports having done so.
//! 5. A member that knows the result of all receivers reports that it has finished, and ends when
//!    all others have finished too.
//!
//! # Outcomes
//! The copy is decided by whichever comes first: a commit, a reported failure, or the loss of a
//! member. All surviving members see the same first event. A member that halts before it has
//! delivered the commit has nothing; a member that halts later still finishes.
//!
//! | event | surviving receivers | the sender | status |
//! |---|---|---|---|
//! | no failure | have everything | reports success | 0 |
//! | a receiver cannot continue (a full disk, an existing name) | have nothing, and report which receiver failed and why | the same | that of the failure |
//! | a receiver is lost before the commit | have nothing, and report which receiver was lost | the same | 6 |
//! | a receiver is lost after the commit | have everything, and report that not every receiver may | the same | 6 |
//! | a receiver cannot move the files after the commit | have everything, and report which receiver has nothing; that receiver has nothing | the same | 6; 3 at that receiver |
//! | the sender fails or is lost before the commit | have nothing, and report that | reports why, if it lives | 6; that of the failure |
//! | the sender is lost after the commit was sent | with a majority of all: all have everything, or none has anything; all have everything if one delivered the commit | - | 0, or 6 if none has it |
//! | the only receiver is lost before it has reported success | - | has no majority: reports the loss, and if the commit was sent, that the receiver may have everything | 6 |
//! | the sender is lost, and there is one receiver | has everything if the commit was delivered, else nothing | - | 0 or 6 |
//! | the network splits, or members are stopped for half of the stall time | those without a majority halt, and have nothing unless the commit was delivered; those with a majority continue as if the others were lost | the same | 6 |
//! | a disk stops, but no process | have nothing after the stall time, and report which receiver has the least | the same | 6 or 3 |
//!
//! A receiver that is lost after it has delivered the commit, but before it has moved the files,
//! has nothing at its destination. For each name, it has either the whole entry or nothing.
//!
//! # Guarantees
//! - **Nothing until all have everything.** A receiver that cannot move all entries moves none.
//! - **No permissions that depend on an owner.** Owners are not kept, so neither is the permission
//!   to run a file as its owner.
//! - **Bounded memory.** A chunk has 16 MiB. The sender holds at most four. A receiver holds at
//!   most six (including four that have arrived but have not been taken) and one block, however
//!   large the files are.
//! - **Only what was announced.** A receiver accepts files, directories and links under the names
//!   of the manifest, none of which may exist already. No other user can open them until they are
//!   at their destination.
//! - **No resuming.** The remains of an interrupted copy block the next one, which reports that.

mod archive;
mod crew;
mod directories;
mod entries;
#[cfg(any(test, fuzzing))]
pub mod garbage;
mod group;
#[cfg(test)]
mod hostile;
mod ledger;
mod member;
mod messages;
mod nested;
mod place;
mod receiving;
mod report;
mod sending;
mod source;
mod stall;
mod stream;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
mod victim;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use serde::{Deserialize, Serialize};

use group::{Job, STALL_DEFAULT_S, block_bytes, stall_time};
use report::CopyReport;
use tramontane_core::rdmc::Algorithm;
use tramontane_local::exit::{Failure, Status, help};
use tramontane_local::group::LocalError;
use tramontane_local::group_file;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::{AlgorithmName, DeviceArguments};
use tramontane_local::options::{JoinOption, without_racks};
use tramontane_local::program::{LogOptions, Program};
use tramontane_runtime::blocks::GroupOptions;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, LargeBlocks, StartOptions};
use tramontane_runtime::rdma::DeviceOptions;

/// The exit statuses of this command, in addition to those of every command.
const STATUSES: [Status; 6] = [
    Status::Input,
    Status::Resources,
    Status::Group,
    Status::PeerLost,
    Status::Disagreement,
    Status::Device,
];

const EXAMPLES: &str = "  tramontane-copy data.bin --to /mnt/a,/mnt/b,/mnt/c
      a file into three directories of this machine, by a process each
  tramontane-copy --config group.toml --id 1 --to /srv/data
  tramontane-copy --config group.toml --id 0 model/ index.db
      on the hosts of a group file: node 1 receives what node 0 copies; every node in the file \
takes part
  tramontane-copy --config group.toml --id 0 --fabric verbs --allow-clear data.bin
      the same over RDMA, unencrypted, for hosts that meet over TCP; give these options on all of \
them";

/// Copy files and directories to several places at once.
///
/// Every receiver unpacks into a temporary directory inside the destination and compares a
/// checksum. Once all are ready, the sender commits, and each receiver moves everything to its
/// destination. If a member fails before the commit, no receiver keeps anything, and all members
/// report which member failed and why. If a receiver fails after the commit (status 6), it has
/// nothing, the others have everything, and all members report that. If the sender dies, the
/// receivers make the same decision: all have everything, or all have nothing. This also holds if
/// the network splits or members are stopped: a majority of all members continues, and the others
/// have nothing unless they knew of the commit. A copy with only two members needs both. Existing
/// files are not replaced. An interrupted copy is not resumed.
///
/// Files, directories and links arrive with their permissions and times, with times in whole
/// seconds, and belong to the user that runs the receiver. Therefore the bits that let a file run
/// as its owner or group (setuid, setgid) and the sticky bit are removed. Extended attributes are
/// not copied, and hard links arrive as separate files.
///
/// The sender takes about 65 MB of memory, and a receiver up to 115 MB, however large the files
/// are; a large --block takes up to 40 MB more.
///
/// Between hosts, a copy uses the addresses in the group file. Over TCP, it cannot use a node's
/// address while that node is running in its own group.
#[derive(Parser, Debug)]
#[command(name = "tramontane-copy", version, after_help = help(EXAMPLES, &STATUSES))]
pub struct CopyCommand {
    #[command(flatten)]
    log: LogOptions,
    /// Task of a receiver that this program started
    #[arg(long, hide = true, exclusive = true)]
    member: Option<String>,
    /// Files and directories to copy; give none at a receiver with a group file
    #[arg(value_name = "FILE", required_unless_present = "config")]
    files: Vec<PathBuf>,
    /// Directories to copy into, each by a separate process; with --config, the directory on this
    /// node
    #[arg(
        long,
        value_name = "DIRECTORY,...",
        value_delimiter = ',',
        required_unless_present = "config"
    )]
    to: Vec<PathBuf>,
    /// Group file with the hosts; every node in it takes part
    #[arg(long, value_name = "FILE", requires = "id")]
    config: Option<PathBuf>,
    /// Id of this node in the group file
    #[arg(long, value_name = "ID", requires = "config")]
    id: Option<u32>,
    /// Id of the sending node [default: the first in the group file]
    #[arg(long, value_name = "ID", requires = "config")]
    from: Option<u32>,
    /// Transport for the data [default: shared memory, or the fabric of the group file; nodes that
    /// meet over TCP may use 'verbs' if all of them do]
    #[arg(long, value_enum)]
    fabric: Option<Carrier>,
    /// Use unencrypted RDMA although the group file has a key: on all nodes, in a network that you
    /// trust
    #[arg(long, requires = "config")]
    allow_clear: bool,
    #[command(flatten)]
    device: DeviceArguments,
    #[command(flatten)]
    blocks: BlockOptions,
    #[command(flatten)]
    join: JoinOption,
    /// Abandon a copy that makes no progress for this many seconds; a member that is stopped or
    /// unreachable counts as lost after half of that time. Must be the same on all nodes of a group
    /// file
    #[arg(long, value_name = "SECONDS", default_value = STALL_DEFAULT_S, value_parser = stall_time)]
    stall_timeout: Duration,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Settings of the block multicast.
#[derive(Args, Clone, Copy, Debug, Serialize, Deserialize)]
struct BlockOptions {
    /// Schedule by which members send blocks to each other; it must be the same on all nodes of a
    /// group file; `hybrid` needs a `rack` for each node of the group file [default: hybrid if the
    /// nodes have racks and the fabric is not shared memory, else depends on the fabric]
    #[arg(long, value_enum)]
    algorithm: Option<AlgorithmName>,
    /// Size of a block in bytes, from 4096 to 8388608; must be the same on all nodes of a group
    /// file [default: 1048576, and over TCP 131072]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes)]
    block: Option<usize>,
}

impl BlockOptions {
    fn of(self, carrier: Carrier, group: &Description) -> Result<LargeBlocks, Failure> {
        let usual = GroupOptions::for_fabric(carrier, usize::MAX);
        let algorithm = match (self.algorithm, group.racks()) {
            (None, _) => group.over_racks(usual.algorithm),
            (Some(AlgorithmName::Hybrid), Some(racks)) => Algorithm::Hybrid { racks },
            (Some(name), _) => without_racks(name)?,
        };
        Ok(LargeBlocks { algorithm, bytes: self.block.unwrap_or(usual.block_bytes) })
    }
}

impl Program for CopyCommand {
    const NAME: &'static str = "tramontane-copy";

    fn log(&self) -> LogOptions {
        self.log
    }

    fn run(&self) -> Result<(), Failure> {
        self.member.as_deref().map_or_else(|| run(self), crew::run_member)
    }
}

/// Copies.
fn run(arguments: &CopyCommand) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let report = match &arguments.config {
        None => crew::copy(arguments, &interrupts)?,
        Some(path) => match hosts(arguments, &group_file::read(path)?, &interrupts)? {
            Some(report) => report,
            // A receiver has printed its own result.
            None => return Ok(()),
        },
    };
    report.print(arguments.json)
}

/// Runs one node of a copy between the nodes of a group file.
fn hosts(
    arguments: &CopyCommand,
    description: &Description,
    interrupts: &Interrupts,
) -> Result<Option<CopyReport>, Failure> {
    let own = arguments.id.unwrap_or_default();
    let from = arguments
        .from
        .or_else(|| description.nodes.first().map(|node| node.id))
        .unwrap_or_default();
    for node in [own, from] {
        group_file::check_node(description, node)?;
    }
    let carrier = carrier(arguments.fabric, description.fabric)?;
    if let (Carrier::SharedMemory | Carrier::Tcp, Some(option)) =
        (carrier, arguments.device.given())
    {
        return Err(LocalError::NoDevice(option).into());
    }
    let mut job = Job {
        // The copy forms its own group, separate from the group in the file. Nodes that choose
        // different senders do not meet.
        group: Description {
            name: format!("{}-copy-from-{from}", description.name),
            fabric: carrier,
            allow_clear: description.allow_clear || arguments.allow_clear,
            rdma: match carrier {
                Carrier::Verbs => description.rdma.clone(),
                Carrier::SharedMemory | Carrier::Tcp => DeviceOptions::default(),
            },
            ..description.clone()
        },
        sender: from,
        options: StartOptions {
            device: arguments.device.options(),
            time_limit: arguments.join.join_timeout,
            ..StartOptions::new(own)
        },
        stall: arguments.stall_timeout,
        blocks: arguments.blocks.of(carrier, description)?,
    };
    if own == from {
        if arguments.files.is_empty() || !arguments.to.is_empty() {
            let what = format_args!("node {own} is the sender of this copy");
            return Err(Failure::usage(
                what,
                "give it files and no --to, or choose a different sender with --from",
            ));
        }
        let sent = sending::send(&mut job, &arguments.files, interrupts.flag(), &|| {
            Ok(interrupts.check()?)
        });
        return Ok(Some(sent?));
    }
    let (true, [to]) = (arguments.files.is_empty(), arguments.to.as_slice()) else {
        let what = format_args!("node {own} is a receiver of the copy from node {from}");
        return Err(Failure::usage(
            what,
            "give it one --to and no files, or choose a different sender with --from",
        ));
    };
    let received = receiving::receive(&mut job, to, interrupts.flag()).map_err(|failure| {
        // The receiver knows that it was interrupted, but not by which signal.
        let signal = interrupts.check().err().filter(|_| failure.status == Status::Interrupted);
        signal.map_or_else(
            || failure.clone(),
            |signal| Failure::with_text(Failure::from(signal).status, failure.text()),
        )
    })?;
    // Printed even if a signal came too late to change anything.
    report::received(&received, to, arguments.json)?;
    Ok(None)
}

/// Returns the fabric of a copy between the nodes of a group file: the fabric in the file, or RDMA
/// if requested and the nodes meet over TCP.
fn carrier(wanted: Option<Carrier>, usual: Carrier) -> Result<Carrier, Failure> {
    match wanted {
        None => Ok(usual),
        Some(Carrier::Verbs) if usual == Carrier::Tcp => Ok(Carrier::Verbs),
        Some(wanted) if wanted == usual => Ok(usual),
        Some(_) => {
            let what = "the group file uses a different fabric";
            Err(Failure::usage(what, "omit --fabric, or use 'verbs' with a group file for 'tcp'"))
        }
    }
}
