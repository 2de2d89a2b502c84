//! `tramontane copy`: files and directories to several places at once, at nearly the price of one copy.
//!
//! | file | what it holds |
//! |---|---|
//! | `group` | the groups of a copy: one for what is copied, and two with each receiver, for what it says and is told |
//! | `sending` | the root: what is copied goes out as one archive, and what became of it comes back |
//! | `packing` | the thread that packs and sends it |
//! | `hearing` | what receivers say to the root, and whose failure ends a copy |
//! | `telling` | what the root says to each receiver |
//! | `source` | what is to be copied |
//! | `archive` | files as entries of an archive |
//! | `receiving` | a receiver: unpacks beside the place, and moves there once everybody has everything |
//! | `orders` | what a receiver hears of the root |
//! | `nested` | places that lie in what is copied |
//! | `place`, `directories` | the directory that is copied into; those that arrive in it |
//! | `entries` | what a receiver lets an archive hold |
//! | `standstill` | a copy in which nothing goes on, and who is waited for |
//! | `stream` | bytes as messages, and messages as bytes |
//! | `talk` | what members say to each other |
//! | `messages` | how they say it |
//! | `crew` | receivers on this machine, each a process |
//! | `report` | progress, and the table at the end |
//!
//! # What is kept
//! - **Nothing, until all have everything.** Receivers unpack into a directory of their own beside what is to be.
//!   Only when each has everything, with the checksum of the source, does each move it into place.
//! - **Moving cannot be undone everywhere.** A receiver that cannot move all of it moves nothing. The others keep what they
//!   have in place, and all say who failed. The root tells each to move in a message of its own, which no other receiver
//!   passes on: who lives is told, unless the root dies between two of them.
//! - **One says why.** The root learns of whoever failed, and tells it to all who live; they wait for its word before they
//!   believe what it looks like to them.
//! - **No rights that come with an owner.** Owners are not kept, and so neither is what a file may do as its owner.
//! - **Bounded memory.** Each member has four buffers of 16 MiB, at a receiver up to 24 with large blocks, and one block, however
//!   large the files are.
//! - **Nothing but what was announced.** A receiver takes files, directories and links below the names of the manifest, none
//!   of which is there before. Until they are in their place nobody else can open them.
//! - **No resuming.** What an interrupted copy left is in the way of the next, which says so.

mod archive;
mod crew;
mod directories;
mod entries;
#[cfg(any(test, fuzzing))]
pub(crate) mod garbage;
mod group;
mod hearing;
#[cfg(test)]
mod hostile;
mod messages;
mod nested;
mod orders;
mod packing;
mod place;
mod receiving;
mod report;
mod sending;
mod source;
mod standstill;
mod stream;
mod talk;
mod telling;
#[cfg(test)]
mod tests;
#[cfg(any(test, fuzzing))]
mod victim;

pub(super) use crew::MEMBER_COMMAND;

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::exit::{Failure, Status};
use super::group_file;
use super::interrupt::Interrupts;
use super::options::{AlgorithmName, JoinOption};
use crate::blocks::GroupOptions;
use crate::group::{Description, Doors};
use crate::join::{Meeting, NetworkMeeting};
use crate::local::{Carrier, LocalError};
use crate::rdma::{self, DeviceOptions};
use crate::shared_memory::{GroupName, Root};
use group::{CHUNK_BYTES, Job, block_bytes};
use report::Report;

pub(super) const EXAMPLES: &str = "  tramontane copy data.bin --to /mnt/a,/mnt/b,/mnt/c
      a file into three directories of this machine, by a process each
  tramontane copy --config group.toml --id 1 --to /srv/data
  tramontane copy --config group.toml --id 0 model/ index.db
      on the hosts of a group file: node 1 takes what node 0 copies; every node of the file takes part
  tramontane copy --config group.toml --id 0 --fabric verbs --allow-clear data.bin
      the same over RDMA, in clear, from hosts that meet over TCP; say so at all of them";

/// Copy files and directories to several places at once.
///
/// Every receiver unpacks beside the place, compares a checksum, and moves everything there once all have it. Who fails before
/// leaves nobody with anything; who fails while it moves (status 6) has nothing, the others have everything, and all say so. If
/// the one that copies dies at that moment, some may have it and others not: each says what it has.
/// What is there already is not replaced, and a copy that was interrupted is not resumed.
///
/// Files, directories and links arrive with their permissions and times, in whole seconds, as whoever runs 'copy' there owns
/// them; so the bits that let a file run as its owner or group (setuid, setgid) and the sticky bit do not arrive. Extended
/// attributes do not either, and files that are one by hard links arrive as several.
///
/// Takes about 80 MB of memory a member, however large the files are; over shared memory receivers show 64 MB more, which are
/// the sender's; and up to 40 MB more with a large --block.
///
/// Between hosts a copy takes the addresses of the group file: over TCP a node of the group that runs has them.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Files and directories to copy; none at a receiver of a group file
    #[arg(value_name = "FILE", required_unless_present = "config")]
    files: Vec<PathBuf>,
    /// Directories to copy into, each by a process of its own; with --config, the one of this node
    #[arg(
        long,
        value_name = "DIRECTORY,...",
        value_delimiter = ',',
        required_unless_present = "config"
    )]
    to: Vec<PathBuf>,
    /// The group file of hosts; every node of it takes part
    #[arg(long, value_name = "FILE", requires = "id")]
    config: Option<PathBuf>,
    /// Which node of the group file this is
    #[arg(long, value_name = "ID", requires = "config")]
    id: Option<u32>,
    /// Which node copies to the others [default: the first of the group file]
    #[arg(long, value_name = "ID", requires = "config")]
    from: Option<u32>,
    /// What carries the bytes [default: shared memory, or what the group file says; nodes that meet over TCP may say
    /// 'verbs', all of them]
    #[arg(long, value_enum)]
    fabric: Option<Carrier>,
    /// Go over RDMA in clear, though the group file has a key: at all nodes, on a network that you trust
    #[arg(long, requires = "config")]
    allow_clear: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    blocks: BlockOptions,
    #[command(flatten)]
    join: JoinOption,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// How blocks go.
#[derive(Args, Clone, Copy, Debug, Serialize, Deserialize)]
struct BlockOptions {
    /// Who sends which block to whom; the same at all nodes of a group file, or they say so and end [default: what suits the
    /// fabric]
    #[arg(long, value_enum)]
    algorithm: Option<AlgorithmName>,
    /// Bytes of a block, from 4096 to 8388608; the same at all nodes of a group file [default: 1048576, and
    /// over TCP 131072]
    #[arg(long, value_name = "BYTES", value_parser = block_bytes)]
    block: Option<usize>,
}

impl BlockOptions {
    fn of(self, carrier: Carrier) -> Result<GroupOptions, Failure> {
        let mut options = GroupOptions::for_fabric(carrier, CHUNK_BYTES);
        if let Some(algorithm) = self.algorithm {
            options.algorithm = algorithm.without_racks()?;
        }
        options.block_bytes = self.block.unwrap_or(options.block_bytes);
        Ok(options)
    }
}

/// Copies.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let report = match &arguments.config {
        None => crew::copy(arguments, &interrupts)?,
        Some(path) => match hosts(arguments, &group_file::read(path)?, &interrupts)? {
            Some(report) => report,
            // A receiver has said what it did.
            None => return Ok(()),
        },
    };
    report.print(arguments.json)
}

/// Runs a receiver that `copy` started.
pub(super) fn run_member(brief: &crew::MemberArguments) -> Option<Status> {
    crew::run_member(brief)
}

pub(super) use crew::MemberArguments;

/// One node's part in a copy between the nodes of a group file.
fn hosts(
    arguments: &Arguments,
    description: &Description,
    interrupts: &Interrupts,
) -> Result<Option<Report>, Failure> {
    let own = arguments.id.unwrap_or_default();
    let from = arguments
        .from
        .or_else(|| description.nodes.first().map(|node| node.id))
        .unwrap_or_default();
    for node in [own, from] {
        group_file::check_node(description, node)?;
    }
    let carrier = carrier(arguments.fabric, description.fabric)?;
    let nodes = description.nodes.iter().map(|node| node.id).collect();
    let job = Job {
        nodes,
        own,
        root: from,
        meeting: meeting(description, from, carrier, arguments)?,
        join_timeout: arguments.join.join_timeout,
        options: arguments.blocks.of(carrier)?,
    };
    if own == from {
        if arguments.files.is_empty() || !arguments.to.is_empty() {
            let what = format_args!("node {own} is the one that copies to the others");
            return Err(Failure::new(
                Status::Usage,
                what,
                "give it files, and no --to; or say --from",
            ));
        }
        let sent = sending::send(&job, &arguments.files, interrupts.flag(), &|| interrupts.check());
        return Ok(Some(sent?));
    }
    let (true, [to]) = (arguments.files.is_empty(), arguments.to.as_slice()) else {
        let what = format_args!("node {own} receives what node {from} copies");
        return Err(Failure::new(
            Status::Usage,
            what,
            "give it one --to, and no files; or say --from",
        ));
    };
    let received = receiving::receive(&job, to, interrupts.flag()).map_err(|failure| {
        // It knows that it was asked to end, and not how.
        let asked = interrupts.check().err().filter(|_| failure.status == Status::Interrupted);
        asked.map_or_else(|| failure.clone(), |asked| Failure::told(asked.status, failure.text()))
    })?;
    // Also where a signal came too late to change anything.
    report::received(&received, to, arguments.json)?;
    Ok(None)
}

/// What carries a copy between the nodes of a group file: what the file says, or RDMA where they meet over TCP.
fn carrier(wanted: Option<Carrier>, usual: Carrier) -> Result<Carrier, Failure> {
    match wanted {
        None => Ok(usual),
        Some(Carrier::Verbs) if usual == Carrier::Tcp => Ok(Carrier::Verbs),
        Some(wanted) if wanted == usual => Ok(usual),
        Some(_) => {
            let what = "the nodes of the group file meet in another way";
            Err(Failure::new(
                Status::Usage,
                what,
                "leave --fabric out, or say 'verbs' where the file says 'tcp'",
            ))
        }
    }
}

/// Where the nodes of a group file meet to copy from one of them. Over shared memory that is apart from where its members
/// meet; over a network it is at the same addresses. Whoever takes another node for the one that copies is not met.
fn meeting(
    description: &Description,
    from: u32,
    carrier: Carrier,
    Arguments { device, allow_clear, .. }: &Arguments,
) -> Result<Meeting, Failure> {
    if let (Carrier::SharedMemory | Carrier::Tcp, Some(option)) = (carrier, device.given()) {
        return Err(LocalError::NoDevice(option).into());
    }
    if carrier == Carrier::SharedMemory {
        let name = GroupName::new(&format!("{}-copy-from-{from}", description.name))?;
        return Ok(Meeting::SharedMemory { root: Root::from_env(), name });
    }
    let allow_clear = description.allow_clear || *allow_clear;
    let carried = Description { fabric: carrier, allow_clear, ..description.clone() };
    let network = NetworkMeeting {
        addresses: description.nodes.iter().filter_map(|node| node.address).collect(),
        key: Doors::of(&carried, &Root::from_env())?.into_key(),
        allow_clear,
        terms: u64::from(from).wrapping_add(1),
        ..NetworkMeeting::default()
    };
    if carrier == Carrier::Verbs {
        return Ok(rdma::meeting(network, device).map_err(LocalError::from)?);
    }
    Ok(Meeting::Tcp(network))
}
